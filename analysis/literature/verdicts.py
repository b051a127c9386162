"""Verdicts on reproductions: on each published cell, and on all cells of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from icy.analysis.order import in_order
from icy.analysis.row_types import Row, Series
from icy.analysis.statistics import CONFIDENCE, LEAST_RATIO, LEAST_SPREAD, student
from icy.analysis.table_cells import CAP_SLACK, CUT, both_cut, number, p_text

from .agreement import EQUIVALENT, NAMES, with_distance
from .chance import agreement_share, combined_p, count_interval, count_p, mean_difference_p

USUAL_SIZE = 128  # hidden size of the papers' models
FAR = 0.99  # confidence of the interval beyond which a cell differs
MIN_CELLS = 5  # that are decided, for a verdict on all
DECIDED = ("agrees", "near", "differs", "failed")
BY_DESIGN = ("concat", "hol")  # accuracies after as many updates as concat takes: of concat the target, of hol chance
LEFT_OUT = "concat was stopped at the target, and hol is at chance"
LOG = ("ratio", "steps")  # measures whose signed differences are logarithms of quotients
ROW = ("representation", "side", "model", "hidden_size")  # what the cells of a row share
LARGEST_SHIFT = 1e3  # in standard errors; beyond, the noncentral t distribution is not computed well
DRAWN = "drawn"
UNDECIDED = {  # verdict on undecided cells: the reason, for a number of them
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
    *(*CELL, "icy", "icy_error", "seeds", "cut", "published", "published_error", "n", "combined_error"),
    *("distance", "freedom", "p", "verdict", "margin", "equivalence", "by_design"),
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

    "agrees" alone is weak evidence, since few runs have wide intervals. So there is `equivalence` as well, by two
    one-sided tests (`icy.analysis.literature.agreement.with_distance`), and `by_design`, whether a cell agrees whatever
    the model learns: an accuracy after as many updates as concat takes, on concat or hol.

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
    cells = with_verdicts(cells, [verdict_of(cell) for _, cell in cells.iterrows()])
    place = {grammar: i for i, grammar in enumerate(in_order(cells["grammar"]))}
    cells = cells.sort_values("grammar", key=lambda names: names.map(place), kind="stable")
    models = {name: i for i, name in enumerate(dict.fromkeys(wanted["model"]))}
    cells = cells.sort_values("model", key=lambda names: names.map(models), kind="stable")
    return cells.sort_values("representation", ascending=False, kind="stable")[COLUMNS].reset_index(drop=True)


def with_verdicts(cells: pd.DataFrame, verdicts: Sequence[str]) -> pd.DataFrame:
    """Add verdicts to cells of `with_distance`, and which agree by design; only cells that are compared keep their
    equivalence."""
    cells = cells.assign(verdict=list(verdicts))
    known = cells["verdict"].isin(DECIDED) & cells["verdict"].ne("failed")
    accuracy = cells["measure"].eq("accuracy") & cells["side"].isin(["sender", "receiver"])
    by_design = known & accuracy & cells["grammar"].isin(BY_DESIGN)
    return cells.assign(by_design=by_design, equivalence=cells["equivalence"].where(known & ~by_design, ""))


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


def verdict_of(cell: Series) -> str:
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


def _all_cut(cell: Series) -> tuple[bool, bool]:
    """Return whether all of icy's runs were cut at the cap, and whether all of the paper's were."""
    if cell["measure"] != "ratio":
        return False, False
    ours = both_cut(cell["icy"], cell["seeds"], cell["cut"], math.inf)
    cap = cell["icy"] if ours else cell["cap"]
    return ours, bool(cell["published"] >= cap - CAP_SLACK)


def judged_by_runs(
    cells: pd.DataFrame, runs: Sequence[pd.DataFrame], verdict: Callable[[Series], str] = verdict_of
) -> pd.DataFrame:
    """Judge published cells by the runs of each; see `judged`.

    Args:
        cells: rows of `icy.analysis.published`, with the columns of CELL. Without a side or a hidden size, they are of
            a pair of the usual size.
        runs: those of each cell, with the columns `value`, `failed`, and `cut` if runs may be cut.
        verdict: on a cell with its counts.

    Returns:
        As `judged`.
    """
    usual = {name: value for name, value in (("side", "pair"), ("hidden_size", USUAL_SIZE)) if name not in cells}
    found = [_summary(one) for one in runs]
    counts = {name: [one[name] for one in found] for name in _summary(None)}
    cells = with_distance(cells.rename(columns=NAMES).assign(**usual, **counts))
    cells = with_verdicts(cells, [verdict(cell) for _, cell in cells.iterrows()])
    return cells[COLUMNS].reset_index(drop=True)


def _summary(runs: pd.DataFrame | None) -> dict[str, float]:
    """Return the mean, the standard error and the counts of the runs of a cell."""
    found = {"icy": math.nan, "icy_error": math.nan, "seeds": 0, "failed": 0, "tried": 0, "cut": 0}
    if runs is None or runs.empty:
        return found
    failed = runs["failed"].astype(bool)
    good = runs[~failed & runs["value"].notna()]
    if good.empty and not failed.any():
        return found
    values = good["value"].astype(float)
    counts = {"seeds": len(good), "failed": int(failed.sum()), "tried": len(runs)}
    return {
        "icy": values.mean(),
        "icy_error": values.sem(),
        **counts,
        "cut": int(good["cut"].sum() if "cut" in good else 0),
    }


@dataclass(frozen=True, repr=False)
class Verdict:
    """Verdict on a table.

    Attributes:
        word: "reproduced", "reproduced in part", "not reproduced"; "too few cells" if fewer than five are
            decided; "undecided" if none is; or "not measured".
        cells: number of cells.
        measured: number of cells with a result, or that failed.
        by_design: number of measured cells that agree by design, and are left out of all that follows.
        undecided: number of measured cells that are undecided, by their verdict.
        failed: measured cells in which no seed gave a result; they do not agree.
        agree: measured cells that agree by Welch's 95 % interval.
        expected: number of cells expected to agree if the runs of both have one distribution: more than 95 % of those
            that did not fail, as Welch's intervals of few runs are wide; NaN if there are none.
        chance: the 95 % interval of that number, where the cells of a row share their run of concat.
        if_off: number of cells expected to agree if the true mean of each is 20 % from the published one; NaN likewise.
        equivalent: cells that are equivalent within 20 % (two one-sided tests).
        further: cells that are further away than 20 % (one-sided test).
        together: probability of such distances or larger ones over all decided cells, if the true means are
            equal (Fisher's combination of p-values, with correlated cells in a row); NaN likewise.
        mean_difference: mean signed difference of icy from the paper: of ratios and updates the geometric mean of the
            quotients less 1, else in units of the table; NaN likewise.
        relative: whether that is a share.
        mean_difference_p: its p-value, by exchanges of whole rows; NaN with fewer than six.
        larger: share of the cells in which icy's value is larger; equal ones count half. NaN likewise.
        larger_p: its p-value, by the same exchanges.
        rows: number of rows with a compared cell.
        difference: median absolute difference from the published values, in units of the table.
        correlation: Spearman's, between measured and published means over cells; NaN below three.
    """

    word: str
    cells: int
    measured: int
    by_design: int
    undecided: Mapping[str, int]
    failed: int
    agree: int
    expected: float
    chance: tuple[int, int]
    if_off: float
    equivalent: int
    further: int
    together: float
    mean_difference: float
    relative: bool
    mean_difference_p: float
    larger: float
    larger_p: float
    rows: int
    difference: float
    correlation: float

    @property
    def decided(self) -> int:
        """Number of measured cells that are compared or failed; cells that agree by design do not count."""
        return self.measured - self.by_design - sum(self.undecided.values())

    @classmethod
    def of(cls, cells: pd.DataFrame, rows: Sequence[str] = ROW) -> Verdict:
        """Judge a table by its cells, from `judged`.

        Undecided cells and cells that agree by design do not count. "reproduced" means that at least five cells are
        compared, that none failed, and that none of four tests is significant at 5 %: of the number of cells that
        agree, of the furthest cell (Bonferroni), of all distances together (Fisher 1925, Brown 1975), and of the mean
        signed difference.

        Args:
            cells: from `judged`.
            rows: columns that name the row of a cell. The cells of a row are not independent.
        """
        there = cells[cells["verdict"].ne("missing")]
        left_out = there["by_design"].fillna(False).astype(bool)
        counted = there[~left_out]
        counts = counted["verdict"].value_counts()
        known = counted[counted["verdict"].isin(DECIDED) & counted["verdict"].ne("failed")]
        undecided = {name: int(counts[name]) for name in UNDECIDED if name in counts}
        agree, failed = int(counts.get("agrees", 0)), int(counts.get("failed", 0))
        found = known if len(known) else there[there["verdict"].ne("failed")]
        of_rows = list(known[list(rows)].itertuples(index=False, name=None))
        shares = [_agreement_share(cell) for cell in known.to_dict("records")]
        some = bool(len(known))
        relative = some and bool(known["measure"].isin(LOG).all())
        gaps = _signed(known, relative)
        together = combined_p(known["p"].to_numpy(float), of_rows) if some else math.nan
        shift_p, larger_p = (mean_difference_p(one, of_rows) if some else math.nan for one in (gaps, np.sign(gaps)))
        passed = _passed(known, [count_p(agree, shares, of_rows), together, shift_p])
        mean = float(np.mean(gaps)) if some else math.nan
        return cls(
            word=_word(len(known), agree, failed, sum(undecided.values()), passed),
            cells=len(cells),
            measured=len(there),
            by_design=int(left_out.sum()),
            undecided=undecided,
            failed=failed,
            agree=agree,
            expected=sum(shares) if some else math.nan,
            chance=count_interval(shares, of_rows),
            if_off=_agree_if_off(known) if some else math.nan,
            equivalent=int(known["equivalence"].eq("equivalent").sum()),
            further=int(known["equivalence"].eq("further away").sum()),
            together=together,
            mean_difference=math.expm1(mean) if relative else mean,
            relative=relative,
            mean_difference_p=shift_p,
            larger=float(np.mean(np.sign(gaps)) + 1) / 2 if some else math.nan,
            larger_p=larger_p,
            rows=len(set(of_rows)),
            difference=_gap(found),
            correlation=_correlation(found),
        )

    def __repr__(self) -> str:
        return str(self)

    @property
    def phrase(self) -> str:
        """The word, with "so far" if it covers a part of the table."""
        if self.word in ("not measured", "undecided", "too few cells"):
            return self.word
        if self.decided + self.by_design == self.cells:
            return self.word
        return f"{self.word} so far" if self.measured < self.cells else self.word

    @property
    def by_chance(self) -> str:
        """The number of cells that agree by chance, with its interval; "-" if none is decided."""
        return "-" if math.isnan(self.expected) else f"{self.expected:.1f} ({self.chance[0]} to {self.chance[1]})"

    @property
    def shift(self) -> str:
        """The mean signed difference with its p-value; "-" if no cell is decided."""
        if math.isnan(self.mean_difference):
            return "-"
        size = f"{100 * self.mean_difference:+.1f} %" if self.relative else f"{self.mean_difference:+.4f}"
        if math.isnan(self.mean_difference_p):
            return f"{size} (no test: {self.rows} row{'s' * (self.rows > 1)})"
        return f"{size} (p {p_text(self.mean_difference_p)}, {self.rows} rows)"

    @property
    def upwards(self) -> str:
        """The share of cells in which icy's value is larger, with its p-value; "-" if no cell is decided."""
        if math.isnan(self.larger):
            return "-"
        return f"{100 * self.larger:.0f} %" + ("" if math.isnan(self.larger_p) else f" (p {p_text(self.larger_p)})")

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
            return f"Undecided: of {self.measured} cells{part} none is decided: {reasons}; {away}."
        left_out = f"; left out: {self.by_design} that agree by design ({LEFT_OUT})" if self.by_design else ""
        rest = f"; undecided: {reasons}" if reasons else ""
        which = "decided cells" if reasons else "cells"
        return (
            f"{self.phrase.capitalize()}: {self.agree} of {self.decided} {which}{part} agree by the 95 % interval "
            f"of the difference{self._about_known()}{left_out}{rest}; {away}."
        )

    def _about_known(self) -> str:
        """Return what is known of the decided cells; "" if all failed."""
        if math.isnan(self.expected):
            return ""
        off = f"{EQUIVALENT:.0%}".replace("%", " %")
        text = (
            f" (by chance {self.by_chance}; if all were {off} off, {self.if_off:.1f}); equivalent within {off} are "
            f"{self.equivalent}, further away {self.further} (one-sided tests); mean difference {self.shift}, icy's "
            f"value is larger in {self.upwards}"
        )
        if self.together < 1 - CONFIDENCE:
            text += f"; all together are further away than chance allows (Fisher's p {p_text(self.together)})"
        return text


def _word(known: int, agree: int, failed: int, undecided: int, passed: bool) -> str:
    """Return the word for a table, with numbers of cells, and whether it passed all tests."""
    decided = known + failed
    if not known:
        if undecided:
            return "undecided"
        return "not reproduced" if failed >= MIN_CELLS else "too few cells" if failed else "not measured"
    if decided < MIN_CELLS:
        return "too few cells"
    if passed and not failed:
        return "reproduced"
    return "reproduced in part" if agree >= decided / 2 else "not reproduced"


def _passed(known: pd.DataFrame, tests: Sequence[float]) -> bool:
    """Return whether all tests, given by their p-values, and that of the furthest cell are not significant."""
    far = known["verdict"].ne("agrees") & (known["p"] * len(known) < 1 - CONFIDENCE)
    return not far.any() and not any(p < 1 - CONFIDENCE for p in tests)


def _agreement_share(cell: Row) -> float:
    """Return the probability that a cell agrees if the runs of both have one distribution."""
    if math.isnan(cell["published_error"]) or math.isnan(cell["icy_error"]):
        return CONFIDENCE  # one of the two has the other's error, and the distance is Student's t
    runs = cell["seeds"] if pd.isna(cell["n"]) else cell["n"]
    return agreement_share(int(cell["seeds"]), int(runs)) if min(cell["seeds"], runs) > 1 else CONFIDENCE


def _agree_if_off(known: pd.DataFrame) -> float:
    """Return how many cells would agree if each true mean were 20 % from the published one."""
    freedom, error = (known[name].to_numpy(float) for name in ("freedom", "combined_error"))
    shift = np.minimum(known["margin"].to_numpy(float) / np.maximum(error, np.finfo(float).tiny), LARGEST_SHIFT)
    edge = student(freedom)
    inside = scipy.stats.nct.cdf(edge, freedom, shift) - scipy.stats.nct.cdf(-edge, freedom, shift)
    return float(np.nan_to_num(inside).sum())


def _signed(known: pd.DataFrame, relative: bool) -> NDArray[np.float64]:
    """Return signed differences of icy from the paper, which change their sign if the two are exchanged."""
    ours, theirs = (known[name].to_numpy(float) for name in ("icy", "published"))
    if relative:
        ours, theirs = (np.log(np.maximum(one, LEAST_RATIO)) for one in (ours, theirs))
    return np.where(np.abs(ours - theirs) < LEAST_SPREAD, 0.0, ours - theirs)


def _gap(cells: pd.DataFrame) -> float:
    return float((cells["icy"] - cells["published"]).abs().median())


def _correlation(cells: pd.DataFrame) -> float:
    varies = min(cells["icy"].nunique(), cells["published"].nunique()) > 1
    return float(scipy.stats.spearmanr(cells["icy"], cells["published"])[0]) if len(cells) > 2 and varies else math.nan


def model_name(model: str, hidden: int) -> str:
    """Return the name of a model in a table, with its hidden size if that is not the papers' usual one."""
    return model if hidden == USUAL_SIZE else f"{model}, E={hidden}"


def shown(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells of `judged` as text: model, grammar, icy, seeds, published, distance, verdict and equivalence."""
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
                "within 20 %": "left out" if cell["by_design"] else cell["equivalence"] or "-",
            }
        )
    return pd.DataFrame(rows)


def _printed(cell: Row, how: tuple[int, str]) -> str:
    """Return a published number as text: the bound of a run that was stopped early; "-" where it is only drawn."""
    bound = cell.get("bound")
    if bound is not None and not math.isnan(bound):
        return f">{bound:,.0f}"
    return "-" if math.isnan(cell["published"]) else number(cell["published"], cell["published_error"], *how)
