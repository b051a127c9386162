"""Verdicts on reproductions: on each published cell, and on all cells of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy

from icy.analysis.cells import CAP_SLACK, CUT, both_cut, number, p_text
from icy.analysis.order import in_order
from icy.analysis.statistics import CONFIDENCE, student

from .agreement import NAMES, with_distance

FAR = 0.99  # confidence of the interval beyond which a cell differs
MIN_CELLS = 5  # that can be told, for a verdict on all
DECIDED = ("agrees", "near", "differs", "failed")
DRAWN = "drawn"
UNDECIDED = {  # verdicts on what was measured and cannot be told: what is the matter with so many cells
    "unfinished": "{} of which seeds are still to be trained",
    "one seed": "{} of one seed",
    "cut in both": "{} cut at the cap in both",
    "cut in one": "{} cut at the cap in one of the two",
    DRAWN: "{} that the paper draws without numbers",
    "undecided": "{} without an error here or in the paper",
}
DECIMALS = {"ratio": (2, ""), "steps": (0, ",")}  # and a separator of thousands; of other measures (3, "")
CELL = ["representation", "side", "model", "hidden_size", "grammar", "measure"]
COLUMNS = [
    *CELL,
    *(
        "icy",
        "icy_error",
        "seeds",
        "cut",
        "published",
        "published_error",
        "n",
        "combined_error",
        "distance",
        "freedom",
        "p",
    ),
    "verdict",
]


def judged(long: pd.DataFrame, wanted: pd.DataFrame) -> pd.DataFrame:
    """Compare published cells with results, and judge each.

    The verdict on a cell is

    - "agrees": the 95 % interval of the difference, by Welch's t, holds 0;
    - "near": its 99 % interval does;
    - "differs": neither does;
    - "unfinished": of a ratio, icy has fewer runs than of another grammar of the model, as where training was stopped:
      the seeds that learn fast end first, so that its mean is too low;
    - "one seed": icy has a single run, of which the spread is unknown;
    - "cut in both": all runs were cut at the cap here and in the paper, so that both are larger, and no more is known;
    - "cut in one": all were in one of the two, so that its ratio is larger than it says, and the other is not so far
      away that it differs all the same;
    - "undecided": neither has an error, or icy's mean is undefined;
    - "failed": no seed gave a result;
    - "missing": it was not measured.

    Means over runs of which some were cut are compared like all others, since the papers cut their runs likewise. If
    one of the two has no error (a paper that prints none), its runs are assumed to vary as much as the other's.

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
    counts = ["seeds", "failed", "cut", "tried", "row_tried"]
    cells[counts] = cells[counts].fillna(0).astype(int)
    cells = with_distance(cells)
    cells["verdict"] = [verdict_of(cell) for _, cell in cells.iterrows()]
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
    kept = [*CELL[:-1], "failed", "cut", "cap"]
    both = pd.concat([alone[[*kept, "measure", "value"]], tall.melt(kept, names, "measure", "value")])
    both["value"] = both["value"].where(~both["failed"].astype(bool))
    groups = both.groupby(CELL, sort=False)
    found = groups["value"].agg(["mean", "sem", "count"]).set_axis(["icy", "icy_error", "seeds"], axis=1)
    counts = groups[["failed", "cut"]].sum().assign(tried=groups.size(), cap=groups["cap"].max())
    row = [name for name in CELL if name != "grammar"]
    counts["row_tried"] = counts.groupby(row, sort=False)["tried"].transform("max")
    return found.join(counts).reset_index()


def verdict_of(cell: pd.Series[Any]) -> str:
    """Return the verdict on a cell with its counts and the probability of its distance; see `judged`."""
    if not cell["seeds"]:
        return "failed" if cell["failed"] else "undecided" if cell["tried"] else "missing"
    if cell["measure"] == "ratio" and cell["tried"] < cell["row_tried"]:
        return "unfinished"
    ours, theirs = _all_cut(cell)
    if ours and theirs:
        return "cut in both"
    if cell["seeds"] == 1:
        return "one seed"
    if math.isnan(cell["p"]):
        return "undecided"
    if cell["p"] < 1 - FAR:
        return "differs"
    return "cut in one" if ours or theirs else "agrees" if cell["p"] >= 1 - CONFIDENCE else "near"


def _all_cut(cell: pd.Series[Any]) -> tuple[bool, bool]:
    """Return whether all of icy's runs were cut at the cap, and whether all of the paper's were."""
    if cell["measure"] != "ratio":
        return False, False
    ours = both_cut(cell["icy"], cell["seeds"], cell["cut"], math.inf)
    cap = cell["icy"] if ours else cell["cap"]
    return ours, bool(cell["published"] >= cap - CAP_SLACK)


@dataclass(frozen=True, repr=False)
class Verdict:
    """Verdict on a table.

    Attributes:
        word: "reproduced", "reproduced in part", "not reproduced"; "too few cells to tell" if fewer than five can be
            told; "undecided" if none can; or "not measured".
        cells: number of cells.
        measured: number of cells with a result, or that failed.
        undecided: number of measured cells that cannot be told, by their verdict.
        failed: measured cells in which no seed gave a result; they do not agree.
        agree: measured cells that agree.
        expected: number of cells expected to agree if the true means are equal: 95 % of those that did not fail; NaN if
            there are none.
        together: probability of such distances or larger ones over all cells that can be told, if the true means are
            equal (Fisher's combination of p-values); NaN likewise.
        shows: a difference that half of the cells which can be told would show, in units of the table: the median of
            half the width of their 95 % intervals; NaN likewise.
        difference: median absolute difference from the published values, in units of the table.
        correlation: Spearman's, between measured and published means over cells; NaN below three.
    """

    word: str
    cells: int
    measured: int
    undecided: Mapping[str, int]
    failed: int
    agree: int
    expected: float
    together: float
    shows: float
    difference: float
    correlation: float

    @property
    def decided(self) -> int:
        """Number of measured cells that can be told, or failed."""
        return self.measured - sum(self.undecided.values())

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Verdict:
        """Judge a table by its cells, from `judged`.

        Cells that cannot be told count neither for nor against. "reproduced" means that at least five can be, that none
        failed, and that neither the number of those outside, nor the one furthest outside, nor the distances of all
        together (Fisher 1925) are such as chance alone would bring about in fewer than 5 of 100 cases.
        """
        counts = cells["verdict"].value_counts()
        there = cells[cells["verdict"].ne("missing")]
        told = cells[cells["verdict"].isin(DECIDED) & cells["verdict"].ne("failed")]
        undecided = {name: int(counts[name]) for name in UNDECIDED if name in counts}
        agree, failed = int(counts.get("agrees", 0)), int(counts.get("failed", 0))
        found = told if len(told) else there[there["verdict"].ne("failed")]
        about = (_gap(found), _correlation(found))
        by_chance = (CONFIDENCE * len(told), _together(told), _shows(told)) if len(told) else (math.nan,) * 3
        word = _word(told, agree, failed, sum(undecided.values()))
        return cls(word, len(cells), len(there), undecided, failed, agree, *by_chance, *about)

    def __repr__(self) -> str:
        return str(self)

    @property
    def phrase(self) -> str:
        """The word, with "as far as measured" where it covers a part of the table, and "as far as can be told" where
        some of what was measured says nothing."""
        if self.word in ("not measured", "undecided", "too few cells to tell") or self.decided == self.cells:
            return self.word
        return f"{self.word} as far as {'measured' if self.measured < self.cells else 'can be told'}"

    def __str__(self) -> str:
        if not self.measured:
            return f"Not measured: none of {self.cells} cells."
        about = [f"{self.failed} failed"] if self.failed else []
        about += [f"{self.cells - self.measured} of {self.cells} not measured"] if self.measured < self.cells else []
        part = f" ({', '.join(about)})" if about else ""
        reasons = ", ".join(UNDECIDED[name].format(count) for name, count in self.undecided.items())
        rank = "" if math.isnan(self.correlation) else f", Spearman's correlation over cells {self.correlation:.2f}"
        away = "none gave a result" if math.isnan(self.difference) else f"median difference {self.difference:.3f}{rank}"
        if set(self.undecided) == {DRAWN} and self.word == "undecided":
            return f"Measured: {reasons}{part}."
        if self.word == "undecided":
            return f"Undecided: of {self.measured} cells{part} none can be told: {reasons}; {away}."
        chance = "" if math.isnan(self.expected) else f", where chance alone would let {self.expected:.1f}"
        if self.together < 1 - CONFIDENCE:
            chance += f", and all together lie further away than chance allows (Fisher's p {p_text(self.together)})"
        shows = "" if math.isnan(self.shows) else f"; half of them would show a difference of {self.shows:.3f}"
        rest = f"; not to be told: {reasons}" if reasons else ""
        which = " that can be told" if reasons else ""
        return (
            f"{self.phrase.capitalize()}: {self.agree} of {self.decided} cells{which}{part} agree by the 95 % interval "
            f"of the difference{chance}{shows}{rest}; {away}."
        )


def _word(told: pd.DataFrame, agree: int, failed: int, undecided: int) -> str:
    """Return the word for a table of which some cells can be told, so many failed, and so many cannot be told."""
    decided = len(told) + failed
    if not len(told):
        if undecided:
            return "undecided"
        return "not reproduced" if failed >= MIN_CELLS else "too few cells to tell" if failed else "not measured"
    most_outside = scipy.stats.binom.ppf(CONFIDENCE, len(told), 1 - CONFIDENCE)
    far = told["verdict"].ne("agrees") & (told["p"] * len(told) < 1 - CONFIDENCE)
    if decided < MIN_CELLS:
        return "too few cells to tell"
    if not failed and decided - agree <= most_outside and not far.any() and _together(told) >= 1 - CONFIDENCE:
        return "reproduced"
    return "reproduced in part" if agree >= decided / 2 else "not reproduced"


def _together(told: pd.DataFrame) -> float:
    return float(scipy.stats.combine_pvalues(told["p"].clip(lower=np.finfo(float).tiny).to_numpy(float)).pvalue)


def _gap(cells: pd.DataFrame) -> float:
    return float((cells["icy"] - cells["published"]).abs().median())


def _shows(cells: pd.DataFrame) -> float:
    """Return the median of half the width of the 95 % intervals of the differences."""
    widths = student(cells["freedom"].to_numpy(float)) * cells["combined_error"]
    return float(np.median(widths))


def _correlation(cells: pd.DataFrame) -> float:
    varies = min(cells["icy"].nunique(), cells["published"].nunique()) > 1
    return float(scipy.stats.spearmanr(cells["icy"], cells["published"])[0]) if len(cells) > 2 and varies else math.nan


def model_name(model: str, hidden: int) -> str:
    """Return the name of a model in a table, with its hidden size if that is not the papers' usual one."""
    return model if hidden == 128 else f"{model}, E={hidden}"


def shown(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells of `judged` as text: model, grammar, icy, seeds, published, distance and verdict."""
    several = cells["measure"].nunique() > 1
    rows = []
    for cell in cells.to_dict("records"):
        how = DECIMALS.get(cell["measure"], (3, ""))
        away = cell["distance"]
        rows.append(
            {
                "model": model_name(cell["model"], cell["hidden_size"]),
                "grammar": cell["grammar"],
                **({"measure": cell["measure"]} if several else {}),
                "icy": number(cell["icy"], cell["icy_error"], *how) + CUT * (cell["cut"] > 0) if cell["seeds"] else "-",
                "seeds": str(cell["seeds"]),
                "published": _printed(cell, how),
                "distance": "-" if math.isnan(away) else f"{round(away, 1) + 0.0:+.1f}",
                "verdict": cell["verdict"],
            }
        )
    return pd.DataFrame(rows)


def _printed(cell: Mapping[Any, Any], how: tuple[int, str]) -> str:
    """Return a published number as text: the bound of a run that was stopped early; "-" where it is only drawn."""
    bound = cell.get("bound")
    if bound is not None and not math.isnan(bound):
        return f">{bound:,.0f}"
    return "-" if math.isnan(cell["published"]) else number(cell["published"], cell["published_error"], *how)
