"""Checks that are shared by plug-ins made of tensors: models, cells, cores, perceptions and worlds.

A case creates and runs its plug-in, and the checks compare outputs. The first line of each docstring is the claim that
the check tests.
"""

from __future__ import annotations

import copy
import logging
import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeAlias, TypeVar

import torch
from joblib.externals.loky.backend.reduction import dumps
from torch import Tensor, nn

from icy.core.streams import stream, stream_key
from icy.core.surroundings import log_level
from icy.training.gradient import Loss
from icy.training.learners import Learner, make_learner

from .cases import CPU, SETTINGS, MadeTensors, NotApplicable, require, require_close, same_random_state

SEEDS = (11, 12, 13)  # of the three replicates that are trained together

P = TypeVar("P")
M = TypeVar("M", bound=nn.Module)
Tensors: TypeAlias = tuple[Tensor, ...]


class TensorCase(ABC, Generic[P]):
    """A plug-in under test that reads and returns tensors.

    Attributes:
        noun: name of the kind of plug-in in messages.
        gpu_tolerance: largest difference between outputs on a GPU and on the CPU.
    """

    noun: ClassVar[str]
    gpu_tolerance: ClassVar[float] = 1e-3

    @abstractmethod
    def make(self) -> P:
        """Create the plug-in."""

    def forms(self) -> dict[str, P]:
        """Create each form of the plug-in that is used, by name; "" for the only form."""
        return {"": self.make()}

    @abstractmethod
    def draw_inputs(self, plugin: P) -> Tensors:
        """Draw inputs of the plug-in."""

    @abstractmethod
    def outputs(self, plugin: P, given: Tensors) -> Tensors:
        """Run the plug-in without gradients, and return all its outputs."""


class ModuleCase(TensorCase[M]):
    """A module under test.

    Attributes:
        seed: seed of weights and inputs.
    """

    seed: int

    @abstractmethod
    def make(self, seed: int | None = None) -> M:
        """Create the module with the weights of a seed (default: the case's), in evaluation mode."""

    def rows(self, given: Tensors, which: Sequence[int]) -> Tensors:
        """Return the inputs of some examples: rows of each tensor, unless the case overrides the batch axis."""
        return tuple(tensor[list(which)] for tensor in given)


class TrainedCase(ModuleCase[M]):
    """A module under test that trains in stacks."""

    def trainable(self, seed: int) -> nn.Module:
        """Create the module to train: the plug-in, or a net that contains it."""
        return self.make(seed)

    def loss(self) -> Loss:
        """Return the loss of outputs at targets, [replicate]; by default the mean squared error."""
        return lambda outputs, targets, noise: (outputs - targets).square().flatten(1).mean(1)

    @abstractmethod
    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return inputs and targets [replicate, batch, ...], which depend only on the seed of each replicate."""

    def learner(self, seeds: Sequence[int], engine: str = "auto") -> Learner:
        """Return replicates that are ready to train, one per seed."""
        with log_level(logging.ERROR, "icy.training"):  # the check's remark reports how the module is stacked
            modules, sample = [self.trainable(seed) for seed in seeds], self.batches(seeds, 0)[0]
            return make_learner(modules, seeds, self.loss(), SETTINGS, CPU, sample, engine)

    def stacks(self, seeds: Sequence[int]) -> list[Learner]:
        """Return stacks of the replicates, one for each engine to compare with separate replicates."""
        return [self.learner(seeds)]

    def train(self, learner: Learner, seeds: Sequence[int], updates: range) -> None:
        """Update each replicate on its own batches."""
        for update in updates:
            learner.update(*self.batches(seeds, update), keys(seeds, update))


def keys(seeds: Sequence[int], update: int) -> Tensor:
    """Return the key of the noise of each replicate at an update."""
    return torch.tensor(
        [stream_key(seed, "testing", "noise", update) for seed in seeds], dtype=torch.int64, device="cpu"
    )


def require_same_training(found: Tensor, expected: Tensor, before: Tensor, what: str) -> None:
    """Fail the check unless two runs ended with the same scores.

    Adam takes full steps even for tiny gradients, so the difference is relative to the change by training.
    """
    changed = (expected - before).abs().max().item()
    require_close(found, expected, what, 1e-4 + 0.01 * changed)


def require_gradients(module: nn.Module, output: Tensor, seed: int, where: str = "") -> None:
    """Fail the check unless a projection of an output gives each trainable parameter a finite nonzero gradient.

    Args:
        module: the module.
        output: an output of the module, with gradients.
        seed: seed of the projection.
        where: text added to messages.
    """
    direction = torch.from_numpy(stream(seed, "testing", "direction").normal(size=tuple(output.shape)))
    (output * direction.to(output.dtype)).sum().backward()
    trainable = {name: p for name, p in module.named_parameters() if p.requires_grad}
    unreached = [name for name, p in trainable.items() if p.grad is None or not p.grad.any()]
    require(not unreached, f"No gradient reaches {', '.join(unreached)}{where}; leave them out, or use them.")
    broken = [name for name, p in trainable.items() if p.grad is not None and not p.grad.isfinite().all()]
    require(not broken, f"The gradient of {', '.join(broken)}{where} is not finite.")


def equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    """Return whether tensors are equal, bit for bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def require_all_close(found: Tensors, expected: Tensors, what: str, tolerance: float = 1e-5) -> None:
    """Fail the check unless all outputs agree to `tolerance`."""
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, what, tolerance)


def _in(form: str) -> str:
    return f" ({form})" if form else ""


def check_same_seed_same_weights(case: ModuleCase[M]) -> None:
    """A seed gives the same weights every time, after any other draws."""
    first = case.make().state_dict()
    torch.rand(5, dtype=torch.float32, device="cpu")
    for name, value in case.make().state_dict().items():
        same = torch.equal(first[name], value) if isinstance(value, Tensor) else first[name] == value
        require(same, f"'{name}' differs between two {case.noun}s of one seed.")


def check_different_seeds_differ(case: ModuleCase[M]) -> None:
    """Another seed gives other weights."""
    pairs = list(zip(case.make(1).parameters(), case.make(2).parameters(), strict=True))
    if not pairs:
        raise NotApplicable(f"the {case.noun} has no parameters")
    require(any(not torch.equal(a, b) for a, b in pairs), "Two seeds give the same weights.")


def check_random_state_untouched(case: TensorCase[P]) -> None:
    """Creating and running the plug-in does not change the global random state of torch, NumPy and Python."""
    with same_random_state(f"Making the {case.noun}"):
        plugin = case.make()
    with same_random_state(f"Running the {case.noun} in evaluation mode"):
        case.outputs(plugin, case.draw_inputs(plugin))


def check_deterministic(case: TensorCase[P]) -> None:
    """In evaluation mode the same inputs give the same outputs twice: calls change no state."""
    for form, plugin in case.forms().items():
        first, again = (case.outputs(plugin, case.draw_inputs(plugin)) for _ in range(2))
        lasting = "between calls, keep only weights"
        require(equal(first, again), f"The same inputs give other outputs the second time{_in(form)}; {lasting}.")


def check_inputs_unchanged(case: TensorCase[P]) -> None:
    """The plug-in does not change its inputs."""
    for form, plugin in case.forms().items():
        given = case.draw_inputs(plugin)
        before = [tensor.clone() for tensor in given]
        case.outputs(plugin, given)
        require(equal(given, before), f"The {case.noun} changed its inputs in place{_in(form)}; work on new tensors.")


def check_examples_independent(case: ModuleCase[M]) -> None:
    """In evaluation mode the output for an example does not depend on other examples in its batch."""
    for form, module in case.forms().items():
        given, together = case.draw_inputs(module), case.outputs(module, case.draw_inputs(module))
        places = range(len(together[0]))
        backwards = case.outputs(module, case.rows(given, places[::-1]))
        what = f"Outputs of a batch and of the same batch in reverse order{_in(form)}"
        require_all_close(tuple(output.flip(0) for output in backwards), together, what)
        for i in places:
            alone, mine = case.outputs(module, case.rows(given, [i])), tuple(output[i : i + 1] for output in together)
            require_all_close(alone, mine, f"Outputs of an example alone and in a batch{_in(form)}")


def check_pickles(case: TensorCase[P]) -> None:
    """A copy pickled as for a worker process, and a deep copy, give the same outputs."""
    for form, plugin in case.forms().items():
        given = case.draw_inputs(plugin)
        copies = {"pickled": pickle.loads(dumps(plugin)), "deep": copy.deepcopy(plugin)}
        expected = case.outputs(plugin, tuple(tensor.clone() for tensor in given))
        for what, copied in copies.items():
            found = case.outputs(copied, tuple(tensor.clone() for tensor in given))
            require(equal(found, expected), f"A {what} copy gives other outputs{_in(form)}.")


def check_moves_to_device(case: TensorCase[P]) -> str:
    """On another device, the plug-in creates no tensor on the CPU; if there is a GPU, the plug-in runs on it."""
    for form, plugin in case.forms().items():
        given = case.draw_inputs(plugin)
        with MadeTensors() as made:
            expected = case.outputs(plugin, given)
        by = " and ".join(sorted(set(made.by)))
        require(not by, f"The {case.noun} calls {by} without a device{_in(form)}; use `new_zeros` or `device=`.")
        if torch.cuda.is_available():
            moved = plugin.cuda() if isinstance(plugin, nn.Module) else plugin
            found = case.outputs(moved, tuple(tensor.cuda() for tensor in given))
            require_all_close(found, expected, f"Outputs on a GPU and on the CPU{_in(form)}", case.gpu_tolerance)
    return f"tried on cpu{' and cuda' if torch.cuda.is_available() else ''}"


def check_float64(case: ModuleCase[M]) -> None:
    """After `.double()` the module computes in double precision, with about the same outputs."""
    for form, module in case.forms().items():
        given, expected = case.draw_inputs(module), case.outputs(module, case.draw_inputs(module))
        double = module.double()
        found = case.outputs(double, tuple(x.double() if x.is_floating_point() else x for x in given))
        types = {output.dtype for output in found} if any(True for _ in double.parameters()) else {torch.float64}
        names = " and ".join(map(str, types))
        require(types == {torch.float64}, f"After {case.noun}.double() the outputs are {names}{_in(form)}.")
        require_all_close(found, expected, f"Outputs in double and in single precision{_in(form)}", 1e-4)


def check_stacked_equals_separate(case: TrainedCase[M]) -> str:
    """Three replicates trained as one program equal the same replicates trained separately, as plain modules."""
    together, (inputs, _) = case.stacks(SEEDS), case.batches(SEEDS, 99)
    before = together[-1].scores(inputs)
    for learner in together:
        case.train(learner, SEEDS, range(3))
    for i, seed in enumerate(SEEDS):
        alone, buffers = case.learner([seed], "loop"), [name for name, _ in case.trainable(seed).named_buffers()]
        case.train(alone, [seed], range(3))
        expected, weights = alone.scores(inputs[i : i + 1]), alone.weights(0)
        for learner in together:
            what = f"of replicate {i} in a stack ({learner.engine}) and alone"
            require_same_training(learner.scores(inputs)[i : i + 1], expected, before[i : i + 1], f"Outputs {what}")
            for name in buffers:
                require_close(learner.weights(i)[name], weights[name], f"'{name}' {what}", 1e-3)
    return f"trains as: {' and '.join(learner.engine for learner in together)}"
