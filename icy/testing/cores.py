"""Checks of cores of agents that learn S2B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from icy.core.streams import stream
from icy.s2b.agents.cores.core import Core, State, begun, made_of

from .cases import require, require_close
from .modules import ModuleCase, Tensors

BATCH, STEPS, BEFORE = 4, 7, 3
RESETS = ((0, 0), (2, 1), (5, 1), (4, 2))  # step and episode of each beginning; the last episode has none in the middle
CAPACITY = 5  # less than the steps, so that memories drop their oldest entries
LONG = 40


@dataclass(frozen=True)
class CoreCase(ModuleCase[Core]):
    """A core under test, in double precision, where the order of sums hardly matters.

    Attributes:
        width: width of an input, D.
    """

    width: int = 10

    def create(self, seed: int, **options: Any) -> Core:
        """Create the core."""
        return made_of(self.entry, self.width, capacity=CAPACITY).double()

    def inputs(self, steps: int = STEPS, draw: int = 0) -> Tensor:
        """Draw inputs [step, batch, D]."""
        return torch.from_numpy(stream(self.seed, "testing", "core", draw).normal(size=(steps, BATCH, self.width)))

    def resets(self, steps: int = STEPS) -> Tensor:
        """Return beginnings of episodes, [step, batch]: at the first step, in the middle, twice, and never."""
        found = torch.zeros(steps, BATCH, dtype=torch.bool, device="cpu")
        found[tuple(zip(*RESETS, strict=True))] = True
        return found

    def amid(self, core: Core) -> State:
        """Return states after some steps of their episodes."""
        xs = self.inputs(BEFORE, draw=1).to(next(core.parameters()))
        return tuple(member.detach() for member in steps_of(core, xs, core.start(BATCH))[1])

    def draw_inputs(self, core: Core, steps: int = STEPS) -> Tensors:
        """Draw inputs [batch, step, D], beginnings [batch, step], and states after some steps of their episodes."""
        return self.inputs(steps).transpose(0, 1), self.resets(steps).transpose(0, 1), *self.amid(core)

    def extreme_inputs(self, core: Core) -> Tensors:
        """Draw a long episode, longer than the memory holds."""
        return self.draw_inputs(core, LONG)

    def outputs(self, core: Core, given: Tensors) -> Tensors:
        """Return the outputs and states of an unroll with resets, and of a step."""
        xs, resets, *state = given
        ys, unrolled = core.unroll(xs.transpose(0, 1), tuple(state), resets.transpose(0, 1))
        y, stepped = core.step(xs[:, 0], tuple(state))
        return ys.transpose(0, 1), *unrolled, y, *stepped

    def check_output_shape(self) -> None:
        """`step` gives outputs [batch, output], and `unroll` [step, batch, output]."""
        core, xs = self.make(), self.inputs()
        found = {
            "`step`": (core.step(xs[0], core.start(BATCH))[0], (BATCH, core.output)),
            "`unroll`": (core.unroll(xs, core.start(BATCH))[0], (STEPS, BATCH, core.output)),
        }
        for what, (outputs, expected) in found.items():
            shape = tuple(outputs.shape)
            require(shape == expected, f"{what} gives outputs {shape}, not {expected}.")

    def check_unroll_equals_steps(self) -> None:
        """`unroll` gives the same outputs, state and gradients as steps."""
        self._require_same_as_steps(None, "`unroll` and single steps")

    def check_resets(self) -> None:
        """A reset begins an episode at its step, in its row only, as if from the state of `start`."""
        self._require_same_as_steps(self.resets(), "`unroll` with resets, and single steps from `start` at each")

    def _require_same_as_steps(self, begins: Tensor | None, what: str) -> None:
        core, xs = self.make(), self.inputs().requires_grad_()
        state = tuple(m.requires_grad_(m.is_floating_point()) for m in self.amid(core))
        wanted = [xs, *(m for m in state if m.requires_grad), *core.parameters()]
        weights, found = self.inputs(draw=2)[..., :1], []
        for ys, after in (core.unroll(xs, state, begins), steps_of(core, xs, state, begins)):
            total = (ys * weights).sum() + sum(m.sum() for m in after if m.is_floating_point())
            gradients = torch.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True)
            found.append({"Outputs": (ys,), "States": after, "Gradients": gradients})
        for name, tensors in found[0].items():
            for one, other in zip(tensors, found[1][name], strict=True):
                require_close(one, other, f"{name} by {what}", 1e-6)

    def check_latents(self) -> None:
        """`trace` is `unroll`, with the result of `latent` on the state after each step: [batch, latent_width]."""
        core, xs, state = self.make(), self.inputs(), self.amid(self.make())
        ys, latents, after = core.trace(xs, state, self.resets())
        expected, end = core.unroll(xs, state, self.resets())
        require_close(ys, expected, "Outputs of `trace` and of `unroll`")
        shape = (STEPS, BATCH, core.latent_width)
        require(tuple(latents.shape) == shape, f"`trace` gives latents {tuple(latents.shape)}, not {shape}.")
        require_close(latents[-1], core.latent(end), "The last latents of `trace` and of the state after `unroll`")
        require_close(latents[-1], core.latent(after), "The last latent of `trace`, and the latent of its state")


def steps_of(core: Core, xs: Tensor, state: State, begins: Tensor | None = None) -> tuple[Tensor, State]:
    """Compute step by step, with `step` and `start` only."""
    ys = []
    for t, x in enumerate(xs):
        if begins is not None:
            state = begun(state, core.start(len(x)), begins[t])
        y, state = core.step(x, state)
        ys.append(y)
    return torch.stack(ys), state
