"""Settings of learning and of evaluation in multi-target games."""

from __future__ import annotations

from dataclasses import dataclass

from icy.core.checks import real_number
from icy.core.errors import InvalidSettingError
from icy.core.fields import CheckedFields, check_fields, setting

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


# -- settings of the turns of a multi-target game ----------------------------------------------------------------------


DISTRACTOR_KINDS = ("auto", "near", "uniform", "groups")
MOST_CANDIDATES = 10_000


@dataclass(frozen=True)
class TurnSettings:
    """Settings of the turns of a game.

    Attributes:
        rule_length: number of concepts in a rule, l, each of a different attribute.
        targets: number of objects that obey the rule, T. They are drawn with replacement.
        distractors: number of objects that do not obey the rule, D. They are drawn with replacement.
        distractor_kind: method of drawing distractors. "uniform": uniformly from all objects that do not obey the rule.
            "near": first the number of concepts to lack, uniformly from 1 to l, and then these concepts. "groups": the
            set of concepts to lack, uniformly from all sets (Mu & Goodman). "auto": uniform for rules of one concept,
            near for longer rules.
        rule_sampling: method of drawing rules. "attribute-first": first the attributes, uniformly, and then their
            values. "uniform": all rules with equal probability. "type-first": first the type of a formula, then the
            formula.
        held_out: share of the rules to hold out from training. The default is 0 for rules of one concept; for longer
            rules it is an eighth, or a tenth if there are a thousand rules or more, as the counts of CBM24 suggest.
        same_objects: whether the receiver sees the sender's objects; otherwise it sees other objects of the same rule.
        repeat_target: whether one object replaces all targets.
        rules: "conjunctions" of concepts, or the "formulas" of Mu & Goodman, for which `rule_length` is 1.
    """

    rule_length: int = setting(1, "rule length", least=1)
    targets: int = setting(20, "number of targets", least=1, most=MOST_CANDIDATES)
    distractors: int = setting(20, "number of distractors", least=1, most=MOST_CANDIDATES)
    distractor_kind: str = setting("auto", "kind of distractors", among=DISTRACTOR_KINDS)
    rule_sampling: str = setting(
        "attribute-first", "way to draw rules", among=("attribute-first", "type-first", "uniform")
    )
    held_out: float | None = None
    same_objects: bool = True
    repeat_target: bool = False
    rules: str = setting("conjunctions", "kind of rules", among=("conjunctions", "formulas"))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.held_out is not None and real_number("share of rules held out", self.held_out, most=1.0) == 1.0:
            raise InvalidSettingError("The share of rules held out must be below 1: training needs some rules.")
        if self.rules == "formulas" and self.rule_length != 1:
            raise InvalidSettingError("Formulas do not have a rule length; leave it at 1.")

    @property
    def drawn_distractors(self) -> str:
        """Kind of distractors: `distractor_kind`, with "auto" resolved."""
        if self.distractor_kind != "auto":
            return self.distractor_kind
        if self.rules == "formulas":
            return "groups"
        return "uniform" if self.rule_length == 1 else "near"
