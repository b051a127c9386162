"""Make the model of a task."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.representations import VOCABULARY, WITH_START, Representation, get_representation, without_start
from icy.core.streams import stream_key
from icy.models.creation import create

from .tasks import Task


def make_model(
    task: Task, seed: int, settings: TrainingSettings, representation: Representation | None = None
) -> nn.Module:
    """Make the model of a task with the initial weights of a seed, independent of earlier random numbers.

    Args:
        task: the task.
        seed: seed of the weights.
        settings: training settings.
        representation: replaces the representation of the task.
    """
    published = task.entry.published if settings.published_models else {}
    representation = representation_of(task, settings) if representation is None else representation
    with torch.random.fork_rng(devices=[]):
        names = ("weights", task.side) if task.paired else ("weights",)
        torch.default_generator.manual_seed(stream_key(seed, *names))  # only the CPU's generator
        model = create(
            task.entry,
            task.space,
            task.message_length,
            task.vocab_size,
            task.hidden_size,
            **{"representation": representation, **published, **task.options},
        )
    if task.side == "sender" and getattr(representation, "symbols", WITH_START) == VOCABULARY:
        model.register_forward_hook(_without_start)
    return model


def _without_start(model: nn.Module, inputs: Any, scores: Tensor) -> Tensor:
    """Restrict the scores of a sender to the vocabulary."""
    return without_start(scores)


def representation_of(task: Task, settings: TrainingSettings) -> Representation:
    """Return the representation of a task with these settings."""
    return get_representation(task.representation, **settings.under(task.representation))
