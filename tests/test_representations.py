"""Representations: losses against sums by hand, what is fed back, and their names."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from icy.errors import InvalidSettingError, UnknownNameError
from icy.representations import REPRESENTATIONS, SOFT, cross_entropy, get_representation, one_hot

torch.set_num_threads(1)


def log_softmax(scores: list[float], index: int) -> float:
    return scores[index] - math.log(sum(math.exp(s) for s in scores))


SCORES = [  # batch of 2, 2 places, 3 choices
    [[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]],
    [[2.0, 2.0, 2.0], [3.0, 1.0, 0.0]],
]
TARGETS = [[0, 2], [1, 0]]
SURPRISES = [[-log_softmax(SCORES[n][i], TARGETS[n][i]) for i in range(2)] for n in range(2)]  # of each target, in nats


def test_sender_loss_is_a_mean_over_tokens() -> None:
    loss = SOFT.sender_loss(torch.tensor(SCORES), torch.tensor(TARGETS))
    assert loss.shape == ()
    assert loss.item() == pytest.approx(sum(map(sum, SURPRISES)) / 4)


def test_receiver_loss_is_a_mean_over_the_batch_and_a_sum_over_attributes() -> None:
    loss = SOFT.receiver_loss(torch.tensor(SCORES), torch.tensor(TARGETS))
    assert loss.shape == ()
    assert loss.item() == pytest.approx(sum(map(sum, SURPRISES)) / 2)


def test_uniform_scores_cost_the_logarithm_of_the_choices() -> None:
    scores, targets = torch.zeros(7, 5, 4), torch.zeros(7, 5, dtype=torch.long)
    assert SOFT.sender_loss(scores, targets).item() == pytest.approx(math.log(4))
    assert SOFT.receiver_loss(scores, targets).item() == pytest.approx(5 * math.log(4))


@pytest.mark.parametrize("name", ["sender_loss", "receiver_loss"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
def test_a_stack_gives_the_loss_of_each(name: str, dtype: torch.dtype) -> None:
    scores = torch.randn(3, 4, 2, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.randint(5, (3, 4, 2), generator=torch.Generator().manual_seed(1)).to(dtype)
    loss = getattr(SOFT, name)
    together = loss(scores, targets)
    assert together.shape == (3,)
    torch.testing.assert_close(together, torch.stack([loss(s, t) for s, t in zip(scores, targets, strict=True)]))


def test_soft_feeds_back_its_probabilities_with_their_gradient() -> None:
    scores = torch.tensor(SCORES, requires_grad=True)
    fed = SOFT.feed_back(scores)
    torch.testing.assert_close(fed.sum(-1), torch.ones(2, 2))
    assert fed[0, 0, 0].item() == pytest.approx(math.exp(log_softmax(SCORES[0][0], 0)))
    (gradient,) = torch.autograd.grad(fed[..., 0].sum(), scores)
    assert gradient.any()


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 6), st.sampled_from([0.1, 1.0, 100.0]), st.integers(0, 99))
def test_cross_entropy_is_the_librarys(batch: int, places: int, choices: int, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = (scale * torch.randn(batch, places, choices, generator=generator)).requires_grad_()
    targets = torch.randint(choices, (batch, places), generator=generator)
    weight = torch.randn(batch, places, generator=generator)
    found, expected = cross_entropy(scores, targets), F.cross_entropy(scores.mT, targets, reduction="none")
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad((weight * loss).sum(), scores)[0] for loss in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_gradient_of_cross_entropy() -> None:
    scores = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(4, (3, 2))
    assert torch.autograd.gradcheck(lambda s: cross_entropy(s, targets), (scores,), check_undefined_grad=False)


def test_one_hot() -> None:
    assert one_hot(torch.tensor([[2, 0]]), 3).tolist() == [[[0, 0, 1], [1, 0, 0]]]
    assert one_hot(torch.tensor([1], dtype=torch.uint8), 2).dtype == torch.float32
    assert one_hot(torch.tensor([1]), 2, torch.float64).dtype == torch.float64


def test_names() -> None:
    assert get_representation("soft") is get_representation("SOFT") is REPRESENTATIONS["soft"]
    with pytest.raises(UnknownNameError, match="did you mean soft"):
        get_representation("softt")
    with pytest.raises(InvalidSettingError, match="by name, not by int"):
        get_representation(3)  # type: ignore[arg-type]
