"""Settings of learning and of evaluation in multi-target games."""

from __future__ import annotations

from dataclasses import dataclass

from icy.core.fields import CheckedFields, setting

from .evaluation import TOPSIM_OF, UNMATCHED


@dataclass(frozen=True)
class GamesLearningSettings(CheckedFields):
    """Settings of learning and evaluation.

    Attributes:
        batch_size: number of turns per update.
        learning_rate: learning rate of Adam. Adam's other settings are PyTorch's defaults.
        clip_norm: largest norm of a replicate's gradient; None: no clipping.
        epoch: number of updates between evaluations. The weights of the best evaluation are the result.
        turns: number of turns per evaluation.
        selected_on: turns that select the best evaluation: "validation", or "test", the turns of the reported scores.
        topsim_of: meaning that topsim compares with messages: "phrase"; "targets", the mean of their one-hot vectors;
            or "embedding", the sender's embedding of the turn.
        unmatched: which concepts do not count as unmatched; see `icy.metrics.cbm`.
        reserved_end: whether one symbol of GS is reserved for the end of messages with several words, and never used
            within a message.
        tf32: whether a GPU multiplies matrices in TF32.
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
