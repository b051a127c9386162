"""Verdicts on reproductions: on each published cell, and on all cells of a table."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from icy.analysis.order import Row, Series, in_order
from icy.analysis.statistics import CONFIDENCE, LEAST_RATIO, LEAST_SPREAD, Values
from icy.analysis.table_cells import CAP_SLACK, CUT, both_censored, number, p_text
from icy.core.streams import stream
from icy.core.text import counted, listed

from .agreement import EQUIVALENT, MEASURED, NAMES, with_distance

USUAL_SIZE = 128  # hidden size of the papers' models
FAR = 0.99  # a cell differs if the interval of this confidence does not contain 0
MIN_CELLS = 5  # least number of decided cells for a verdict on the table
SAME, DIFFERENT = "no difference found", "difference found"  # a table's verdict by two tests
COMPARED = ("agrees", "near", "differs")
BY_DESIGN = ("concat", "hol")  # accuracies after concat's updates: the target for concat, chance for hol
LEFT_OUT = "concat was stopped at the target, and hol is at chance"
LOG = ("ratio", "steps")  # measures with logarithms of quotients as signed differences
ROW = ("representation", "role", "model", "hidden_size")  # columns that identify a row
FISHER_COVARIANCE = 0.98607160488  # of -2 ln p of two two-sided tests of distances with correlation 1/2
LEAST_ROWS = 6  # with fewer, no mean difference is significant at 5 %
MOST_ENUMERATED = 12  # up to this many rows, all exchanges are counted
EXCHANGES = 10_000  # random exchanges for more rows
DRAWN = "drawn"
UNDECIDED = {  # verdict on undecided cells: the reason, with the number of cells
    "unfinished": "{} with seeds still to be trained",
    "one seed": "{} of one seed",
    "cut in both": "{} cut at the cap in both",
    "cut in one": "{} cut at the cap in one of the two",
    DRAWN: "{} that the paper draws without numbers",
    "undecided": "{} without an error here or in the paper",
}
DECIMALS = {"ratio": (2, ""), "steps": (0, ",")}  # decimals and separator of thousands; (3, "") for other measures
CELL = ["representation", "role", "model", "hidden_size", "grammar", "measure"]
COLUMNS = [
    *(*CELL, *MEASURED, "censored", *NAMES.values(), "n", "combined_error"),
    *("distance", "freedom", "p", "verdict", "margin", "equivalence", "by_design"),
]


def judge_cells(long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare each published cell with results, and return a verdict on it.

    The verdict on a cell is

    - "agrees": the 95 % interval of the difference, by Welch's t, contains 0;
    - "near": only the 99 % interval contains 0;
    - "differs": the 99 % interval does not contain 0;
    - "unfinished": for a ratio, icy has fewer runs than for another grammar of the model, such as after an interrupted
      training. Seeds that learn fast end first, so its mean is too low;
    - "one seed": icy has a single run, and the spread is unknown;
    - "cut in both": all runs were cut at the cap, in icy and in the paper. Both ratios are larger than printed;
    - "cut in one": all runs were cut in icy or in the paper, so its ratio is larger than printed, and the distance does
      not reach "differs";
    - "undecided": neither has an error, or icy's mean is undefined;
    - "failed": no seed gave a result;
    - "missing": it was not measured.

    Means over runs with some cut runs are compared like other means, since the papers cut their runs in the same way.
    If one of the two has no error (a paper that prints none), its runs are assumed to vary as much as the other's.

    "agrees" alone is weak evidence, since few runs have wide intervals. So there is also `equivalence`, by two
    one-sided tests (`icy.analysis.literature.agreement.with_distance`), and `by_design`: whether a cell agrees whatever
    the model learns. This holds for accuracies after concat's number of updates, on concat or hol.

    Args:
        long: results in long form.
        reference: rows of `icy.analysis.published`.

    Returns:
        A row per row of `reference`, with the columns of COLUMNS; `n` is the number of the paper's runs.
    """
    theirs = reference.rename(columns=NAMES)
    if "role" not in theirs:
        theirs["role"] = "pair"
    cells = theirs.merge(_summarize_cells(long, theirs), on=CELL, how="left")
    counts = ["seeds", "failed", "censored", "tried", "row_tried"]
    cells[counts] = cells[counts].fillna(0).astype(int)
    cells = with_distance(cells)
    cells = with_verdicts(cells, [verdict_of(cell) for _, cell in cells.iterrows()])
    orders = {
        "representation": sorted(cells["representation"].unique(), reverse=True),
        "model": list(dict.fromkeys(reference["model"])),
        "grammar": in_order(cells["grammar"]),
    }
    cells = cells.sort_values([*orders], key=lambda names: pd.Categorical(names, orders[str(names.name)]).codes)
    return cells[COLUMNS].reset_index(drop=True)


def with_verdicts(cells: pd.DataFrame, verdicts: Sequence[str]) -> pd.DataFrame:
    """Add verdicts and `by_design` to cells of `with_distance`; only compared cells keep their equivalence."""
    cells = cells.assign(verdict=list(verdicts))
    known = cells["verdict"].isin(COMPARED)
    accuracy = cells["measure"].eq("accuracy") & cells["role"].isin(["sender", "receiver"])
    by_design = known & accuracy & cells["grammar"].isin(BY_DESIGN)
    return cells.assign(by_design=by_design, equivalence=cells["equivalence"].where(known & ~by_design, ""))


def _summarize_cells(long: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard error and counts of every cell; a pair has a cell for each measure."""
    pairs = long["role"].eq("pair")
    alone = long[~pairs].assign(model=long["model"].str.replace(r"^\w+/", "", regex=True))
    names = [name for name in theirs["measure"].unique() if name in long]
    tall = long[pairs].drop(columns=["measure", "value"])
    columns = [*CELL[:-1], "failed", "censored", "cap"]
    both = pd.concat([alone[[*columns, "measure", "value"]], tall.melt(columns, names, "measure", "value")])
    both["value"] = both["value"].where(~both["failed"].astype(bool))
    groups = both.groupby(CELL, sort=False)
    found = groups["value"].agg(["mean", "sem", "count"]).set_axis(MEASURED, axis=1)
    counts = groups[["failed", "censored"]].sum().assign(tried=groups.size(), cap=groups["cap"].max())
    row = [name for name in CELL if name != "grammar"]
    counts["row_tried"] = counts.groupby(row, sort=False)["tried"].transform("max")
    return found.join(counts).reset_index()


def verdict_of(cell: Series) -> str:
    """Return the verdict on one cell (a row of `judge_cells` without a verdict); see `judge_cells`."""
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
    ours = both_censored(cell["icy"], cell["seeds"], cell["censored"], math.inf)
    cap = cell["icy"] if ours else cell["cap"]
    return ours, bool(cell["published"] >= cap - CAP_SLACK)


def judge_runs(
    cells: pd.DataFrame, runs: Sequence[pd.DataFrame], verdict: Callable[[Series], str] = verdict_of
) -> pd.DataFrame:
    """Return a verdict on each published cell from the runs of this cell; see `judge_cells`.

    Args:
        cells: rows of `icy.analysis.published`, with the columns of CELL. A cell without a side belongs to a pair; a
            cell without a hidden size has the papers' usual size.
        runs: the runs of each cell, with the columns `value`, `failed`, and `cut` if runs may be cut.
        verdict: function that returns the verdict on a cell, such as `verdict_of`.

    Returns:
        The table of `judge_cells`.
    """
    usual = {name: value for name, value in (("role", "pair"), ("hidden_size", USUAL_SIZE)) if name not in cells}
    found = [_summary(one) for one in runs]
    counts = {name: [one[name] for one in found] for name in _summary(None)}
    cells = with_distance(cells.rename(columns=NAMES).assign(**usual, **counts))
    cells = with_verdicts(cells, [verdict(cell) for _, cell in cells.iterrows()])
    return cells[COLUMNS].reset_index(drop=True)


def judge_languages(reference: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Measure the authors' languages, and compare each published cell digit by digit.

    Args:
        reference: rows of `icy.analysis.published`.
        seeds: seeds of the languages, one per language of a grammar.

    Returns:
        A row per row of `reference` with text columns: `representation`, the space; `model`, the search method or the
        meaning of a message; `grammar`; `measure`; `icy` and `published`, in the digits of the paper; and `verdict`,
        "equal" or "differs".
    """
    cells = reference.rename(columns={"search": "model", "meaning": "model", "meanings": "representation"})
    cells = cells.assign(icy=[_of_languages(cell, seeds) for cell in reference.to_dict("records")])
    cells = cells.assign(verdict=np.where(cells["icy"] == cells["printed"], "equal", "differs"))
    columns = ["representation", "model", "grammar", "measure", "icy", "printed", "verdict"]
    return cells[columns].rename(columns={"printed": "published"})


def _of_languages(cell: Row, seeds: Sequence[int]) -> str:
    """Return a message, or the mean of a metric over the seeds with as many decimals as printed."""
    from icy.grammars import cached_language
    from icy.languages.meanings import MeaningSpace
    from icy.metrics import residual_entropy

    sizes = MeaningSpace.of(cell["meanings"]), int(cell["vocab_size"]), int(cell["word_length"])
    languages = [cached_language(cell["grammar"], *sizes, seed, draws="authors") for seed in seeds]
    if cell["measure"] == "message":
        texts = [one.examples().set_index("meaning")["message"][cell["meaning"]] for one in languages]
        return ", ".join(text.replace(" ", "") for text in texts)
    options = {"search": cell["search"], "normalised": bool(cell["normalised"])}
    mean = np.mean([residual_entropy(language, **options).value for language in languages])
    return f"{mean:.{len(cell['printed'].partition('.')[2])}f}"


@dataclass(frozen=True)
class Exactness:
    """Verdict on a table of languages, which the authors' draws give exactly.

    Attributes:
        cells: number of cells.
        differing: names of the cells that are not as printed.
    """

    cells: int
    differing: tuple[str, ...]

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Exactness:
        """Return the verdict on the cells of `judge_languages`."""
        names = cells["model"] + " " + cells["grammar"]
        return cls(len(cells), tuple(names[cells["verdict"].ne("equal")]))

    def __str__(self) -> str:
        if not self.differing:
            return f"All {counted(self.cells, 'cell')} are as printed."
        equal = self.cells - len(self.differing)
        return f"{equal} of {counted(self.cells, 'cell')} are as printed, not {listed(self.differing)}."


def _summary(runs: pd.DataFrame | None) -> dict[str, float]:
    """Return the mean, the standard error and the counts of the runs of a cell."""
    counts = ["seeds", "failed", "tried", "censored"]
    if runs is None or runs.empty:
        return {"icy": math.nan, "icy_error": math.nan, **dict.fromkeys(counts, 0)}
    failed = runs["failed"].astype(bool)
    good = runs[~failed & runs["value"].notna()]
    values = good["value"].astype(float)
    cut = int(good["censored"].sum()) if "censored" in good else 0
    numbers = (len(good), int(failed.sum()), len(runs) if len(good) or failed.any() else 0, cut)
    error = float(values.sem())  # type: ignore[arg-type]
    return {"icy": float(values.mean()), "icy_error": error, **dict(zip(counts, numbers, strict=True))}


@dataclass(frozen=True, repr=False)
class Verdict:
    """Verdict on a table.

    Attributes:
        word: "no difference found" or "difference found" by the tests of `of`; "too few cells" if fewer than five cells
            are decided; "undecided" if none is decided; "no result" if all failed; or "not measured".
        cells: number of cells.
        measured: number of cells that have a result, or that failed.
        by_design: number of measured cells that agree by design. All following attributes leave them out.
        undecided: number of measured cells without a decision, by verdict ("one seed", "cut in both", ...).
        failed: number of measured cells without a result of any seed; they do not agree.
        agree: number of measured cells that agree by Welch's 95 % interval.
        equivalent: number of cells that are equivalent within 20 % (two one-sided tests).
        further: number of cells that are further away than 20 % (one-sided test).
        together: p-value of the distances of all compared cells, if the true means are equal (`combined_p`); NaN if no
            cell is compared.
        mean_difference: mean signed difference of icy from the paper: for ratios and updates the geometric mean of the
            quotients minus 1, else in units of the table; NaN as above.
        relative: whether the mean difference is a fraction.
        mean_difference_p: its p-value, by exchanges of whole rows; NaN with fewer than six rows.
        rows: number of rows with a compared cell.
        difference: median absolute difference from the published values, in units of the table.
        correlation: Spearman's correlation between measured and published means over cells; NaN below three cells.
    """

    word: str
    cells: int
    measured: int
    by_design: int
    undecided: Mapping[str, int]
    failed: int
    agree: int
    equivalent: int
    further: int
    together: float
    mean_difference: float
    relative: bool
    mean_difference_p: float
    rows: int
    difference: float
    correlation: float

    @property
    def decided(self) -> int:
        """Number of measured cells that are compared or failed, without cells that agree by design."""
        return self.measured - self.by_design - sum(self.undecided.values())

    @classmethod
    def of(cls, cells: pd.DataFrame) -> Verdict:
        """Return the verdict on a table from its cells.

        Undecided cells and cells that agree by design do not count. "no difference found" means that at least five
        cells are compared, that none failed, and that neither of two tests is significant at 5 %: of all distances
        together (Fisher 1925, Brown 1975), and of the mean signed difference. Few seeds find few differences, so
        `equivalent` counts the cells that are shown to be near.

        Args:
            cells: cells of `judge_cells`. The cells of a row, which the columns ROW identify, are not independent.
        """
        measured = cells[cells["verdict"].ne("missing")]
        left_out = measured["by_design"].fillna(False).astype(bool)
        counts = measured.loc[~left_out, "verdict"].value_counts()
        known = measured[~left_out & measured["verdict"].isin(COMPARED)]
        undecided = {name: int(counts[name]) for name in UNDECIDED if name in counts}
        failed, rows = int(counts.get("failed", 0)), list(known[list(ROW)].itertuples(index=False, name=None))
        relative = len(known) > 0 and bool(known["measure"].isin(LOG).all())
        gaps = _signed(known, relative)
        mixed = not relative and known["measure"].nunique() > 1  # counts and shares have no mean difference
        mean = float(np.mean(gaps)) if len(known) and not mixed else math.nan
        tests = combined_p(known["p"].to_numpy(float), rows), math.nan if mixed else mean_difference_p(gaps, rows)
        passed = not failed and not any(p < 1 - CONFIDENCE for p in tests)
        found = known if len(known) else measured[measured["verdict"].ne("failed")]
        varies = len(found) > 2 and min(found["icy"].nunique(), found["published"].nunique()) > 1
        return cls(
            word=_word(len(known), failed, sum(undecided.values()), passed),
            cells=len(cells),
            measured=len(measured),
            by_design=int(left_out.sum()),
            undecided=undecided,
            failed=failed,
            agree=int(counts.get("agrees", 0)),
            equivalent=int(known["equivalence"].eq("equivalent").sum()),
            further=int(known["equivalence"].eq("further away").sum()),
            together=tests[0],
            mean_difference=math.expm1(mean) if relative else mean,
            relative=relative,
            mean_difference_p=tests[1],
            rows=len(set(rows)),
            difference=math.nan if mixed else float((found["icy"] - found["published"]).abs().median()),
            correlation=float(scipy.stats.spearmanr(found["icy"], found["published"])[0]) if varies else math.nan,
        )

    def __repr__(self) -> str:
        return str(self)

    @property
    def phrase(self) -> str:
        """`word`, with "so far" if only a part of the table was measured."""
        part = self.word in (SAME, DIFFERENT) and self.decided + self.by_design < self.cells
        return f"{self.word} so far" if part and self.measured < self.cells else self.word

    @property
    def shift(self) -> str:
        """The mean signed difference with its p-value; "-" if no cell is decided, or cells are of several measures."""
        if math.isnan(self.mean_difference):
            return "-"
        size = f"{100 * self.mean_difference:+.1f} %" if self.relative else f"{self.mean_difference:+.4f}"
        if math.isnan(self.mean_difference_p):
            return f"{size} (no test: {counted(self.rows, 'row')})"
        return f"{size} (p {p_text(self.mean_difference_p)}, {self.rows} rows)"

    def __str__(self) -> str:
        if not self.measured:
            return f"Not measured: none of {self.cells} cells."
        about = [f"{self.failed} failed"] if self.failed else []
        about += [f"{self.cells - self.measured} of {self.cells} not measured"] if self.measured < self.cells else []
        part = f" ({', '.join(about)})" if about else ""
        reasons = ", ".join(UNDECIDED[name].format(count) for name, count in self.undecided.items())
        rank = "" if math.isnan(self.correlation) else f", Spearman's correlation over cells {self.correlation:.2f}"
        away = f"median difference {self.difference:.3f}{rank}"
        if math.isnan(self.difference):
            away = "its cells are of several measures" if self.rows else "none gave a result"
        if set(self.undecided) == {DRAWN} and self.word == "undecided":
            return f"Measured: {reasons}{part}."
        if self.word == "undecided":
            return f"Undecided: of {self.measured} cells{part} none is decided: {reasons}; {away}."
        text = f"{self.phrase.capitalize()}: {self.agree} of {self.decided} {'decided ' * bool(reasons)}cells{part} "
        text += "agree by the 95 % interval of the difference"
        if self.rows:
            text += f"; equivalent within {100 * EQUIVALENT:.0f} % are {self.equivalent}, further away {self.further} "
            text += "(one-sided tests)"
        if not math.isnan(self.mean_difference):
            text += f"; mean difference {self.shift}"
        if self.together < 1 - CONFIDENCE:
            text += f"; all together are further away than chance allows (Fisher's p {p_text(self.together)})"
        text += f"; left out: {self.by_design} that agree by design ({LEFT_OUT})" if self.by_design else ""
        text += f"; undecided: {reasons}" if reasons else ""
        return f"{text}; {away}."


def _word(known: int, failed: int, undecided: int, passed: bool) -> str:
    """Return `Verdict.word` from the numbers of cells and the outcome of the tests."""
    if not known:
        return "undecided" if undecided else "no result" if failed else "not measured"
    if known + failed < MIN_CELLS:
        return "too few cells"
    return SAME if passed else DIFFERENT


def _signed(known: pd.DataFrame, relative: bool) -> Values:
    """Return icy's mean minus the paper's for each cell; if `relative`, of logarithms."""
    ours, theirs = (known[name].to_numpy(float) for name in ("icy", "published"))
    if relative:
        ours, theirs = (np.log(np.maximum(one, LEAST_RATIO)) for one in (ours, theirs))
    return np.where(np.abs(ours - theirs) < LEAST_SPREAD, 0.0, ours - theirs)


def combined_p(p: Sequence[float] | Values, rows: Sequence[Hashable]) -> float:
    """Combine the p-values of cells, where cells in a row are correlated because they share a run of concat.

    This is Fisher's combination with the variance of correlated tests (Brown 1975, "A Method for Combining
    Non-Independent, One-Sided Tests of Significance"), here for two-sided tests of distances with correlation 1/2. It
    is 1/2 if concat varies as much as the other grammars; in the tables measured so far it is 0.06 to 0.46.

    Args:
        p: p-value of each cell.
        rows: row of each cell.

    Returns:
        The p-value; NaN without cells.

    Example:
        >>> [round(combined_p([0.1] * 6, rows), 3) for rows in (range(6), [0] * 6)]
        [0.006, 0.038]
    """
    if not len(p):
        return math.nan
    pairs = sum(size * (size - 1) for size in Counter(rows).values())
    mean, variance = 2.0 * len(p), 4.0 * len(p) + pairs * FISHER_COVARIANCE
    statistic = -2 * np.log(np.maximum(p, np.finfo(float).tiny)).sum()
    return float(scipy.special.chdtrc(2 * mean**2 / variance, statistic * 2 * mean / variance))


def mean_difference_p(differences: Sequence[float] | Values, rows: Sequence[Hashable]) -> float:
    """Return the two-sided p-value of a mean signed difference, by exchanges of whole rows.

    If two tables measure the same thing, each row may be exchanged for the row of the other table, which changes the
    sign of all its differences. All exchanges are counted, or EXCHANGES random ones if there are more than 12 rows.

    Args:
        differences: signed difference of each cell between the two tables, such as a log ratio.
        rows: row of each cell.

    Returns:
        The p-value; NaN with fewer than six rows, which cannot be significant at 5 %.

    Example:
        >>> mean_difference_p([1, 2, 1, 3, 1, 2], "abcdef")
        0.03125
    """
    sums = np.bincount(pd.factorize(pd.Series(list(rows)))[0], differences)
    if len(sums) < LEAST_ROWS:
        return math.nan
    exact = len(sums) <= MOST_ENUMERATED
    signs = (
        np.array(list(itertools.product((1.0, -1.0), repeat=len(sums))))
        if exact
        else stream(0, "exchanges of rows").choice([1.0, -1.0], (EXCHANGES, len(sums)))
    )
    as_far = np.abs(signs @ sums) >= abs(sums.sum()) - LEAST_SPREAD
    return float(as_far.mean() if exact else (as_far.sum() + 1) / (EXCHANGES + 1))


def model_name(model: str, hidden: int) -> str:
    """Return the name of a model in a table, with its hidden size unless it is the papers' usual size."""
    return model if hidden == USUAL_SIZE else f"{model}, E={hidden}"


def cells_as_text(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells as text: model, grammar, icy, seeds, published, distance, verdict and equivalence."""
    several = cells["measure"].nunique() > 1
    rows = []
    for cell in cells.to_dict("records"):
        style = DECIMALS.get(cell["measure"], (3, ""))
        away, bound = cell["distance"], cell.get("bound", math.nan)
        theirs = number(cell["published"], cell["published_error"], *style)
        if pd.notna(bound):  # the run was stopped early
            theirs = f">{bound:,.0f}"
        elif math.isnan(cell["published"]):  # the paper only plots the number
            theirs = "-"
        rows.append(
            {
                "model": model_name(cell["model"], cell["hidden_size"]),
                "grammar": cell["grammar"],
                **({"measure": cell["measure"]} if several else {}),
                "icy": number(cell["icy"], cell["icy_error"], *style) + CUT * (cell["censored"] > 0)
                if cell["seeds"]
                else "-",
                "seeds": str(cell["seeds"]),
                "published": theirs,
                "distance": "-" if math.isnan(away) else f"{round(away, 1) + 0.0:+.1f}",
                "verdict": cell["verdict"],
                "within 20 %": "left out" if cell["by_design"] else cell["equivalence"] or "-",
            }
        )
    return pd.DataFrame(rows)
