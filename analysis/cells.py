"""The cell of a table: some replicates as a mean and a spread, marked, and with another number beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from icy.core.errors import InvalidSettingError

CUT = "†"
CAP_SLACK = 0.05  # of a ratio
LEAST = 0.01  # ratio whose logarithm is taken; what was learnt at the first check has one of 0
Z95 = 1.96  # standard errors on either side of a mean: 95 % of a normal law
Mark = Literal["", "best", "worst"]
SPREADS: dict[str, tuple[str, Callable[[pd.Series[float]], float]]] = {
    "sd": ("standard deviation over seeds", lambda v: float(v.std(ddof=1))),
    "sem": ("standard error of the mean", lambda v: float(v.std(ddof=1)) / math.sqrt(len(v))),
    "ci95": ("1.96 standard errors", lambda v: Z95 * float(v.std(ddof=1)) / math.sqrt(len(v))),
}


@dataclass(frozen=True)
class Beside:
    """Another number beside that of a cell: a published one, say.

    Attributes:
        mean: the number.
        error: its standard error, or its spread over seeds; NaN if unknown.
        distance: how far the cell's mean lies above it, in combined standard errors; NaN if neither has an error, or
            both were cut.
        cut: whether it was stopped at the cap.
        source: the published table that it is from, if it is from one.
        otherwise: in what its row was trained otherwise than the cell's: columns of the long table.
    """

    mean: float
    error: float
    distance: float
    cut: bool = False
    source: str = ""
    otherwise: tuple[str, ...] = ()

    def text(self, decimals: int) -> str:
        """As printed: the number, and the distance in brackets."""
        shown = number(self.mean, self.error, decimals) + (CUT if self.cut else "")
        return f"{shown} ({round(self.distance, 1) + 0.0:+.1f})" if math.isfinite(self.distance) else shown


@dataclass(frozen=True)
class Cell:
    """One model on one grammar.

    Attributes:
        mean: over the seeds that gave a result; NaN if none did.
        spread: over the same; NaN for a single seed.
        seeds: how many gave a result.
        cut: how many of them were stopped at the cap.
        failed: how many runs failed. A number that is undefined, as topsim where all is called the same, is no failure.
        mark: "best" or "worst" of its column, or "".
        beside: another number to hold it against.
    """

    mean: float
    spread: float
    seeds: int
    cut: int
    failed: int
    mark: Mark = ""
    beside: Beside | None = None

    def to_dict(self) -> dict[str, Any]:
        """Mean, spread and seeds, with None for what there is not; how many were cut or failed, if any; and what it is
        compared with, if it is."""
        numbers = {"mean": self.mean, "spread": self.spread}
        rare = {name: count for name, count in (("cut", self.cut), ("failed", self.failed)) if count}
        shown: dict[str, Any] = {**{k: finite(v) for k, v in numbers.items()}, "seeds": self.seeds, **rare}
        if self.beside is None:
            return shown
        other = {"other": self.beside.mean, "other_error": self.beside.error, "distance": self.beside.distance}
        return {**shown, **{k: finite(v) for k, v in other.items()}}

    def text(self, decimals: int, signed: bool = False) -> str:
        """As printed: mean, spread, and marks for what was cut or failed."""
        if not self.seeds:
            return "failed" if self.failed else "-"
        shown = number(self.mean, self.spread, decimals, "+" if signed else "")
        if self.cut:
            shown += CUT
        return shown + (f" ({self.failed} failed)" if self.failed else "")


NOTHING = Cell(math.nan, math.nan, 0, 0, 0)


def both_cut(mean: float, seeds: int, cut: int, other: float) -> bool:
    """Whether a ratio was cut in all of its seeds and the other is as large: which is larger, nobody knows.

    Published ones lie a little above the cap: the papers' last check passed it, icy's falls on it. Of ratios only; an
    accuracy is known, whenever training stopped.
    """
    return 0 < seeds == cut and other >= mean - CAP_SLACK


def number(mean: float, spread: float, decimals: int, sign: str = "") -> str:
    """A mean and its spread as text; the spread only where there is one."""
    shown = f"{mean:{sign}.{decimals}f}"
    return shown + (f"±{spread:.{decimals}f}" if math.isfinite(spread) else "")


def finite(value: float) -> float | None:
    """The same, or None for what is no number."""
    return value if math.isfinite(value) else None


def checked_spread(spread: str) -> str:
    """A spread over seeds, one of SPREADS.

    Raises:
        InvalidSettingError: another.
    """
    if spread not in SPREADS:
        raise InvalidSettingError(f"The spread is {', '.join(SPREADS)}, not '{spread}'.")
    return spread


def cell_of(part: pd.DataFrame, spread: str) -> Cell:
    """The cell of some replicates, from their columns value, failed and cut."""
    good = part[~part["failed"].astype(bool)]
    values, failed = good["value"].dropna(), len(part) - len(good)
    if not len(values):
        return Cell(math.nan, math.nan, 0, 0, failed)
    width = SPREADS[spread][1](values) if len(values) > 1 else math.nan
    return Cell(float(values.mean()), width, len(values), int(good["cut"].sum()), failed)
