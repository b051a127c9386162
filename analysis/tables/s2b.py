"""S2B: tables of how players did, and the plot of an episode's stimuli (MetaRG22 figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from icy.analysis.cells import SPREADS, Cell, cell_of, checked_spread

from .table import BiasTable

MEASURES = {
    "zsct": "query",
    "support": "support",
    "yes": "says yes",
    "kept": "is yes",
}


def evaluation_table(
    rows: pd.DataFrame, labels: Mapping[str, str], spread: str = "sd", notes: Sequence[str] = ()
) -> BiasTable:
    """A row per pair of players and game, a column per measure, in per cent over seeds.

    Args:
        rows: one per seed, with the measures of `icy.s2b.Evaluation.table` and the columns of `labels`.
        labels: columns that tell rows of the table apart, and what they are called in it.
        spread: "sd", "sem" or "ci95".
        notes: to stand under the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = []
    for key, part in rows.groupby(list(labels), sort=False):
        cells = {shown: _cell(100 * part[name], spread) for name, shown in MEASURES.items()}
        lines.append(([*map(str, key), str(len(part))], cells))
    said = (
        "query: zero-shot compositional test accuracy (ZSCT), %; says yes, is yes: how often in the query the listener"
    )
    meant = [
        f"{said} said that it saw the target's meaning, and how often it did",
        f"mean ± {SPREADS[spread][0]}, of means over episodes",
    ]
    return BiasTable("games", [*labels.values(), "seeds"], list(MEASURES.values()), lines, [*meant, *notes], decimals=1)


def scores_table(
    rows: pd.DataFrame, label: str, metrics: Sequence[str], spread: str = "sd", title: str = ""
) -> BiasTable:
    """A row per thing that was measured, a column per metric, over episodes.

    Args:
        rows: one per episode, as of `icy.s2b.probe_language`.
        label: the column that says what was measured.
        metrics: which of its columns.
        spread: "sd", "sem" or "ci95".
        title: of the table.

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    lines = [
        ([str(name), str(len(part))], {metric: _cell(part[metric], spread) for metric in metrics})
        for name, part in rows.groupby(label, sort=False)
    ]
    said = f"mean ± {SPREADS[spread][0].replace('seeds', 'episodes')}"
    return BiasTable(title, [label, "episodes"], list(metrics), lines, [said], decimals=3)


def _cell(values: pd.Series[float], spread: str) -> Cell:
    cell = cell_of(pd.DataFrame({"value": values, "failed": values.isna(), "cut": False}), spread)
    return Cell(cell.mean, cell.spread, cell.seeds, 0, 0)  # a measure that is undefined here has not failed
