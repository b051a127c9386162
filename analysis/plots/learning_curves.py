"""Learning curves: accuracy at every evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from icy.analysis import style
from icy.analysis.order import in_order, without_hashes
from icy.analysis.row_types import Facts
from icy.analysis.table_cells import SPREADS, checked_spread
from icy.analysis.tables.by_setting import split_shared
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.records.kinds import kind_of, points_of
from icy.records.load import Results, long_of
from icy.records.record import Record

from .panels import CURVES, ResultBlock, blocks, describe, mean_and_band, records_of

PANEL_HEIGHT = 1.35  # inches
LOG_FROM = 8  # the axis is logarithmic if the longest run has more than this many times the steps of the shortest
THIN: Facts = {"linewidth": 0.6, "alpha": 0.6}
DOTTED: Facts = {"color": style.GRAY, "linewidth": style.LINE, "linestyle": ":"}
SURVIVAL = "survival"  # the measure of chains of learners
RECONSTRUCTED = "reconstructed"  # column of the curves of S2B agents
TARGET: Facts = {"color": style.GRAY, "linewidth": 0.8, "linestyle": "--"}


@style.with_own_settings
def curves(
    results: Results,
    *,
    spread: str = "sem",
    log: bool | None = None,
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw accuracy at every evaluation: a panel per model, a line per grammar, a band over seeds.

    Lines across a panel show the target and the accuracy of a guess.

    For agents with a reconstruction loss (`icy s2b train`), a dotted line shows the mean reconstruction accuracy.

    The runs of a grammar may differ in length. The thick line and the band cover the evaluations that all its seeds
    have. After these, each seed is a thin line. A mark shows the end of the run; it is hollow if the run was cut at the
    cap.

    Args:
        results: a ProbeResult; a table has no curves.
        spread: spread of the band, "sem", "sd" or "ci95".
        log: whether the axis of updates is logarithmic, after the first evaluation; by default if runs differ greatly
            in length.
        title: title; by default a sentence on the measure, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no curves, only end-to-end runs, an unknown spread, or a wrong number of axes.
    """
    checked_spread(spread)
    records = [r for r in records_of(results, "curves") if _has_accuracy(r)]
    with_curve = [r for r in records if r.get("curve") and not r["failed"]]
    if not with_curve:
        raise InvalidSettingError(_explain_no_curves(records))
    runs, long = without_hashes(_evaluations(with_curve)), without_hashes(long_of(with_curve))
    shared, long["options"] = split_shared(long["options"].fillna("").tolist())
    parts = blocks(long)
    found = [(f"{line.label}\n{part.name}".rstrip(), line.long, part) for part in parts for line in part.lines]
    names = [name for name, _, _ in found]
    width = width or style.WIDTH
    across = style.across(len(found), width)
    down = -(-len(found) // across)
    figure, drawn = style.panels(
        names, axes, (width, PANEL_HEIGHT * down + (0.9 if down > 1 else 1.2)), across, sharex=True, sharey=True
    )
    looks = style.grammar_looks(in_order(long["grammar"]))
    for ax, (name, rows, part) in zip(drawn, found, strict=True):
        own = runs[runs["key"].isin(rows["key"])]
        _panel(ax, own, looks, spread)
        _reconstruction(ax, own, looks)
        for target in sorted(set(rows["target"].dropna())):
            ax.axhline(float(target), **TARGET, zorder=1)
        if part.chance:
            ax.axhline(part.chance, **style.CHANCE, zorder=1)
        style.head(ax, name, width / across)
    _updates_axis(drawn, runs, log)
    measure = SURVIVAL if set(long["measure"]) == {SURVIVAL} else "accuracy"
    counted = " or ".join(dict.fromkeys(kind_of(r).counted for r in with_curve))
    style.outer_labels(drawn, across if axes is None else 1, counted, [measure] * len(drawn))
    handles = _handles(looks, long, parts, bool(runs[RECONSTRUCTED].notna().any()))
    style.legend(figure, drawn, axes is None, handles, handlelength=3)
    lost = len(records) - len(with_curve)
    setting = describe(long, spread)[1][0].partition("; ")[2]  # without the measure of the table
    notes = [*([f"all panels: {shared}"] if shared else []), *_notes(runs, spread, lost)]
    style.entitle(figure, drawn, axes is None, title, CURVES.get(measure, CURVES[""]), [setting, *notes])
    return figure


def _explain_no_curves(records: Sequence[Record]) -> str:
    if not records:
        return "These results have only end-to-end runs; `icy plot e2e` draws them."
    failed = sum(bool(r["failed"]) for r in records)
    return (
        f"{counted(len(records), 'result', 'have')} no learning curve ({failed} failed): use the results folder of "
        "a probe, which has every evaluation."
    )


def _has_accuracy(record: Record) -> bool:
    """Return whether the learning curve of a record holds accuracies; `icy plot e2e` draws curves of pairs."""
    kind = kind_of(record)
    return not kind.plot and "accuracy" in kind.curve


def _evaluations(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row per evaluation: key, grammar, seed, reason, steps, accuracy, reconstruction accuracy or NaN."""
    rows = []
    for r in records:
        for point in r["curve"]:
            read = dict(zip(points_of(r), point, strict=False))
            about = (r["key"], r["grammar"], r["seed"], r["reason"], point[0])
            rows.append((*about, read["accuracy"], read.get(RECONSTRUCTED)))
    columns = ["key", "grammar", "seed", "reason", "steps", "accuracy", RECONSTRUCTED]
    return pd.DataFrame(rows, columns=columns).astype({RECONSTRUCTED: float})


def _panel(ax: Axes, runs: pd.DataFrame, looks: dict[str, style.Look], spread: str) -> None:
    for grammar in in_order(runs["grammar"]):
        part = runs[runs["grammar"] == grammar]
        _draw(ax, part, looks[grammar], spread, grammar)
    ax.set_ylim(0, 1.03)
    style.tidy(ax)


def _reconstruction(ax: Axes, runs: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    """Draw the mean reconstruction accuracy over the seeds that have one."""
    for grammar, part in runs.dropna(subset=[RECONSTRUCTED]).groupby("grammar", sort=False):
        mean = part.groupby("steps")[RECONSTRUCTED].mean()
        ax.plot(mean.index, mean, **{**DOTTED, "color": looks[str(grammar)].color})


def _draw(ax: Axes, part: pd.DataFrame, look: style.Look, spread: str, label: str) -> None:
    """Draw one grammar: the mean over seeds until the shortest run ends, then a line per seed."""
    every = part.pivot_table(index="steps", columns="key", values="accuracy")
    shared, mean, wide = mean_and_band(every, spread)
    if every.shape[1] > 1:
        ax.fill_between(shared.index, mean - wide, mean + wide, color=look.color, alpha=0.2, linewidth=0)
    ax.plot(shared.index, mean, color=look.color, linestyle=look.dash, linewidth=style.LINE, label=label)
    for key in every:
        own = every[key].dropna()
        later = own[own.index >= shared.index[-1]] if len(shared) else own
        if len(later) > 1:
            ax.plot(later.index, later, color=look.color, **THIN)
        cut = part.loc[part["key"] == key, "reason"].iloc[0] == "cap"
        ax.plot(
            [own.index[-1]],
            [own.iloc[-1]],
            look.marker,
            markersize=3.2,
            markerfacecolor="white" if cut else look.color,
            markeredgecolor=look.color,
            markeredgewidth=0.7,
            clip_on=False,
            zorder=3,
        )


def _updates_axis(axes: Sequence[Axes], runs: pd.DataFrame, log: bool | None) -> None:
    """Scale the axis of updates of all panels: linear, or logarithmic after the first evaluation."""
    ends = runs.groupby("key")["steps"].max()
    last = float(ends.max())
    for ax in axes:
        if (last > LOG_FROM * max(1.0, ends.min())) if log is None else log:
            first = float(runs.loc[runs["steps"] > 0, "steps"].min())
            ax.set_xscale("symlog", linthresh=first, linscale=0.4)
            ticks = [0, *(10.0**n for n in range(1, 8) if first <= 10**n <= last)]
            style.put_ticks(ax.xaxis, ticks, EngFormatter(sep=""))
        else:
            ax.locator_params(axis="x", nbins=4)
        ax.set_xlim(0, last * 1.02)


def _handles(
    looks: Mapping[str, style.Look], long: pd.DataFrame, parts: Sequence[ResultBlock], reconstructed: bool
) -> list[Line2D]:
    """Return the lines of a legend: one per grammar, and reconstruction, target and chance if the plot shows them."""
    mark: Facts = {"markeredgewidth": 0.7, "linewidth": style.LINE}
    lines = [replace(look, hollow=False).handle(grammar, 3.5, **mark) for grammar, look in looks.items()]
    lines += [Line2D([], [], **DOTTED, label="reconstruction accuracy")] if reconstructed else []
    lines += [Line2D([], [], **TARGET, label="target")] if long["target"].notna().any() else []
    return lines + ([Line2D([], [], **style.CHANCE, label="chance")] if any(part.chance for part in parts) else [])


def _notes(runs: pd.DataFrame, spread: str, lost: int) -> list[str]:
    seeds = runs["seed"].nunique()
    several = f"line and band: mean ± {SPREADS[spread][0]}, while all seeds run; thin: each seed to its end; "
    marks = ("mark" if seeds == 1 else f"{several}mark") + ": where a run ended"
    marks += ", hollow if it was cut at the cap" if runs["reason"].eq("cap").any() else ""
    return [marks] + (
        [f"failed or without a curve: {lost} of {counted(lost + runs['key'].nunique(), 'run')}"] if lost else []
    )
