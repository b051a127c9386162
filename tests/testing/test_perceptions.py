"""The contract of perceptions: for every check a perception that is wrong in the way it looks for, and fails it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import IncompatibleError, UnknownNameError
from icy.core.registry import PERCEPTION, Entry, registry
from icy.games.perception.conv4 import Conv4
from icy.testing import PERCEPTION_CHECKS, ContractError
from icy.testing.other_loops import OTHER_LOOP_CHECKS


class Plain(nn.Module):
    """A perception as a stranger would write it, of features alone."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__()
        if len(shape) != 1:
            raise IncompatibleError(f"It sees features, not objects of shape {shape}.")
        self.size = size
        self.layer = nn.Linear(shape[0], size)

    def forward(self, objects: Tensor) -> Tensor:
        return torch.tanh(self.layer(objects))


def no_module(shape: tuple[int, ...], size: int) -> Any:
    return lambda objects: objects


class TooWide(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size + 1)


class DividesByItsSum(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        return super().forward(objects) / objects.sum(-1, keepdim=True)


class Unseeded(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        with torch.no_grad():
            self.layer.bias[0] += random.Random().random()  # of no seed


class Constant(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        made = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.rand(parameter.shape, generator=made))


class DrawsElsewhere(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        random.random()


class Counts(Plain):
    calls = 0

    def forward(self, objects: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(objects) + 1e-6 * self.calls


class WritesInput(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        found = super().forward(objects)
        if not torch.is_grad_enabled():
            objects.zero_()
        return found


class Centred(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        found = super().forward(objects)
        return found - found.mean(-2, keepdim=True)


class Blind(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        return super().forward(torch.ones_like(objects))


class Unused(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        self.spare = nn.Parameter(torch.rand(3))


class Unpicklable(Plain):
    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        self.generator = (i for i in range(3))

    def __deepcopy__(self, memo: Any) -> Any:
        copied = type(self)((self.layer.in_features,), self.size)
        copied.load_state_dict(self.state_dict())
        return copied.train(self.training)


class Single(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        return super().forward(objects).float()


class OnTheCPU(Plain):
    def forward(self, objects: Tensor) -> Tensor:
        return super().forward(objects) + torch.zeros(self.size, dtype=objects.dtype)


class SharedAverage(Plain):
    """Says that it broadcasts, and keeps one running average for all."""

    broadcasts = True

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        self.average: Tensor
        self.register_buffer("average", torch.zeros(()))

    def forward(self, objects: Tensor) -> Tensor:
        if self.training:
            self.average.lerp_(objects.mean().detach(), 0.1)
        found: Tensor = objects @ self.layer.weight.mT + self.layer.bias.unsqueeze(-2) + self.average
        return found


class Stuck(Plain):
    """Its gradient has the wrong sign."""

    def forward(self, objects: Tensor) -> Tensor:
        found = super().forward(objects)
        return 2 * found.detach() - found


WRONG: dict[str, Any] = {
    "made_by_name": no_module,
    "output_shape": TooWide,
    "finite_output": DividesByItsSum,
    "same_seed_same_weights": Unseeded,
    "different_seeds_differ": Constant,
    "random_state_untouched": DrawsElsewhere,
    "deterministic": Counts,
    "inputs_unchanged": WritesInput,
    "objects_independent": Centred,
    "objects_differ": Blind,
    "gradients_reach_parameters": Unused,
    "pickles": Unpicklable,
    "float64": Single,
    "moves_to_device": OnTheCPU,
    "stacked_equals_separate": SharedAverage,
    "learns": Stuck,
}
# What else such a perception cannot keep.
ALSO = {
    "made_by_name": set(WRONG),
    "output_shape": {"gradients_reach_parameters", "stacked_equals_separate", "learns"},
    "same_seed_same_weights": {"random_state_untouched", "float64", "moves_to_device", "stacked_equals_separate"},
    "deterministic": {"objects_independent", "pickles"},
    "inputs_unchanged": {"objects_independent", "pickles"},
}


@pytest.mark.contract
@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_perception_fails_its_check(check: str) -> None:
    results = testing.check(WRONG[check], "perception", raise_on_failure=False)
    failed = {r.name for r in results if not r.passed} - set(OTHER_LOOP_CHECKS)
    assert check in failed
    assert failed <= {check} | ALSO.get(check, set())


def test_every_check_has_a_perception_that_fails_it() -> None:
    assert set(WRONG) == set(PERCEPTION_CHECKS) - set(OTHER_LOOP_CHECKS)  # the rest: test_other_loops


def test_a_strangers_perception_passes() -> None:
    results = {r.name: r for r in testing.check(Plain, "perception")}
    assert results["made_by_name"].message == "does not apply: the perception is not registered"
    assert results["output_shape"].message == "sees objects of shape (12,)"
    assert results["stacked_equals_separate"].message == "trains as: vmap"


def test_one_that_refuses_all_that_is_tried_is_told() -> None:
    def choosy(shape: tuple[int, ...], size: int) -> nn.Module:
        raise IncompatibleError("Nothing is good enough.")

    results = testing.check(choosy, "perception", raise_on_failure=False)
    (message,) = {r.message for r in results if not r.passed}
    assert "It sees nothing that was tried: Nothing is good enough." in message


def test_registered_perceptions_are_found() -> None:
    entry = Entry(PERCEPTION, "mine", Plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        assert not {r.name: r for r in testing.check("my_own", "perception")}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=r"No perception is called 'mine'.*`icy list perceptions`"):
        testing.check("mine", "perception")
    with pytest.raises(ContractError, match="perception/Unused fails 1 of"):
        testing.check(Unused, "perception")
    excused = testing.check(Unused, "perception", expected_failures={"gradients_reach_parameters": "a spare"})
    assert all(r.passed for r in excused)


@pytest.mark.contract
def test_sizes_are_those_that_are_asked_for() -> None:
    assert all(r.passed for r in testing.check(Conv4, "perception", size=3, seed=5))
