"""Checks of modules in other training loops: each finds a module that is wrong in the way that it looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy.core.registry import Entry
from icy.testing import CheckFailure, NotApplicable, Unsupported, checks_of
from icy.testing.other_loops import OtherLoopCase
from tests.helpers import mark_others
from tests.testing import derivatives
from tests.testing.mistakes import OTHER_LOOPS

SIZE = 3


class Good(nn.Module):
    """A linear layer and tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(SIZE, SIZE)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.inner(x).tanh()
        return scores


class OneType(Good):
    def forward(self, x: Tensor) -> Tensor:
        return torch.lerp(super().forward(x), x, 0.5)


class AlwaysSingle(Good):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).float()


class NeedsExamples(Good):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * x.max()


class KeepsOutsideState(Good):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.rand(())

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.scale


class WrongCurvature(derivatives.WrongCurvature, Good):
    pass


class FirstDerivativesOnly(derivatives.FirstDerivativesOnly, Good):
    pass


class OtherwiseInTransforms(Good):
    def forward(self, x: Tensor) -> Tensor:
        active = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
        return super().forward(x) * (2 if active else 1)


class LooksAtNumbers(Good):
    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        return scores if scores.sum().item() > 0 else scores * 2


@dataclass(frozen=True)
class AnyCase(OtherLoopCase[nn.Module]):
    """A module of this file in another loop."""

    def create(self, seed: int, **options: Any) -> object:
        return self.entry.load()()

    def draw_inputs(self, module: nn.Module) -> tuple[Tensor, ...]:
        return (self.batch(),)

    def outputs(self, module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (module(*given),)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        inputs = torch.linspace(-1, 1, 5 * SIZE).view(1, 5, SIZE)
        return inputs, inputs


CHECKS = checks_of(AnyCase)  # before long ones are left out


def run(name: str, module: type[nn.Module]) -> None:
    CHECKS[name](AnyCase(Entry("cell", "any", module, "", "", origin=__name__)))


LONG = ("compile", "export")
NAMES = mark_others("contract", sorted(OTHER_LOOPS), lambda name: name not in LONG)


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_module_passes(name: str) -> None:
    run(name, Good)


WRONG = [
    (OneType, "autocast"), (AlwaysSingle, "bfloat16"), (NeedsExamples, "empty_batch"),
    (KeepsOutsideState, "state_dict"), (WrongCurvature, "second_derivatives"), (OtherwiseInTransforms, "func_grad"),
    (OtherwiseInTransforms, "vmap"), (OtherwiseInTransforms, "compile"), (OtherwiseInTransforms, "export"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), mark_others("contract", WRONG, lambda case: case[1] not in LONG))
def test_a_wrong_module_is_found_out(module: type[nn.Module], name: str) -> None:
    with pytest.raises((CheckFailure, RuntimeError, IndexError)) as caught:
        run(name, module)
    assert not isinstance(caught.value, NotApplicable)


def test_every_check_has_a_module_that_fails_it() -> None:
    assert {name for _, name in WRONG} == OTHER_LOOPS


OPTIONAL = [(FirstDerivativesOnly, "second_derivatives"), (LooksAtNumbers, "vmap"), (LooksAtNumbers, "export")]


@pytest.mark.parametrize(("module", "name"), mark_others("contract", OPTIONAL, lambda case: case[1] not in LONG))
def test_optional_parts_may_be_missing(module: type[nn.Module], name: str) -> None:
    with pytest.raises(Unsupported, match=r"^no "):
        run(name, module)
