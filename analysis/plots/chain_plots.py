"""Plots of chains of learners: measures over generations, and the path of each language in bias space."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

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
from icy.analysis.order import in_order, without_hashes
from icy.analysis.table_cells import SPREADS, checked_spread, usual_conventions
from icy.analysis.tables.e2e import setting
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError, require_known
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.metrics.nearest import GRAMMARS
from icy.records.kinds import job_kind, kind_of
from icy.records.load import Results, long_of
from icy.records.long_table import ROW

from .panels import lines_of, place_labels, records_of

SHOWN = {"accuracy": "survival", "distinct": "distinct messages", "topsim": "topsim"}  # measures, and their labels
TOKENS = ("accuracy", "agreement", "seen_accuracy", "unseen_accuracy")  # measures that are shares of equal tokens
HEIGHT = 1.3  # of a panel, in inches
MOST = 14  # columns of a readable figure
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

    Models under several settings have a column per setting. Dotted lines are values by chance: a share of 1/V of equal
    tokens, a topsim of 0, and other measures in a table of `icy.analysis.chains.generations`.

    Args:
        results: chains with their records; or the table of `generations`, which has more metrics.
        measures: numbers of the points of their curves, such as "accuracy" (survival) or "posdis"; or columns of the
            table.
        spread: spread of the bands over chains, "sem", "sd" or "ci95".
        title: title; "" for none.
        width: width of the figure, in inches.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no chains, chains of too many settings, or an unknown spread.
        UnknownNameError: an unknown measure.
    """
    checked_spread(spread)
    table, about = _points(results, measures)
    columns, looks = list(dict.fromkeys(table["column"])), style.grammar_looks(in_order(table["grammar"]))
    names = [f"{column}: {measure}" for measure in measures for column in columns]
    width = width or max(style.WIDTH, style.NARROWEST * len(columns) + 1.1)
    used = {name: convention for name, convention in usual_conventions(job_kind(KIND)).items() if name in measures}
    notes = [*about, f"line and band: mean ± {SPREADS[spread][0].removesuffix(' over seeds')} over chains"]
    notes += ["dotted line: by chance"] if any(f"{name}{CHANCE}" in table for name in measures) else []
    notes += [convention.note() for convention in used.values()]
    usual = "How languages change from learner to learner"
    size = (width, HEIGHT * len(measures) + 1.0)
    figure, axes = style.panels(names, None, size, len(columns), sharex=True, sharey="row")
    for place, ax in enumerate(axes):
        measure, column = measures[place // len(columns)], columns[place % len(columns)]
        _draw_measure(ax, table[table["column"].eq(column)], measure, looks, spread)
        if place < len(columns):
            style.head(ax, column, width / len(columns))
        style.tidy(ax, "y")
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    headings = [used.get(name, Convention(name)).heading(SHOWN.get(name, name)) for name in measures]
    labels = [heading for heading in headings for _ in columns]
    style.outer_labels(axes, len(columns), "generations", labels)
    for ax in axes[: -len(columns)]:
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
    style.legend(figure, axes, True, [look.handle(name, 3.5) for name, look in looks.items()], handlelength=3)
    style.entitle(figure, axes, True, title, usual, notes)
    return figure


def _points(results: Results, measures: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return a row per chain and generation, with its `column` in the figure; and the setting of the chains.

    Raises:
        InvalidSettingError: no chains, or chains of too many settings.
        UnknownNameError: an unknown measure.
    """
    about = []
    if isinstance(results, pd.DataFrame) and "generation" in results:
        if results.duplicated(["model", "grammar", "seed", "generation"]).any():
            raise InvalidSettingError("This table has chains of several settings, and one plot would mix them.")
        table = without_hashes(results)
        table = table.assign(column=table["model"].str.rpartition("/")[2])
    else:
        chains = [r for r in records_of(results, "chain_curves") if kind_of(r).name == KIND and not r["failed"]]
        if not chains:
            raise InvalidSettingError("The plot 'chain_curves' needs results of `icy iterate` that did not fail.")
        long = without_hashes(long_of(chains))
        varying = [name for name in ROW[1:] if long[name].nunique(dropna=False) > 1]
        lines = lines_of(long, varying, sides=long["role"].nunique() > 1)
        if len(lines) > MOST:
            one_setting(chains)
        columns = {key: line.label for line in lines for key in line.long["key"]}
        guesses = {key: 1 / size for key, size in zip(long["key"], long["vocab_size"], strict=True)}
        points = pd.DataFrame([point for chain in chains for point in chain_points(chain)])
        chance = dict.fromkeys((f"{name}{CHANCE}" for name in TOKENS), points["key"].map(guesses))
        table = without_hashes(points).assign(column=points["key"].map(columns), **chance, **{f"topsim{CHANCE}": 0.0})
        table = table.sort_values("column", key=lambda names: names.map([*columns.values()].index), kind="stable")
        about = [setting(long)]
    numbers = table.select_dtypes("number").columns.difference(["seed", "generation"], sort=False)
    for name in measures:
        require_known("measure of these chains", name, [n for n in numbers if about == [] or not n.endswith(CHANCE)])
    return table, about


def _draw_measure(ax: Axes, part: pd.DataFrame, measure: str, looks: Mapping[str, style.Look], spread: str) -> None:
    """Draw a measure of the chains of one column, with values by chance: one line if they are all equal."""
    chance = part.get(f"{measure}{CHANCE}", pd.Series(dtype=float))
    for grammar, look in looks.items():
        own = part[part["grammar"].eq(grammar)]
        wide = own.pivot_table(index="generation", columns="seed", values=measure)
        mean, band = wide.mean(axis=1), wide.apply(SPREADS[spread][1], axis=1).fillna(0)
        ax.fill_between(wide.index, mean - band, mean + band, color=look.color, alpha=0.15, linewidth=0)
        ax.plot(
            wide.index, mean, look.marker, color=look.color, linestyle=look.dash, linewidth=style.LINE, markersize=3
        )
        if chance.nunique() > 1:
            by_chance = own.groupby("generation")[str(chance.name)].mean()
            ax.plot(by_chance.index, by_chance, **{**style.CHANCE, "color": look.color})
    if chance.nunique() == 1:
        ax.axhline(chance.iloc[0], **style.CHANCE)
    if measure in (*TOKENS, "distinct", "communication"):
        ax.set_ylim(0, 1.05)


@style.with_own_settings
def chain_paths(results: Results, *, title: str | None = None, width: float | None = None) -> Figure:
    """Draw the path of each language in bias space: a panel per model, a path per first language.

    The place of a language is its agreement with each grammar (`icy.metrics.nearest_grammar`). The axes are the first
    two principal components of the places of languages of known origin, which are named; if fewer than three grammars
    have languages of this size, of all languages of the chains. A thick path is the mean over chains. It begins at the
    hollow mark and ends at the filled mark. Thin paths are the chains.

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
    notes = [
        setting(long_of(list(chains))),
        "thick: mean over chains, from the first language (hollow) to the last (filled); thin: each chain",
        "gray, with a name: languages of known origin",
    ]
    usual = "Where languages move as they pass from learner to learner"
    size = (width, 1.9 * -(-len(models) // across) + 0.9)
    figure, axes = style.panels(models, None, size, across, sharex=True, sharey=True)
    drawn: list[list[NDArray[np.float64]]] = [[] for _ in models]
    for ax, model, own_paths in zip(axes, models, drawn, strict=True):
        ax.scatter(*np.array([*places.values()]).reshape(-1, 2).T, s=6, color=style.DIM)  # type: ignore[misc]
        for grammar, look in looks.items():
            own = table[table["model"].eq(model) & table["grammar"].eq(grammar)]
            for _, chain in own.groupby("seed"):
                ax.plot(*project(chain[columns].to_numpy()).T, color=look.color, linewidth=0.5, alpha=0.4)
            if len(own):
                path = project(own.groupby("generation")[columns].mean().to_numpy())
                own_paths.append(path)
                ax.plot(*path.T, color=look.color, linestyle=look.dash, linewidth=style.LINE)
                ax.plot(*path[0], look.marker, color=look.color, markersize=4, markerfacecolor="white")
                ax.plot(*path[-1], look.marker, color=look.color, markersize=4)
        style.head(ax, model.rpartition("/")[2], width / across)
        style.tidy(ax)
        ax.margins(0.12)
    style.outer_labels(axes, across, "first principal component", ["second component"] * len(axes))
    style.legend(figure, axes, True, [look.handle(name, 3.5) for name, look in looks.items()])
    style.entitle(figure, axes, True, title, usual, notes)
    for ax, own_paths in zip(axes, drawn, strict=True):
        place_labels(ax, [(x, y) for x, y in places.values()], list(places), [path.tolist() for path in own_paths])
    return figure


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
