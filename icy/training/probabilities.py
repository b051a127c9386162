"""Detect models that output probabilities where scores are needed."""

import logging

import torch
from torch import Tensor, nn

from icy.core.registry import Entry

log = logging.getLogger(__name__)
TOLERANCE = 1e-4  # error of a sum of probabilities in float16
_warned: set[str] = set()  # models with a warning, to warn only once


def are_probabilities(scores: Tensor) -> bool:
    """Return whether scores [..., choice] are the output of a softmax: from 0 to 1, with sums of 1."""
    if scores.numel() == 0 or scores.shape[-1] < 2 or not scores.is_floating_point():
        return False
    inside = (scores >= 0) & (scores <= 1)
    sums = scores.double().sum(-1)
    return bool(inside.all() and torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=TOLERANCE))


def sentence_on(name: str) -> str:
    """Return the warning about a model that outputs probabilities."""
    return (
        f"{name} outputs probabilities (each row sums to 1). It should output scores (logits), without a softmax at "
        "the end: the loss applies a softmax, and a second softmax slows or stops learning."
    )


def warn_of_probabilities(entry: Entry, model: nn.Module, scores: Tensor) -> None:
    """Warn, once per model that learns by gradient, if its scores [..., choice] are probabilities."""
    which = f"{entry.qualified} {id(entry.factory)}"
    learns = getattr(model, "learns_by_gradient", True)  # a memory model has no loss
    if learns and which not in _warned and are_probabilities(scores):
        _warned.add(which)
        log.warning("%s", sentence_on(entry.qualified))
