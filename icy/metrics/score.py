"""What a metric answers: a number, the conventions it was measured under, and why there is none where there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Score:
    """The value of one metric on one table.

    Attributes:
        metric: its name.
        value: the number; NaN where the mathematics leaves it undefined.
        rows: how many rows of meanings and messages it rests on, N.
        conventions: every choice that moves the value, by the name of the argument that makes it.
        details: further findings, by name: the pairs compared, the assignment chosen, and the like.
        why: why the value is NaN; empty where it is not.
        error: a standard error of the value, where one was asked for or the value is sampled.
        error_of: what that error measures, as in "100000 sampled pairs".

    Example:
        >>> from icy.metrics import Score
        >>> score = Score("topsim", 0.5, rows=4, conventions={"correlation": "spearman"})
        >>> float(score), score
        (0.5, Score(topsim = 0.5, 4 rows, correlation=spearman))
    """

    metric: str
    value: float
    rows: int
    conventions: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    why: str = ""
    error: float | None = None
    error_of: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if math.isnan(self.value) != bool(self.why):
            raise ValueError(f"{self.metric}: a value that is NaN says why, and only such a one.")

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2g}"
        parts = [f"{self.metric} = {self.value:.6g}{error}", f"{self.rows} row{'s' * (self.rows != 1)}"]
        parts += [f"{name}={value}" for name, value in self.conventions.items() if value is not None]
        return f"Score({', '.join(parts)}{'; ' + self.why if self.why else ''})"


def undefined(metric: str, why: str, rows: int, conventions: Mapping[str, Any]) -> Score:
    """The score of a table on which a metric has no value."""
    return Score(metric, math.nan, rows, conventions, why=why)
