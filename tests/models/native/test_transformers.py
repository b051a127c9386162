"""Native programs of transformers, of receivers that read tables or means, and of what they share with other models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy.core.registry import Entry, registry
from icy.core.representations import get_representation
from icy.models.attention import attend_by_head, attend_newest
from icy.models.kernels.cell_steps import tanh
from icy.models.layers import Linear, MeaningEmbedding
from icy.models.native.program import Program
from tests.cores import needs_native
from tests.models.helpers import CREATE
from tests.models.native.helpers import ODD, USUAL, assert_same_pass, inputs_of, make

pytestmark = needs_native

SHAPES: dict[str, dict[str, int]] = {
    "a layer": {"layers": 1},
    "three layers": {"layers": 3},
    "a head of two blocks": {"heads": 1},
    "eight heads": {"heads": 8},
}


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("representation", ["soft", "gumb", "discr"])
def test_sender(representation: str, training: bool) -> None:
    model = make("sender", "Transformer", representation=representation)
    assert_same_pass(model, inputs_of("sender"), training=training)


@pytest.mark.native
@pytest.mark.parametrize("shape", SHAPES)
def test_sender_with(shape: str) -> None:
    assert_same_pass(make("sender", "Transformer", **SHAPES[shape]), inputs_of("sender"))


@pytest.mark.native
@pytest.mark.parametrize("sizes", ODD)
def test_sender_of_odd_sizes(sizes: str) -> None:
    assert_same_pass(make("sender", "Transformer", ODD[sizes]), inputs_of("sender", ODD[sizes]))


@pytest.mark.parametrize("weighted", [False, True], ids=["tokens", "weights"])
@pytest.mark.parametrize("shape", SHAPES)
def test_receiver_with(shape: str, weighted: bool) -> None:
    assert_same_pass(make("receiver", "Transformer", **SHAPES[shape]), inputs_of("receiver", weighted=weighted))


@pytest.mark.native
@pytest.mark.parametrize("weighted", [False, True], ids=["tokens", "weights"])
@pytest.mark.parametrize("sizes", ODD)
@pytest.mark.parametrize("name", ["Transformer", "MeanEmbeddings", "FC1L", "FC2Lv2"])
def test_receivers_of_odd_sizes(name: str, sizes: str, weighted: bool) -> None:
    assert_same_pass(make("receiver", name, ODD[sizes]), inputs_of("receiver", ODD[sizes], weighted))


@pytest.mark.native
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_attention_over_more_positions_than_a_block_has_columns(side: str) -> None:
    sizes = replace(USUAL, length=35, hidden=16, batch=5)
    assert_same_pass(make(side, "Transformer", sizes), inputs_of(side, sizes))


@pytest.mark.native
@pytest.mark.parametrize("batch", [1, 63, 65])
@pytest.mark.parametrize("length", [1, 2, 3, 20])
@pytest.mark.parametrize("heads", [1, 3, 5])
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_attention_of_any_size(side: str, heads: int, length: int, batch: int) -> None:
    sizes = replace(USUAL, length=length, hidden=15 * heads, batch=batch)  # heads of 15 columns
    assert_same_pass(make(side, "Transformer", sizes, heads=heads), inputs_of(side, sizes))


@pytest.mark.native
@pytest.mark.parametrize("decoder", ["transdec", "transformer"])
@pytest.mark.parametrize("positions", ["sinusoid", "learned", "none"])
@pytest.mark.parametrize("length", [1, 2, 5])  # errors of single precision grow with the fed back positions
def test_composed_decoders(decoder: str, positions: str, length: int) -> None:
    sizes = replace(USUAL, length=length, batch=65)
    name = f"Composed[decoder={decoder},layers=2,positions={positions},tied=true]"
    assert_same_pass(make("sender", name, sizes), inputs_of("sender", sizes))


@pytest.mark.parametrize(("side", "name"), [("sender", "TransDecSoft"), ("receiver", "Transformer")])
def test_products_end_with_activations_and_slopes(side: str, name: str) -> None:
    program = Program(make(side, name), inputs_of(side), True, True)
    assert not {"APPLY", "APPLY_BACK", "GELU_BACK"} & {*program.operations["forward"], *program.operations["backward"]}


def test_a_product_that_others_read_does_not_end_with_its_activation() -> None:
    model = Summed(lambda m, x: m.second(torch.relu(h := m.first(x))) + h)
    program = Program(model, inputs_of("sender"), True, True)
    assert "APPLY" in program.operations["forward"]
    assert_same_pass(model, inputs_of("sender"))


@pytest.mark.parametrize(
    ("side", "name"), [("sender", "TransDecSoft"), ("sender", "RNNZero:GRU"), ("receiver", "RNN1L:LSTM")]
)
def test_three_layers(side: str, name: str) -> None:
    assert_same_pass(make(side, name, layers=3), inputs_of(side))


def test_the_newest_position_attends_like_the_last_of_all() -> None:
    projected = torch.randn(7, 5, 3 * 8)
    newest, parallel = attend_newest(list(projected.unbind(1)), 2), attend_by_head(projected, 2, True)
    torch.testing.assert_close(newest, parallel[:, -1])


def _gradient_trained() -> list[Any]:
    registry.load_all()
    return [
        pytest.param(entry, name, id=f"{entry.kind}/{entry.name}-{name}")
        for entry in registry.entries("sender", "receiver")
        for name in ("soft", "gumb", "discr")
        if entry.works_with(name) and getattr(entry.load(), "learns_by_gradient", True)
    ]


@pytest.mark.native
@pytest.mark.parametrize(("entry", "representation"), _gradient_trained())
def test_every_model_that_learns_by_gradient_is_native(entry: Entry, representation: str) -> None:
    options = {"representation": get_representation(representation)} if entry.kind == "sender" else {}
    model = CREATE[entry.kind](entry.name, "2x3", 3, 2, 8, **options)
    Program(model, inputs_of(entry.kind, replace(USUAL, attributes=2, values=3, length=3, vocab=2)), True, True)


# -- what may be written over ------------------------------------------------------------------------------------------


class Summed(nn.Module):
    """A sender of a sum that is given."""

    broadcasts = True

    def __init__(self, hidden: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(5)
        size = USUAL.hidden
        self.hidden = hidden
        self.embed = MeaningEmbedding(USUAL.attributes, USUAL.values, size)
        self.first, self.second, self.twice = Linear(size, size), Linear(size, size), Linear(2 * size, size)
        self.out = Linear(size, USUAL.length * (USUAL.vocab + 1))

    def forward(self, meanings: Tensor) -> Tensor:
        scores: Tensor = self.out(self.hidden(self, self.embed(meanings)))
        return scores.view(*scores.shape[:-1], USUAL.length, USUAL.vocab + 1)


SUMS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "products": lambda m, x: m.first(x) + m.second(x),
    "an activation first": lambda m, x: tanh(m.first(x)) + m.second(x),
    "an activation last": lambda m, x: m.second(x) + tanh(m.first(x)),
    "activations": lambda m, x: tanh(m.first(x)) + tanh(m.second(x)),
    "itself": lambda m, x: m.first(x) + m.first(x),
    "a residual": lambda m, x: x + m.second(tanh(m.first(x))),
    "a sum and its parts": lambda m, x: m.second((h := m.first(x)) + x) + h + x,
    "side by side": lambda m, x: m.twice(torch.cat([h := m.first(x), x], -1) + torch.cat([x, h], -1)) + h,
}


@pytest.mark.parametrize("which", SUMS)
def test_sums_leave_what_others_read(which: str) -> None:
    assert_same_pass(Summed(SUMS[which]), inputs_of("sender"))
