"""The contract of cores: for every check a core that is wrong in the way it looks for, and fails it alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy import testing
from icy.core.errors import UnknownNameError
from icy.core.registry import CORE, Entry, registry
from icy.s2b.agents.cores import Core, State
from icy.testing import CORE_CHECKS, ContractError


class Plain(Core):
    """A core as a stranger would write it: a mean that forgets, stepped."""

    def __init__(self, width: int) -> None:
        super().__init__(width, 3, width)
        self.read = nn.Linear(width, 3)

    def start(self, episodes: int, device: Any = None) -> State:
        return (self.zeros(episodes, self.width, device=device),)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        mean = 0.5 * state[0] + torch.tanh(x)
        return self.read(mean), (mean,)

    def latent(self, state: State) -> Tensor:
        return state[0]


class NoCore(nn.Linear):
    """Not derived from Core."""

    def __init__(self, width: int) -> None:
        super().__init__(width, 3)


class TooWide(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.output = 4


class Grows(Plain):
    """Its state has a tensor that grows; what it computes does not depend on it."""

    def start(self, episodes: int, device: Any = None) -> State:
        return *super().start(episodes, device), self.zeros(episodes, 0, device=device)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = super().step(x, state[:1])
        return y, (*after, torch.cat([state[1], state[1].new_ones(len(x), 1)], 1))

    def _stepwise(self, xs: Tensor, state: State, resets: Tensor | None, latents: bool) -> Any:
        return super()._stepwise(xs, state, None, latents)


class UnrollsOtherwise(Plain):
    def unroll(self, xs: Tensor, state: State, resets: Tensor | None = None) -> tuple[Tensor, State]:
        ys, after = super().unroll(xs, state, resets)
        return (ys * 1.01 if resets is None else ys), after


class ResetsAll(Plain):
    """Begins all episodes where one begins."""

    def unroll(self, xs: Tensor, state: State, resets: Tensor | None = None) -> tuple[Tensor, State]:
        whole = None if resets is None else resets.any(1, keepdim=True).expand_as(resets)
        return super().unroll(xs, state, whole)


class ResetsNone(Plain):
    def _stepwise(self, xs: Tensor, state: State, resets: Tensor | None, latents: bool) -> Any:
        return super()._stepwise(xs, state, None, latents)


class Misread(Plain):
    def trace(self, xs: Tensor, state: State, resets: Tensor | None = None) -> tuple[Tensor, Tensor, State]:
        ys, latents, after = super().trace(xs, state, resets)
        return ys, latents.roll(1, 0), after


class Mixes(Plain):
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return super().step(x, (state[0] + 0.1 * state[0].detach().mean(0),))


class Forgetful(Plain):
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return super().step(x, (state[0] * 0,))


class Overflows(Plain):
    def start(self, episodes: int, device: Any = None) -> State:
        return *super().start(episodes, device), self.zeros(episodes, 1, device=device) + 1

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = super().step(x, state[:1])
        return y, (*after, (state[1] * 2).detach() ** 1.5)


class Unseeded(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        with torch.no_grad():
            self.read.bias += 1e-5 * random.Random().uniform(0.5, 1)  # enough for single precision


class Constant(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)


class DrawsElsewhere(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        np.random.random()


class Counts(Plain):
    calls = 0

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        self.calls += 1
        y, after = super().step(x, state)
        return y + 1e-9 * self.calls, after


class WritesState(Plain):
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        found = super().step(x, state)
        if not torch.is_grad_enabled():
            state[0].zero_()
        return found


class Unused(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.spare = nn.Parameter(torch.rand(3))


class Doubles(Plain):
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = super().step(x, state)
        return y.double(), after


class OnTheCPU(Plain):
    def start(self, episodes: int, device: Any = None) -> State:
        return (torch.zeros(episodes, self.width, dtype=self.read.weight.dtype),)


class Unpicklable(Plain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.generator = (i for i in range(3))


WRONG: dict[str, Any] = {
    "made_by_name": NoCore,
    "output_shape": TooWide,
    "states": Grows,
    "unroll_equals_steps": UnrollsOtherwise,
    "resets": ResetsAll,
    "latents": Misread,
    "states_are_per_episode": Mixes,
    "remembers_its_episode": Forgetful,
    "finite_over_many_steps": Overflows,
    "same_seed_same_weights": Unseeded,
    "different_seeds_differ": Constant,
    "random_state_untouched": DrawsElsewhere,
    "deterministic": Counts,
    "inputs_unchanged": WritesState,
    "gradients_reach_parameters": Unused,
    "single_precision": Doubles,
    "moves_to_device": OnTheCPU,
    "pickles": Unpicklable,
}
# What else such a core cannot keep: an episode that mixes with others depends on them, and so on.
ALSO = {
    "made_by_name": set(WRONG),
    "resets": {"latents", "states_are_per_episode", "remembers_its_episode"},
    "states": {"resets", "remembers_its_episode"},
}


@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_core_fails_its_check(check: str) -> None:
    results = testing.check(WRONG[check], "core", raise_on_failure=False)
    failed = {r.name for r in results if not r.passed}
    assert check in failed
    assert failed <= {check} | ALSO.get(check, set())


def test_every_check_has_a_core_that_fails_it() -> None:
    assert set(WRONG) == set(CORE_CHECKS)


def test_a_strangers_core_passes() -> None:
    results = {r.name: r for r in testing.check(Plain, "core")}
    assert set(results) == set(CORE_CHECKS)
    assert results["made_by_name"].message == "does not apply: the core is not registered"


def test_resets_that_are_ignored_are_found() -> None:
    failed = {r.name for r in testing.check(ResetsNone, "core", raise_on_failure=False) if not r.passed}
    assert "resets" in failed


def test_registered_cores_are_found() -> None:
    entry = Entry(CORE, "mine", Plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        assert not {r.name: r for r in testing.check("my_own", "core")}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=r"No core is called 'mine'.*`icy list cores`"):
        testing.check("mine", "core")
    with pytest.raises(ContractError, match="core/Unused fails 1 of"):
        testing.check(Unused, "core")
    excused = testing.check(Unused, "core", expected_failures={"gradients_reach_parameters": "a spare"})
    assert all(r.passed for r in excused)
