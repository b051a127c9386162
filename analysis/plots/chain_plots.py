"""Plots of chains of learners: measures over generations, and the path of each language in bias space."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

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
from icy.analysis.order import in_order, setting, without_hashes
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.table_cells import SPREADS, usual_conventions
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError, require_known
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import nearest_grammar
from icy.metrics.nearest import GRAMMARS
from icy.records.kinds import job_kind, kind_of
from icy.records.load import Results, long_of
from icy.records.long_table import ROW

from .panels import Array, draw_band, lines_of, place_labels, records_of

SHOWN = {"accuracy": "survival", "distinct": "distinct messages", "topsim": "topsim"}  # measures, and their labels
TOKENS = ("accuracy", "agreement", "seen_accuracy", "unseen_accuracy")  # measures that are shares of equal tokens
HEIGHT = 1.15  # of a panel, in inches
MOST = 14  # columns of a readable figure
REFERENCE_SEEDS = (1, 2, 3)  # of the languages of known origin
FEWEST = 3  # least number of grammars for axes from languages of known origin


@plot
def chain_curves(results: Results, *, measures: Sequence[str] = tuple(SHOWN), spread: str = "sem") -> Picture:
    """Chains over generations: a row per measure, a column per model.

    Models under several settings have a column per setting. Dotted lines are values by chance: a share of 1/V of equal
    tokens, a topsim of 0, and other measures in a table of `icy.analysis.chains.generations`.

    Args:
        results: chains with their records; or the table of `generations`, which has more metrics.
        measures: numbers of the points of their curves, such as "accuracy" (survival) or "posdis"; or columns of the
            table.
        spread: spread of the bands over chains, "sem", "sd" or "ci95".
        **look: title, width and axes; see `icy.analysis.picture.plot`.

    Returns:
        The figure.

    Raises:
        InvalidSettingError: no chains, chains of too many settings, or an unknown spread.
        UnknownNameError: an unknown measure.
    """
    table, about = _points(results, measures)
    columns, looks = list(dict.fromkeys(table["column"])), style.grammar_looks(in_order(table["grammar"]))
    used = {name: convention for name, convention in usual_conventions(job_kind(KIND)).items() if name in measures}
    notes = [*about, f"line and band: mean ± {SPREADS[spread][0].removesuffix(' over seeds')} over chains"]
    notes += ["dotted line: by chance"] if any(f"{name}{CHANCE}" in table for name in measures) else []
    notes += [convention.note() for convention in used.values()]
    panels = [
        Panel(partial(_measure, table[table["column"].eq(column)], measure, looks, spread), column * (row == 0), "",
              HEIGHT, "generations", used.get(measure, Convention(measure)).heading(SHOWN.get(measure, measure)), "y")
        for row, measure in enumerate(measures) for column in columns
    ]  # fmt: skip
    return Picture(
        panels, "How languages change from learner to learner", notes,
        [look.handle(name, 3.5) for name, look in looks.items()], len(columns),
        max(style.WIDTH, style.NARROWEST * len(columns) + 1.1), {"sharex": True, "sharey": "row"},
        handles={"handlelength": 3},
    )  # fmt: skip


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


def _measure(part: pd.DataFrame, measure: str, looks: Mapping[str, style.Look], spread: str, ax: Axes) -> None:
    """Draw a measure of the chains of one column, with values by chance: one line if they are all equal."""
    chance = part.get(f"{measure}{CHANCE}", pd.Series(dtype=float))
    for grammar, look in looks.items():
        own = part[part["grammar"].eq(grammar)]
        draw_band(ax, own.pivot_table(index="generation", columns="seed", values=measure), spread, look,
                  shortest=False, marker=look.marker, markersize=3)  # fmt: skip
        if chance.nunique() > 1:
            by_chance = own.groupby("generation")[str(chance.name)].mean()
            ax.plot(by_chance.index, by_chance, **{**style.CHANCE, "color": look.color})
    if chance.nunique() == 1:
        ax.axhline(chance.iloc[0], **style.CHANCE)
    if measure in (*TOKENS, "distinct", "communication"):
        ax.set_ylim(0, 1.05)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))


@plot
def chain_paths(results: Results) -> Picture:
    """Paths of languages of chains in bias space: a panel per model.

    The place of a language is its agreement with each grammar (`icy.metrics.nearest_grammar`). The axes are the first
    two principal components of the places of languages of known origin, which are named; if fewer than three grammars
    have languages of this size, of all languages of the chains. A thick path is the mean over chains. It begins at the
    hollow mark and ends at the filled mark. Thin paths are the chains.

    Args:
        results: chains of one space: a ProbeResult of one results folder or pack, which has their languages.
        **look: title, width and axes; see `icy.analysis.picture.plot`.

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
    project = _projection(np.array([*known.values()]) if len(known) >= FEWEST else table[columns].to_numpy())
    places = {name: project(one[None])[0] for name, one in known.items()}
    models, looks = list(dict.fromkeys(table["model"])), style.grammar_looks(in_order(table["grammar"]))
    notes = [
        setting(long_of(list(chains))),
        "thick: mean over chains, from the first language (hollow) to the last (filled); thin: each chain",
        "gray, with a name: languages of known origin",
    ]
    panels = []
    for model in models:
        own = table[table["model"].eq(model)]
        paths = {
            str(grammar): [project(part.groupby("generation")[columns].mean().to_numpy()),
                           *(project(chain[columns].to_numpy()) for _, chain in part.groupby("seed"))]
            for grammar, part in own.groupby("grammar", sort=False)
        }  # fmt: skip
        label = partial(
            place_labels, points=[(x, y) for x, y in places.values()], texts=list(places),
            lines=[path.tolist() for path, *_ in paths.values()],
        )  # fmt: skip
        panels.append(Panel(partial(_paths, paths, looks, places), model.rpartition("/")[2], height=1.5,
                            x="first principal component", y="second component", finish=label))  # fmt: skip
    return Picture(
        panels, "Where languages move as they pass from learner to learner", notes,
        [look.handle(name, 3.5) for name, look in looks.items()], None, grid={"sharex": True, "sharey": True},
    )  # fmt: skip


def _paths(
    paths: Mapping[str, Sequence[Array]], looks: Mapping[str, style.Look], places: Mapping[str, Array], ax: Axes
) -> None:
    """Draw the languages of known origin, and the mean path and the paths of each first language."""
    ax.scatter(*np.array([*places.values()]).reshape(-1, 2).T, s=6, color=style.DIM)  # type: ignore[misc]
    for grammar, look in looks.items():
        for path in paths.get(grammar, [])[1:]:
            ax.plot(*path.T, color=look.color, linewidth=0.5, alpha=0.4)
        for path in paths.get(grammar, [])[:1]:
            ax.plot(*path.T, color=look.color, linestyle=look.dash, linewidth=style.LINE)
            ax.plot(*path[0], look.marker, color=look.color, markersize=4, markerfacecolor="white")
            ax.plot(*path[-1], look.marker, color=look.color, markersize=4)
    ax.margins(0.12)


def _projection(agreements: Array) -> Callable[[Array], Array]:
    """Return the projection on the first two principal components of some agreements [language, grammar]."""
    center = agreements.mean(0)
    directions = np.linalg.svd(agreements - center, full_matrices=False)[2][:2]
    return lambda others: (others - center) @ directions.T


def _known_agreements(first: Language) -> dict[str, Array]:
    """Return the agreements of languages of known origin that have the size of a language, by grammar."""
    sizes, found = (first.space, first.vocab_size, first.word_length or 1), {}
    for name in GRAMMARS:
        with contextlib.suppress(InvalidSettingError):  # the grammar has no language of this size
            languages = [make_language(name, *sizes, seed) for seed in REFERENCE_SEEDS]
            found[name] = np.mean([list(nearest_grammar(one).agreement.values()) for one in languages], 0)
    return found
