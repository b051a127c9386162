"""Settings of the turns of a multi-target game."""

from __future__ import annotations

from dataclasses import dataclass

from icy.core.checks import real_number
from icy.core.errors import InvalidSettingError
from icy.core.fields import check_fields, setting

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
