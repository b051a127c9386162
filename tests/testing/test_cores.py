"""Cores that are wrong in the way that a check looks for; test_kinds checks them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from icy import testing
from icy.s2b.agents.cores import Core, State
from tests.testing.mistakes import EVERY, Kind, changed, shared_mistakes


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
    def trace(self, xs: Tensor, state: State, resets: Tensor | None = None) -> Any:
        return super().trace(xs, state, None)


class Misread(Plain):
    def trace(self, xs: Tensor, state: State, resets: Tensor | None = None) -> tuple[Tensor, Tensor, State]:
        ys, latents, after = super().trace(xs, state, resets)
        return ys, latents.roll(1, 0), after


class Mixes(Plain):
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return super().step(x, (state[0] + 0.1 * state[0].detach().mean(0),))


class Overflows(Plain):
    def start(self, episodes: int, device: Any = None) -> State:
        return *super().start(episodes, device), self.zeros(episodes, 1, device=device) + 1

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        y, after = super().step(x, state[:1])
        return y, (*after, (state[1] * 2).detach() ** 1.5)


KIND = Kind(
    "core",
    {
        "made_by_name": NoCore,
        "output_shape": TooWide,
        "unroll_equals_steps": UnrollsOtherwise,
        "resets": ResetsAll,
        "latents": Misread,
        "examples_independent": Mixes,
        "finite_output": Overflows,
        **shared_mistakes(Plain, "core"),
        "float64": changed(Plain, lambda core, x, y: y.double()),
    },
    Plain,
    also={  # an episode that mixes with others depends on them, and so on
        "made_by_name": EVERY,
        "resets": {"latents", "examples_independent"},
        "finite_output": {"float64"},
    },
)


def test_resets_that_are_ignored_are_found() -> None:
    failed = {r.name for r in testing.check(ResetsNone, "core", raise_on_failure=False) if not r.passed}
    assert "resets" in failed
