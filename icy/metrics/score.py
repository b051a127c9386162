"""The result of a metric: a value, the conventions that it depends on, and the reason if it is undefined."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from icy.core.text import counted
from icy.core.types import Options
from icy.languages.codes import Codes, count_varying

from .significance import PermutationTest


@dataclass(frozen=True, eq=False)
class Score:
    """The value of one metric on one table.

    Attributes:
        metric: name of the metric.
        value: the number; NaN where the metric is undefined.
        rows: number of rows of meanings and messages, N, without weights.
        conventions: every choice that affects the value, by the name of its argument.
        details: further results by name, such as the number of pairs or the chosen assignment.
        why: the reason for a value of NaN; empty otherwise.
        error: standard error of the value, if one was requested or the value is estimated from a sample.
        error_of: source of the error, such as "100000 drawn pairs".
        by_chance: permutation test of the value, if one was requested.
        note: the reason for a value that the sizes of the table determine or bound, in the scores of
            `icy.metrics.evaluate`; empty without a reason.

    Raises:
        ValueError: a value of NaN without a reason, or a reason with any other value.

    Example:
        >>> from icy.metrics import Score
        >>> score = Score("topsim", 0.5, rows=4, conventions={"correlation": "spearman"})
        >>> float(score), score
        (0.5, Score(topsim = 0.5, 4 rows, correlation=spearman))
    """

    metric: str
    value: float
    rows: int
    conventions: Options = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    why: str = ""
    error: float | None = None
    error_of: str = ""
    by_chance: PermutationTest | None = None
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if math.isnan(self.value) != bool(self.why):
            raise ValueError(f"{self.metric}: a value of NaN needs a reason (why), and other values must not have one.")

    def __eq__(self, other: object) -> bool:
        """Return whether all fields of two scores are equal; details may be tables.

        pandas compares `attrs` when it joins frames, so this must not raise.
        """
        if not isinstance(other, Score):
            return NotImplemented
        return all(_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        error = "" if self.error is None else f" ± {self.error:.2g}"
        parts = [f"{self.metric} = {self.value:.6g}{error}", counted(self.rows, "row")]
        parts += [f"{name}={value}" for name, value in self.conventions.items() if value is not None]
        return f"Score({', '.join(parts)}{'; ' + self.why if self.why else ''})"


def undefined(metric: str, why: str, rows: int, conventions: Options) -> Score:
    """Return the score of a table for which a metric is undefined."""
    return Score(metric, math.nan, rows, conventions, why=why)


def why_unvaried(factors: Sequence[Codes], needed: int = 1) -> str:
    """Return the reason why a metric is undefined if fewer than `needed` attributes (1 or 2) change, or "".

    A table with one row, or with one meaning in every row, has no attribute that changes.
    """
    varying = count_varying(factors)
    if not varying:
        return "no attribute ever changes"
    return "" if varying >= needed else "no second attribute changes"


def _equal(one: object, other: object) -> bool:
    """Return whether two values are the same, tables and arrays entry by entry, and NaN equal to NaN."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if hasattr(one, "equals"):  # a data frame
        return type(one) is type(other) and bool(one.equals(other))
    try:
        return one is other or bool(np.asarray(one == other).all()) or bool(one != one and other != other)
    except Exception:  # arrays of different shapes, or any other object that a plug-in stores
        return False
