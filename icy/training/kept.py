"""Models of probes, made again from their records and kept weights."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.records.record import Record

from .engine import make_model
from .probe_job import Task
from .weights import restore


def probe_model(record: Record, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return the trained model of a probe's record. Errors as for `restore`."""
    config = record["config"]
    task = Task(
        registry.get(record["model"]),
        MeaningSpace.of(config["meanings"]),
        config["vocab_size"],
        config["word_length"],
        config["hidden_size"],
        config["representation"],
        config["options"],
    )
    model = make_model(task, record["seed"], TrainingSettings(**config["settings"]))
    return restore(model, weights, record["model"])
