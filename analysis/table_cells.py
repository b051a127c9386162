"""Table cells: mean and spread of replicates, a mark, and a reference value to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from icy.analysis.order import Facts
from icy.config.protocols import BASELINE
from icy.core.conventions import Convention, read_conventions
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed
from icy.records.kinds import JobKind, job_kind, kind_of_rows

from .statistics import LEAST_RATIO as LEAST_RATIO
from .statistics import LogSummary, Mask, Values, log_summary, student

CUT = "†"  # marks a mean over runs if some were cut at the cap
CI95 = "ci95"  # spread with which ratios are on the log scale
CAP_SLACK = 0.05  # a ratio up to this much below a cut ratio also counts as cut
NOTED = "‡"  # marks a value that the size of its table determines or bounds
COARSE = "~"  # marks a mean of ratios with a larger uncertainty from evaluations than from seeds
SPREADS: dict[str, tuple[str, Callable[[Values], float]]] = {  # name: (description, function)
    "sd": ("standard deviation over seeds", lambda v: float(v.std(ddof=1))),
    "sem": ("standard error of the mean", lambda v: float(v.std(ddof=1)) / math.sqrt(len(v))),
    "ci95": ("95 % interval (Student's t)", lambda v: student(len(v) - 1) * float(v.std(ddof=1)) / math.sqrt(len(v))),
}
LOG_COLUMNS = ("geometric_mean", "geometric_spread", "low", "high")  # of `TableCell.to_dict`
OTHER_COLUMNS = ("other", "other_error", "distance")
Mark = Literal["", "best", "worst"]  # of a cell


@dataclass(frozen=True)
class Reference:
    """Reference value of a cell: a published number, or the same cell of other results.

    Attributes:
        mean: the value.
        error: standard error of the mean, or spread over seeds; NaN if unknown.
        distance: cell's mean minus this mean, in combined standard errors; NaN if neither has an error, or if both were
            cut.
        censored: whether any run of the reference was cut at the cap.
        source: name of the published table; "" for other results.
        log: for ratios with 95 % intervals, their summary on the log scale, which is shown.
        differs_in: training settings (columns of the long table) that differ from the cell's.
    """

    mean: float
    error: float
    distance: float
    censored: bool = False
    source: str = ""
    differs_in: tuple[str, ...] = ()
    log: LogSummary | None = None

    def text(self, decimals: int) -> str:
        """Return the value as text, with the distance in brackets."""
        shown = number(self.mean, self.error, decimals) if self.log is None else self.log.text(decimals, CI95)
        shown += CUT if self.censored else ""
        return f"{shown} ({round(self.distance, 1) + 0.0:+.1f})" if math.isfinite(self.distance) else shown


@dataclass(frozen=True)
class TableCell:
    """Result of one model on one grammar.

    Attributes:
        mean: mean over the seeds with a result; NaN if there are none.
        spread: spread over the same seeds; NaN for a single seed.
        seeds: number of seeds with a result.
        censored: number of these seeds with a run cut at the cap.
        failed: number of failed runs. An undefined value, such as topsim if all messages are equal, is not a failure.
        mark: "best" or "worst" of the column, or "".
        reference: value to compare with, if any.
        log: for ratios, their summary on the log scale, or the summary of their quotients to reference ratios.
        p: for differences, the p-value of a paired test, corrected for the number of cells of the table; for metrics,
            the p-value of a permutation test; else NaN.
        resolution: relative uncertainty of a run's ratio from its evaluations (`icy.records.long_table`), as root mean
            square over runs; NaN if unknown.
        coarse: whether `resolution` is larger than the relative standard deviation over seeds.
        row_seeds: number of seeds of the row in a table, if this cell has fewer; else 0.
        updates: for ratios, the mean updates to the target; NaN if unknown. Cut runs count with their last update, so
            that the true mean is larger.
        log_scale: the spread with which the cell is shown as `log`: an interval of the arithmetic mean of ratios may
            be below 0; "" if the cell is shown as its arithmetic mean.
        why: for metrics, the reasons for undefined values; empty if all are defined, None for other measures.
        note: for metrics, the reasons why the size of the language table determines or bounds the value.
    """

    mean: float
    spread: float
    seeds: int
    censored: int
    failed: int
    mark: Mark = ""
    reference: Reference | None = None
    log: LogSummary | None = None
    p: float = math.nan
    resolution: float = math.nan
    coarse: bool = False
    row_seeds: int = 0
    updates: float = math.nan
    log_scale: str = ""
    why: str | None = None
    note: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether the cell has fewer seeds than its row, such as during training."""
        return 0 < self.seeds < self.row_seeds

    @property
    def center(self) -> float:
        """The number that tables and figures show: the mean, or for a cell on the log scale its geometric mean."""
        return self.log.center if self.log_scale and self.log is not None else self.mean

    def interval(self, cap: float = math.inf) -> tuple[float, float]:
        """Return the ends of the error bar: `center` minus and plus the spread, or divided and multiplied by it.

        Args:
            cap: largest ratio that is measured, where the upper end of a cell on the log scale stops.

        Returns:
            Two numbers; `center` twice if the spread is unknown.
        """
        if self.log_scale and self.log is not None:
            factor = 1.0 if self.log.bound else self.log.factor(self.log_scale)
            low, high = self.center / factor, max(self.center, min(self.center * factor, cap))
        else:
            low, high = self.center - self.spread, self.center + self.spread
        return (self.center, self.center) if math.isnan(low) else (low, high)

    def to_dict(self) -> Facts:
        """Return the cell as a dictionary for csv and json.

        It has mean, spread (None if undefined, or on the log scale, where it has low and high) and seeds; the
        numbers of cut and failed runs, unless 0; and if known, the summary on the log scale, p, the resolution, the
        reference value, and for metrics `why` and `note`.
        """
        found: Facts = {"mean": self.mean, "spread": math.nan if self.log_scale else self.spread, "seeds": self.seeds}
        found |= {name: count for name, count in (("censored", self.censored), ("failed", self.failed)) if count}
        if self.log is not None:
            center = math.nan if self.log.bound else self.log.center
            found |= dict(zip(LOG_COLUMNS, (center, self.log.factor("sd"), *self.log.interval), strict=True))
        more = {"updates": self.updates, "p": self.p, "resolution": self.resolution}
        found |= {name: value for name, value in more.items() if math.isfinite(value)}
        if (about := self.reference) is not None:
            found |= dict(zip(OTHER_COLUMNS, (about.mean, about.error, about.distance), strict=True))
        found = {name: value if math.isfinite(value) else None for name, value in found.items()}
        return found if self.why is None else {**found, "why": self.why, "note": self.note}

    def below(self, kind: str, decimals: int, spread: str) -> str:
        """Return the text of the line "reference", "log", "updates" or "p" below the cell; "" if it is unknown."""
        if kind == "reference":
            return "" if self.reference is None else self.reference.text(decimals)
        if kind == "p":
            return "" if math.isnan(self.p) else p_text(self.p)
        if kind == "updates":
            return "" if math.isnan(self.updates) else f"{'> ' * bool(self.censored)}{updates_text(self.updates)}"
        return "" if self.log is None or math.isnan(self.log.center) else self.log.text(decimals, spread)

    def parts(self, decimals: int, sign: str = "") -> tuple[str, str]:
        """Return the center and the spread as texts, such as "0.52" and "±0.03"; "" for an unknown spread."""
        shown, mark = number(self.mean, self.spread, decimals, sign), "±"
        if self.log_scale and self.log is not None:
            shown, mark = self.log.text(decimals, self.log_scale), "×"
        center, found, width = shown.partition(mark)
        return center, found + width

    def lines(self, decimals: int, spread: bool = True) -> str:
        """Return the center with its marks, and on further lines the spread and missing seeds, for a heat map."""
        center, (_, width) = self.parts(decimals)[0], self.parts(max(1, decimals))
        shown = f"{COARSE if self.coarse else ''}{center.removeprefix('> ')}{CUT if self.censored else ''}"
        lacking = f"({self.seeds} of {self.row_seeds})" if self.unfinished else ""
        return "\n".join(filter(None, (shown, width if spread else "", lacking)))

    def text(self, decimals: int, signed: bool = False) -> str:
        """Return mean and spread as text, with marks for cut, failed and missing runs."""
        if not self.seeds:
            return "failed" if self.failed else "-"
        shown = "".join(self.parts(decimals, "+" if signed else ""))
        shown = (COARSE if self.coarse else "") + shown + (CUT if self.censored else "") + (NOTED if self.note else "")
        if self.unfinished:
            return f"{shown} ({self.seeds} of {self.row_seeds})"
        return shown + (f" ({self.failed} failed)" if self.failed else "")


EMPTY = TableCell(math.nan, math.nan, 0, 0, 0)


def cell_of(part: pd.DataFrame, spread: str) -> TableCell:
    """Summarize replicates as a table cell.

    Args:
        part: a row per replicate, with the columns value, failed and censored.
        spread: a name of SPREADS.
    """
    # NumPy, since a report has a cell per model and grammar, and pandas selections would take most of its time.
    failed, good = int(part["failed"].to_numpy(bool).sum()), _good(part)
    values = part["value"].to_numpy(float, na_value=math.nan)[good]
    if not len(values):
        return TableCell(math.nan, math.nan, 0, 0, failed)
    width = SPREADS[spread][1](values) if len(values) > 1 else math.nan
    return TableCell(float(values.mean()), width, len(values), int(part["censored"].to_numpy(bool)[good].sum()), failed)


def _good(part: pd.DataFrame) -> Mask:
    """Return a mask of the replicates that have a value and did not fail."""
    return np.asarray(~part["failed"].to_numpy(bool) & ~np.isnan(part["value"].to_numpy(float, na_value=math.nan)))


def _mean_of_known(values: Values) -> float:
    """Return the mean of the numbers that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def cell_in_row(part: pd.DataFrame, spread: str, log: bool | Literal["only"] = False) -> TableCell:
    """Summarize replicates as a table cell; ratios get their updates and a check for coarse evaluations.

    Args:
        part: replicates of one row and grammar, in long form. A column `resolution` has the relative uncertainty of a
            ratio from its evaluations.
        spread: a name of SPREADS.
        log: whether to add the summary of ratios on the log scale, and their updates. With 95 % intervals, ratios
            always have the summary, which is shown in place of the arithmetic mean; with "only", for figures with a
            logarithmic axis, with every spread.
    """
    cell, good = cell_of(part, spread), _good(part)
    if part["measure"].iat[0] != "ratio":
        return cell
    if part["grammar"].iat[0] != BASELINE and cell.seeds:  # ratios of concat are all 1, and have no spread
        values = part["value"].to_numpy(float, na_value=math.nan)[good]
        checks = part["resolution"].to_numpy(float, na_value=math.nan)[good] if "resolution" in part else values[:0]
        resolution = math.sqrt(_mean_of_known(checks**2))
        variation = float(values.std(ddof=1)) / cell.mean if cell.seeds > 1 and cell.mean else math.nan
        coarse, log_scale = bool(resolution > variation), spread * (spread == CI95)
        summary = log_summary(values, part["censored"].to_numpy(bool)[good])
        cell = replace(cell, log=summary, resolution=resolution, coarse=coarse, log_scale=log_scale)
    if log == "only":
        return replace(cell, spread=math.nan) if cell.log is None else replace(cell, log_scale=spread)
    if not log:
        return replace(cell, log=cell.log if cell.log_scale else None)
    return replace(cell, updates=_mean_of_known(updates_to_target(part)[good])) if "steps" in part else cell


def updates_to_target(long: pd.DataFrame) -> Values:
    """Return the updates of each run to the target: interpolated if known, else `steps`; for cut runs, all updates.

    Args:
        long: a long table with the columns `steps` and, if interpolated, `crossing`.

    Returns:
        A number per row; NaN if unknown.
    """
    steps = long["steps"].to_numpy(float, na_value=math.nan)
    if "crossing" not in long:
        return steps
    crossing = long["crossing"].to_numpy(float, na_value=math.nan)
    return np.where(np.isnan(crossing), steps, crossing)


def updates_text(updates: float) -> str:
    """Format a number of updates, with a decimal if it is less than 10.

    Example:
        >>> updates_text(3.91), updates_text(10000)
        ('3.9', '10,000')
    """
    return f"{updates:.1f}" if updates < 10 else f"{updates:,.0f}"


def cell_of_values(values: pd.Series[float], spread: str) -> TableCell:
    """Summarize values that cannot fail or be cut, such as metrics, as a table cell; NaN values are left out."""
    return cell_of(pd.DataFrame({"value": values, "failed": False, "censored": False}), spread)


def both_censored(mean: float, seeds: int, cut: int, other: float) -> bool:
    """Return whether all seeds of a ratio were cut and another ratio is as large, so that their order is unknown.

    Cut ratios of the papers are slightly larger than the cap, since their last evaluation was after the cap; icy
    evaluates exactly at the cap. For ratios only; an accuracy is known even if training was cut.
    """
    return 0 < seeds == cut and other >= mean - CAP_SLACK


def checked_spread(spread: str) -> str:
    """Return `spread` if it is a name of SPREADS.

    Raises:
        InvalidSettingError: an unknown spread.
    """
    if spread not in SPREADS:
        raise InvalidSettingError(f"The spread must be {listed(list(SPREADS), 'or')}; not '{spread}'.")
    return spread


def number(mean: float, spread: float, decimals: int, sign: str = "") -> str:
    """Format a mean, with its spread if this is finite."""
    shown = f"{mean:{sign}.{decimals}f}"
    return shown + (f"±{spread:.{decimals}f}" if math.isfinite(spread) else "")


def p_text(p: float) -> str:
    """Format a p-value with two digits.

    Example:
        >>> p_text(0.0321), p_text(0.00001), p_text(1.0)
        ('0.032', '<0.001', '1')
    """
    return "<0.001" if p < 0.001 else f"{p:.2g}"


# -- conventions (definitions and options) of the metrics in a long table, in a printed table, and in curves -----------


# Metrics that may be undefined in a run that did not fail, and the only reason for it.
UNDEFINED = {"topsim": "all pairs of meanings, or all pairs of messages, are equally far apart"}


def with_reason(cell: TableCell, part: pd.DataFrame, metric: str) -> TableCell:
    """Add the reason for missing values to the cell of a metric, if runs that did not fail have no value.

    Args:
        cell: cell that shows the metric.
        part: rows of the long table that the cell summarizes.
        metric: column of the metric.
    """
    if metric not in UNDEFINED or not (part[metric].isna() & ~part["failed"].astype(bool)).any():
        return cell
    return replace(cell, why=UNDEFINED[metric])


def undefined_notes(long: pd.DataFrame) -> list[str]:
    """Return a note for each metric that is undefined in some runs that did not fail, with the reason."""
    played, found = long[~long["failed"].astype(bool)], []
    for name, why in UNDEFINED.items():
        lacking = int(played[name].isna().sum()) if name in played else 0
        if 0 < lacking < len(played):
            found.append(f"{name} is undefined in {lacking} of {counted(len(long), 'run')}: {why}")
    return found


def conventions_of(long: pd.DataFrame, kind: str = "probe") -> dict[str, Convention]:
    """Return the conventions of each metric in a long table; if it has none, the defaults of its kind of job.

    Args:
        long: a long table, or curves. Tables of older versions lack the column `conventions`.
        kind: the kind of job, for a table that does not have it.
    """
    found = read_conventions(long["conventions"]) if "conventions" in long else {}
    if found:
        return found
    own = usual_conventions(kind_of_rows(long, kind)) if "job_kind" in long else {}
    return own or usual_conventions(job_kind(kind))


def usual_conventions(kind: JobKind) -> dict[str, Convention]:
    """Return the default conventions of the metrics that a kind of job measures."""
    return {name: Convention(name, values) for name, values in kind.conventions_of({}).items()}
