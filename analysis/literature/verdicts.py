"""How far a published table was reproduced: a verdict on each of its cells, and on all of them."""

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

FAR = 3.0  # combined standard errors
VERDICTS = {
    "agrees": f"within {NEAR:g} combined standard errors, or stopped at the cap in both",
    "near": f"within {FAR:g}",
    "differs": f"more than {FAR:g} apart",
    "undecided": "neither has an error, or icy's is undefined",
    "failed": "no seed gave a result",
    "missing": "not measured yet",
}
CELL = ["representation", "side", "model", "hidden_size", "grammar", "measure"]
COLUMNS = [
    *CELL,
    *("icy", "icy_error", "seeds", "cut", "published", "published_error", "n", "combined_error", "distance", "freedom"),
    "verdict",
]
SURE = 0.95
FEWEST = 5  # cells, for a verdict on all


def judged(long: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """Published cells with what was measured, and a verdict on each.

    Where one side has no error of its own (a single seed, or a paper that prints none), its runs are taken to have
    spread as the other's did.

    Args:
        long: results in long form.
        wanted: rows of `icy.analysis.published`.

    Returns:
        A row per row of `wanted`, with the columns of COLUMNS; `n` are the paper's runs.
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
    """Mean, standard error and counts of every cell; a pair has a cell for each of its measures."""
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
    """The verdict on a table.

    Attributes:
        word: "reproduced", "reproduced in part", "not reproduced"; "too few cells to tell", below five; "undecided",
            where nothing has an error; or "not measured".
        cells: how many there are.
        measured: how many of them were tried and, unless undecided or failed, have an error.
        failed: how many of these gave no result with any seed; they do not agree.
        agree: how many of these agree.
        expected: how many would agree by chance if both had measured the same thing, by Welch's t, and those that were
            cut in both; NaN without errors.
        difference: the median absolute difference from the published values, in units of the table.
        correlation: Spearman's, between measured and published means over all cells; NaN below three.
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
        """The verdict on some cells, of `judged`.

        Reproduced: none failed, no more cells lie outside than chance alone puts there in 95 cases of 100, and none
        lies so far away that among so many cells it would be there in fewer than 5.
        """
        done = cells[cells["verdict"].isin(["agrees", "near", "differs"])]
        failed = int(cells["verdict"].eq("failed").sum())
        found = cells[cells["verdict"].eq("undecided")]
        if not len(done) and (len(found) or not failed):
            word, gap = ("undecided", _gap(found)) if len(found) else ("not measured", math.nan)
            return cls(word, len(cells), len(found) + failed, failed, 0, math.nan, gap, _correlation(found))
        agree, measured = int(done["verdict"].eq("agrees").sum()), len(done) + failed
        chance = done[~_both_cut(done)]  # these agree in any case
        freedom = chance["freedom"].to_numpy(float)
        inside = np.asarray(1 - 2 * stats.t.sf(NEAR, freedom))
        most_outside = stats.binom.ppf(SURE, len(chance), 1 - inside.mean()) if len(chance) else 0
        likely = 2 * stats.t.sf(chance["distance"].abs().to_numpy(float), freedom)
        far = chance["verdict"].ne("agrees") & (likely * len(chance) < 1 - SURE)
        if measured < FEWEST:
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
    def said(self) -> str:
        """The word, and that it is about a part, if it is."""
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
            f"{self.said.capitalize()}: {self.agree} of {self.measured} cells{part} agree within {NEAR:g} combined "
            f"standard errors{chance}; {away}"
        )


def _gap(cells: pd.DataFrame) -> float:
    return float((cells["icy"] - cells["published"]).abs().median())


def _correlation(cells: pd.DataFrame) -> float:
    varies = min(cells["icy"].nunique(), cells["published"].nunique()) > 1
    return float(stats.spearmanr(cells["icy"], cells["published"])[0]) if len(cells) > 2 and varies else math.nan


def _named(model: str, hidden: int) -> str:
    return model if hidden == 128 else f"{model}, E={hidden}"


def shown(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of `judged` as text, a row each: model, grammar, icy, seeds, published, distance and verdict."""
    several = cells["measure"].nunique() > 1
    rows = []
    for cell in cells.to_dict("records"):
        decimals = 2 if cell["measure"] == "ratio" else 3
        away = cell["distance"]
        rows.append(
            {
                "model": _named(cell["model"], cell["hidden_size"]),
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
