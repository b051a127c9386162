"""Learning curves: accuracy at every evaluation, and measures of end-to-end runs (in the form of Icy22 figure 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.order import Facts, in_order, setting, without_hashes
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.table_cells import SPREADS, conventions_of
from icy.analysis.tables.by_setting import split_shared
from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace
from icy.records.kinds import kind_of, points_of
from icy.records.load import Results, long_of
from icy.records.long_table import ROW, game_curves
from icy.records.record import HasRecords, Record

from .panels import Line, ResultBlock, blocks, curves_title, describe, draw_band, lines_of, records_of

PANEL_HEIGHT = 1.1  # inches
LOG_FROM = 8  # the axis is logarithmic if the longest run has more than this many times the steps of the shortest
THIN: Facts = {"linewidth": 0.6, "alpha": 0.6}
DOTTED: Facts = {"color": style.GRAY, "linewidth": style.LINE, "linestyle": ":"}
SURVIVAL = "survival"  # the measure of chains of learners
RECONSTRUCTED = "reconstructed"  # column of the curves of S2B agents
TARGET: Facts = {"color": style.GRAY, "linewidth": 0.8, "linestyle": "--"}


@plot
def curves(results: Results, *, spread: str = "sem", log: bool | None = None) -> Picture:
    """Accuracy over updates: a panel per model, a line per grammar, bands over seeds.

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
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no curves, only end-to-end runs, an unknown spread, or a wrong number of axes.
    """
    # `icy plot e2e` draws curves of pairs.
    records = [r for r in records_of(results, "curves") if not kind_of(r).plot and "accuracy" in kind_of(r).curve]
    with_curve = [r for r in records if r.get("curve") and not r["failed"]]
    if not with_curve:
        raise InvalidSettingError(_explain_no_curves(records))
    runs, long = without_hashes(_evaluations(with_curve)), without_hashes(long_of(with_curve))
    shared, long["options"] = split_shared(long["options"].fillna("").tolist())
    parts, looks = blocks(long), style.grammar_looks(in_order(long["grammar"]))
    measure = SURVIVAL if set(long["measure"]) == {SURVIVAL} else "accuracy"
    unit = " or ".join(dict.fromkeys(kind_of(r).counted for r in with_curve))
    panels = [
        Panel(partial(_curves, runs, line, part, looks, spread, log), f"{line.label}\n{part.name}".rstrip(),
              height=PANEL_HEIGHT, x=unit, y=measure)
        for part in parts for line in part.lines
    ]  # fmt: skip
    mark: Facts = {"markeredgewidth": 0.7, "linewidth": style.LINE}
    handles = [replace(look, hollow=False).handle(grammar, 3.5, **mark) for grammar, look in looks.items()]
    others = (
        ("reconstruction accuracy", DOTTED, runs[RECONSTRUCTED].notna().any()),
        ("target", TARGET, long["target"].notna().any()),
        ("chance", style.CHANCE, any(part.chance for part in parts)),
    )
    handles += [Line2D([], [], **how, label=label) for label, how, shown in others if shown]
    setting = describe(long, spread)[1][0].partition("; ")[2]  # without the measure of the table
    notes = [
        setting,
        *([f"all panels: {shared}"] if shared else []),
        *_notes(runs, spread, len(records) - len(with_curve)),
    ]
    grid = {"sharex": True, "sharey": True}
    title = curves_title(long)
    return Picture(panels, title, notes, handles, None, grid=grid, handles={"handlelength": 3})


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


def _curves(
    runs: pd.DataFrame, line: Line, part: ResultBlock, looks: Mapping[str, style.Look], spread: str, log: bool | None,
    ax: Axes,
) -> None:  # fmt: skip
    """Draw the grammars of one model, the target and the accuracy of a guess."""
    _updates_axis(ax, runs, log)
    ax.set_ylim(0, 1.03)
    own = runs[runs["key"].isin(line.long["key"])]
    for grammar in in_order(own["grammar"]):
        some, look = own[own["grammar"] == grammar], looks[grammar]
        every = some.pivot_table(index="steps", columns="key", values="accuracy")
        shared = draw_band(ax, every, spread, look, label=grammar)
        for key in every:
            values = every[key].dropna()
            later = values[values.index >= shared.index[-1]] if len(shared) else values
            if len(later) > 1:
                ax.plot(later.index, later, color=look.color, **THIN)
            cut = some.loc[some["key"] == key, "reason"].iloc[0] == "cap"
            ax.plot([values.index[-1]], [values.iloc[-1]], look.marker, markersize=3.2, markeredgecolor=look.color,
                    markerfacecolor="white" if cut else look.color, markeredgewidth=0.7, clip_on=False,
                    zorder=3)  # fmt: skip
        read = some.dropna(subset=[RECONSTRUCTED]).groupby("steps")[RECONSTRUCTED].mean()  # over seeds that have one
        if len(read):
            ax.plot(read.index, read, **{**DOTTED, "color": look.color})
    for target in sorted(set(line.long["target"].dropna())):
        ax.axhline(float(target), **TARGET, zorder=1)
    if part.chance:
        ax.axhline(part.chance, **style.CHANCE, zorder=1)


def _updates_axis(ax: Axes, runs: pd.DataFrame, log: bool | None) -> None:
    """Scale the axis of updates: linear, or logarithmic after the first evaluation."""
    ends = runs.groupby("key")["steps"].max()
    last = float(ends.max())
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
UPDATES = "updates"
FROM_SCRATCH = "#882255"  # a color that no grammar has
# Above this accuracy, the axis is logarithmic in the error (1 - accuracy), to separate 0.95, 0.99 and 1.
CLOSE = 0.9
LEAST_ERROR = 0.02  # added to the error, so that an accuracy of 1 is on the axis
ACCURACIES = (0, 0.5, 0.8, 0.9, 0.95, 1)  # ticks
# Columns in which games from scratch always differ from others. They share a panel nevertheless.
SCRATCH_DIFFERS = ("target", "cap", "most", "pretrain_representation", "game_steps", "report_every")


@plot
def e2e(results: HasRecords | pd.DataFrame, *, spread: str = "sem") -> Picture:
    """Sender and receiver together: accuracy, loss and topsim over the updates of the game.

    A line ends with the shortest run of its grammar. The axis of accuracies close to 1 is logarithmic in the error.

    Args:
        results: an EndToEndResult, or its curves (`EndToEndResult.curves`).
        spread: spread of the band, "sem", "sd" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no end-to-end runs, an unknown spread, or a wrong number of axes.
    """
    curves = _game_curves(results)
    measures = [name for name in PANELS if name in curves and curves[name].notna().any()]
    close = [name for name in measures if "accuracy" in name and curves[name].max() > CLOSE]
    used = conventions_of(curves, "e2e")
    labels = {name: fill(used[name].heading(label), 20) if name in used else label for name, label in PANELS.items()}
    grammars = in_order(curves["grammar"])
    pretrained = style.grammar_looks(name for name in grammars if name != SCRATCH)
    looks = {name: pretrained.get(name, style.Look(FROM_SCRATCH)) for name in grammars}
    panels = [
        Panel(partial(_game, pair.long, name, looks, labels[name], spread, name in close), "", pair.label, 1.1, UPDATES)
        for pair in _pairs(curves) for name in measures
    ]  # fmt: skip
    scratch = {SCRATCH: "from scratch"}
    legend = [look.handle(scratch.get(name, name), marker="") for name, look in looks.items()]
    return Picture(
        panels, TITLE, _game_notes(curves, spread, bool(close)), legend if set(looks) != {SCRATCH} else (), None,
        style.NARROWEST * len(measures) + 1.1 * (set(looks) != {SCRATCH}), grouped=True, handles={"handlelength": 3},
    )  # fmt: skip


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


def _game_curves(results: HasRecords | pd.DataFrame) -> pd.DataFrame:
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


def _game(
    curves: pd.DataFrame, measure: str, looks: Mapping[str, style.Look], label: str, spread: str, close: bool, ax: Axes
) -> None:
    """Draw one measure of one pair; hide the axes if it was not measured.

    If `close`, the axis is logarithmic in the error, for accuracies close to 1.
    """
    if not curves[measure].notna().any():
        ax.set_axis_off()
        return
    for grammar in in_order(curves["grammar"]):
        every = curves[curves["grammar"] == grammar].pivot_table(index="steps", columns="seed", values=measure)
        draw_band(ax, every, spread, looks[grammar], marker="." if len(every) == 1 else None)
    for chance in _by_chance(curves, measure):
        ax.axhline(chance, **style.CHANCE)
    ax.set_ylabel(label)
    ax.set_xlim(curves["steps"].min(), curves["steps"].max() or 1)
    ax.xaxis.set_major_locator(MaxNLocator(3))  # more five-digit numbers would overlap
    ax.yaxis.set_major_locator(MaxNLocator(4))
    if close:
        _error_axis(ax)
    elif "accuracy" in measure:
        ax.set_ylim(0, 1.02)
    elif measure == "loss":
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
