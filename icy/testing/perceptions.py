"""Checks of perceptions of the games. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.registry import Entry
from icy.core.streams import stream, stream_key

from . import modules
from .cases import check_made_by_name, named, require, run
from .modules import SEEDS, TrainedCase, require_gradients
from .other_loops import OtherLoopCase, other_loop_checks

SHAPES = ((12,), (3, 16, 16))  # shapes of objects that a perception may support: features, and an image
BATCH = 6
UPDATES = 20


@dataclass(frozen=True)
class PerceptionCase(TrainedCase[nn.Module]):
    """A perception under test, and its size in the tests.

    Attributes:
        entry: the perception's registry entry.
        size: size of the vectors.
        seed: seed of weights and objects.
        registered: whether the registry knows the perception.
    """

    noun = "perception"
    entry: Entry
    size: int = 10
    seed: int = 0
    registered: bool = True

    @cached_property
    def shapes(self) -> dict[tuple[int, ...], str]:
        """The shapes of objects that were tried, with the refusal, or "" for supported shapes.

        Raises:
            CheckFailure: the perception refuses all shapes.
        """
        found: dict[tuple[int, ...], str] = {}
        for shape in SHAPES:
            try:
                self.entry.create(shape, self.size)
                found[shape] = ""
            except IcyError as refusal:
                found[shape] = str(refusal)
        require("" in found.values(), f"It supports none of the tried shapes: {' '.join(found.values())}")
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The first supported shape."""
        return next(shape for shape, refusal in self.shapes.items() if not refusal)

    def make(self, seed: int | None = None, shape: tuple[int, ...] | None = None) -> nn.Module:
        """Create the perception with the weights of a seed, in evaluation mode."""
        shape = shape or self.shape
        with torch.random.fork_rng(devices=[]):
            key = stream_key(self.seed if seed is None else seed, "testing", "perception")
            torch.default_generator.manual_seed(key)
            made = self.entry.create(shape, self.size)
        require(isinstance(made, nn.Module), f"The factory made a {type(made).__name__}, not a torch.nn.Module.")
        return made.eval()  # type: ignore[no-any-return]

    def objects(self, count: int = BATCH, draw: int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Draw objects [batch, *shape], with numbers from 0 to 1."""
        numbers = stream(self.seed, "testing", "objects", draw)
        return torch.from_numpy(numbers.random(size=(count, *(shape or self.shape)))).float()

    def draw_inputs(self, perception: nn.Module) -> tuple[Tensor, ...]:
        """Draw objects."""
        return (self.objects(),)

    def outputs(self, perception: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the vectors of objects."""
        return (run(perception, *given),)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return objects [replicate, batch, *shape] and vectors [replicate, batch, size], the same at each update."""
        numbers = [stream(seed, "testing", "vectors").normal(size=(BATCH, self.size)) for seed in seeds]
        return torch.stack([self.objects(draw=seed) for seed in seeds]), torch.from_numpy(np.stack(numbers)).float()


def check_output_shape(case: PerceptionCase) -> str:
    """Objects [batch, *shape] of every supported shape give vectors [batch, size]; other shapes raise an IcyError."""
    for shape, refusal in case.shapes.items():
        for count in (BATCH, 1) if not refusal else ():
            found = run(case.make(shape=shape), case.objects(count, shape=shape))
            require(isinstance(found, Tensor), f"The output is a {type(found).__name__}, not a tensor.")
            expected = (count, case.size)
            require(tuple(found.shape) == expected, f"Objects {shape} give {tuple(found.shape)}, not {expected}.")
            require(found.is_floating_point(), f"The vectors are {found.dtype}, not floating point.")
    taken = [str(shape) for shape, refusal in case.shapes.items() if not refusal]
    return f"supports objects of shape {' and '.join(taken)}"


def check_finite_output(case: PerceptionCase) -> None:
    """Vectors are finite, even of an object of zeros."""
    objects = torch.cat([case.objects(), torch.zeros_like(case.objects(1))])
    require(run(case.make(), objects).isfinite().all(), "Some numbers of the vectors are infinite or NaN.")


def check_objects_independent(case: PerceptionCase) -> None:
    """In evaluation mode the vector of an object does not depend on other objects in its batch."""
    modules.check_examples_independent(case)


def check_objects_differ(case: PerceptionCase) -> None:
    """Different objects give different vectors."""
    found = run(case.make(), case.objects())
    require((found != found[:1]).any(-1)[1:].all(), "Different objects give the same vector.")


def check_gradients_reach_parameters(case: PerceptionCase) -> None:
    """Every trainable parameter gets a finite gradient that is not all zero."""
    perception = case.make().train()
    require(any(p.requires_grad for p in perception.parameters()), "The perception has no trainable parameters.")
    require_gradients(perception, perception(case.objects()), case.seed)


def check_learns(case: PerceptionCase) -> None:
    """Training on one batch brings the vectors nearer to their targets."""
    learner, losses = case.learner(SEEDS[:1]), []
    for update in range(UPDATES):
        case.train(learner, SEEDS[:1], range(update, update + 1))
        found = learner.losses()
        losses.append(float("nan") if found is None else found.item())
    first, last = losses[0], losses[-1]
    require(last < first, f"{UPDATES} updates changed the squared error from {first:.3g} to {last:.3g}.")


def _in_another_loop(case: PerceptionCase) -> OtherLoopCase:
    return OtherLoopCase(lambda seed: case.make(case.seed + seed), case.objects(), (case.size,))


PERCEPTION_CHECKS = named(
    check_made_by_name,
    check_output_shape,
    check_finite_output,
    modules.check_same_seed_same_weights,
    modules.check_different_seeds_differ,
    modules.check_random_state_untouched,
    modules.check_deterministic,
    modules.check_inputs_unchanged,
    check_objects_independent,
    check_objects_differ,
    check_gradients_reach_parameters,
    modules.check_pickles,
    modules.check_float64,
    modules.check_moves_to_device,
    modules.check_stacked_equals_separate,
    check_learns,
)
PERCEPTION_CHECKS |= other_loop_checks(_in_another_loop)
