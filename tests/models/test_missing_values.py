"""Receivers of spaces whose attributes have different numbers of values."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver
from icy.models.creation import create
from tests.training.test_cuda_graphs import Watch

SPACE = MeaningSpace.parse("5,2,3")


def receiver(name: str = "FC2L", space: MeaningSpace = SPACE) -> nn.Module:
    torch.manual_seed(1)
    return create_receiver(name, space, 6, 4, 8).eval()


@pytest.mark.parametrize(
    "name", ["FC1L", "FC2L", "RNN1L:GRU", "Hier:LSTM", "CNN", "Transformer", "MeanEmbeddings", "kNN"]
)
def test_values_that_an_attribute_lacks_have_no_probability(name: str) -> None:
    model, messages = receiver(name), torch.randint(4, (7, 6))
    if name == "kNN":
        model.observe(messages, torch.from_numpy(SPACE.meanings(torch.arange(7).numpy())))  # type: ignore[operator]
    probabilities = model(messages).softmax(-1)
    assert probabilities.shape == (7, 3, 5)
    existing = torch.from_numpy(SPACE.existing)
    assert (probabilities[:, ~existing] == 0).all()
    assert (probabilities[:, existing] > 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(7, 3))


def test_the_scores_of_other_values_are_those_of_a_grid() -> None:
    messages, existing = torch.randint(4, (7, 6)), torch.from_numpy(SPACE.existing)
    in_grid = receiver(space=MeaningSpace(3, 5))
    assert torch.equal(receiver()(messages)[:, existing], in_grid(messages)[:, existing])
    assert receiver().state_dict().keys() == in_grid.state_dict().keys()


def test_copies_and_pickles_keep_the_rule() -> None:
    model, messages = receiver(), torch.randint(4, (7, 6))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), receiver().double().float()):
        assert torch.equal(other(messages), model(messages))
    half = model.to(torch.bfloat16)(messages)
    assert half.isfinite().all()
    assert (half.softmax(-1)[:, ~torch.from_numpy(SPACE.existing)] == 0).all()


def test_no_gradient_goes_to_missing_values() -> None:
    model = create(registry.get("FC1L", "receiver"), SPACE, 6, 4, 8)
    scores = model(torch.randint(4, (9, 6)))
    nn.functional.cross_entropy(scores.flatten(0, 1), torch.zeros(27, dtype=torch.long)).backward()
    (table,) = model.parameters()
    assert table.grad is not None
    assert (table.grad.view(-1, 3, 5)[:, ~torch.from_numpy(SPACE.existing)] == 0).all()


def test_nothing_is_copied_from_the_host_after_the_first_batch() -> None:
    """A captured update cannot contain such a copy; "meta" replaces the GPU."""
    model, messages = receiver().to("meta"), torch.zeros(7, 6, dtype=torch.long, device="meta")
    model(messages)
    with Watch() as watch:
        model(messages)
    assert not watch.found
