"""Plots of chains of learners: measures over generations, and the path of each language in bias space."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.chains import (
    CHANCE,
    KIND,
    PREDICTS,
    KeptResults,
    chain_languages,
    chain_points,
    chains_of,
    generations,
    one_setting,
)
from icy.analysis.metric_conventions import usual_conventions
from icy.analysis.order import in_order, without_hashes
from icy.analysis.row_types import Facts
from icy.analysis.table_cells import SPREADS, checked_spread
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError, require_known
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.metrics.estimated_grammars import GRAMMARS
from icy.records.kinds import job_kind, kind_of
from icy.records.load import Results, long_of
from icy.records.record import Record

from .panels import records_of, title_and_notes

SHOWN = {"accuracy": "survival", "distinct": "distinct messages", "topsim": "topsim"}  # measures, and their labels
HEIGHT = 1.5  # of a panel, in inches
REFERENCE_SEEDS = (1, 2, 3)  # of the languages of known origin
FEWEST = 3  # least number of grammars for axes from languages of known origin


@style.with_own_settings
def chain_curves(
    results: Results,
    *,
    measures: Sequence[str] = tuple(SHOWN),
    spread: str = "sem",
    title: str | None = None,
    width: float | None = None,
) -> Figure:
    """Draw measures of languages over generations: a row per measure, a column per model, a line per first language.

    Thin dotted lines are values by chance, in a table of `icy.analysis.chains.generations`.

    Args:
        results: chains with their records, under one setting; or the table of `generations`, which has more metrics.
        measures: numbers of the points of their curves, such as "accuracy" (survival) or "posdis"; or columns of the
            table.
        spread: spread of the bands over chains, "sem", "sd" or "ci95".
        title: title; "" for none.
        width: width of the figure, in inches.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no chains, chains of several settings, or an unknown spread.
        UnknownNameError: an unknown measure.
    """
    checked_spread(spread)
    table, chains = _points(results, measures)
    models, looks = list(dict.fromkeys(table["model"])), style.grammar_looks(in_order(table["grammar"]))
    names = [f"{model}: {measure}" for measure in measures for model in models]
    width = width or max(style.WIDTH, style.NARROWEST * len(models) + 1.1)
    size = (width, HEIGHT * len(measures) + 0.8)
    figure, axes = style.panels(names, None, size, len(models), sharex=True, sharey="row")
    for place, ax in enumerate(axes):
        measure, model = measures[place // len(models)], models[place % len(models)]
        for grammar, look in looks.items():
            own = table[table["model"].eq(model) & table["grammar"].eq(grammar)]
            _draw_line(ax, own, measure, look, spread)
        if place < len(models):
            style.head(ax, model.rpartition("/")[2], width / len(models))
        style.tidy(ax, "y")
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    used = {name: convention for name, convention in usual_conventions(job_kind(KIND)).items() if name in measures}
    headings = [used.get(name, Convention(name)).heading(SHOWN.get(name, name)) for name in measures]
    labels = [heading for heading in headings for _ in models]
    style.outer_labels(axes, len(models), "generations", labels)
    for ax in axes[: -len(models)]:
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
    style.legend(figure, axes, True, [look.handle(name, 3.5) for name, look in looks.items()], handlelength=3)
    note = f"line and band: mean ± {SPREADS[spread][0]} over chains"
    note += "; thin dotted line: by chance" if any(f"{name}{CHANCE}" in table for name in measures) else ""
    notes = [note, *(convention.note() for convention in used.values())]
    style.entitle(figure, axes, True, title, _title("languages over generations", chains), notes)
    return figure


def _points(results: Results, measures: Sequence[str]) -> tuple[pd.DataFrame, Sequence[Record]]:
    """Return a row per chain and generation, and the records of the chains; no records for a table of `generations`.

    Raises:
        InvalidSettingError: no chains, or chains of several settings.
        UnknownNameError: an unknown measure.
    """
    if isinstance(results, pd.DataFrame) and "generation" in results:
        if results.duplicated(["model", "grammar", "seed", "generation"]).any():
            raise InvalidSettingError("This table has chains of several settings, and one plot would mix them.")
        chains, table = [], results
    else:
        chains = [r for r in records_of(results, "chain_curves") if kind_of(r).name == KIND and not r["failed"]]
        if not chains:
            raise InvalidSettingError("The plot 'chain_curves' needs results of `icy iterate`.")
        table = pd.DataFrame([point for chain in one_setting(chains) for point in chain_points(chain)])
    numbers = table.select_dtypes("number").columns.difference(["seed", "generation"], sort=False)
    for name in measures:
        require_known("measure of these chains", name, list(numbers))
    return without_hashes(table), chains


def _draw_line(ax: Axes, own: pd.DataFrame, measure: str, look: style.Look, spread: str) -> None:
    wide = own.pivot_table(index="generation", columns="seed", values=measure)
    mean, band = wide.mean(axis=1), wide.apply(SPREADS[spread][1], axis=1).fillna(0)
    ax.fill_between(wide.index, mean - band, mean + band, color=look.color, alpha=0.15, linewidth=0)
    ax.plot(wide.index, mean, look.marker, color=look.color, linestyle=look.dash, linewidth=style.LINE, markersize=3)
    if f"{measure}{CHANCE}" in own:
        chance = own.groupby("generation")[f"{measure}{CHANCE}"].mean()
        ax.plot(chance.index, chance, color=look.color, linestyle=":", linewidth=0.7)


@style.with_own_settings
def chain_paths(results: Results, *, title: str | None = None, width: float | None = None) -> Figure:
    """Draw the path of each language in bias space: a panel per model, a path per first language.

    The place of a language is its agreement with each grammar (`icy.metrics.nearest_grammar`). The axes are the first
    two principal components of the places of languages of known origin, which are named; if fewer than three grammars
    have languages of this size, of all languages of the chains. A path is the mean over chains. It begins at the hollow
    mark and ends at the filled mark.

    Args:
        results: chains of one space: a ProbeResult of one results folder or pack, which has their languages.
        title: title; "" for none.
        width: width of the figure, in inches.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no chains, chains of several settings, or no languages.
        StoreError: a language was removed.
    """
    records_of(results, "chain_paths")  # refuses tables
    if not isinstance(results, KeptResults):
        raise InvalidSettingError(
            "The plot 'chain_paths' needs the languages of chains: use the ProbeResult of one results folder."
        )
    chains = one_setting(chains_of(results))
    table = without_hashes(generations(results, metrics=()))
    columns = [f"{PREDICTS}{name}" for name in GRAMMARS]
    known = _known_agreements(chain_languages(results, chains[0])[0])
    project = _Projection(np.array([*known.values()]) if len(known) >= FEWEST else table[columns].to_numpy())
    places = {name: project(one[None])[0] for name, one in known.items()}
    models, looks = list(dict.fromkeys(table["model"])), style.grammar_looks(in_order(table["grammar"]))
    width = width or style.WIDTH
    across = style.across(len(models), width - 1)
    size = (width, 1.9 * -(-len(models) // across) + 0.8)
    figure, axes = style.panels(models, None, size, across, sharex=True, sharey=True)
    for ax, model in zip(axes, models, strict=True):
        _name_places(ax, places)
        for grammar, look in looks.items():
            own = table[table["model"].eq(model) & table["grammar"].eq(grammar)]
            if len(own):
                path = project(own.groupby("generation")[columns].mean().to_numpy())
                ax.plot(*path.T, color=look.color, linestyle=look.dash, linewidth=style.LINE)
                ax.plot(*path[0], look.marker, color=look.color, markersize=4, markerfacecolor="white")
                ax.plot(*path[-1], look.marker, color=look.color, markersize=4)
        style.head(ax, model.rpartition("/")[2], width / across)
        style.tidy(ax)
        ax.margins(0.12)
    style.outer_labels(axes, across, "component 1", ["component 2"] * len(axes))
    style.legend(figure, axes, True, [look.handle(name, 3.5) for name, look in looks.items()])
    note = "hollow: first language; filled: last language; names: languages of known origin"
    style.entitle(figure, axes, True, title, _title("paths of languages in bias space", chains), [note])
    return figure


def _title(what: str, chains: Sequence[Record]) -> str:
    """Return a title with the settings of some chains, as in the title of their table; without chains, no settings."""
    return "; ".join([what, *(title_and_notes(long_of(list(chains)))[0].split("; ")[1:] if chains else ())])


def _name_places(ax: Axes, places: dict[str, NDArray[np.float64]]) -> None:
    """Draw and name places. Names are outside the highest and the lowest place, and else in turn below and above."""
    text: Facts = {"textcoords": "offset points", "fontsize": style.SMALL, "color": style.DIM, "ha": "center"}
    heights = [place[1] for place in places.values()]
    for number, (name, (x, y)) in enumerate(sorted(places.items(), key=lambda place: place[1][0])):
        ax.scatter([x], [y], s=6, color=style.DIM)
        above = y == max(heights) or (number % 2 and y != min(heights))
        ax.annotate(name, (x, y), (0, 5 if above else -5), va="bottom" if above else "top", **text)


class _Projection:
    """Projection of agreements on the first two principal components of some agreements [language, grammar]."""

    def __init__(self, agreements: NDArray[np.float64]) -> None:
        self.center = agreements.mean(0)
        self.directions = np.linalg.svd(agreements - self.center, full_matrices=False)[2][:2]

    def __call__(self, agreements: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = (agreements - self.center) @ self.directions.T
        return found


def _known_agreements(first: Language) -> dict[str, NDArray[np.float64]]:
    """Return the agreements of languages of known origin that have the size of a language, by grammar."""
    sizes, found = (first.space, first.vocab_size, first.word_length or 1), {}
    for name in GRAMMARS:
        with contextlib.suppress(InvalidSettingError):  # the grammar has no language of this size
            languages = [make_language(name, *sizes, seed) for seed in REFERENCE_SEEDS]
            found[name] = np.mean([list(nearest_grammar(one).agreement.values()) for one in languages], 0)
    return found
