"""End-to-end runs as a table and as curves (Perkins21 tables 6 and 17; Icy22 figure 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from icy.long_table import ROW

from .cells import SPREADS, Cell, cell_of
from .comparing import PAIR, pairs_beside
from .tables import BiasTable, compared_notes, in_order, long_of

MEASURES = {  # columns of the long table, and what a reader calls them
    "sender_accuracy": "sender accuracy",
    "receiver_accuracy": "receiver accuracy",
    "end_to_end_accuracy": "end-to-end accuracy",
    "topsim": "topsim",
}
SIZES = {"vocab_size": "V", "word_length": "w", "hidden_size": "E"}
PANELS = {  # columns of the curves, and the labels of their axes
    "sender_accuracy": "sender accuracy\non the language",
    "receiver_accuracy": "receiver accuracy\non the language",
    "loss": "end-to-end loss",
    "accuracy": "end-to-end accuracy",
    "topsim": "topsim",
}
# Okabe and Ito's colours, which stay apart under every common colour blindness; in print the dashes help.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES = ("-", "--", "-.", ":")


def end_to_end_table(results: Any, spread: str = "sd", *, compare: str | None = None, compared: str = "") -> BiasTable:
    """A row per pair and measure, a column per grammar of pre-training ("none" from scratch).

    Args:
        results: an EndToEndResult, or a DataFrame in long form as of `icy.long_table.to_long`.
        spread: "sd", "sem" or "ci95".
        compare: "published", or the name of a published table: what stands beside each cell.
        compared: what that is called.
    """
    long = long_of(results)
    beside = {} if compare is None else pairs_beside(long, compare)
    varying = [name for name in ROW if name != "model" and _varies(long, name)]
    rows: list[tuple[list[str], dict[str, Cell]]] = []
    for _, group in long.groupby(["model", *varying], sort=False, dropna=False):
        first = group.iloc[0]
        about = [str(first["model"]), *(str(first[name]) for name in varying), str(group["seed"].nunique())]
        for measure, label in MEASURES.items():
            if group[measure].notna().any() or measure == "end_to_end_accuracy":
                cells = {
                    str(g): replace(
                        cell_of(part.assign(value=part[measure]), spread),
                        beside=beside.get((*(first[name] for name in PAIR), str(g), measure)),
                    )
                    for g, part in group.groupby("grammar", sort=False)
                }
                rows.append(([*about, label], cells))
    labels = ["model", *(name.replace("_", " ") for name in varying), "seeds", "measure"]
    return BiasTable(
        _title(long, varying),
        labels,
        in_order(long["grammar"]),
        rows,
        [*_notes(long, spread), *compared_notes(compare)],
        decimals=3,
        compared=compared or "published",
    )


def _varies(long: pd.DataFrame, name: str) -> bool:
    return bool(long[name].nunique(dropna=False) > 1)


def _title(long: pd.DataFrame, varying: list[str]) -> str:
    """What is the same for all rows."""
    if not len(long):
        return "No results."
    first = long.iloc[0]
    known = {name: first[name] for name in ROW if name not in varying and not pd.isna(first[name])}
    shown = {name: str(value) for name, value in known.items() if value != ""}
    sizes = [f"{letter}={shown[name]}" for name, letter in SIZES.items() if name in shown]
    parts = [f"meanings {shown['meanings']}"] if "meanings" in shown else []
    parts += [", ".join(sizes)] if sizes else []
    parts += [shown[name] for name in ("representation", "settings", "options") if name in shown]
    parts += [f"preset {shown['preset']}"] if "preset" in shown else []
    return f"end to end: {'; '.join(parts)}"


def _notes(long: pd.DataFrame, spread: str) -> list[str]:
    notes = [f"mean ± {SPREADS[spread][0]}"] if long["seed"].nunique() > 1 else []
    steps = sorted(long.loc[~long["failed"].astype(bool), "steps"].dropna().unique())
    if steps:
        notes.append(f"after {steps[0]} updates" if len(steps) == 1 else f"after {steps[0]} to {steps[-1]} updates")
    if long["sender_accuracy"].notna().any():
        notes.append("sender and receiver accuracy are those on the language of pre-training")
    lost = long[long["failed"].astype(bool)]
    return notes + [f"{len(part)} of {len(long)} runs failed: {error}" for error, part in lost.groupby("error")]


def plot_curves(curves: pd.DataFrame) -> Figure:
    """Readings over the updates of the game: a row of panels per pair, a line per grammar, bands of a standard error.

    Args:
        curves: from `EndToEndResult.curves`.
    """
    panels = [name for name in PANELS if curves[name].notna().any()]
    pairs = list(curves.groupby(["model", "representation"], sort=False))
    figure = Figure(figsize=(3.0 * len(panels), 2.6 * len(pairs) + 0.5), layout="constrained")
    axes = figure.subplots(len(pairs), len(panels), squeeze=False)
    for row, ((model, representation), group) in zip(axes, pairs, strict=True):
        for ax, panel in zip(row, panels, strict=True):
            draw_panel(ax, group, panel)
        row[0].set_title(f"{model}, {representation}", loc="left", fontsize=10, fontweight="bold")
    for ax in axes.flat:
        ax.xaxis.set_major_locator(MaxNLocator(3))  # more numbers of five digits run into one another
    for ax in axes[-1]:
        ax.set_xlabel("updates of the game")
    handles, labels = max((ax.get_legend_handles_labels() for ax in axes.flat), key=lambda found: len(found[1]))
    if labels != ["none"]:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(8, len(labels)), frameon=False)
    return figure


def draw_panel(ax: Axes, curves: pd.DataFrame, panel: str) -> None:
    """One measure of one pair over time, on the given axes."""
    for i, grammar in enumerate(in_order(curves["grammar"])):
        part = curves[curves["grammar"] == grammar]
        runs = part.pivot_table(index="steps", columns="seed", values=panel).sort_index()
        runs = runs.dropna()  # a mean over fewer seeds would jump where one ends
        if not len(runs):
            continue
        mean, error = runs.mean(axis=1), runs.sem(axis=1).fillna(0)
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(runs.index, mean, color=colour, linestyle=DASHES[i % len(DASHES)], linewidth=1.6, label=grammar)
        ax.fill_between(runs.index, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    ax.set_ylabel(PANELS[panel])
    ax.spines[["top", "right"]].set_visible(False)
    ax.margins(x=0)
    if "accuracy" in panel:
        ax.set_ylim(0, 1.02)
    elif panel == "loss":
        ax.set_ylim(bottom=0)
