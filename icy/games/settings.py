"""Settings of learning and of evaluation in multi-target games."""

from __future__ import annotations

from dataclasses import dataclass

from icy.core.fields import CheckedFields, setting

from .evaluation import TOPSIM_OF, UNMATCHED


@dataclass(frozen=True)
class GamesLearningSettings(CheckedFields):
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

    batch_size: int = setting(10, "batch size", least=1)
    learning_rate: float = setting(5e-4, "learning rate", above=0)
    clip_norm: float | None = setting(None, "clipping norm", above=0)
    epoch: int = setting(2000, "number of updates of an epoch", least=1)
    turns: int = setting(1000, "number of turns of an evaluation", least=2)
    selected_on: str = setting("validation", "choice of turns", among=("validation", "test"))
    topsim_of: str = setting("phrase", "object of topsim", among=TOPSIM_OF)
    unmatched: str = setting("matched", "reading of unmatched", among=UNMATCHED)
    reserved_end: bool = False
    tf32: bool = False
