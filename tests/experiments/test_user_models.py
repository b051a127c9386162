"""Classes, functions and modules in place of the names of models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import icy
from icy.core.errors import DuplicateNameError, IncompatibleError
from icy.core.registry import registry
from icy.experiments.user_models import FreshCopies, model_names
from icy.languages.meanings import MeaningSpace

pytestmark = pytest.mark.usefixtures("forgetting")
SPACE = MeaningSpace(2, 3)


class Speaks(nn.Sequential):
    """A sender of one layer."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        shape = message_length, vocab_size + 1
        super().__init__(
            nn.Embedding(space.values, hidden_size),
            nn.Flatten(),
            nn.Linear(space.attributes * hidden_size, shape[0] * shape[1]),
            nn.Unflatten(1, shape),
        )


class Understands(nn.Module):
    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size + 1, hidden_size)
        self.out = nn.Linear(message_length * hidden_size, space.attributes * space.values)
        self.shape = space.attributes, space.values

    def forward(self, message: Tensor) -> Tensor:
        embedded = self.embedding(message) if message.dim() == 2 else message @ self.embedding.weight
        return self.out(embedded.flatten(1)).unflatten(1, self.shape)


class Hidden(nn.Module):
    """A layer that PyTorch cannot reset."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))


def test_names_are_left_as_they_are() -> None:
    assert model_names("sender/FC2L,RNN*") == "sender/FC2L,RNN*"
    assert model_names(["sender/FC2L", "RNN*"]) == ["sender/FC2L", "RNN*"]


def test_a_trial_determines_the_side_of_a_class() -> None:
    assert model_names([Speaks, "sender/FC2L", Understands]) == ["sender/Speaks", "sender/FC2L", "receiver/Understands"]
    assert registry.get("Speaks").description == "A sender of one layer."
    assert model_names(Speaks) == "sender/Speaks"  # once more


def test_a_registered_class_keeps_its_name() -> None:
    icy.register_sender("Mine")(Speaks)
    assert model_names(Speaks) == "sender/Mine"


def test_the_random_numbers_of_the_caller_are_untouched() -> None:
    before = torch.get_rng_state()
    model_names(Speaks)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("model", [nn.Linear(2, 3), int, lambda space: space])
def test_classes_that_are_not_models_are_refused(model: object) -> None:
    with pytest.raises(IncompatibleError, match=r"is not a sender or a receiver .*: .* Give a class or function"):
        model_names(model)  # type: ignore[arg-type]


def test_the_wrong_shape_of_a_sender_is_named() -> None:
    expected = r"as a sender, it outputs \(2, 4, 4\) and must output \(2, 4, 5\); as a receiver, \w+Error: "
    with pytest.raises(IncompatibleError, match=expected):
        model_names(lambda *sizes: Speaks(SPACE, 4, 3, 8), sizes=(SPACE, 4, 4, 8))


def test_a_receiver_is_not_accepted_as_a_sender() -> None:
    with pytest.raises(IncompatibleError, match="'Understands' is not a sender"):
        model_names(Understands, "sender")


def test_two_models_of_one_name_are_refused() -> None:
    other = type("Speaks", (Speaks,), {})
    with pytest.raises(DuplicateNameError, match="Two models are called 'sender/Speaks'"):
        model_names([Speaks, other])
    with pytest.raises(DuplicateNameError, match="'FC2L' is already registered by icy"):
        model_names(type("FC2L", (Speaks,), {}))


def test_copies_of_a_module_have_weights_of_their_own() -> None:
    module = Speaks(SPACE, 4, 4, 8)
    made = FreshCopies(module)
    one, other = (made(SPACE, 4, 4, 8) for _ in range(2))
    assert not torch.equal(one[2].weight, other[2].weight)
    assert not torch.equal(one[2].weight, module[2].weight)
    with pytest.raises(IncompatibleError, match="Hidden cannot get new initial weights: its layer 'Hidden' has no"):
        FreshCopies(Hidden())(SPACE, 4, 4, 8)


def test_a_class_gives_the_numbers_of_a_registered_model(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    by_class = icy.probe(Speaks, "perm", out=tmp_path / "class", **sizes)
    icy.register_sender("Named")(Speaks)
    by_name = icy.probe("Named", "perm", out=tmp_path / "name", **sizes)
    assert [r["steps"] for r in by_class.records] == [r["steps"] for r in by_name.records]
    assert {r["model"] for r in by_class.records} == {"sender/Speaks"}


def test_a_module_has_the_sizes_of_the_run(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    result = icy.probe(Speaks(SPACE, 4, 4, 8), "perm", out=tmp_path, **sizes)
    assert {(r["model"], r["failed"]) for r in result.records} == {("sender/Speaks", False)}
    with pytest.raises(IncompatibleError, match="a module of the sizes of the run"):
        icy.probe(nn.Sequential(Speaks(SPACE, 4, 4, 8)), "perm", out=tmp_path, **(sizes | {"meanings": "3x3"}))


def test_a_family_needs_a_cell() -> None:
    with pytest.raises(IncompatibleError, match="HierZero takes a cell: name the cell, as in 'sender/HierZero:"):
        model_names(registry.get("sender/HierZero:GRU").load())


def test_a_pair_of_classes_learns(tmp_path: Path) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "steps": 2, "workers": 1}
    (record,) = icy.end_to_end(Speaks, Understands, out=tmp_path, **sizes).records
    assert record["model"] == "Speaks+Understands"
    assert not record.get("error")
