"""Values by construction: the reason why the shape of a table fixes or bounds a metric, for any meanings of messages.

For an undefined value, the metric itself gives the reason (`Score.why`). A defined value may still be determined by the
sizes of the table or by how often messages occur. Then the value does not depend on which message belongs to which
meaning, and a high or low value is not a finding about the language.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icy.core.entry import Entry
from icy.languages.table import Codes, Table, together

from .score import Score

SAME = "the value is the same whichever meaning each message belongs to"


def message_labels(table: Table) -> Codes:
    """Return the number of each row's message, [N]; equal messages have equal numbers."""
    return together(*table.positions) if table.length else np.zeros(len(table), dtype=np.int64)


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


def note_of(entry: Entry, facts: Facts, score: Score) -> str:
    """Return why the sizes of a table determine or bound a value; "" if they do not.

    Args:
        entry: the metric; its rule `by_construction` knows its own reasons.
        facts: facts of the table.
        score: score with a defined value; a note in its details has precedence.
    """
    if score.why:
        return ""
    if note := score.details.get("note"):
        return str(note)
    if facts.alike:
        return f"all messages are alike: {SAME}"
    return "" if entry.by_construction is None else str(entry.by_construction(facts, score))


def positional(facts: Facts, score: Score) -> str:
    """Return the note on a metric of positions, if each position alone identifies every row."""
    if facts.changing and facts.identifying == len(facts.changing):
        return f"every position that changes has a different token in each row: {SAME}"
    return ""
