"""Checks of modules in other training loops: each finds a module that is wrong in the way that it looks for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, distributed, nn

from icy.testing import CheckFailure, NotApplicable, Unsupported
from icy.testing.other_loops import OTHER_LOOP_CHECKS, OtherLoopCase
from tests.helpers import mark_others
from tests.testing import derivatives

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


class Spare(Good):
    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(2, 2)


def case_of(module: Callable[[], nn.Module]) -> OtherLoopCase:
    def make(seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return module().eval()

    return OtherLoopCase(make, torch.linspace(-1, 1, 5 * SIZE).view(5, SIZE), (SIZE,))


LONG = ("compile", "export", "distributed")
NAMES = mark_others("contract", OTHER_LOOP_CHECKS, lambda name: name not in LONG)


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_module_passes(name: str) -> None:
    OTHER_LOOP_CHECKS[name](case_of(Good))


WRONG = [
    (OneType, "autocast"), (AlwaysSingle, "bfloat16"), (NeedsExamples, "empty_batch"),
    (KeepsOutsideState, "state_dict"), (WrongCurvature, "second_derivatives"), (OtherwiseInTransforms, "func_grad"),
    (OtherwiseInTransforms, "vmap"), (OtherwiseInTransforms, "compile"), (OtherwiseInTransforms, "export"),
    (Spare, "distributed"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name"), mark_others("contract", WRONG, lambda case: case[1] not in LONG))
def test_a_wrong_module_is_found_out(module: type[nn.Module], name: str) -> None:
    with pytest.raises((CheckFailure, RuntimeError, IndexError)) as caught:
        OTHER_LOOP_CHECKS[name](case_of(module))
    assert not isinstance(caught.value, NotApplicable)


def test_every_check_has_a_module_that_fails_it() -> None:
    assert {name for _, name in WRONG} == set(OTHER_LOOP_CHECKS)


OPTIONAL = [(FirstDerivativesOnly, "second_derivatives"), (LooksAtNumbers, "vmap"), (LooksAtNumbers, "export")]


@pytest.mark.parametrize(("module", "name"), mark_others("contract", OPTIONAL, lambda case: case[1] not in LONG))
def test_optional_parts_may_be_missing(module: type[nn.Module], name: str) -> None:
    with pytest.raises(Unsupported, match=r"^no "):
        OTHER_LOOP_CHECKS[name](case_of(module))


@pytest.mark.contract
def test_a_process_group_of_the_caller_is_left_alone() -> None:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(NotApplicable, match="in use"):
            OTHER_LOOP_CHECKS["distributed"](case_of(Good))
        assert distributed.is_initialized()
    finally:
        distributed.destroy_process_group()
