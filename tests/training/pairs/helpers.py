"""Pairs of a sender and a receiver, trained in a small space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icy.config.protocols import EndToEndProtocol
from icy.config.settings import TrainingSettings
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.training.job import Outcome, Replicate
from icy.training.pair_job import PairJob
from icy.training.pair_training import train_pairs
from icy.training.tasks import PairEntry, PairTask

SPACE = MeaningSpace(2, 3)

SETTINGS = TrainingSettings(batch_size=16, evaluation_size=64, check_every=20, learning_rate=0.01, max_steps=400)

SHORT = EndToEndProtocol(steps=12, report_every=5, target=0.9)


def pair_task(sender: str = "RNNAutoReg:GRU", receiver: str = "RNN1L:GRU", representation: str = "soft") -> PairTask:
    entry = PairEntry(registry.get(sender, "sender"), registry.get(receiver, "receiver"))
    return PairTask(entry, SPACE, 4, 2, 8, representation)


def run(
    folder: Path,
    replicates: Sequence[Replicate],
    task: PairTask,
    protocol: EndToEndProtocol = SHORT,
    **more: Any,
) -> dict[Replicate, Outcome]:
    job = PairJob(task, protocol, SETTINGS, replicates=tuple(replicates), folder=str(folder), **more)
    return {outcome.replicate: outcome for outcome in train_pairs(job)}


def assert_same_curve(found: Outcome, expected: Outcome) -> None:
    assert len(found.curve) == len(expected.curve)
    for a, b in zip(found.curve, expected.curve, strict=True):
        np.testing.assert_allclose(np.array(a, float), np.array(b, float), atol=2e-3, equal_nan=True)
