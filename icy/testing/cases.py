"""Cases of models and grammars, and what all checks share: how to fail, and how to compare."""

from __future__ import annotations

import contextlib
import logging
import random
import unittest
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from icy.config.settings import TrainingSettings
from icy.core.logs import log_level
from icy.core.registry import Entry, registry
from icy.core.streams import stream, stream_key
from icy.grammars import make_language
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.training.engine import make_model, representation_of
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.tasks import Task

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(learning_rate=0.01)
EXAMPLES = 16  # in a batch

Check = Callable[[Any], str | None]
C = TypeVar("C", bound=Check)


def check_of(checks: dict[str, Check]) -> Callable[[C], C]:
    """Return a decorator that adds a check to `checks`, under its name without the prefix `check_`."""

    def record(check: C) -> C:
        checks[check.__name__.removeprefix("check_")] = check
        return check

    return record


class CheckFailure(AssertionError):
    """A check failed; the message says in a sentence what is wrong."""


class NotApplicable(unittest.SkipTest):
    """A check does not apply to this plug-in; pytest and unittest take it for a skip."""


class Unsupported(NotApplicable):
    """A plug-in does not support something optional; the message says what, and gives the error."""


def require(condition: object, sentence: str) -> None:
    """Fail the check with `sentence` unless `condition` holds.

    Raises:
        CheckFailure: the condition does not hold.
    """
    if not condition:
        raise CheckFailure(sentence)


def require_close(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-5) -> None:
    """Fail the check unless two tensors agree to `tolerance`.

    Raises:
        CheckFailure: they differ; the sentence starts with `what` and gives the largest difference.
    """
    require(found.shape == expected.shape, f"{what}: shapes are {tuple(found.shape)} and {tuple(expected.shape)}.")
    difference = (found.double().cpu() - expected.double().cpu()).abs().max().item() if found.numel() else 0.0
    require(difference <= tolerance, f"{what}: they differ by up to {difference:.2g}.")


def require_registered(entry: Entry, registered: bool) -> None:
    """Fail the check unless the registry knows an entry by its name and by every alias.

    Raises:
        CheckFailure: a name stands for another entry.
        NotApplicable: the entry was made for the occasion.
    """
    if not registered:
        raise NotApplicable(f"the {entry.kind} is not registered")
    for name in (entry.qualified, *(f"{entry.kind}/{alias}" for alias in entry.aliases)):
        found = registry.get(name, entry.kind).qualified
        require(found == entry.qualified, f"'{name}' stands for {found}.")


def require_gradients(module: nn.Module, where: str = "") -> None:
    """Fail the check unless every trainable parameter has a gradient that is finite and not all zero."""
    trainable = {name: p for name, p in module.named_parameters() if p.requires_grad}
    unreached = [name for name, p in trainable.items() if p.grad is None or not p.grad.any()]
    require(not unreached, f"No gradient reaches {', '.join(unreached)}{where}; leave them out, or use them.")
    broken = [name for name, p in trainable.items() if p.grad is not None and not p.grad.isfinite().all()]
    require(not broken, f"The gradient of {', '.join(broken)}{where} is not finite.")


def require_same_training(found: Tensor, expected: Tensor, before: Tensor, what: str) -> None:
    """Fail the check unless two runs ended with the same scores.

    Adam takes full steps even for tiny gradients, so the difference is measured against what training changed.
    """
    changed = (expected - before).abs().max().item()
    require_close(found, expected, what, 1e-4 + 0.01 * changed)


@dataclass(frozen=True)
class ModelCase:
    """A model under test, and the small setting it is tested in.

    Attributes:
        task: the model and its sizes.
        seed: seed of weights and examples.
        registered: whether the registry knows the model.
    """

    task: Task
    seed: int = 0
    registered: bool = True

    def make(self, seed: int | None = None) -> nn.Module:
        """Make the model with the weights of a seed, in evaluation mode."""
        return make_model(self.task, self.seed if seed is None else seed, TrainingSettings()).eval()

    def ready(self) -> nn.Module:
        """Make the model; one that stores examples gets some to store."""
        model: Any = self.make()
        if not getattr(model, "learns_by_gradient", True):
            model.observe(*self.examples(EXAMPLES, draw=1))
        return model  # type: ignore[no-any-return]

    def with_task(self, **changes: Any) -> ModelCase:
        """Return the same model in another setting."""
        return replace(self, task=replace(self.task, **changes))

    def examples(self, count: int | None = None, draw: int = 0) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of a random language: `count` at random, or one for every meaning."""
        task, space = self.task, self.task.space
        table = stream(self.seed, "testing", "table").integers(task.vocab_size, size=(space.size, task.message_length))
        rows = np.arange(space.size)
        if count is not None:
            rows = stream(self.seed, "testing", "rows", draw).integers(space.size, size=count)
        meanings, messages = torch.from_numpy(space.meanings(rows)), torch.from_numpy(table[rows])
        return (meanings, messages) if task.side == "sender" else (messages, meanings)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores of one example."""
        task = self.task
        if task.side == "sender":
            return task.message_length, task.vocab_size + 1
        return task.space.attributes, task.space.values

    def check_shape(self, count: int) -> Tensor:
        """Return the scores of `count` examples; fail unless they have the agreed shape."""
        inputs, _ = self.examples(count)
        scores = run(self.ready(), inputs)
        where = f"{self.task.space}, {self.task.message_length} tokens, vocabulary {self.task.vocab_size}"
        expected = (count, *self.shape)
        require(isinstance(scores, Tensor), f"The output is a {type(scores).__name__}, not a tensor.")
        require(
            tuple(scores.shape) == expected, f"The scores have shape {tuple(scores.shape)}, not {expected} ({where})."
        )
        require(scores.is_floating_point(), f"The scores are {scores.dtype}, not floating point.")
        return scores

    def gradient_model(self) -> nn.Module:
        """Make the model, if it learns by gradient.

        Raises:
            NotApplicable: the model does not.
        """
        model = self.make()
        if not getattr(model, "learns_by_gradient", True):
            raise NotApplicable("the model stores examples and does not learn by gradient")
        return model

    def learner(self, seeds: Sequence[int], engine: str = "auto") -> Learner:
        """Return replicates that are ready to train, one per seed."""
        sample = self.batches(seeds, 0)[0]
        loss = supervised_loss(representation_of(self.task, SETTINGS), self.task.side)
        with log_level(logging.ERROR, "icy.training"):  # the check's remark says how the model is stacked
            return make_learner([self.make(s) for s in seeds], seeds, loss, SETTINGS, CPU, sample, engine)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return a batch for each replicate, which depends on its seed alone: [replicate, batch, ...]."""
        drawn = [self.examples(EXAMPLES, draw=1000 * seed + update) for seed in seeds]
        return torch.stack([x for x, _ in drawn]), torch.stack([y for _, y in drawn])

    def train(self, learner: Learner, seeds: Sequence[int], updates: range) -> None:
        """Update each replicate on its own batches."""
        for update in updates:
            learner.update(*self.batches(seeds, update), self.keys(seeds, update))

    def keys(self, seeds: Sequence[int], update: int) -> Tensor:
        """Return the key of the noise of each replicate at an update."""
        return torch.tensor(
            [stream_key(seed, "testing", "noise", update) for seed in seeds], dtype=torch.int64, device="cpu"
        )


@dataclass(frozen=True)
class GrammarCase:
    """A grammar under test, and the small setting it is tested in.

    Attributes:
        name: the name it is registered under, at least during the checks.
        space: the meanings.
        vocab_size: V.
        word_length: w.
        seed: seed of the language.
    """

    name: str
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 2
    seed: int = 0

    def make(self, **changes: Any) -> Language:
        """Make the language, with some of the setting changed."""
        at = replace(self, **changes)
        return make_language(at.name, at.space, at.vocab_size, at.word_length, at.seed)


def run(model: nn.Module, inputs: Tensor) -> Tensor:
    """Run a model without gradients, and return its scores."""
    with torch.no_grad():
        scores: Tensor = model(inputs)
    return scores


@contextlib.contextmanager
def same_random_state(what: str) -> Iterator[None]:
    """Fail if a `with` block draws from a global random state."""
    before = torch.random.get_rng_state(), repr(np.random.get_state()), random.getstate()
    yield
    require(torch.equal(torch.random.get_rng_state(), before[0]), f"{what} moves torch's global random state.")
    for library, found, expected in (
        ("NumPy", repr(np.random.get_state()), before[1]),
        ("Python", random.getstate(), before[2]),
    ):
        require(
            found == expected,
            f"{what} draws from {library}'s global random state; draw from torch, or icy.core.streams.",
        )


class MadeTensors(TorchFunctionMode):
    """Note, within a `with` block, which functions make a tensor on the default device; a GPU needs it elsewhere.

    Attributes:
        by: the functions, by name.
    """

    makers = frozenset(getattr(torch, name) for name in ("arange", "empty", "eye", "full", "ones", "tensor", "zeros"))

    def __init__(self) -> None:
        super().__init__()
        self.by: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function; torch calls this in its place."""
        found = func(*args, **(kwargs or {}))
        if func in self.makers and "device" not in (kwargs or {}) and found.dim():
            self.by.append(f"torch.{func.__name__}")
        return found


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its full stop."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def first_representation(entry: Entry) -> str:
    """Return the representation that a model is checked in unless one is named: the first that it works with."""
    return entry.representations[0] if entry.representations else "soft"
