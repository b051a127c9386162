"""S2B as tables: scores of players, metrics of their languages and of stimuli."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from icy.analysis.cells import SPREADS, Cell, cell_of_values, checked_spread
from icy.analysis.literature.catalogue import published

from .table import BiasTable, Line

QUERY, DEAF = "query", "deaf"
HEADINGS = {  # of the measures of `icy.s2b.Evaluation.table`
    "zsct": QUERY,
    "deaf": DEAF,
    "support": "support",
    "yes": "says yes",
    "kept": "is yes",
}


def evaluation_table(
    rows: pd.DataFrame,
    labels: Mapping[str, str],
    spread: str = "sd",
    notes: Sequence[str] = (),
    shares: Mapping[str, str] = HEADINGS,
    means: Mapping[str, str] | None = None,
    beside: Sequence[Line] = (),
    title: str = "games",
) -> BiasTable:
    """Make a table with a row per pair of players and game, and a column per measure, over seeds.

    Args:
        rows: one per seed, with the measures of `icy.s2b.Evaluation.table`, the columns of `icy.s2b.never_listening` as
            `with_deaf` adds them, and those of `labels`.
        labels: columns that tell rows of the table apart, and their headings.
        spread: "sd", "sem" or "ci95".
        notes: sentences below the table.
        shares: measures that are shown in per cent, and their headings.
        means: measures that are shown as they are, and their headings.
        beside: further rows below, such as published ones.
        title: of the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = []
    scales = {**dict.fromkeys(shares, 100), **dict.fromkeys(means or {}, 1)}
    headings = {**shares, **(means or {})}
    for key, part in rows.groupby(list(labels), sort=False):
        cells = {shown: cell_of_values(scales[name] * part[name], spread) for name, shown in headings.items()}
        lines.append(([*map(str, key), str(len(part))], cells))
    query = (
        "query: zero-shot compositional test accuracy (ZSCT), %; says yes, is yes: how often in the query the listener"
    )
    legend = [
        f"{query} said that it saw the target's meaning, and how often it did",
        f"{DEAF}: the query of the best of those who never listen, in the same games",
        f"mean ± {SPREADS[spread][0]}, of means over episodes",
    ]
    columns = [*labels.values(), "seeds"]
    return BiasTable(title, columns, list(headings.values()), [*lines, *beside], [*legend, *notes], decimals=1)


def with_deaf(rows: pd.DataFrame, floors: pd.DataFrame) -> pd.DataFrame:
    """Add to rows per seed what those score who never listen, and as `deaf` the best of them over these seeds."""
    merged = rows.merge(floors, on="seed", how="left")
    names = [name for name in floors.columns if name != "seed" and merged[name].notna().any()]
    best = merged[names].mean().idxmax() if names else None
    return merged.assign(deaf=math.nan if best is None else merged[best])


def published_text_models(games: Sequence[tuple[int, int]]) -> list[Line]:
    """Return rows of the published text models, for games of some shots S and samples O; see `evaluation_table`.

    They are labelled by model, S, O, K and the number of seeds; spreads are standard deviations.
    """
    return _published("metarg24/llm", "zsct", games, ["0"])


def published_acquisition(games: Sequence[tuple[int, int]]) -> list[Line]:
    """Return rows of the published ease of acquisition, for games of some shots S and samples O, as a query's accuracy.

    They are labelled by the agent that learned to speak, S, O and the number of seeds; spreads are standard deviations.
    """
    return _published("metarg24/marl", "ease_of_acquisition", games)


def _published(name: str, measure: str, games: Sequence[tuple[int, int]], labels: Sequence[str] = ()) -> list[Line]:
    """Return the rows of a published table of MetaRG24, with further labels behind S and O."""
    table = published(name)
    table = table[table["measure"] == measure]
    there = table[[pair in set(games) for pair in zip(table["shots"], table["samples"], strict=True)]]
    return [
        (
            [f"{row['agent']} (MetaRG24)", str(row["shots"]), str(row["samples"]), *labels, str(row["n"])],
            {QUERY: Cell(row["mean"], row["error"], row["n"], cut=0, failed=0)},
        )
        for row in there.to_dict("records")
    ]


def scores_table(
    rows: pd.DataFrame, label: str, metrics: Sequence[str], spread: str = "sd", title: str = ""
) -> BiasTable:
    """Make a table with a row per speaker, or kind of stimuli, and a column per metric, over episodes.

    Args:
        rows: one per episode, as `icy.s2b.probe_language` returns, with the column `label`.
        label: column that names what was measured.
        metrics: columns to show.
        spread: "sd", "sem" or "ci95".
        title: of the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = [
        ([str(name), str(len(part))], {metric: cell_of_values(part[metric], spread) for metric in metrics})
        for name, part in rows.groupby(label, sort=False)
    ]
    note = f"mean ± {SPREADS[spread][0].replace('seeds', 'episodes')}"
    return BiasTable(title, [label, "episodes"], list(metrics), lines, [note], decimals=3)
