"""Comparison of two results, run by run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import pandas as pd

from icy.analysis.row_types import Facts, Series
from icy.analysis.statistics import CONFIDENCE, Paired, log_summary
from icy.config.protocols import BASELINE
from icy.core.errors import IncompatibleError
from icy.core.text import counted, listed, markdown_table
from icy.records.load import Results, long_of

from .by_setting import whole_text
from .paired import compare_pairs, corrected, paired_differences, split_cells

LEVEL = 1 - CONFIDENCE  # significance level of corrected p-values
MOST_SEEDS = 6  # with more, only the number of positive and negative differences is shown
NAMES = ("first", "second")
NUMBERS = [
    *("first", "second", "effect", "bound", "low", "high"),
    *("test", "p", "p_holm", "pairs", "one_censored", "both_censored"),
]
RUN = (
    "first",
    "second",
    "difference",
    "first_cut",
    "second_cut",
)  # columns of `runs` after the columns that identify the run


@dataclass(frozen=True)
class ResultsComparison:
    """Comparison of two results, run by run and cell by cell.

    Attributes:
        names: names of the two results.
        cells: a row per model, setting and grammar. `first`, `second`: means of the two (geometric means of ratios).
            `effect`: the quotient second / first of geometric means of ratios, else the mean difference second -
            first; only a bound of it if `bound` is "<" or ">". `low`, `high`: its 95 % interval. `test`, its `p`, and
            `p_holm`, corrected by Holm's method over all cells of one protocol and measure. `pairs`: number of pairs
            of runs. `one_censored`, `both_censored`: number of pairs with one run cut at the cap, and with two.
            `identical`: number of pairs that are equal to the last digit.
        runs: a row per pair of runs of one seed: their values, `first` and `second`, and the `difference`.
        lone: number of runs of each result for which the other result has no finished run.
        training: settings of training in which the two differ.
    """

    names: tuple[str, str]
    cells: pd.DataFrame
    runs: pd.DataFrame
    lone: tuple[int, int]
    training: tuple[str, ...] = ()

    @property
    def identical(self) -> int:
        """Number of pairs of runs with values equal to the last digit."""
        return int(self.cells["identical"].sum())

    def said(self) -> list[str]:
        """Return sentences that summarize the comparison."""
        first, second = self.names
        count = len(self.runs)
        equal = "all equal" if self.identical == count else f"{self.identical} equal"
        found = [f"{counted(count, 'pair')} of runs of one setting, grammar and seed, {equal} to the last digit."]
        if any(self.lone):
            alone = listed([f"{n} of {name}" for n, name in zip(self.lone, self.names, strict=True) if n])
            found.append(f"Runs without a counterpart that finished without failure: {alone}.")
        if self.training:
            found.append(f"Their training differs in {listed(self.training)}.")
        tests = self.cells[self.cells["p_holm"].notna()]
        if len(tests):
            significant = tests[tests["p_holm"] < LEVEL]
            larger = int((significant["effect"] > significant["measure"].eq("ratio")).sum())
            found.append(
                f"Of {counted(len(tests), 'tested cell')}, {larger} are larger in {second} than in {first} and "
                f"{len(significant) - larger} smaller, at {LEVEL:.0%} after Holm's correction for these cells; "
                "intervals are not corrected."
            )
        return found

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of a printed table, a row per cell."""
        about = identifying_columns(self.cells)
        heads = [*about, *self.names, "second / first" if self._all_ratios() else "difference", "95 %", "by seed", "p"]
        if "difference" in heads and (self.cells["measure"] == "ratio").any():
            heads[heads.index("difference")] = "difference, or quotient (×)"
        seeds: dict[Hashable, pd.DataFrame] = dict(iter(self.runs.groupby("cell")))
        lines = [
            [*("-" if pd.isna(cell[name]) else whole_text(cell[name]) for name in about), *_line(cell, seeds[place])]
            for place, cell in self.cells.reset_index(drop=True).iterrows()
        ]
        return heads, lines

    def _all_ratios(self) -> bool:
        return bool((self.cells["measure"] == "ratio").all())

    def markdown(self) -> str:
        """Return the comparison as Markdown, for a pull request or an appendix."""
        first, second = self.names
        return "\n".join(
            [
                f"**{second} against {first}**",
                "",
                *(f"- {line}" for line in self.said()),
                "",
                markdown_table(*self.rows()),
            ]
        )

    def __repr__(self) -> str:
        return "\n".join(self.said())


def compare(
    first: Results, second: Results, names: tuple[str, str] = NAMES, apart: Sequence[str] = ()
) -> ResultsComparison:
    """Compare two results, run by run.

    Runs match in model, sizes, protocol, grammar, seed and kind of job; if several match, also in their training.
    Ratios are compared by their logarithms, accuracies as they are (`icy.analysis.statistics.paired`). The ratio of
    concat, 1 by definition, is left out.

    Args:
        first: the reference: a ProbeResult, a long table, or a results folder or file.
        second: the results to compare with the reference, in any of these forms.
        names: names of the two in texts and tables.
        apart: columns of the long table in which matching runs may differ, such as "representation".

    Returns:
        The comparison. `cells` has a row per model, setting and grammar, with the effect, its 95 % interval and its
        p-value; `runs` has a row per pair of runs.

    Raises:
        IncompatibleError: no run of one has a match in the other, or only runs of concat have.
        InvalidSettingError: several rows of the first match one of the second.
        StoreError: a folder or file holds no results.

    Example:
        >>> import pandas as pd
        >>> rows = [("sender/A", "rot", seed, value) for seed, value in enumerate([0.5, 0.6, 0.7])]
        >>> long = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value"]).assign(measure="accuracy")
        >>> compare(long, long.assign(value=long["value"] + 0.1)).cells[["model", "grammar", "effect"]].values.tolist()
        [['sender/A', 'rot', 0.1]]
    """
    one, other = long_of(first), long_of(second)
    both, training, lone, _ = paired_differences(other, one, names[0], apart)
    tested = both[both["measure"].ne("ratio") | both["grammar"].ne(BASELINE)]
    if not len(tested):
        raise IncompatibleError("The two results share only concat, and its ratio is 1 by definition.")
    cells, runs = [], []
    for place, (about, part) in enumerate(split_cells(tested)):
        cells.append({**about, **_numbers(part)})
        runs.append(_runs(part, about, place))
    table = pd.DataFrame(cells)
    table = table.assign(p_holm=corrected(table))
    good = int((~one["failed"].astype(bool) & one["value"].notna()).sum())
    columns = [name for name in table if name not in (*NUMBERS, "identical")]
    return ResultsComparison(
        names,
        table[[*columns, *NUMBERS, "identical"]],
        pd.concat(runs, ignore_index=True),
        (max(0, good - len(both)), lone),
        tuple(dict.fromkeys(name for differ in training for name in differ if name not in apart)),
    )


def _numbers(part: pd.DataFrame) -> Facts:
    """Return the effect, the test and the means of one cell."""
    found = compare_pairs(part)
    low, high = found.interval
    names = ("bound", "pairs", "one_censored", "both_censored", "test", "p")
    return {
        **{name: getattr(found, name) for name in names},
        "effect": round(found.effect, 12),
        "first": _center(part["theirs"], found),
        "second": _center(part["ours"], found),
        "low": low,
        "high": high,
        "identical": int((part["ours"] == part["theirs"]).sum()),
    }


def _center(values: pd.Series[float], found: Paired) -> float:
    """Return the mean of values; for ratios, the geometric mean."""
    return log_summary(values.to_list(), [False] * len(values)).center if found.log else float(values.mean())


def _runs(part: pd.DataFrame, about: Facts, place: int) -> pd.DataFrame:
    found = part[[*about, "seed"]].assign(
        cell=place, first=part["theirs"], second=part["ours"], difference=part["value"],
        first_cut=part["their_censored"], second_cut=part["our_censored"],
    )  # fmt: skip
    return found.sort_values("seed", kind="stable")


def identifying_columns(cells: pd.DataFrame) -> list[str]:
    """Return the columns that identify cells: model, grammar, and further columns that vary."""
    about = [str(name) for name in cells if name not in (*NUMBERS, "identical", "measure")]
    return [name for name in about if name in ("model", "grammar") or cells[name].nunique(dropna=False) > 1]


# -- for readers -------------------------------------------------------------------------------------------------------


def _line(cell: Series, runs: pd.DataFrame) -> list[str]:
    ratio = cell["measure"] == "ratio"
    ends = " to ".join(effect_text(cell[name], ratio) for name in ("low", "high"))
    interval = "" if pd.isna(cell["low"]) or cell["test"] != "t" else ends
    p: str = "" if pd.isna(cell["p_holm"]) else f"{cell['p_holm']:.2g}"
    effect: str = "" if pd.isna(cell["effect"]) else f"{cell['bound']} {effect_text(cell['effect'], ratio)}".strip()
    cuts = [runs[name].any() for name in ("first_cut", "second_cut")]
    means = [f"{cell[name]:.3f}{'†' if cut else ''}" for name, cut in zip(NAMES, cuts, strict=True)]
    return [*means, effect, interval, _by_seed(runs, ratio), p]


def _by_seed(runs: pd.DataFrame, ratio: bool) -> str:
    """Return the difference of each seed; with many seeds, the number of positive and negative differences."""
    gaps = runs["second"] / runs["first"] if ratio else runs["difference"]
    if len(gaps) <= MOST_SEEDS:
        return " ".join(effect_text(one, ratio) for one in gaps)
    middle = 1.0 if ratio else 0.0
    return f"{(gaps > middle).sum()} up, {(gaps < middle).sum()} down, {(gaps == middle).sum()} equal"


def effect_text(value: float, ratio: bool) -> str:
    """Return a quotient of ratios or a difference as text, as in "×1.20" and "+0.050"."""
    if ratio:
        return f"×{value:.2f}" if value < 1000 else f"×{value:.0e}"
    return f"{value + 0.0:+.3f}"
