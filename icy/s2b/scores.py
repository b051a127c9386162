"""Scores of episodes, from counts of the listener's decisions."""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float64, Int64

from .episode_streams import Reals, Wholes

GAMES, RIGHT, YES, KEPT = range(4)  # counts per episode and phase: games, right decisions, "yes", target retained


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of B episodes; NaN where an episode has played no game of the phase.

    Attributes:
        zsct: zero-shot compositional test accuracy, the share of right decisions in the query phase, [B].
        support: the share of right decisions in the support phase, [B].
        yes: the share of query games in which the listener decided that it saw the target's meaning, [B].
        kept: the share of query games in which the listener did see the target's meaning, [B].
        illegal: number of illegal actions, of the speaker and of the listener, [B, 2].
    """

    zsct: Float64[Reals, " batch"]
    support: Float64[Reals, " batch"]
    yes: Float64[Reals, " batch"]
    kept: Float64[Reals, " batch"]
    illegal: Int64[Wholes, "batch player=2"]

    @classmethod
    def of_counts(
        cls, counts: Int64[Wholes, "batch phase=2 count=4"], illegal: Int64[Wholes, "batch player=2"]
    ) -> "Scores":
        """Compute scores from counts of games, right decisions, "yes" decisions and retained targets, [B, phase, 4]."""
        shares = counts / np.where(counts[..., :1] > 0, counts[..., :1], np.nan)
        return cls(shares[:, 1, RIGHT], shares[:, 0, RIGHT], shares[:, 1, YES], shares[:, 1, KEPT], illegal)

    @classmethod
    def join(cls, parts: list["Scores"]) -> "Scores":
        """Concatenate the scores of several batches."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))
