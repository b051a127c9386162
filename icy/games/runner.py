"""One replicate of a stack while it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor

from icy.training.job import Replicate


@dataclass
class GameProgress:
    """One replicate of a stack, and how far it is.

    Attributes:
        replicate: which.
        curve: a point per evaluation, as `JobKind.curve` says.
        best: the best accuracy of an evaluation.
        best_step: updates made then.
        weights: what had been learned then.
        loss: of the last update before an evaluation.
        seconds: its share of the time, of all sessions.
    """

    replicate: Replicate
    curve: list[list[float]] = field(default_factory=list)
    best: float = -1.0
    best_step: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)
    loss: float = math.nan
    seconds: float = 0.0
