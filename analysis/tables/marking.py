"""Best and worst cells of a bias table's columns, for a bias toward compositionality."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy

from icy.analysis.statistics import student
from icy.analysis.table_cells import EMPTY, Mark, TableCell

# Whether an architecture with a compositional bias learns a grammar well (+1) or not (-1), as in Perkins21's tables 9
# to 11: shuf and shufdet keep the words and change their order; proj, pairsum and rot have no words; hol has no
# structure.
GOOD_SIGNS = {"shuf": 1, "shufdet": 1, "proj": -1, "pairsum": -1, "rot": -1, "hol": -1}
MIN_ROWS = 3  # least number of rows for marks in a column
SIGNIFICANCE = 0.05  # largest p-value at which rows count as different
LANGUAGES = re.compile(r"(?:frequencies|existing|word_lengths)=[^,]*")  # in the column of options
TableRow = tuple[pd.Series, list[str], dict[str, TableCell]]  # first replicate of a row, labels, cells by grammar


def mark_ends(rows: list[TableRow], alike: Sequence[str], grammars: Sequence[str], spread: str) -> dict[str, str]:
    """Mark the best and the worst cell of every column, in place.

    Args:
        rows: rows of the table. Models without parameters are left out.
        alike: columns of the long table; only rows with equal values in them, and with the same frequencies of
            meanings and lengths of words, are compared.
        grammars: columns of the table.
        spread: spread of the cells, a name of `icy.analysis.table_cells.SPREADS`.

    Returns:
        The arrow of every column with a mark: "↑" if large values are good, "↓" if small values are good.
    """
    sets: dict[str, list[TableRow]] = {}
    for row in rows:
        if pd.isna(row[0]["parameters"]) or row[0]["parameters"] != 0:
            drawn = LANGUAGES.findall(str(row[0]["options"])) if "options" in row[0] else []
            sets.setdefault(str([*(row[0][name] for name in alike), *drawn]), []).append(row)
    arrows: dict[str, set[str]] = {}
    for members in sets.values():
        low_is_good = members[0][0]["measure"] == "ratio"
        for grammar in grammars:
            sign = GOOD_SIGNS.get(grammar, 0) * (-1 if low_is_good else 1)
            # Ratios of an interrupted run are too low, and would be marked as the best.
            column = [c for _, _, c in members if not (low_is_good and c.get(grammar, EMPTY).unfinished)]
            budget = not pd.isna(members[0][0]["max_updates"])
            if sign and _mark_column(column, grammar, sign, spread, budget):
                arrows.setdefault(grammar, set()).add("↑" if sign > 0 else "↓")
    return {grammar: found.pop() for grammar, found in arrows.items() if len(found) == 1}


def _mark_column(column: Sequence[dict[str, TableCell]], grammar: str, sign: int, spread: str, budget: bool) -> bool:
    """Mark the best and the worst cell of a grammar; return False if cells are too few or do not differ.

    Under a common budget, cut ratios differ: a cell is marked only if no cut cell may be more extreme.
    """
    shown = {i: cells[grammar] for i, cells in enumerate(column) if cells.get(grammar, EMPTY).seeds}
    means = {i: round(cell.center, 3) for i, cell in shown.items()}
    if len(shown) < MIN_ROWS or len(set(means.values())) < 2 or not _differ(list(shown.values()), spread):
        return False
    ends: dict[float, Mark] = {max(means.values()): "best" if sign > 0 else "worst"}
    ends[min(means.values())] = "worst" if sign > 0 else "best"
    least, most = min(means.values()), max(means.values())
    cut = {value for i, value in means.items() if budget and shown[i].cut}
    unknown = (cut & {least}) | ({most} if min(cut, default=most) < most else set())
    for i, value in means.items():
        if value in ends and value not in unknown:
            column[i][grammar] = replace(column[i][grammar], mark=ends[value])
    return True


def _differ(cells: Sequence[TableCell], spread: str) -> bool:
    """Return whether cells differ significantly, by a one-way analysis of variance over seeds.

    Without this test, a column such as hol, where all accuracies are at chance, would have a best model by luck.
    """
    counts, means = (np.array([getattr(cell, name) for cell in cells], dtype=float) for name in ("seeds", "mean"))
    freedom = len(cells) - 1, counts.sum() - len(cells)
    if freedom[1] == 0:
        return True  # one seed each: their variance is unknown
    spreads = np.array([cell.spread if cell.seeds > 1 else 0.0 for cell in cells])
    scale = np.ones_like(counts) if spread == "sd" else np.sqrt(counts)
    if spread == "ci95":
        scale = scale / student(np.maximum(counts - 1, 1))
    within = ((counts - 1) * (scale * spreads) ** 2).sum()
    between = (counts * (means - np.average(means, weights=counts)) ** 2).sum()
    if within == 0:
        return bool(between > 0)
    return bool(scipy.special.fdtrc(*freedom, between / freedom[0] / (within / freedom[1])) < SIGNIFICANCE)
