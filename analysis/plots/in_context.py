"""Text models next to networks and people: which grammars each of them learns easily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from icy.analysis import style
from icy.analysis.atlas.atlas import atlas
from icy.analysis.order import in_order
from icy.analysis.people import published_people
from icy.analysis.picture import Panel, Picture, plot
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError
from icy.core.text import counted, listed
from icy.records.load import Results

from .panels import ResultBlock, blocks, draw_means, limits, measured, value_axis

HEIGHT = 2.4  # inches
RATIO = "ratio to concat"
WIDTH = 0.7  # of the places of a grammar
SIZES = ("role", "meanings", "vocab_size", "word_length")  # that networks and text models share
DATASETS = {"synth": "o", "eng": "s"}  # of people, and their marks


@plot
def side_by_side(results: Results, *, spread: str = "ci95") -> Picture:
    """Text models next to networks and people: ratios and accuracies by grammar.

    The first panel has the networks of the atlas that learned the same languages: a dot per model, the geometric mean
    of its ratios of updates, hollow if some runs were cut; a line at the median. The second has the ratios of examples
    of text models. The third has the share of people's right messages for held-out meanings (Icy22), not a ratio:
    there, a high value is easy.

    Args:
        results: results of `icy.in_context`, or their long table, with ratios.
        spread: "sd", "sem" or "ci95".

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no ratios of text models, or several sizes of languages or directions.
    """
    every = measured(results)
    long = every[every["job_kind"].eq("context") & every["measure"].eq("ratio") & every["grammar"].ne(BASELINE)]
    if not len(long):
        raise InvalidSettingError("These results have no ratios of text models; `icy context` measures them.")
    if varying := [name for name in SIZES if long[name].nunique() > 1]:
        raise InvalidSettingError(
            f"Text models are compared with networks of one kind, and these results differ in {listed(varying)}: "
            f"choose one, as in --where {varying[0]}={long[varying[0]].iloc[0]}."
        )
    networks = _networks(long.iloc[0])
    (part,) = blocks(long.assign(representation="", protocol="acquire"))
    grammars = in_order({*part.grammars} & {*networks["grammar"]} or part.grammars)
    cells = part.cells(spread, grammars)
    (low, high), theirs = limits(cells, ratio=True), networks["ratio"][networks["grammar"].isin(grammars)]
    ends = min([low, *theirs * 0.9]), max([high, *theirs * 1.1])
    people = published_people().query("metric == 'exact'")
    played = in_order({BASELINE, *grammars} & {*people["grammar"]})
    first = long.iloc[0]
    count = networks["model"].nunique()
    panels = [
        Panel(partial(_draw_networks, networks, grammars, part, ends), f"{counted(count, 'network')} (atlas)", y=RATIO),
        Panel(partial(_draw_models, part, grammars, spread, ends), "in context", y=RATIO),
        Panel(partial(_draw_people, people, played), "people (Icy22)", y="right messages of held-out meanings"),
    ]
    panels = [replace(panel, height=HEIGHT, grid="y") for panel in panels]
    looks = style.model_looks(part.long["model"])
    legend = [looks[line.model].handle(line.label, line=False) for line in part.lines]
    legend += [
        style.Look(style.GRAY, marker=mark).handle(f"people, {name}", line=False) for name, mark in DATASETS.items()
    ]
    notes = [
        f"Networks: updates to the target; in context: examples in the prompt; both divided by those for concat, "
        f"{first['role']}s, {first['meanings']}, V={first['vocab_size']:g}, w={first['word_length']:g}. "
        "Hollow dots and arrows: some or all runs were cut, so the true ratio is larger.",
        "People played other languages, with other numbers of meanings and tokens, and their accuracy is no ratio: "
        "compare the order of grammars only.",
    ]
    return Picture(
        panels, "Which grammars are hard for networks, in context, and for people", notes, legend, columns=None
    )


def _networks(row: pd.Series) -> pd.DataFrame:
    """Return the geometric mean of the ratios of each network and grammar, for languages of the sizes of a row."""
    long = measured(atlas().to_dataframe())
    same = long["measure"].eq("ratio") & long["grammar"].ne(BASELINE) & long["representation"].eq("soft")
    for name in SIZES:
        same &= long[name].eq(row[name])
    found = long[same & ~long["failed"].astype(bool)].assign(ratio=lambda rows: np.log(rows["value"].astype(float)))
    means = found.groupby(["model", "grammar"], as_index=False).agg(ratio=("ratio", "mean"), cut=("censored", "any"))
    return means.assign(ratio=np.exp(means["ratio"]))


def _draw_networks(
    networks: pd.DataFrame, grammars: Sequence[str], part: ResultBlock, ends: tuple[float, float], ax: Axes
) -> None:
    _name_grammars(ax, grammars)
    value_axis(ax, "y", part, ends)
    looks = style.grammar_looks(grammars)
    for place, grammar in enumerate(grammars):
        here = networks[networks["grammar"] == grammar].sort_values("ratio")
        if not len(here):
            continue
        around = place + WIDTH * ((np.arange(len(here)) * 0.618) % 1 - 0.5)  # dots of near values are apart
        color = looks[grammar].color
        faces = ["white" if cut else color for cut in here["cut"]]
        ax.scatter(around, here["ratio"], s=8, c=faces, edgecolors=color, linewidths=0.6, zorder=2)
        ax.hlines(here["ratio"].median(), place - 0.4, place + 0.4, color="black", linewidth=1.2, zorder=3)


def _draw_models(part: ResultBlock, grammars: Sequence[str], spread: str, ends: tuple[float, float], ax: Axes) -> None:
    _name_grammars(ax, grammars)
    value_axis(ax, "y", part, ends)
    looks = style.model_looks(part.long["model"])
    for number, line in enumerate(part.lines):
        shift = WIDTH * ((number + 0.5) / len(part.lines) - 0.5)
        means = [(place + shift, line, line.cell(grammar, spread)) for place, grammar in enumerate(grammars)]
        look = looks[line.model]
        draw_means(ax, "y", means, look.color, color=look.color, fmt=look.marker, markersize=4, zorder=3)


def _draw_people(people: pd.DataFrame, grammars: Sequence[str], ax: Axes) -> None:
    _name_grammars(ax, grammars)
    ax.set_ylim(0, 1)
    looks = style.grammar_looks(grammars)
    for number, (dataset, mark) in enumerate(DATASETS.items()):
        here = people[(people["dataset"] == dataset) & people["grammar"].isin(grammars)]
        for row in here.to_dict("records"):
            place, half = grammars.index(row["grammar"]), float(str(row["printed"]).partition("±")[2])
            errors = [[min(half, row["value"])], [half]]
            look: Any = {"fmt": mark, "markersize": 4, "elinewidth": 0.9, "color": looks[row["grammar"]].color}
            ax.errorbar(place + 0.3 * (number - 0.5), row["value"], errors, **look)


def _name_grammars(ax: Axes, grammars: Sequence[str]) -> None:
    ax.set_xlim(-0.6, len(grammars) - 0.4)
    ax.set_xticks(range(len(grammars)), grammars, rotation=style.TILT, ha="right", rotation_mode="anchor")
