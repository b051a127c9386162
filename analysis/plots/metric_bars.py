"""Bars of metrics (in the form of Icy22 figure 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.order import in_order
from icy.core.conventions import Convention, read_conventions

PANELS_ACROSS = 5
CHANCE = "line below a bar: 95 % of the values by chance"
ERROR = {"elinewidth": 1}


@style.with_own_settings
def plot_metrics(scores: pd.DataFrame, metrics: Sequence[str]) -> Figure:
    """Draw a panel per metric with a bar per language and its standard deviation over seeds.

    If there is only one language, draw a bar per metric, labeled with its value. Values from -1 to 1 are in one panel,
    and other values are in a second panel. The conventions of a metric are below its axis.

    Args:
        scores: rows of `icy.metrics.evaluate`, with the column `name`.
        metrics: columns to draw.

    Returns:
        The figure. `figure.savefig(path)` writes it.
    """
    conventions = read_conventions(scores.get("conventions", ()))
    names = in_order(map(str, scores["name"]))
    if len(names) == 1:
        used = [conventions.get(metric, Convention(metric)) for metric in metrics]
        return _one_language(scores, metrics, names[0], used)
    down, across = -(-len(metrics) // PANELS_ACROSS), min(len(metrics), PANELS_ACROSS)
    width, height = 2.1 * across + 1.0, (0.26 * len(names) + 0.9) * down
    figure = style.figure(width, height)
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(metrics) :]:
        ax.remove()
    for ax, metric in zip(axes.flat, metrics, strict=False):
        _bars(ax, scores, metric, names)
        _entitle(ax, conventions.get(metric, Convention(metric)), 1.8, _notes(scores, [metric]))
    return figure


def _entitle(ax: Axes, used: Convention, width: float, notes: Sequence[str]) -> None:
    """Write the name of a metric above its panel, and its conventions and notes below the axis."""
    ax.set_title(used.heading(used.metric.replace("_", " ")), fontsize="medium")
    below = "; ".join(filter(None, (used.text.replace("=", " "), *notes)))
    ax.set_xlabel(style.wrapped(below, width, style.SMALL), fontsize=style.SMALL, color=style.DIM)


def _one_language(scores: pd.DataFrame, metrics: Sequence[str], name: str, used: Sequence[Convention]) -> Figure:
    """Draw a bar per metric of one language, with its value; values outside [-1, 1] have a separate panel."""
    headings = {one.metric: one.heading(one.metric.replace("_", " ")) for one in used}
    means = scores[list(metrics)].astype(float).mean()
    parts = [part for part in (means[~(means.abs() > 1)], means[means.abs() > 1]) if len(part)]
    sizes = [len(part) for part in parts]
    figure = style.figure(style.WIDTH, 0.24 * len(means) + 0.4 * len(parts) + 0.3)
    axes = figure.subplots(len(parts), 1, squeeze=False, height_ratios=sizes)[:, 0]
    for ax, part in zip(axes, parts, strict=True):
        columns = [str(metric) for metric in part.index]
        spread = pd.concat([_spread(scores, metric, [name]) for metric in columns]).to_numpy()
        place, form = np.arange(len(part)), ".4g" if part.abs().max() > 1 else ".3f"
        ax.barh(place, part.fillna(0), 0.7, color=style.COLORS[0], xerr=np.nan_to_num(spread), error_kw=ERROR)
        for y, mean, error in zip(place, part, spread, strict=True):
            shown = (
                "undefined" if np.isnan(mean) else f"{mean:{form}}" + ("" if np.isnan(error) else f" ± {error:{form}}")
            )
            shown += "‡" if _reasons(scores, columns[int(y)]) else ""
            end = 0.0 if np.isnan(mean) else max(0.0, mean + np.nan_to_num(error))
            end = max(end, _draw_chance(ax, scores, columns[int(y)], float(y)))
            ax.annotate(shown, (end, y), (3, 0), textcoords="offset points", va="center", fontsize=style.SMALL)
        ax.set_yticks(place, [headings[metric] for metric in columns])
        ax.set_ylim(len(part) - 0.4, -0.6)
        by_chance = _ends_by_chance(scores, columns)
        low = float(np.nanmin([*(part - np.nan_to_num(spread)), *by_chance, 0]))
        high = float(np.nanmax([*(part + np.nan_to_num(spread)), *by_chance, 1]))
        ax.set_xlim(1.05 * low, high + 0.2 * (high - low))  # room for the value
        ax.set_xticks([tick for tick in ax.get_xticks() if 1.05 * low <= tick <= high])
        ax.axvline(0, color="black", linewidth=0.8)
        style.tidy(ax, "x")
        ax.tick_params(axis="y", length=0, labelsize=style.MEDIUM)
    seeds = len(scores)
    note = [f"mean ± standard deviation over {seeds} seeds"] if seeds > 1 else []
    note += _notes(scores, metrics)
    note += filter(None, (one.note(one.metric) for one in used))
    style.entitle(figure, list(axes), True, None, f"metrics of {name}", note)
    return figure


def _notes(scores: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """Return notes that explain the marks and the lines of chance values."""
    chance = [CHANCE] if any(f"{metric}_chance_low" in scores for metric in metrics) else []
    return chance + [f"‡ {metric}: {why}" for metric in metrics for why in _reasons(scores, metric)]


def _reasons(scores: pd.DataFrame, metric: str) -> list[str]:
    """Return the distinct reasons why the size of a language determines or bounds the value of a metric."""
    notes = scores.get(f"{metric}_note", pd.Series(dtype=str))
    return [str(note) for note in notes.dropna().unique() if note]


def _ends_by_chance(scores: pd.DataFrame, metrics: Sequence[str]) -> list[float]:
    """Return the lowest and highest ends of the intervals of chance values, for metrics that have them."""
    ends = [f"{metric}_chance_{end}" for metric in metrics for end in ("low", "high")]
    known = [scores[name] for name in ends if name in scores and scores[name].notna().any()]
    return [float(end) for values in known for end in (values.min(), values.max())]


def _draw_chance(ax: Axes, scores: pd.DataFrame, metric: str, y: float) -> float:
    """Draw the interval of chance values below a bar, and return its upper end; 0 if it is unknown."""
    if f"{metric}_chance_low" not in scores:
        return 0.0
    low, high = (float(scores[f"{metric}_chance_{end}"].mean()) for end in ("low", "high"))
    ax.plot([low, high], [y + 0.42, y + 0.42], color=style.COLORS[1], linewidth=2 * style.LINE, solid_capstyle="butt")
    return 0.0 if np.isnan(high) else high


def _spread(scores: pd.DataFrame, metric: str, names: list[str]) -> pd.Series[float]:
    """Return the standard deviation of each language over seeds; for a single seed, the metric's own error."""
    spread = scores.groupby("name")[metric].std(ddof=1).reindex(names)
    if f"{metric}_error" in scores:
        spread = spread.fillna(scores.groupby("name")[f"{metric}_error"].mean().reindex(names))
    return spread


def _bars(ax: Axes, scores: pd.DataFrame, metric: str, names: list[str]) -> None:
    mean, spread = scores.groupby("name")[metric].mean().reindex(names), _spread(scores, metric, names)
    place = np.arange(len(names))
    ax.barh(place, mean.fillna(0), 0.7, color=style.COLORS[0], xerr=spread.fillna(0), error_kw=ERROR)
    for y, name in zip(place, names, strict=True):
        own = scores[scores["name"].astype(str) == name]
        _draw_chance(ax, own, metric, float(y))
        if _reasons(own, metric) and not np.isnan(mean.iloc[y]):
            ax.text(max(0.0, mean.iloc[y]), float(y), " ‡", va="center", fontsize="small")
    for y in place[mean.isna()]:
        ax.text(0, y, " undefined", va="center", fontsize="small", color=style.GRAY)
    ax.set_yticks(place, names)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.axvline(0, color="black", linewidth=0.8)
    by_chance = _ends_by_chance(scores, [metric])
    if mean.min() >= 0 and max([mean.max(), *by_chance]) <= 1:
        ax.set_xlim(min([0.0, *by_chance]), 1.05)
