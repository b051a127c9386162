"""Tasks, jobs, batches and a plain module that the tests of training share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.registry import Entry, registry
from icy.core.representations import SOFT
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split
from icy.models.layers import flat_one_hot
from icy.training.engine import train
from icy.training.gradient import GradientLearner
from icy.training.job import Outcome, Replicate
from icy.training.language_job import LanguageJob
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.native import NativeStack
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model

SPACE = MeaningSpace(3, 4)
CPU = torch.device("cpu")
SETTINGS = TrainingSettings(batch_size=16, learning_rate=0.01, check_every=10, evaluation_size=64, max_steps=200)
MODELS = ["sender/FC2L", "sender/HierZero:GRU", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU"]
SEEDS = (1, 2, 3, 4, 5)


def task(model: str, **options: Any) -> ProbeSettings:
    return ProbeSettings.of_model(model, SPACE, 4, 2, 16, options=options)


def job(model: str, replicates: Sequence[tuple[str, int]], **changes: Any) -> LanguageJob:
    """A job under the protocol `budget`; changes are fields of its settings, or of the job."""
    names = {f.name for f in fields(LanguageJob)} & changes.keys()
    of_job = {name: changes.pop(name) for name in names}
    own = replace(task(model), **{"protocol": "budget", "training": SETTINGS, **changes})
    return LanguageJob(settings=own, replicates=tuple(Replicate(*r) for r in replicates), **of_job)


def outcomes(of: LanguageJob) -> dict[tuple[str, int], Outcome]:
    return {(o.replicate.condition, o.replicate.seed): o for o in train(of)}


def batches(side: str, count: int, seed: int = 0, size: int = 8) -> tuple[Tensor, Tensor]:
    """Inputs and targets [replicate, batch, ...], different for each replicate."""
    generator = torch.Generator().manual_seed(seed)
    meanings = torch.randint(4, (count, size, 3), generator=generator)
    messages = torch.randint(4, (count, size, 6), generator=generator)
    return (meanings, messages) if side == "sender" else (messages, meanings)


def step(learner: Learner, inputs: Tensor, targets: Tensor) -> None:
    """An update of every replicate, under the same noise."""
    learner.update(inputs, targets, torch.zeros(len(inputs), dtype=torch.long))


def stacked(
    of: ProbeSettings, seeds: Sequence[int], settings: TrainingSettings = SETTINGS, how: str = "auto", loss: Any = None
) -> Learner:
    models = [make_model(of, seed, settings) for seed in seeds]
    sample = batches(of.side, len(seeds))[0]
    return make_learner(models, seeds, loss or supervised_loss(SOFT, of.side), settings, CPU, sample, how)


def weights(learner: Learner) -> dict[str, Tensor]:
    """Weights of all replicates [replicate, ...] by name."""
    assert isinstance(learner, GradientLearner | NativeStack)
    count = learner._count if isinstance(learner, GradientLearner) else len(learner._parameters)
    each = [learner.weights(place) for place in range(count)]
    return {name: torch.stack([one[name] for one in each]) for name in each[0]}


# -- held-out meanings -------------------------------------------------------------------------------------------------

SMALL = MeaningSpace(2, 3)


def holding_out(model: str, replicates: Sequence[tuple[str, int]], split: Split, **changes: Any) -> LanguageJob:
    """A job of `generalise` in a space of nine meanings."""
    own = {"protocol": "generalise", "meanings": str(SMALL), "split": split.kind, "held_out": split.share}
    return job(model, replicates, training=replace(SETTINGS, max_steps=2000), **own, **changes)


# -- plain modules as plug-ins -----------------------------------------------------------------------------------------


class Plain(nn.Module):
    """The sender FC2L as a stranger would write it; `extra` goes between the layers."""

    def __init__(
        self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int, extra: Any = nn.Identity
    ) -> None:
        super().__init__()
        self.values, self.shape = space.values, (message_length, vocab_size + 1)
        self.hidden = nn.Linear(space.attributes * space.values, hidden_size)
        self.extra = extra()
        self.out = nn.Linear(hidden_size, message_length * (vocab_size + 1))

    def forward(self, meanings: Tensor) -> Tensor:
        hidden = self.extra(self.hidden(flat_one_hot(meanings, self.values, torch.float32)).tanh())
        scores: Tensor = self.out(hidden).unflatten(-1, self.shape)
        return scores


def plug_in(factory: Callable[..., nn.Module], side: str = "sender", name: str = "plug-in", **defaults: Any) -> str:
    """Register a model, which is forgotten after the test; return its name."""
    entry = Entry(side, name, factory, "", "", defaults=defaults)
    registry.add(entry)
    return entry.qualified


def assert_same_bits(one: Learner, place: int, other: Learner, at: int) -> None:
    """Assert that replicates at these places have the same weights and the same last loss, to the bit."""
    mine, theirs = one.weights(place), other.weights(at)
    assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    losses = one.losses(), other.losses()
    assert losses[0] is not None
    assert losses[1] is not None
    assert losses[0][place] == losses[1][at]
