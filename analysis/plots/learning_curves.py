"""Learning curves: accuracy at every evaluation, and measures of end-to-end runs (in the form of Icy22 figure 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import Facts, in_order, without_hashes
from icy.analysis.table_cells import SPREADS, checked_spread, conventions_of
from icy.analysis.tables.by_setting import split_shared
from icy.analysis.tables.e2e import setting
from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace
from icy.records.kinds import kind_of, points_of
from icy.records.load import Results, long_of
from icy.records.long_table import ROW, game_curves
from icy.records.record import HasRecords, Record

from .panels import CURVES, Line, blocks, describe, lines_of, mean_and_band, records_of

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
    # `icy plot e2e` draws curves of pairs.
    records = [r for r in records_of(results, "curves") if not kind_of(r).plot and "accuracy" in kind_of(r).curve]
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
        for grammar in in_order(own["grammar"]):
            _draw(ax, own[own["grammar"] == grammar], looks[grammar], spread, grammar)
        ax.set_ylim(0, 1.03)
        style.tidy(ax)
        for of, some in own.dropna(subset=[RECONSTRUCTED]).groupby("grammar", sort=False):
            mean = some.groupby("steps")[RECONSTRUCTED].mean()  # over the seeds that have one
            ax.plot(mean.index, mean, **{**DOTTED, "color": looks[str(of)].color})
        for target in sorted(set(rows["target"].dropna())):
            ax.axhline(float(target), **TARGET, zorder=1)
        if part.chance:
            ax.axhline(part.chance, **style.CHANCE, zorder=1)
        style.head(ax, name, width / across)
    _updates_axis(drawn, runs, log)
    measure = SURVIVAL if set(long["measure"]) == {SURVIVAL} else "accuracy"
    counted = " or ".join(dict.fromkeys(kind_of(r).counted for r in with_curve))
    style.outer_labels(drawn, across if axes is None else 1, counted, [measure] * len(drawn))
    mark: Facts = {"markeredgewidth": 0.7, "linewidth": style.LINE}
    handles = [replace(look, hollow=False).handle(grammar, 3.5, **mark) for grammar, look in looks.items()]
    others = (
        ("reconstruction accuracy", DOTTED, runs[RECONSTRUCTED].notna().any()),
        ("target", TARGET, long["target"].notna().any()),
        ("chance", style.CHANCE, any(part.chance for part in parts)),
    )
    handles += [Line2D([], [], **how, label=label) for label, how, shown in others if shown]
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


def _notes(runs: pd.DataFrame, spread: str, lost: int) -> list[str]:
    seeds = runs["seed"].nunique()
    several = f"line and band: mean ± {SPREADS[spread][0]}, while all seeds run; thin: each seed to its end; "
    marks = ("mark" if seeds == 1 else f"{several}mark") + ": where a run ended"
    marks += ", hollow if it was cut at the cap" if runs["reason"].eq("cap").any() else ""
    return [marks] + (
        [f"failed or without a curve: {lost} of {counted(lost + runs['key'].nunique(), 'run')}"] if lost else []
    )


# -- curves of end-to-end runs (in the form of Icy22 figure 7) ---------------------------------------------------------


LABEL_WIDTH = 20  # letters of a label that fit the height of a panel
PANELS = {  # columns of the curves, and labels of their axes
    "sender_accuracy": "sender accuracy\non the language",
    "receiver_accuracy": "receiver accuracy\non the language",
    "loss": "end-to-end\nloss",
    "accuracy": "end-to-end\naccuracy",
    "topsim": "topsim",
    "mean_length": "mean length",
}
TITLE = "What changes while a sender and a receiver play together"
ALWAYS = [*PANELS][:-1]  # columns of the curves of all games
FROM_SCRATCH = "#882255"  # a color that no grammar has
# Above this accuracy, the axis is logarithmic in the error (1 - accuracy), to separate 0.95, 0.99 and 1.
CLOSE = 0.9
LEAST_ERROR = 0.02  # added to the error, so that an accuracy of 1 is on the axis
ACCURACIES = (0, 0.5, 0.8, 0.9, 0.95, 1)  # ticks
# Columns in which games from scratch always differ from others. They share a panel nevertheless.
SCRATCH_DIFFERS = ("target", "cap", "most", "pretrain_representation", "game_steps", "report_every")


@style.with_own_settings
def e2e(
    results: HasRecords | pd.DataFrame,
    *,
    spread: str = "sem",
    title: str | None = None,
    width: float | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Draw the evaluations of games over updates: a row of panels per pair, a line per grammar, a band over seeds.

    A line ends with the shortest run of its grammar. The axis of accuracies close to 1 is logarithmic in the error.

    Args:
        results: an EndToEndResult, or its curves (`EndToEndResult.curves`).
        spread: spread of the band, "sem", "sd" or "ci95".
        title: title; by default a sentence, "" for none.
        width: width of a new figure, in inches.
        axes: axes to draw on, one per panel; by default a new figure.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no end-to-end runs, an unknown spread, or a wrong number of axes.
    """
    checked_spread(spread)
    curves = _curves(results)
    measures = [name for name in PANELS if name in curves and curves[name].notna().any()]
    pairs = _pairs(curves)
    names = [f"{name} of {pair.label}" for pair in pairs for name in measures]
    grammars = set(curves["grammar"])
    width = style.width_of(width, style.NARROWEST * len(measures) + 1.1 * (grammars != {SCRATCH}))
    across = style.across(len(measures), width) if axes is None else len(measures)
    close = [name for name in measures if "accuracy" in name and curves[name].max() > CLOSE]
    notes = _game_notes(curves, spread, bool(close))
    blocks = [(pair.label, len(measures)) for pair in pairs]  # titles of rows do not widen the first panel
    figure, drawn = style.grids(blocks, names, axes, width, [1.4] * len(pairs))
    for place, ax in enumerate(drawn):
        pair, panel = pairs[place // len(measures)], measures[place % len(measures)]
        draw_panel(ax, pair.long, panel, spread, close=panel in close)
        if axes is not None and place % len(measures) == 0:
            room = 0.9 * ax.get_window_extent().width / figure.dpi
            name = style.wrapped(pair.label, room, style.MEDIUM)
            style.name_block(ax, name)
    for ax in drawn[-across:]:
        ax.set_xlabel("updates")
    _legend(figure, drawn, axes is None)
    style.entitle(figure, drawn, axes is None, title, TITLE, notes)
    if axes is None:
        figure.draw_without_rendering()  # ticks settle at the second drawing, and move panels by a pixel
    return figure


def _game_notes(curves: pd.DataFrame, spread: str, close: bool) -> list[str]:
    seeds = curves.groupby(["model", "grammar"])["seed"].nunique()
    fewest, most = int(seeds.min()), int(seeds.max())
    of = counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    band = "one seed each" if most == 1 else f"line and band: mean ± {SPREADS[spread][0]}, while all seeds run; {of}"
    notes = [setting(curves), band, "dotted line: by chance, that is, the accuracy of a guess, and a topsim of 0"]
    return notes + (["axes of accuracies are logarithmic in the error"] if close else [])


def _pairs(curves: pd.DataFrame) -> list[Line]:
    """Return a line per pair and setting, with its curves."""
    scratch = curves["grammar"] == SCRATCH
    keys = ["representation"]
    for name in (name for name in ROW if name in curves and name not in ("model", *keys)):
        parts = [curves[scratch], curves[~scratch]] if name in SCRATCH_DIFFERS else [curves]
        keys += [name] if any(part[name].nunique(dropna=False) > 1 for part in parts) else []
    return lines_of(curves, keys, sides=True)


def _curves(results: HasRecords | pd.DataFrame) -> pd.DataFrame:
    if isinstance(results, HasRecords):
        curves = game_curves(results.records)
    elif set(ALWAYS) <= set(results):
        curves = results
    else:
        curves = game_curves(records_of(results, "e2e"))  # raises an error, as a table has no curves
    if not len(curves) or not {*ALWAYS, "steps", "seed", "representation"} <= set(curves):
        raise InvalidSettingError(
            "These results have no curves of end-to-end runs: `icy e2e` trains a sender and a receiver together; "
            "`icy plot curves` draws models that were trained alone."
        )
    return without_hashes(curves)


def draw_panel(ax: Axes, curves: pd.DataFrame, panel: str, spread: str = "sem", close: bool = False) -> None:
    """Draw one measure of one pair over updates; hide the axes if it was not measured.

    If `close`, the axis is logarithmic in the error, for accuracies close to 1.
    """
    if not curves[panel].notna().any():
        ax.set_axis_off()
        return
    grammars = in_order(curves["grammar"])
    looks = {SCRATCH: style.Look(FROM_SCRATCH)} | style.grammar_looks(g for g in grammars if g != SCRATCH)
    for grammar in grammars:
        part = curves[curves["grammar"] == grammar]
        every = part.pivot_table(index="steps", columns="seed", values=panel)
        runs, mean, error = mean_and_band(every, spread)  # of all seeds, else the mean would jump when one ends
        if not len(runs):
            continue
        look = looks[grammar]
        how: Any = {"color": look.color, "linestyle": look.dash, "linewidth": style.LINE, "label": grammar}
        ax.plot(runs.index, mean, marker="." if len(runs) == 1 else None, **how)  # a line of one point is invisible
        ax.fill_between(runs.index, mean - error, mean + error, color=look.color, alpha=0.2, linewidth=0)
    for chance in _by_chance(curves, panel):
        ax.axhline(chance, **style.CHANCE)
    used = conventions_of(curves, "e2e")
    ax.set_ylabel(fill(used[panel].heading(PANELS[panel]), LABEL_WIDTH) if panel in used else PANELS[panel])
    style.tidy(ax)
    ax.set_xlim(curves["steps"].min(), curves["steps"].max() or 1)
    ax.xaxis.set_major_locator(MaxNLocator(3))  # more five-digit numbers would overlap
    ax.yaxis.set_major_locator(MaxNLocator(4))
    if close:
        _error_axis(ax)
    elif "accuracy" in panel:
        ax.set_ylim(0, 1.02)
    elif panel == "loss":
        ax.set_ylim(bottom=0)


def _by_chance(curves: pd.DataFrame, panel: str) -> list[float]:
    """Return the value by chance of a measure of one pair; empty if it is unknown."""
    if panel == "topsim":
        return [0.0]
    if panel == "sender_accuracy":
        return [1 / float(curves["vocab_size"].iloc[0])]
    return [MeaningSpace.of(str(curves["meanings"].iloc[0])).chance] if "accuracy" in panel else []


def _error_axis(ax: Axes) -> None:
    """Make the axis of accuracies logarithmic in the error."""
    most = 1 + LEAST_ERROR

    def height(accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
        return -np.log10(np.maximum(most - accuracy, LEAST_ERROR / 2))

    def accuracy(height: NDArray[np.float64]) -> NDArray[np.float64]:
        return most - 10.0**-height

    ax.set_yscale("function", functions=(height, accuracy))
    style.put_ticks(ax.yaxis, ACCURACIES, "{x:g}")
    ax.set_ylim(0, 1.002)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)


def _legend(figure: Figure, axes: Sequence[Axes], own: bool) -> None:
    """Draw a legend of the grammars, unless all games are from scratch."""
    found = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = in_order(found)
    handles = [found[label] for label in labels]
    if labels == [SCRATCH]:
        return
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label("from scratch" if label == SCRATCH else label)
    style.legend(figure, axes, own, handles, handlelength=3)
