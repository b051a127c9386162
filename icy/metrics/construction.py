"""Values by construction: the reason why the shape of a table fixes or bounds a metric, for any meanings of messages.

For an undefined value, the metric itself gives the reason (`Score.why`). A defined value may still be determined by the
sizes of the table or by how often messages occur. Then the value does not depend on which message belongs to which
meaning, and a high or low value is not a finding about the language.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icy.languages.table import Codes, Table, together
from icy.languages.tokens import PAD

from .corpus import message_labels
from .score import Score

SAME = "the value is the same whichever meaning each message belongs to"


@dataclass(frozen=True)
class Facts:
    """Facts about the sizes of a table."""

    table: Table

    @cached_property
    def messages(self) -> Codes:
        """The number of each row's message, [N]; equal messages have equal numbers."""
        return message_labels(self.table)

    @property
    def alike(self) -> bool:
        """Whether all messages are alike."""
        return bool((self.table.messages == self.table.messages[:1]).all())

    @property
    def once(self) -> bool:
        """Whether each row counts once."""
        weights = self.table.weights
        return weights is None or bool((weights == 1).all())

    def differ(self, codes: Codes) -> bool:
        """Whether no value occurs twice."""
        return self.once and int(codes.max()) + 1 == len(self.table)

    @cached_property
    def varying(self) -> list[Codes]:
        """The attributes that change, [N] each."""
        return [factor for factor in self.table.factors if factor.max() > 0]

    @cached_property
    def changing(self) -> list[Codes]:
        """The positions that change, [N] each."""
        return [position for position in self.table.positions if position.max() > 0]

    @property
    def identifying(self) -> int:
        """The number of positions that have a different token in every row."""
        return sum(map(self.differ, self.changing))


def note_of(facts: Facts, score: Score) -> str:
    """Return why the sizes of a table determine or bound a value; "" if they do not.

    Args:
        facts: facts of the table.
        score: score with a defined value; a note in its details has precedence.
    """
    if score.why:
        return ""
    if note := score.details.get("note"):
        return str(note)
    if facts.alike:
        return f"all messages are alike: {f'{ALIKE[score.metric]} for any meanings' if score.metric in ALIKE else SAME}"
    rule = RULES.get(score.metric)
    return "" if rule is None else rule(facts, score)


def _positional(facts: Facts, score: Score) -> str:
    if facts.changing and facts.identifying == len(facts.changing):
        return f"every position that changes has a different token in each row: {SAME}"
    return ""


def _assigned(facts: Facts, score: Score) -> str:
    """Note for HCE and residual entropy, which divide the positions among the attributes."""
    if note := _positional(facts, score):
        return note
    positions, attributes = len(facts.changing), len(facts.varying)
    if positions >= attributes or not score.conventions["normalised"]:
        return ""
    left = (attributes - positions) / facts.table.attributes
    bound = f"at most {1 - left:.3g}" if score.metric == "hce" else f"at least {left:.3g}"
    return f"fewer positions ({positions}) than attributes ({attributes}) change, and each encodes one: {bound}"


def _ceiling_of_context(facts: Facts, score: Score) -> str:
    if score.conventions["alignment"] != "cooccurrence" or score.conventions["smoothing"]:
        return ""
    attributes = facts.table.attributes
    return (
        f"by co-occurrence, a language with a token of its own for each value has 1 / A^2 = {1 / attributes**2:.3g}, "
        f"and no language has more than 1 / A = {1 / attributes:.3g}"
    )


def _ceiling_of_sap(facts: Facts, score: Score) -> str:
    if note := _positional(facts, score):
        return note
    guessing = [1 / (int(factor.max()) + 1) for factor in facts.varying]
    return f"an ideal language has {1 - sum(guessing) / len(guessing):.3g}, as the accuracy of guessing is subtracted"


def _single_sums(facts: Facts, score: Score) -> str:
    if len(facts.varying) > 1 or score.conventions["composition"] != "additive" or score.value > 1e-9:
        return ""
    return "only one attribute changes, so every message is the sum of one part: 0 for any language without synonyms"


def _unrepeated(facts: Facts, score: Score) -> str:
    """Note for CBM: if no word, or no concept, repeats, each can match any partner that it occurs with."""
    table = facts.table
    tokens = table.messages[table.messages != PAD]
    if not facts.once or table.phrases or score.conventions.get("words") != "tokens" or np.ptp(table.lengths):
        return ""
    if len(tokens) and len(np.unique(tokens)) == len(tokens):
        return f"no word occurs twice: {SAME}"
    return f"no concept occurs twice: {SAME}" if all(map(facts.differ, table.factors)) else ""


def _one_dimension(facts: Facts, score: Score) -> str:
    return (
        "only one position changes and wins every vote: about 1 / A for any language"
        if len(facts.changing) == 1
        else ""
    )


def _all_different(facts: Facts, score: Score) -> str:
    if not facts.differ(facts.messages):
        return ""
    value = "1" if score.conventions["normalised"] else "the entropy of the meanings"
    return f"no message occurs twice: {value} for any unique messages"


def _no_conflict(facts: Facts, score: Score) -> str:
    if score.value or facts.identifying < len(facts.varying):
        return ""
    return "as many positions as attributes have a different token in each row: 0 for any unique messages"


def _paired(facts: Facts, score: Score) -> str:
    if score.conventions["units"] != "messages" or not facts.differ(facts.messages):
        return ""
    return f"no message occurs twice: {SAME}" if facts.differ(together(*facts.table.factors)) else ""


ALIKE = {
    **dict.fromkeys(("hce", "ami", "mig", "sap", "npmi", "mutual_information"), "0"),
    "modularity": "0",
    "residual_entropy": "1",
    "message_entropy": "0",
    "unique_messages": "1",
}
RULES: dict[str, Callable[[Facts, Score], str]] = {
    "posdis": _positional,
    "hce": _assigned,
    "residual_entropy": _assigned,
    "context_independence": _ceiling_of_context,
    "sap": _ceiling_of_sap,
    "tre": _single_sums,
    "cbm": _unrepeated,
    "factor_vae": _one_dimension,
    "mig": _positional,
    "modularity": _positional,
    "mutual_information": _all_different,
    "conflict_count": _no_conflict,
    "npmi": _paired,
}
