"""How episodes went, from counts of what the listener decided."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from .streams import Reals, Wholes

GAMES, RIGHT, YES, KEPT = range(4)  # what is counted, by episode and phase


@dataclass(frozen=True, eq=False)
class Scores:
    """How episodes went; NaN where there was no game of a phase.

    Attributes:
        zsct: zero-shot compositional test accuracy, the share of right decisions in the query phase, [B].
        support: the same in the support phase, [B].
        yes: the share of query games in which the listener said that it saw the target's meaning, [B].
        kept: the share of query games in which it did see it, [B].
        illegal: illegal actions in an episode, of the speaker and of the listener, [B, 2].
    """

    zsct: Reals
    support: Reals
    yes: Reals
    kept: Reals
    illegal: Wholes

    @classmethod
    def of_counts(cls, counts: Wholes, illegal: Wholes) -> Scores:
        """Shares of counts [B, phase, GAMES | RIGHT | YES | KEPT]."""
        shares = counts / np.where(counts[..., :1] > 0, counts[..., :1], np.nan)
        return cls(shares[:, 1, RIGHT], shares[:, 0, RIGHT], shares[:, 1, YES], shares[:, 1, KEPT], illegal)

    @classmethod
    def join(cls, parts: list[Scores]) -> Scores:
        """The scores of several batches, one after another."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))
