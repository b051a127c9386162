"""Restore the models of probes from their records and saved weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.registry import registry
from icy.core.representations import get_representation
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.records.record import Record

from .behavior import require_same_behavior
from .engine import make_model
from .tasks import Task
from .weights import require_version, restore

AT_ONCE = 8192  # meanings per forward pass


def probe_model(record: Record, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return the trained model of a probe's record. Errors as for `restore`."""
    config, entry = record["config"], registry.get(record["model"])
    require_version(record, "model", entry.full_version)
    task = Task(
        entry,
        MeaningSpace.of(config["meanings"]),
        config["vocab_size"],
        config["word_length"],
        config["hidden_size"],
        config["representation"],
        config["options"],
        word_lengths=config.get("word_lengths", ""),
    )
    settings = TrainingSettings(**config["settings"])
    require_same_behavior(record, [task], settings)
    model = make_model(task, record["seed"], settings)
    return restore(model, weights, record["model"])


@torch.no_grad()
def spoken(record: Record, sender: nn.Module) -> Language:
    """Return the language of a trained sender: its greedy message for every meaning.

    Args:
        record: record of the sender's replicate.
        sender: the sender, in evaluation mode.
    """
    config = record["config"]
    space = MeaningSpace.of(config["meanings"])
    meanings = torch.tensor(space.meanings(np.arange(space.size)), dtype=torch.int64, device="cpu")
    representation = get_representation(config["representation"], **config["settings"])
    words = [representation.greedy_words(sender(some)) for some in meanings.split(AT_ONCE)]
    count = representation.word_count(config["vocab_size"])
    name = f"{record['model']} {config['representation']} on {record['grammar']}"
    ends = "word_lengths" in config
    return Language.spoken(space, torch.cat(words).numpy(), count, name=name, seed=record["seed"], ends=ends)
