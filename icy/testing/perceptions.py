"""Checks of perceptions of the games. The first line of each check says what it proves."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from joblib.externals.loky.backend.reduction import dumps
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.logs import log_level
from icy.core.registry import Entry
from icy.core.streams import stream, stream_key
from icy.training.learners import Learner, make_learner

from .cases import (
    CPU,
    SETTINGS,
    Check,
    CheckFailure,
    MadeTensors,
    check_of,
    require,
    require_close,
    require_gradients,
    require_registered,
    require_same_training,
    run,
    same_random_state,
)
from .other_loops import OtherLoopCase, other_loop_checks

SHAPES = ((12,), (3, 16, 16))  # of objects that a perception may be for: features, and an image
BATCH = 6
SEEDS = (11, 12, 13)  # of the three replicates that are trained together
UPDATES = 20

PERCEPTION_CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class PerceptionCase:
    """A perception under test, and the size it is tested at.

    Attributes:
        entry: the perception's registry entry.
        size: of the vectors.
        seed: seed of weights and objects.
        registered: whether the registry knows the perception.
    """

    entry: Entry
    size: int = 10
    seed: int = 0
    registered: bool = True

    @cached_property
    def shapes(self) -> dict[tuple[int, ...], str]:
        """The shapes of objects that were tried; those that it refuses with the refusal, and the others with "".

        Raises:
            CheckFailure: it refuses all.
        """
        found: dict[tuple[int, ...], str] = {}
        for shape in SHAPES:
            try:
                self.entry.create(shape, self.size)
                found[shape] = ""
            except IcyError as refusal:
                found[shape] = str(refusal)
        require("" in found.values(), f"It sees nothing that was tried: {' '.join(found.values())}")
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The first shape that it takes."""
        return next(shape for shape, refusal in self.shapes.items() if not refusal)

    def make(self, seed: int | None = None, shape: tuple[int, ...] | None = None) -> nn.Module:
        """Make the perception with the weights of a seed, in evaluation mode."""
        shape = shape or self.shape
        with torch.random.fork_rng(devices=[]):
            key = stream_key(self.seed if seed is None else seed, "testing", "perception")
            torch.default_generator.manual_seed(key)
            made = self.entry.create(shape, self.size)
        require(isinstance(made, nn.Module), f"The factory makes a {type(made).__name__}, not a torch.nn.Module.")
        return made.eval()  # type: ignore[no-any-return]

    def objects(self, count: int = BATCH, draw: int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Draw objects [batch, *shape], with numbers from 0 to 1."""
        numbers = stream(self.seed, "testing", "objects", draw)
        return torch.from_numpy(numbers.random(size=(count, *(shape or self.shape)))).float()


@check_of(PERCEPTION_CHECKS)
def check_made_by_name(case: PerceptionCase) -> None:
    """The registry knows the perception by its name and its aliases, and its factory makes a torch.nn.Module."""
    case.make()
    require_registered(case.entry, case.registered)


@check_of(PERCEPTION_CHECKS)
def check_output_shape(case: PerceptionCase) -> str:
    """Objects [batch, *shape] give vectors [batch, size], whatever objects it takes; others are refused with an
    IcyError."""
    for shape, refusal in case.shapes.items():
        for count in (BATCH, 1) if not refusal else ():
            found = run(case.make(shape=shape), case.objects(count, shape=shape))
            require(isinstance(found, Tensor), f"The output is a {type(found).__name__}, not a tensor.")
            expected = (count, case.size)
            require(tuple(found.shape) == expected, f"Objects {shape} give {tuple(found.shape)}, not {expected}.")
            require(found.is_floating_point(), f"The vectors are {found.dtype}, not floating point.")
    taken = [str(shape) for shape, refusal in case.shapes.items() if not refusal]
    return f"sees objects of shape {' and '.join(taken)}"


@check_of(PERCEPTION_CHECKS)
def check_finite_output(case: PerceptionCase) -> None:
    """Vectors are finite, also of an object that is nothing but zeros."""
    objects = torch.cat([case.objects(), torch.zeros_like(case.objects(1))])
    require(run(case.make(), objects).isfinite().all(), "Some numbers of the vectors are infinite or NaN.")


@check_of(PERCEPTION_CHECKS)
def check_same_seed_same_weights(case: PerceptionCase) -> None:
    """A seed gives the same weights every time: all are drawn from torch's generator."""
    first = case.make().state_dict()
    for name, value in case.make().state_dict().items():
        require(torch.equal(first[name], value), f"'{name}' differs between two perceptions of one seed.")


@check_of(PERCEPTION_CHECKS)
def check_different_seeds_differ(case: PerceptionCase) -> None:
    """Another seed gives other weights."""
    pairs = zip(case.make(seed=1).parameters(), case.make(seed=2).parameters(), strict=True)
    require(any(not torch.equal(a, b) for a, b in pairs), "Two seeds give the same weights.")


@check_of(PERCEPTION_CHECKS)
def check_random_state_untouched(case: PerceptionCase) -> None:
    """Making a perception draws from torch only, and running it draws nothing."""
    with same_random_state("Making the perception"):
        perception = case.make()
    with same_random_state("Running the perception in evaluation mode"):
        run(perception, case.objects())


@check_of(PERCEPTION_CHECKS)
def check_deterministic(case: PerceptionCase) -> None:
    """In evaluation mode the same objects give the same vectors twice."""
    perception = case.make()
    same = torch.equal(run(perception, case.objects()), run(perception, case.objects()))
    require(same, "The same objects give other vectors the second time.")


@check_of(PERCEPTION_CHECKS)
def check_inputs_unchanged(case: PerceptionCase) -> None:
    """The perception does not write into its input."""
    objects = case.objects()
    for training in (False, True):
        run(case.make().train(training), objects)
    require(torch.equal(objects, case.objects()), "The forward pass changed its input in place.")


@check_of(PERCEPTION_CHECKS)
def check_objects_independent(case: PerceptionCase) -> None:
    """In evaluation mode the vector of an object does not depend on the others in its batch."""
    perception, objects = case.make(), case.objects()
    together = run(perception, objects)
    require_close(run(perception, objects.flip(0)).flip(0), together, "Vectors of a batch and of it backwards")
    alone = torch.cat([run(perception, one) for one in objects.unsqueeze(1)])
    require_close(alone, together, "Vectors of objects alone and in a batch")


@check_of(PERCEPTION_CHECKS)
def check_objects_differ(case: PerceptionCase) -> None:
    """Different objects give different vectors."""
    found = run(case.make(), case.objects())
    require((found != found[:1]).any(-1)[1:].all(), "Different objects give the same vector.")


@check_of(PERCEPTION_CHECKS)
def check_gradients_reach_parameters(case: PerceptionCase) -> None:
    """Every trainable parameter gets a gradient that is finite and not all zero."""
    perception = case.make().train()
    direction = torch.from_numpy(stream(case.seed, "testing", "direction").normal(size=(BATCH, case.size))).float()
    (perception(case.objects()) * direction).sum().backward()
    require(any(p.requires_grad for p in perception.parameters()), "The perception has no trainable parameters.")
    require_gradients(perception)


@check_of(PERCEPTION_CHECKS)
def check_pickles(case: PerceptionCase) -> None:
    """A copy pickled as for a worker process, and a deep copy, give the same vectors."""
    perception, objects = case.make(), case.objects()
    copied: nn.Module = pickle.loads(dumps(perception))
    for what, other in (("pickled", copied), ("deep", copy.deepcopy(perception))):
        same = torch.equal(run(other, objects), run(perception, objects))
        require(same, f"A {what} copy gives other vectors.")


@check_of(PERCEPTION_CHECKS)
def check_float64(case: PerceptionCase) -> None:
    """`perception.double()` computes in double precision, to about the same vectors."""
    found = run(case.make().double(), case.objects().double())
    require(found.dtype == torch.float64, f"After perception.double() the vectors are {found.dtype}.")
    require_close(found, run(case.make(), case.objects()), "Vectors in double and in single precision", 1e-4)


@check_of(PERCEPTION_CHECKS)
def check_moves_to_device(case: PerceptionCase) -> str:
    """The perception makes no tensor on the CPU when it runs elsewhere; it runs on a GPU where there is one."""
    perception = case.make()
    with MadeTensors() as made:
        expected = run(perception, case.objects())
    require(not made.by, f"It calls {' and '.join(set(made.by))} without a device; use `new_zeros` or `device=`.")
    if torch.cuda.is_available():
        found = run(case.make().cuda(), case.objects().cuda())
        require_close(found, expected, "Vectors on a GPU and on the CPU", 1e-3)
    return f"tried on cpu{' and cuda' if torch.cuda.is_available() else ''}"


@check_of(PERCEPTION_CHECKS)
def check_stacked_equals_separate(case: PerceptionCase) -> str:
    """Three replicates trained as one program equal the same three trained alone, running averages included."""
    together = _learner(case, SEEDS)
    before = together.scores(_batches(case, SEEDS))
    _train(case, together, SEEDS)
    stacked = together.scores(_batches(case, SEEDS))
    for place, seed in enumerate(SEEDS):
        alone = _learner(case, [seed], "loop")
        _train(case, alone, [seed])
        what = f"Replicate {place} in a stack and alone"
        found = alone.scores(_batches(case, [seed]))
        require_same_training(stacked[place : place + 1], found, before[place : place + 1], what)
        mine, other = together.weights(place), alone.weights(0)
        for name, _ in case.make().named_buffers():
            require_close(mine[name], other[name], f"'{name}' of replicate {place} in a stack and alone", 1e-3)
    return f"trains as: {together.engine}"


@check_of(PERCEPTION_CHECKS)
def check_learns(case: PerceptionCase) -> None:
    """Training on one batch brings the vectors nearer to what was asked for."""
    learner = _learner(case, SEEDS[:1])
    losses = []
    for _ in range(UPDATES):
        _train(case, learner, SEEDS[:1], 1)
        found = learner.losses()
        losses.append(float("nan") if found is None else found.item())
    first, last = losses[0], losses[-1]
    require(last < first, f"{UPDATES} updates took the squared error from {first:.3g} to {last:.3g}.")


def _learner(case: PerceptionCase, seeds: Sequence[int], engine: str = "auto") -> Learner:
    def loss(vectors: Tensor, targets: Tensor, noise: object) -> Tensor:
        return (vectors - targets).square().mean((-2, -1))

    with log_level(logging.ERROR, "icy.training"):
        perceptions = [case.make(seed) for seed in seeds]
        sample = _batches(case, seeds)
        try:
            return make_learner(perceptions, seeds, loss, SETTINGS, CPU, sample, engine)
        except IcyError as error:
            raise CheckFailure(f"It cannot be trained: {error}") from error


def _batches(case: PerceptionCase, seeds: Sequence[int]) -> Tensor:
    """Return a batch for each replicate, [replicate, batch, *shape]."""
    return torch.stack([case.objects(draw=seed) for seed in seeds])


def _train(case: PerceptionCase, learner: Learner, seeds: Sequence[int], updates: int = 3) -> None:
    numbers = [stream(seed, "testing", "vectors").normal(size=(BATCH, case.size)) for seed in seeds]
    targets = torch.stack([torch.from_numpy(of_one).float() for of_one in numbers])
    keys = torch.tensor([stream_key(seed, "testing", "noise") for seed in seeds], dtype=torch.int64, device="cpu")
    for _ in range(updates):
        learner.update(_batches(case, seeds), targets, keys)


def _in_another_loop(case: PerceptionCase) -> OtherLoopCase:
    return OtherLoopCase(lambda seed: case.make(case.seed + seed), case.objects(), (case.size,))


PERCEPTION_CHECKS |= other_loop_checks(_in_another_loop)
