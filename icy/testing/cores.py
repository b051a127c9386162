"""Checks of cores of agents that learn S2B. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from icy.core.registry import Entry
from icy.core.streams import stream, stream_key
from icy.s2b.agents.cores.core import Core, State, begun, made_of

from . import modules
from .cases import check_made_by_name, named, require, require_close
from .modules import ModuleCase, require_gradients

BATCH, STEPS, BEFORE = 4, 7, 3
RESETS = ((0, 0), (2, 1), (5, 1), (4, 2))  # step and episode of each beginning; the last episode has none in the middle
CAPACITY = 5  # less than the steps, so that memories drop their oldest entries
LONG = 40


@dataclass(frozen=True)
class CoreCase(ModuleCase[Core]):
    """A core under test, and its width in the tests.

    Attributes:
        entry: the core's registry entry.
        width: width of an input, D.
        seed: seed of weights and inputs.
        registered: whether the registry knows the core.
    """

    noun = "core"
    entry: Entry
    width: int = 10
    seed: int = 0
    registered: bool = True

    def make(self, seed: int | None = None) -> Core:
        """Create the core with the weights of a seed, in double precision, where the order of sums hardly matters."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(stream_key(self.seed if seed is None else seed, "testing", "core"))
            return made_of(self.entry, self.width, capacity=CAPACITY).double().eval()

    def inputs(self, steps: int = STEPS, draw: int = 0) -> Tensor:
        """Draw inputs [step, batch, D]."""
        return torch.from_numpy(stream(self.seed, "testing", "core", draw).normal(size=(steps, BATCH, self.width)))

    def amid(self, core: Core) -> State:
        """Return states after some steps of their episodes."""
        _, state = steps_of(core, self.inputs(BEFORE, draw=1), core.start(BATCH))
        return tuple(member.detach() for member in state)

    def draw_inputs(self, core: Core) -> State:
        """Draw inputs, and states after some steps of their episodes."""
        return self.inputs(), *self.amid(core)

    @torch.no_grad()
    def outputs(self, core: Core, given: State) -> State:
        """Return the outputs and states of a step and of an unroll with resets."""
        xs, *state = given
        y, stepped = core.step(xs[0], tuple(state))
        ys, unrolled = core.unroll(xs, tuple(state), resets().to(xs.device))
        return y, *stepped, ys, *unrolled


def resets() -> Tensor:
    """Return beginnings of episodes, [step, batch]: at the first step, in the middle, twice, and never."""
    found = torch.zeros(STEPS, BATCH, dtype=torch.bool, device="cpu")
    for step, episode in RESETS:
        found[step, episode] = True
    return found


def steps_of(core: Core, xs: Tensor, state: State, begins: Tensor | None = None) -> tuple[Tensor, State]:
    """Compute step by step, with `step` and `start` only."""
    ys = []
    for t, x in enumerate(xs):
        if begins is not None:
            state = begun(state, core.start(len(x)), begins[t])
        y, state = core.step(x, state)
        ys.append(y)
    return torch.stack(ys), state


def check_output_shape(case: CoreCase) -> None:
    """`step` gives outputs [batch, output], and `unroll` [step, batch, output]."""
    core, xs = case.make(), case.inputs()
    y, _ = core.step(xs[0], core.start(BATCH))
    ys, _ = core.unroll(xs, core.start(BATCH))
    for what, found, expected in (
        ("`step`", y, (BATCH, core.output)),
        ("`unroll`", ys, (STEPS, BATCH, core.output)),
    ):
        require(tuple(found.shape) == expected, f"{what} gives outputs {tuple(found.shape)}, not {expected}.")


def check_states(case: CoreCase) -> None:
    """A state is a tuple of tensors with episodes on the first axis, and keeps its sizes and types in the episode."""
    core = case.make()
    start = core.start(BATCH)
    _, stepped = steps_of(core, case.inputs(), start)
    _, unrolled = core.unroll(case.inputs(), start)
    for what, state in (("`start`", start), ("`step`", stepped), ("`unroll`", unrolled)):
        require(isinstance(state, tuple), f"{what} gives a {type(state).__name__}, not a tuple.")
        require(len(state) == len(start), f"{what} gives {len(state)} tensors, and `start` {len(start)}.")
        for i, (now, first) in enumerate(zip(state, start, strict=True)):
            require(now.shape[:1] == (BATCH,), f"Tensor {i} of {what} is {tuple(now.shape)} for {BATCH} episodes.")
            same = now.shape == first.shape and now.dtype == first.dtype
            require(
                same, f"Tensor {i} of {what} is {tuple(now.shape)} of {now.dtype}; at the start it is "
                f"{tuple(first.shape)} of {first.dtype}.",
            )  # fmt: skip


def check_unroll_equals_steps(case: CoreCase) -> None:
    """`unroll` gives the same outputs, state and gradients as steps."""
    _compare(case, None, "`unroll` and single steps")


def check_resets(case: CoreCase) -> None:
    """A reset begins an episode at its step, in its row only, as if from the state of `start`."""
    _compare(case, resets(), "`unroll` with resets, and single steps from `start` at each")


def _compare(case: CoreCase, begins: Tensor | None, what: str) -> None:
    core, xs = case.make(), case.inputs().requires_grad_()
    state = tuple(m.requires_grad_(m.is_floating_point()) for m in case.amid(core))
    wanted = [xs, *(m for m in state if m.requires_grad), *core.parameters()]
    weights = case.inputs(draw=2)[..., :1]

    def found(ys: Tensor, after: State) -> tuple[Tensor, State, Sequence[Tensor | None]]:
        total = (ys * weights).sum() + sum(m.sum() for m in after if m.is_floating_point())
        return ys, after, torch.autograd.grad(total, wanted, allow_unused=True)

    ys, after, gradients = found(*core.unroll(xs, state, begins))
    expected = found(*steps_of(core, xs, state, begins))
    require_close(ys, expected[0], f"Outputs by {what}")
    for i, (one, other) in enumerate(zip(after, expected[1], strict=True)):
        require_close(one, other, f"Tensor {i} of the state by {what}")
    for mine, theirs in zip(gradients, expected[2], strict=True):
        both = mine is None or theirs is None
        require(not both or mine is theirs, f"{what}: only one of the two has a gradient.")
        if mine is not None and theirs is not None:
            require_close(mine, theirs, f"Gradients by {what}", 1e-6)


def check_latents(case: CoreCase) -> None:
    """`trace` is `unroll`, with the result of `latent` on the state after each step: [batch, latent_width]."""
    core, xs, state = case.make(), case.inputs(), case.amid(case.make())
    ys, latents, after = core.trace(xs, state, resets())
    expected, end = core.unroll(xs, state, resets())
    require_close(ys, expected, "Outputs of `trace` and of `unroll`")
    shape = (STEPS, BATCH, core.latent_width)
    require(tuple(latents.shape) == shape, f"`trace` gives latents {tuple(latents.shape)}, not {shape}.")
    require_close(latents[-1], core.latent(end), "The last latents of `trace` and of the state after `unroll`")
    require_close(latents[-1], core.latent(after), "The last latent of `trace`, and the latent of its state")


def check_states_are_per_episode(case: CoreCase) -> None:
    """Rows of a state can be separated and joined: each episode continues unchanged."""
    core, xs = case.make(), case.inputs()
    state = case.amid(core)
    ys, after = core.unroll(xs, state, resets())
    parts = [[2], [3, 0], [1]]
    alone = [core.unroll(xs[:, rows], tuple(m[rows] for m in state), resets()[:, rows]) for rows in parts]
    order = [row for rows in parts for row in rows]
    require_close(torch.cat([found for found, _ in alone], 1), ys[:, order], "Outputs of episodes alone and together")
    for i, member in enumerate(after):
        joined = torch.cat([end[i] for _, end in alone])
        require_close(joined, member[order], f"Tensor {i} of the state of episodes alone and together")


def check_remembers_its_episode(case: CoreCase) -> None:
    """An output depends on earlier inputs of its episode, and not on other episodes or later steps."""
    core, xs = case.make(), case.inputs().requires_grad_()
    ys, _ = core.unroll(xs, case.amid(core), resets())
    (gradient,) = torch.autograd.grad(ys[4].square().sum() + ys[4, :, 0].sum(), xs)
    reached = gradient.abs().sum(-1) > 0
    require(reached[2:4, 1].all() and reached[:4, 3].all(), "An output does not depend on the inputs before it.")
    require(not reached[:2, 1].any() and not reached[:4, 2].any(), "An output depends on inputs before its episode.")
    require(not reached[5:].any(), "An output depends on later inputs.")


@torch.no_grad()
def check_finite_over_many_steps(case: CoreCase) -> None:
    """Outputs and states stay finite over a long episode, longer than the memory holds."""
    core = case.make()
    ys, state = core.unroll(case.inputs(LONG), core.start(BATCH))
    require(ys.isfinite().all(), f"Some outputs are not finite within {LONG} steps.")
    require(all(m.isfinite().all() for m in state), f"The state is not finite after {LONG} steps.")


def check_gradients_reach_parameters(case: CoreCase) -> None:
    """Each parameter gets a finite gradient that is not all zero."""
    core = case.make()
    ys, _ = core.unroll(case.inputs(), core.start(BATCH), resets())
    require_gradients(core, ys, case.seed)


@torch.no_grad()
def check_single_precision(case: CoreCase) -> None:
    """In single precision the core computes about the same, and its state has single precision too."""
    double, single = case.make(), case.make().float()
    expected, _ = double.unroll(case.inputs(), double.start(BATCH), resets())
    ys, state = single.unroll(case.inputs().float(), single.start(BATCH), resets())
    types = {m.dtype for m in (ys, *state) if m.is_floating_point()}
    require(types == {torch.float32}, f"In single precision there are {' and '.join(map(str, types))}.")
    require_close(ys, expected, "Outputs in single and in double precision", 1e-3)


CORE_CHECKS = named(
    check_made_by_name,
    check_output_shape,
    check_states,
    check_unroll_equals_steps,
    check_resets,
    check_latents,
    check_states_are_per_episode,
    check_remembers_its_episode,
    check_finite_over_many_steps,
    modules.check_same_seed_same_weights,
    modules.check_different_seeds_differ,
    modules.check_random_state_untouched,
    modules.check_deterministic,
    modules.check_inputs_unchanged,
    check_gradients_reach_parameters,
    check_single_precision,
    modules.check_moves_to_device,
    modules.check_pickles,
)
