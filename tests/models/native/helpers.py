"""Models of odd sizes, and a pass of each by native programs and by PyTorch."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from icy.core.noise import Noise, drawing_from
from icy.languages.meanings import MeaningSpace
from icy.models.native.calls import Caller, ProgramPass
from icy.models.native.program import Program
from tests.models.helpers import CREATE

CELLS = ("RNN", "GRU", "LSTM", "minGRU", "SRU", "dgsend", "dgrecv")
RECURRENT = ("RNNZero", "RNNZero2L", "HierZero")
FED = ("RNNAutoReg", "RNNAutoReg2L", "HierAutoReg")
SAMPLING = ("RNNSampling", "RNNSampling2L", "HierSampling")
RECEIVERS = ("RNN1L", "RNN2L", "Hier")
KEY = 12345  # of the noise


def with_cells(families: tuple[str, ...]) -> list[str]:
    return [f"{family}:{cell}" for family in families for cell in CELLS]


@dataclass(frozen=True)
class Sizes:
    """Attributes A of K values, messages of L symbols out of V, hidden size E, and examples."""

    attributes: int = 3
    values: int = 4
    length: int = 6
    vocab: int = 4
    hidden: int = 40  # no multiple of a block, which has 32 columns
    batch: int = 75  # a whole chunk, which has 64 rows, and a part of one

    @property
    def space(self) -> MeaningSpace:
        return MeaningSpace(self.attributes, self.values)


USUAL = Sizes()
ODD = {
    "narrow": replace(USUAL, hidden=7),
    "whole blocks": replace(USUAL, hidden=64, batch=64),
    "more than a slice": replace(USUAL, hidden=290),  # products go through 256 of it or fewer, and then the rest
    "many symbols": replace(USUAL, vocab=33),
    "one symbol": replace(USUAL, length=1),
    "one attribute": replace(USUAL, attributes=1, values=5),
    "one example": replace(USUAL, batch=1),
    "the least": Sizes(1, 2, 1, 1, 3, 1),
}


def make(side: str, name: str, sizes: Sizes = USUAL, representation: str = "soft", **options: Any) -> nn.Module:
    """A model with weights that are none of them zero."""
    torch.manual_seed(3)
    if side == "sender" and representation != "soft":
        options["representation"] = representation
    model: nn.Module = CREATE[side](name, sizes.space, sizes.length, sizes.vocab, sizes.hidden, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def inputs_of(side: str, sizes: Sizes = USUAL, weighted: bool = False) -> Tensor:
    """Meanings or messages; if `weighted`, messages as weights over symbols."""
    torch.manual_seed(4)
    if side == "sender":
        return torch.randint(sizes.values, (sizes.batch, sizes.attributes))
    if weighted:
        return torch.randn(sizes.batch, sizes.length, sizes.vocab + 1).softmax(-1)
    return torch.randint(sizes.vocab, (sizes.batch, sizes.length))


@dataclass
class Pass:
    """Scores, and the gradients of parameters (by name) and of an input that is weights, of some loss of the scores."""

    scores: Tensor
    parameters: dict[str, Tensor]
    inputs: Tensor | None


def scales(like: Tensor) -> Tensor:
    """What each score counts for in the loss."""
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(5))


def by_pytorch(model: nn.Module, inputs: Tensor, training: bool = True) -> Pass:
    model = copy.deepcopy(model).train(training)
    given = inputs.clone().requires_grad_(inputs.is_floating_point())
    with drawing_from(Noise(torch.tensor(KEY))):
        scores = model(given)
    (scores * scales(scores)).sum().backward()
    gradients = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()}
    return Pass(scores.detach(), gradients, given.grad)


def by_program(model: nn.Module, inputs: Tensor, training: bool = True) -> Pass:
    program = Program(model, inputs, training=training, gradient=True)
    parameters = program.layout.pack(dict(model.named_parameters()))[None].requires_grad_()
    given = inputs[None].clone().requires_grad_(inputs.is_floating_point())
    scores = ProgramPass.apply(Caller(), program, parameters, given, torch.tensor([KEY]))
    (scores * scales(scores[0])).sum().backward()
    assert parameters.grad is not None
    views = program.layout.views(parameters.grad[0])
    gradients = {name: views[name].view(shape) for name, shape in program.layout.shapes.items()}
    return Pass(scores[0].detach(), gradients, None if given.grad is None else given.grad[0])


def assert_close(found: Tensor, expected: Tensor, within: float, scale: float = 0.0) -> None:
    """The norm of the difference is at most so much of that of what is expected, or of `scale` if that is larger."""
    assert found.shape == expected.shape
    error = (found.double() - expected.double()).norm().item()
    assert error <= within * max(expected.double().norm().item(), scale), (error, expected.norm().item(), scale)


def assert_same_pass(model: nn.Module, inputs: Tensor, within: float = 1e-5, training: bool = True) -> None:
    """Native programs compute what PyTorch does: scores, and every gradient."""
    found, expected = by_program(model, inputs, training), by_pytorch(model, inputs, training)
    assert_close(found.scores, expected.scores, within)
    assert found.parameters.keys() == expected.parameters.keys()
    whole = torch.cat([g.flatten() for g in expected.parameters.values()]).norm().item()
    assert whole > 0
    for name, gradient in expected.parameters.items():
        # The gradient of a bias of keys is zero, but for rounding: that is compared with all of the gradient.
        assert_close(found.parameters[name], gradient, within, 1e-2 * whole)
    if expected.inputs is not None:
        assert found.inputs is not None
        assert_close(found.inputs, expected.inputs, within)
