"""Checks that plug-ins made of tensors share: models, cells, cores, perceptions and worlds.

A case creates and runs its plug-in, and the checks compare outputs.
"""

from __future__ import annotations

import copy
import io
import logging
import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import torch
from joblib.externals.loky.backend.reduction import dumps
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from icy.config.settings import TrainingSettings
from icy.core import gpu
from icy.core.streams import stream, stream_key
from icy.core.surroundings import log_level
from icy.training.gradient import Loss
from icy.training.learners import Learner, make_learner

from .cases import Case, NotApplicable, require, require_close

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(learning_rate=0.01)
SEEDS = (11, 12, 13)  # of the three replicates that are trained together

P = TypeVar("P")
M = TypeVar("M", bound=nn.Module)
Tensors: TypeAlias = tuple[Tensor, ...]


@dataclass(frozen=True)
class TensorCase(Case, Generic[P]):
    """A plug-in under test that reads and returns tensors, with the batch as the first axis.

    Attributes:
        seed: seed of weights and inputs.
        tolerance: largest difference between the outputs of an example alone and in a batch.
        gpu_tolerance: largest difference between outputs on a GPU and on the CPU.
    """

    tolerance: ClassVar[float] = 1e-5
    gpu_tolerance: ClassVar[float] = 1e-3
    seed: int = field(default=0, kw_only=True)

    @abstractmethod
    def make(self) -> P:
        """Create the plug-in."""

    def forms(self) -> dict[str, P]:
        """Create each form of the plug-in that is used, by name; "" for the only form."""
        return {"": self.make()}

    @abstractmethod
    def draw_inputs(self, plugin: P) -> Tensors:
        """Draw inputs of the plug-in, the same at every call."""

    def extreme_inputs(self, plugin: P) -> Tensors:
        """Return inputs for which outputs may overflow; by default the usual inputs."""
        return self.draw_inputs(plugin)

    @abstractmethod
    def outputs(self, plugin: P, given: Tensors) -> Tensors:
        """Run the plug-in and return all its outputs; losses depend on the first one."""

    def run(self, plugin: P, given: Tensors | None = None) -> Tensors:
        """Run the plug-in without gradients, by default on newly drawn inputs, and return all its outputs."""
        with torch.no_grad():
            return self.outputs(plugin, self.draw_inputs(plugin) if given is None else given)

    def use(self) -> None:
        """Create and run every form."""
        for plugin in self.forms().values():
            self.run(plugin)

    def check_deterministic(self) -> None:
        """In evaluation mode the same inputs give the same outputs twice: calls change no state."""
        for form, plugin in self.forms().items():
            first, again = self.run(plugin), self.run(plugin)
            lasting = "between calls, keep only weights"
            require(_equal(first, again), f"The same inputs give other outputs the second time{_in(form)}; {lasting}.")

    def check_inputs_unchanged(self) -> None:
        """The plug-in does not change its inputs."""
        for form, plugin in self.forms().items():
            given = self.draw_inputs(plugin)
            before = tuple(tensor.clone() for tensor in given)
            self.run(plugin, given)
            require(
                _equal(given, before), f"The {self.noun} changed its inputs in place{_in(form)}; work on new tensors."
            )

    def check_examples_independent(self) -> None:
        """In evaluation mode the output for an example does not depend on other examples in its batch."""
        for form, plugin in self.forms().items():
            given, together = self.draw_inputs(plugin), self.run(plugin)
            places = list(range(len(together[0])))
            for rows in (places[::-1], *([place] for place in places)):
                some = self.run(plugin, tuple(tensor[rows] for tensor in given))
                what = f"Outputs of examples alone or in reverse order, and in a batch{_in(form)}"
                _require_all_close(some, tuple(output[rows] for output in together), what, self.tolerance)

    def check_finite_output(self) -> None:
        """No output is infinite or NaN, also for long or extreme inputs."""
        for form, plugin in self.forms().items():
            found = self.run(plugin, self.extreme_inputs(plugin))
            finite = all(output.isfinite().all() for output in found)
            require(finite, f"Some outputs of the {self.noun} are infinite or NaN{_in(form)}.")

    def check_pickles(self) -> None:
        """A copy pickled as for a worker process, and a deep copy, give the same outputs."""
        for form, plugin in self.forms().items():
            copies = {"pickled": pickle.loads(dumps(plugin)), "deep": copy.deepcopy(plugin)}
            expected = self.run(plugin)
            for what, copied in copies.items():
                require(_equal(self.run(copied), expected), f"A {what} copy gives other outputs{_in(form)}.")

    def check_moves_to_device(self) -> str:
        """On another device, the plug-in creates no tensor on the CPU; if there is a GPU, the plug-in runs on it."""
        for form, plugin in self.forms().items():
            given = self.draw_inputs(plugin)
            with MadeTensors() as made:
                expected = self.run(plugin, given)
            by = " and ".join(sorted(set(made.by)))
            require(not by, f"The {self.noun} calls {by} without a device{_in(form)}; use `new_zeros` or `device=`.")
            if gpu.names():
                moved = plugin.cuda() if isinstance(plugin, nn.Module) else plugin
                found = self.run(moved, tuple(tensor.cuda() for tensor in self.draw_inputs(plugin)))
                _require_all_close(found, expected, f"Outputs on a GPU and on the CPU{_in(form)}", self.gpu_tolerance)
        return f"tried on cpu{' and cuda' if gpu.names() else ''}"


class ModuleCase(TensorCase[M]):
    """A module under test."""

    @abstractmethod
    def create(self, seed: int, **options: Any) -> object:
        """Call the factory. Draws from torch's global random state give the weights of the seed."""

    def make(self, seed: int | None = None, **options: Any) -> M:
        """Create the module with the weights of a seed (default: the case's), in evaluation mode."""
        seed = self.seed if seed is None else seed
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(stream_key(seed, "testing", self.entry.kind))
            made: Any = self.create(seed, **options)
        require(isinstance(made, nn.Module), f"The factory made a {type(made).__name__}, not a torch.nn.Module.")
        return made.eval()  # type: ignore[no-any-return]

    def check_same_seed_same_weights(self) -> None:
        """A seed gives the same weights every time, after any other draws."""
        first = self.make().state_dict()
        torch.rand(5, dtype=torch.float32, device="cpu")
        for name, value in self.make().state_dict().items():
            same = torch.equal(first[name], value) if isinstance(value, Tensor) else first[name] == value
            require(same, f"'{name}' differs between two {self.noun}s of one seed.")

    def check_different_seeds_differ(self) -> None:
        """Another seed gives other weights."""
        pairs = list(zip(self.make(1).parameters(), self.make(2).parameters(), strict=True))
        if not pairs:
            raise NotApplicable(f"the {self.noun} has no parameters")
        require(any(not torch.equal(a, b) for a, b in pairs), "Two seeds give the same weights.")

    def check_gradients_reach_parameters(self) -> None:
        """Every trainable parameter gets a finite gradient that is not all zero."""
        for form, module in self.forms().items():
            require_gradient_learning(module)
            output = self.outputs(module, self.draw_inputs(module))[0]
            direction = torch.from_numpy(stream(self.seed, "testing", "direction").normal(size=tuple(output.shape)))
            (output * direction.to(output.dtype)).sum().backward()
            gradients = {name: p.grad for name, p in module.named_parameters() if p.requires_grad}
            require(gradients, f"The {self.noun} has no trainable parameters.")
            unreached = ", ".join(name for name, grad in gradients.items() if grad is None or not grad.any())
            require(not unreached, f"No gradient reaches {unreached}{_in(form)}; leave them out, or use them.")
            broken = ", ".join(name for name, g in gradients.items() if g is not None and not g.isfinite().all())
            require(not broken, f"The gradient of {broken}{_in(form)} is not finite.")

    def check_float64(self) -> None:
        """In single and in double precision the outputs have this precision, and are about the same."""
        for form, module in self.forms().items():
            found: list[Tensors] = []
            for dtype in (torch.float32, torch.float64):
                given = self.draw_inputs(module.to(dtype))
                outputs = self.run(module, tuple(x.to(dtype) if x.is_floating_point() else x for x in given))
                wrong = {output.dtype for output in outputs if output.is_floating_point()} - {dtype}
                right = not wrong or not any(True for _ in module.parameters())
                names = " and ".join(map(str, wrong))
                require(right, f"In {dtype} the {self.noun} gives outputs of {names}{_in(form)}.")
                found.append(outputs)
            what = f"Outputs in single and in double precision{_in(form)}"
            _require_all_close(found[0], found[1], what, 1e-4)


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

    def ready(self) -> nn.Module:
        """Create the module of the case's seed, ready to run."""
        return self.trainable(self.seed)

    def batch(self) -> Tensor:
        """Return a batch of inputs."""
        return self.batches([self.seed], 0)[0][0]

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

    def check_stacked_equals_separate(self) -> str:
        """Replicates trained as one program, which one leaves, equal the same replicates trained separately."""
        stacks, (inputs, _) = self.stacks(SEEDS), self.batches(SEEDS, 99)
        before, staying = stacks[-1].scores(inputs), [0, 2]
        for learner in stacks:
            self.train(learner, SEEDS, range(2))
            learner.keep(staying)
            self.train(learner, [SEEDS[i] for i in staying], range(2, 4))
        for place, i in enumerate(staying):
            its = slice(i, i + 1)
            alone = self.learner([SEEDS[i]], "loop")
            self.train(alone, [SEEDS[i]], range(4))
            expected, weights = alone.scores(inputs[its]), alone.weights(0)
            changed = (expected - before[its]).abs().max().item()
            for learner in stacks:
                what = f"of replicate {i} in a stack ({learner.engine}) and alone"
                found = learner.scores(inputs[staying])[place : place + 1]
                # Adam takes full steps even for tiny gradients, so differences are relative to the change by training.
                require_close(found, expected, f"Outputs {what}", 1e-4 + 0.01 * changed)
                for name, _ in self.trainable(SEEDS[i]).named_buffers():
                    require_close(learner.weights(place)[name], weights[name], f"'{name}' {what}", 1e-3)
        return f"trains as: {' and '.join(learner.engine for learner in stacks)}"

    def check_empty_batch(self) -> None:
        """A batch of 0 examples gives outputs of 0 examples."""
        module, inputs = self.ready(), self.batch()
        found, expected = tuple(module(inputs[:0]).shape), (0, *module(inputs).shape[1:])
        require(found == expected, f"An empty batch gives shape {found}, not {expected}.")

    def check_state_dict(self) -> None:
        """A module with other weights gives the same output after `load_state_dict` of a saved `state_dict`."""
        module, inputs = self.ready(), self.batch()
        other, held = self.trainable(self.seed + 1), io.BytesIO()
        torch.save(module.state_dict(), held)
        held.seek(0)
        other.load_state_dict(torch.load(held, weights_only=True))
        require(torch.equal(other(inputs), module(inputs)), "After load_state_dict the output differs.")


class MadeTensors(TorchFunctionMode):
    """Record, in a `with` block, the functions that create a tensor on the default device, not on that of the inputs.

    Attributes:
        by: names of the functions.
    """

    makers = frozenset(getattr(torch, name) for name in ("arange", "empty", "eye", "full", "ones", "tensor", "zeros"))

    def __init__(self) -> None:
        super().__init__()
        self.by: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call the function; torch calls this method instead of the function."""
        found = func(*args, **(kwargs or {}))
        if func in self.makers and "device" not in (kwargs or {}) and isinstance(found, Tensor) and found.dim():
            self.by.append(f"torch.{func.__name__}")
        return found


def learns_by_gradient(module: nn.Module) -> bool:
    """Return whether a module learns by gradient; other models store examples."""
    return bool(getattr(module, "learns_by_gradient", True))


def require_gradient_learning(module: nn.Module) -> None:
    """Excuse the check if a module does not learn by gradient.

    Raises:
        NotApplicable: the module stores examples.
    """
    if not learns_by_gradient(module):
        raise NotApplicable("the model stores examples and does not learn by gradient")


def keys(seeds: Sequence[int], update: int) -> Tensor:
    """Return the key of the noise of each replicate at an update."""
    return torch.tensor(
        [stream_key(seed, "testing", "noise", update) for seed in seeds], dtype=torch.int64, device="cpu"
    )


def _equal(one: Tensors, other: Tensors) -> bool:
    """Return whether tensors are equal, bit for bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _require_all_close(found: Tensors, expected: Tensors, what: str, tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        require_close(one, other, what, tolerance)


def _in(form: str) -> str:
    return f" ({form})" if form else ""
