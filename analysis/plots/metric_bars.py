"""Bars of metrics (in the form of Icy22 figure 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from icy.analysis import style
from icy.analysis.order import in_order
from icy.analysis.picture import Panel, Picture, plot
from icy.core.conventions import Convention, lower_is_better, read_conventions
from icy.core.registry import registry

CHANCE = "thick line below a bar: 95 % of the values by chance"
PALE = 0.6  # share of the color of bars in white, so that the line of the spread is visible on every color
BAR, ROOMY = 0.24, 0.34  # heights of a bar with its gap, and of a labeled bar, in inches
LOWER = "\nlower is better"


@plot
def plot_metrics(scores: pd.DataFrame, metrics: Sequence[str]) -> Picture:
    """Draw a panel per metric with a bar per language and its standard deviation over seeds.

    If there is only one language, draw a bar per metric, labeled with its value. Metrics from -1 to 1 share a panel,
    and each other metric has a panel of its own, because its values have another scale. The conventions of metrics are
    below the panels.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the column `name`.
        metrics: columns to draw.

    Returns:
        The figure. `figure.savefig(path)` writes it.
    """
    conventions = read_conventions(scores.get("conventions", ()))
    used = [conventions.get(metric, Convention(metric)) for metric in metrics]
    headings = [f"{one.heading(one.metric.replace('_', ' '))}{LOWER * lower_is_better(one.metric)}" for one in used]
    looks = style.grammar_looks(in_order(map(str, scores["name"])))
    parts = {name: scores[scores["name"].astype(str) == name] for name in looks}
    bars = [[_Bar.of(parts[name], metric, name, look.color) for name, look in looks.items()] for metric in metrics]
    notes = [*_notes(scores, metrics), *filter(None, (one.note() for one in used))]
    if len(looks) > 1:
        panels = [
            Panel(partial(_draw, some, False), heading, height=BAR * len(looks), grid="x")
            for some, heading in zip(bars, headings, strict=True)
        ]
        across = style.across(len(metrics), style.WIDTH - 0.6)
        return Picture(panels, "How compositional the languages are", notes, columns=across, grid={"sharey": True})
    every = [replace(row[0], label=heading) for row, heading in zip(bars, headings, strict=True)]
    unbounded = {entry.name for entry in registry.entries("metric") if entry.unbounded}
    large = [max(map(abs, bar.ends)) > 1 or metric in unbounded for bar, metric in zip(every, metrics, strict=True)]
    shared = [bar for bar, own in zip(every, large, strict=True) if not own]
    groups = [shared] * bool(shared) + [[bar] for bar, own in zip(every, large, strict=True) if own]
    panels = [Panel(partial(_draw, some, True), height=ROOMY * len(some), grid="x") for some in groups]
    return Picture(panels, f'How compositional the language "{next(iter(looks))}" is', notes)


@dataclass(frozen=True)
class _Bar:
    """A bar: its label and color, the mean and spread over seeds, the ends of 95 % of the values by chance.

    The spread and the ends are NaN if they are unknown. `is_noted` means that a note explains the value.
    """

    label: str
    color: str
    mean: float
    spread: float
    chance: tuple[float, float]
    is_noted: bool

    @classmethod
    def of(cls, rows: pd.DataFrame, metric: str, label: str, color: str) -> _Bar:
        """Return the bar of a language's rows; with a single seed, the spread is the metric's own error."""
        low, high, error = (
            float(rows[name].mean()) if name in rows else math.nan
            for name in (f"{metric}_chance_low", f"{metric}_chance_high", f"{metric}_error")
        )
        spread = float(rows[metric].std(ddof=1))
        noted = bool(_reasons(rows, metric))
        return cls(
            label, color, float(rows[metric].mean()), error if math.isnan(spread) else spread, (low, high), noted
        )

    @property
    def ends(self) -> list[float]:
        """The start of the bar, the ends of its line, and of the line of chance values; 0 for unknown ends."""
        spread = 0.0 if math.isnan(self.spread) else self.spread
        return [float(end) for end in np.nan_to_num([0.0, self.mean - spread, self.mean + spread, *self.chance])]

    @property
    def text(self) -> str:
        """The mean and spread, or "undefined"."""
        form = ".4g" if abs(self.mean) > 1 else ".3f"
        spread = "" if math.isnan(self.spread) else f" ± {self.spread:{form}}"
        return "undefined" if math.isnan(self.mean) else f"{self.mean:{form}}{spread}"


def _draw(bars: Sequence[_Bar], values: bool, ax: Axes) -> None:
    """Draw bars with the lines of their spread and, below, of chance values; write `values` after the bars."""
    style.rows(ax, [bar.label for bar in bars], style.MEDIUM)
    lengths, spreads = (np.nan_to_num([getattr(bar, name) for bar in bars]) for name in ("mean", "spread"))
    colors = [1 - PALE * (1 - np.array(to_rgb(bar.color))) for bar in bars]
    ax.barh(range(len(bars)), lengths, 0.6, color=colors, xerr=spreads, error_kw={"elinewidth": 1})
    for y, bar in enumerate(bars):
        ax.plot(bar.chance, [y + 0.4] * 2, color="black", linewidth=2 * style.LINE, solid_capstyle="butt")
        shown = (bar.text if values or math.isnan(bar.mean) else "") + "‡" * bar.is_noted
        ax.annotate(
            shown, (max(bar.ends[:3]), y), (3, 0), textcoords="offset points", va="center", fontsize=style.SMALL
        )
    ends = [end for bar in bars for end in bar.ends]
    low, high = min(ends), max(ends)
    high = max(high, 1.0) if max(map(abs, ends)) <= 1 else high
    low -= 0.04 * (high - low) * (low < 0)
    ax.set(xlim=(low, high + (0.2 if values else 0.05) * (high - low)), ylim=(len(bars) - 0.35, -0.6))
    if not values:
        ax.locator_params(axis="x", nbins=4)  # panels are side by side
    ax.set_xticks([tick for tick in ax.get_xticks() if low <= tick <= high * 1.01])
    ax.axvline(0, color="black", linewidth=0.8)


def _notes(scores: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Return notes that explain the lines and marks."""
    seeds = int(scores.groupby("name").size().max())
    own = any(scores.get(f"{metric}_error", pd.Series(dtype=float)).notna().any() for metric in metrics)
    notes = [f"bar and thin line: mean ± standard deviation over {seeds} seeds"] if seeds > 1 else []
    notes += ["thin line: ± standard error of the estimate"] if own and seeds == 1 else []
    notes += [CHANCE] if any(f"{metric}_chance_low" in scores for metric in metrics) else []
    return notes + [f"‡ {metric}: {why}" for metric in metrics for why in _reasons(scores, metric)]


def _reasons(scores: pd.DataFrame, metric: str) -> list[str]:
    """Return the distinct reasons why the size of a language determines or bounds the value of a metric."""
    notes = scores.get(f"{metric}_note", pd.Series(dtype=str))
    return [str(note) for note in notes.dropna().unique() if note]
