"""Verdicts on reproductions: on each published cell, and on all cells of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from icy.analysis.cells import both_cut, number
from icy.analysis.order import in_order

from .agreement import NAMES, NEAR, with_distance

FAR = 3.0  # combined standard errors beyond which a cell differs
CONFIDENCE = 0.95  # of the verdict "reproduced"
MIN_CELLS = 5  # for a verdict on all cells
CELL = ["representation", "side", "model", "hidden_size", "grammar", "measure"]
COLUMNS = [
    *CELL,
    *("icy", "icy_error", "seeds", "cut", "published", "published_error", "n", "combined_error", "distance", "freedom"),
    "verdict",
]


def judged(long: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """Compare published cells with results, and judge each.

    The verdict on a cell is

    - "agrees": within 2 combined standard errors, or both were cut at the cap;
    - "near": within 3;
    - "differs": more than 3 apart;
    - "undecided": neither has an error, or icy's mean is undefined;
    - "failed": no seed gave a result;
    - "missing": it was not measured.

    If one of the two has no error (a single seed, or a paper that prints none), its runs are assumed to vary as much
    as the other's.

    Args:
        long: results in long form.
        wanted: rows of `icy.analysis.published`.

    Returns:
        A row per row of `wanted`, with the columns of COLUMNS; `n` is the number of the paper's runs.
    """
    theirs = wanted.rename(columns=NAMES)
    if "side" not in theirs:
        theirs["side"] = "pair"
    cells = theirs.merge(_measured(long, theirs), on=CELL, how="left")
    counts = ["seeds", "failed", "cut", "tried"]
    cells[counts] = cells[counts].fillna(0).astype(int)
    cells = with_distance(cells)
    cells["verdict"] = [_verdict(cell) for _, cell in cells.iterrows()]
    place = {grammar: i for i, grammar in enumerate(in_order(cells["grammar"]))}
    cells = cells.sort_values("grammar", key=lambda names: names.map(place), kind="stable")
    models = {name: i for i, name in enumerate(dict.fromkeys(wanted["model"]))}
    cells = cells.sort_values("model", key=lambda names: names.map(models), kind="stable")
    return cells.sort_values("representation", ascending=False, kind="stable")[COLUMNS].reset_index(drop=True)


def _measured(long: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard error and counts of every cell; a pair has one for each of its measures."""
    pairs = long["side"].eq("pair")
    alone = long[~pairs].assign(model=long["model"].str.replace(r"^\w+/", "", regex=True))
    names = [name for name in theirs["measure"].unique() if name in long]
    tall = long[pairs].drop(columns=["measure", "value"])
    kept = [*CELL[:-1], "failed", "cut"]
    both = pd.concat([alone[[*kept, "measure", "value"]], tall.melt(kept, names, "measure", "value")])
    both["value"] = both["value"].where(~both["failed"].astype(bool))
    groups = both.groupby(CELL, sort=False)
    found = groups["value"].agg(["mean", "sem", "count"]).set_axis(["icy", "icy_error", "seeds"], axis=1)
    return found.join(groups[["failed", "cut"]].sum()).assign(tried=groups.size()).reset_index()


def _verdict(cell: pd.Series[Any]) -> str:
    if not cell["seeds"]:
        return "failed" if cell["failed"] else "undecided" if cell["tried"] else "missing"
    if _cut(cell):
        return "agrees"
    if math.isnan(cell["distance"]):
        return "undecided"
    away = abs(cell["distance"])
    return "agrees" if away <= NEAR else "near" if away <= FAR else "differs"


def _cut(cell: pd.Series[Any]) -> bool:
    ratio = cell["measure"] == "ratio"
    return ratio and both_cut(cell["icy"], cell["seeds"], cell["cut"], cell["published"])


def _both_cut(cells: pd.DataFrame) -> pd.Series[bool]:
    return pd.Series([_cut(cell) for _, cell in cells.iterrows()], index=cells.index, dtype=bool)


@dataclass(frozen=True, repr=False)
class Verdict:
    """Verdict on a table.

    Attributes:
        word: "reproduced", "reproduced in part", "not reproduced"; "too few cells to tell" below five; "undecided" if
            no cell has an error; or "not measured".
        cells: number of cells.
        measured: number of cells that agree, are near, differ or failed; of a verdict "undecided", that are undecided
            or failed.
        failed: measured cells in which no seed gave a result; they do not agree.
        agree: measured cells that agree.
        expected: number of cells expected to agree if the true means are equal, by Welch's t, including those cut in
            both; NaN without errors.
        difference: median absolute difference from the published values, in units of the table.
        correlation: Spearman's, between measured and published means over cells; NaN below three.
    """

    word: str
    cells: int
    measured: int
    failed: int
    agree: int
    expected: float
    difference: float
    correlation: float

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Verdict:
        """Judge a table by its cells, from `judged`.

        "reproduced" means that no cell failed, that no more cells lie outside than chance alone would put there in 95
        of 100 cases, and that none lies so far outside that chance would put one there in fewer than 5 of 100.
        """
        done = cells[cells["verdict"].isin(["agrees", "near", "differs"])]
        failed = int(cells["verdict"].eq("failed").sum())
        found = cells[cells["verdict"].eq("undecided")]
        if not len(done) and (len(found) or not failed):
            word, gap = ("undecided", _gap(found)) if len(found) else ("not measured", math.nan)
            return cls(word, len(cells), len(found) + failed, failed, 0, math.nan, gap, _correlation(found))
        agree, measured = int(done["verdict"].eq("agrees").sum()), len(done) + failed
        chance = done[~_both_cut(done)]  # cells that were cut in both agree in any case
        freedom = chance["freedom"].to_numpy(float)
        inside = np.asarray(1 - 2 * stats.t.sf(NEAR, freedom))
        most_outside = stats.binom.ppf(CONFIDENCE, len(chance), 1 - inside.mean()) if len(chance) else 0
        likely = 2 * stats.t.sf(chance["distance"].abs().to_numpy(float), freedom)
        far = chance["verdict"].ne("agrees") & (likely * len(chance) < 1 - CONFIDENCE)
        if measured < MIN_CELLS:
            word = "too few cells to tell"
        elif not failed and measured - agree <= most_outside and not far.any():
            word = "reproduced"
        else:
            word = "reproduced in part" if agree >= measured / 2 else "not reproduced"
        expected = float(inside.sum()) + len(done) - len(chance) if len(done) else math.nan
        return cls(word, len(cells), measured, failed, agree, expected, _gap(done), _correlation(done))

    def __repr__(self) -> str:
        return str(self)

    @property
    def phrase(self) -> str:
        """The word, with "as far as measured" where it covers a part of the table."""
        whole = self.measured == self.cells or self.word in ("not measured", "undecided", "too few cells to tell")
        return self.word if whole else f"{self.word} as far as measured"

    def __str__(self) -> str:
        if not self.measured:
            return f"Not measured: none of {self.cells} cells."
        about = [f"{self.failed} failed"] if self.failed else []
        about += [f"{self.cells - self.measured} of {self.cells} not measured"] if self.measured < self.cells else []
        part = f" ({', '.join(about)})" if about else ""
        rank = "" if math.isnan(self.correlation) else f", Spearman's correlation over cells {self.correlation:.2f}"
        away = (
            "none gave a result." if math.isnan(self.difference) else f"median difference {self.difference:.3f}{rank}."
        )
        if self.word == "undecided":
            return f"Undecided: {self.measured} cells{part}, without an error here or in the paper; {away}"
        chance = "" if math.isnan(self.expected) else f", where chance alone would let {self.expected:.1f}"
        return (
            f"{self.phrase.capitalize()}: {self.agree} of {self.measured} cells{part} agree within {NEAR:g} combined "
            f"standard errors{chance}; {away}"
        )


def _gap(cells: pd.DataFrame) -> float:
    return float((cells["icy"] - cells["published"]).abs().median())


def _correlation(cells: pd.DataFrame) -> float:
    varies = min(cells["icy"].nunique(), cells["published"].nunique()) > 1
    return float(stats.spearmanr(cells["icy"], cells["published"])[0]) if len(cells) > 2 and varies else math.nan


def model_name(model: str, hidden: int) -> str:
    """Return the name of a model in a table, with its hidden size if that is not the papers' usual one."""
    return model if hidden == 128 else f"{model}, E={hidden}"


def shown(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells of `judged` as text: model, grammar, icy, seeds, published, distance and verdict."""
    several = cells["measure"].nunique() > 1
    rows = []
    for cell in cells.to_dict("records"):
        decimals = 2 if cell["measure"] == "ratio" else 3
        away = cell["distance"]
        rows.append(
            {
                "model": model_name(cell["model"], cell["hidden_size"]),
                "grammar": cell["grammar"],
                **({"measure": cell["measure"]} if several else {}),
                "icy": number(cell["icy"], cell["icy_error"], decimals) if cell["seeds"] else "-",
                "seeds": str(cell["seeds"]),
                "published": number(cell["published"], cell["published_error"], decimals),
                "distance": "-" if math.isnan(away) else f"{round(away, 1) + 0.0:+.1f}",
                "verdict": cell["verdict"],
            }
        )
    return pd.DataFrame(rows)
