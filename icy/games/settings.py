"""Settings of learning and of evaluation in multi-target games."""

from __future__ import annotations

from dataclasses import dataclass

from icy.core.checks import real_number, whole_number
from icy.core.errors import unknown

from .evaluation import TOPSIM_OF, UNMATCHED

SELECTED_ON = ("validation", "test")


@dataclass(frozen=True)
class LearningSettings:
    """How agents learn, and how they are evaluated.

    Attributes:
        batch_size: turns per update.
        learning_rate: of Adam, whose other settings are the library's.
        clip_norm: the gradient of each replicate is scaled down to this norm; None leaves it.
        epoch: updates between two evaluations; the weights of the best evaluation are the result.
        turns: of an evaluation.
        selected_on: turns on which the best evaluation is chosen: "validation", others than those that are reported, or
            "test", the same.
        topsim_of: what topsim compares messages with: "phrase", "targets", the mean of their one-hot vectors, or
            "embedding", what the sender makes of them.
        unmatched: which concepts do not count as unmatched; see `icy.metrics.cbm`.
        reserved_end: whether a symbol of GS is kept for the end of a message and never said within it, where a message
            has several words.
        tf32: on a GPU, multiply matrices in TF32.
    """

    batch_size: int = 10
    learning_rate: float = 5e-4
    clip_norm: float | None = None
    epoch: int = 2000
    turns: int = 1000
    selected_on: str = "validation"
    topsim_of: str = "phrase"
    unmatched: str = "matched"
    reserved_end: bool = False
    tf32: bool = False

    def __post_init__(self) -> None:
        whole_number("batch size", self.batch_size)
        whole_number("number of updates of an epoch", self.epoch)
        whole_number("number of turns of an evaluation", self.turns, least=2)
        real_number("learning rate", self.learning_rate, above=True)
        if self.clip_norm is not None:
            real_number("clipping norm", self.clip_norm, above=True)
        for what, given, known in (
            ("choice of turns", self.selected_on, SELECTED_ON),
            ("object of topsim", self.topsim_of, TOPSIM_OF),
            ("reading of unmatched", self.unmatched, UNMATCHED),
        ):
            if given not in known:
                raise unknown(what, given, known)
