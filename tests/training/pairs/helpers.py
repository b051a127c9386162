"""Pairs of a sender and a receiver, trained in a small space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icy.config.settings import TrainingSettings
from icy.languages.meanings import MeaningSpace
from icy.training.job import Outcome, Replicate
from icy.training.language_job import PairJob
from icy.training.pair_settings import EndToEndSettings
from icy.training.pair_training import train_pairs

SPACE = MeaningSpace(2, 3)

SETTINGS = TrainingSettings(batch_size=16, evaluation_size=64, check_every=20, learning_rate=0.01, max_steps=400)


def pair_task(
    sender: str = "RNNAutoReg:GRU", receiver: str = "RNN1L:GRU", representation: str = "soft", **more: Any
) -> EndToEndSettings:
    """A short game; `more` are further fields."""
    own = {"meanings": str(SPACE), "word_length": 2, "hidden": 8, "training": SETTINGS}
    short = {"updates": 12, "report_every": 5, "target": 0.9}
    models: Any = {"sender": sender, "receiver": receiver, "representation": representation}
    return EndToEndSettings(**{**models, **own, **short, **more})


def pair_job(folder: Path, replicates: Sequence[Replicate], task: EndToEndSettings, **more: Any) -> PairJob:
    return PairJob(settings=task, replicates=tuple(replicates), folder=str(folder), **more)


def run(folder: Path, replicates: Sequence[Replicate], task: EndToEndSettings, **more: Any) -> dict[Replicate, Outcome]:
    return {outcome.replicate: outcome for outcome in train_pairs(pair_job(folder, replicates, task, **more))}


def assert_same_curve(found: Outcome, expected: Outcome) -> None:
    assert len(found.curve) == len(expected.curve)
    for a, b in zip(found.curve, expected.curve, strict=True):
        np.testing.assert_allclose(np.array(a, float), np.array(b, float), atol=2e-3, equal_nan=True)
