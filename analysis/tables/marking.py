"""Best and worst cells of a bias table's columns, for a bias toward compositionality."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy

from icy.analysis.statistics import LEAST_RATIO, Values, student
from icy.analysis.table_cells import EMPTY, Mark, TableCell

# Whether an architecture with a compositional bias learns a grammar well (+1) or not (-1), as in Perkins21's tables 9
# to 11: shuf and shufdet keep the words and change their order; proj, pairsum and rot have no words; hol has no
# structure.
GOOD_SIGNS = {"shuf": 1, "shufdet": 1, "proj": -1, "pairsum": -1, "rot": -1, "hol": -1}
MIN_ROWS = 3  # least number of rows for marks in a column
SIGNIFICANCE = 0.05  # largest p-value at which rows count as different
LANGUAGES = re.compile(r"(?:frequencies|existing|word_lengths|draws)=[^,]*")  # in the column of options
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
        ratio = members[0][0]["measure"] == "ratio"
        for grammar in grammars:
            sign = GOOD_SIGNS.get(grammar, 0) * (-1 if ratio else 1)
            # Ratios of an interrupted run are too low, and would be marked as the best.
            column = [c for _, _, c in members if not (ratio and c.get(grammar, EMPTY).unfinished)]
            if sign and _mark_column(column, grammar, sign, spread, ratio):
                arrows.setdefault(grammar, set()).add("↑" if sign > 0 else "↓")
    return {grammar: found.pop() for grammar, found in arrows.items() if len(found) == 1}


def _mark_column(column: Sequence[dict[str, TableCell]], grammar: str, sign: int, spread: str, ratio: bool) -> bool:
    """Mark the best and the worst cell of a grammar; return False if cells are too few or do not differ.

    An end is marked only if its cell differs significantly from the next one. The true ratio of a cut cell is larger:
    it is never marked, and the largest ratio of its column is unknown.
    """
    shown = [cells for cells in column if cells.get(grammar, EMPTY).seeds]
    shown.sort(key=lambda cells: cells[grammar].center)
    found = [cells[grammar] for cells in shown]
    test = _Test.of(found, spread, ratio) if len(shown) >= MIN_ROWS else None
    if test is None or not test.differ():
        return False
    cut = [ratio and cell.censored > 0 for cell in found]
    last = len(found) - 1
    ends: dict[tuple[int, int], Mark] = {(0, 1): "worst" if sign > 0 else "best"}
    ends[last, last - 1] = "best" if sign > 0 else "worst"
    for (end, following), mark in ends.items():
        if not (any(cut) if end else cut[0]) and test.differ_two(end, following):
            shown[end][grammar] = replace(found[end], mark=mark)
    return True


@dataclass(frozen=True)
class _Test:
    """Tests of cells with a common variance over seeds: means (of ratios: of logarithms), seeds, and the variance."""

    means: Values
    seeds: Values
    variance: float
    freedom: int

    @classmethod
    def of(cls, cells: Sequence[TableCell], spread: str, ratio: bool) -> _Test | None:
        """Return the tests of some cells; None if all have one seed, so that their variance is unknown."""
        seeds, means = (np.array([getattr(cell, name) for cell in cells], dtype=float) for name in ("seeds", "mean"))
        freedom = int(seeds.sum()) - len(cells)
        if not freedom:
            return None
        deviations = np.array([cell.spread if cell.seeds > 1 else 0.0 for cell in cells])
        deviations *= 1 if spread == "sd" else np.sqrt(seeds)
        if spread == "ci95":
            deviations /= student(np.maximum(seeds - 1, 1))
        if ratio:  # of logarithms: by the moments of a log-normal distribution
            means = np.maximum(means, LEAST_RATIO)
            deviations = np.sqrt(np.log1p((deviations / means) ** 2))
            means = np.log(means) - deviations**2 / 2
        return cls(means, seeds, float(((seeds - 1) * deviations**2).sum()) / freedom, freedom)

    def differ(self) -> bool:
        """Return whether any cells differ significantly, by a one-way analysis of variance.

        Without this test, a column such as hol, where all accuracies are at chance, would have a best model by luck.
        """
        gaps = self.means - np.average(self.means, weights=self.seeds)
        return self._is_large(float((self.seeds * gaps**2).sum()) / (len(gaps) - 1), len(gaps) - 1)

    def differ_two(self, one: int, other: int) -> bool:
        """Return whether two cells differ significantly, by a t-test, and in the third decimal place."""
        gap = float(self.means[one] - self.means[other])
        return round(abs(gap), 3) > 0 and self._is_large(gap**2 / (1 / self.seeds[[one, other]]).sum(), 1)

    def _is_large(self, square: float, freedom: int) -> bool:
        """Return whether a mean square is significantly larger than the variance."""
        if self.variance == 0:
            return square > 0
        return bool(scipy.special.fdtrc(freedom, self.freedom, square / self.variance) < SIGNIFICANCE)
