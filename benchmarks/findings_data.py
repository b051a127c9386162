"""The atlas as findings.py reads it: one setting at a time, means over seeds by model and grammar, and what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

import icy
from icy.analysis import style
from icy.analysis.cells import LEAST_RATIO
from icy.analysis.statistics import LogSummary, RankCorrelation, log_summary, paired, rank_correlation, student
from icy.analysis.tables.differences import LEVEL

LARGE, SMALL = "5x10", "3x4"  # the papers' space, and that of `icy probe --quick`
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum", "hol")
FAMILIES = {
    "fully connected": ("FC",),
    "convolution": ("CNN",),
    "recurrent": ("RNNZero", "RNNAutoReg", "RNN"),
    "hierarchical (HU-RNN)": ("HierZero", "HierAutoReg", "Hier"),
    "attention": ("Transformer", "TransDecSoft"),
}
HIERARCHIES = (("HierZero", "RNNZero"), ("HierAutoReg", "RNNAutoReg"), ("Hier", "RNN1L"))  # with one, and without
ARCHITECTURES = ("RNNZero", "RNNZero2L", "RNNAutoReg", "RNNAutoReg2L", "HierZero", "HierAutoReg")
CELLS = ("RNN", "GRU", "LSTM", "dgsend")
SEQUENCE = ("recurrent", "hierarchical (HU-RNN)")  # families that take a message token by token
SIDES = ("sender", "receiver")
MOST_CUT = 0.2  # share of models with a cut run above which ranks on a grammar are mostly ties at the cap
FEW = 8  # models, below which a correlation over them says nothing
KNOWN = 3  # models, at least, that were not cut, and half of all, for a mean of some that were; else it is a bound


def probes(meanings: str = LARGE, representation: str = "soft", protocol: str = "acquire") -> pd.DataFrame:
    """Return the atlas's results of models that learn by gradient, trained by default, with all seeds.

    A model that has a result of fewer seeds is left out: the others failed, so that its mean is of those that did not.
    """
    long = icy.atlas().to_dataframe()
    asked = {"representation": representation, "meanings": meanings, "protocol": protocol}
    same = np.logical_and.reduce([long[name].eq(value) for name, value in asked.items()])
    usual = long["settings"].fillna("").eq("") & ~long["failed"].astype(bool) & long["parameters"].gt(0)
    good = long[same & usual]
    seeds = good.groupby("model")["seed"].transform("nunique")
    return good[seeds.eq(good["seed"].nunique())].assign(log=np.log(good["value"].clip(lower=LEAST_RATIO)))


def family_of(model: str) -> str:
    """Return the family of a model, a key of FAMILIES."""
    name = style.family(model)
    return next(family for family, names in FAMILIES.items() if name in names)


@dataclass(frozen=True)
class Table:
    """Means over seeds: a row per model that has all grammars, a column per grammar.

    Attributes:
        values: of ratios their logarithms, else accuracies.
        cut: whether any of the runs was cut at the cap, so that the mean is larger in truth.
    """

    values: pd.DataFrame
    cut: pd.DataFrame

    @classmethod
    def of(cls, long: pd.DataFrame, column: str = "log", grammars: Sequence[str] = GRAMMARS) -> Table:
        """Make the table of some results: of ratios by the column `log`, of accuracies by `value`."""
        if not set(grammars) <= set(long["grammar"]):
            return cls(*(pd.DataFrame(columns=list(grammars), dtype=kind) for kind in (float, bool)))
        values = long.pivot_table(index="model", columns="grammar", values=column)[list(grammars)].dropna()
        cut = long.assign(cut=long["cut"].astype(float)).pivot_table(index="model", columns="grammar", values="cut")
        return cls(values, cut.loc[values.index, list(grammars)].gt(0) & (column == "log"))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def models(self) -> list[str]:
        """Names of its models."""
        return [str(name) for name in self.values.index]

    def only(self, models: Sequence[str]) -> Table:
        """Return the rows of some models that are there."""
        kept = [name for name in self.models if name in set(models)]
        return Table(self.values.loc[kept], self.cut.loc[kept])

    def side(self, side: str) -> Table:
        """Return the rows of senders, or of receivers."""
        return self.only([name for name in self.models if name.startswith(f"{side}/")])

    def families(self, *families: str) -> Table:
        """Return the rows of models of some families."""
        return self.only([name for name in self.models if family_of(name) in families])

    def tells(self, grammar: str) -> bool:
        """Return whether so few models were cut on a grammar that their order is known."""
        return len(self) > 0 and float(self.cut[grammar].mean()) <= MOST_CUT


@dataclass(frozen=True)
class Estimate:
    """A mean over models with its 95 % interval, or what is known in its place.

    Attributes:
        text: as printed.
        low: lower end; NaN if unknown.
        high: upper end.
    """

    text: str
    low: float = np.nan
    high: float = np.nan

    def __str__(self) -> str:
        return self.text


def ratio_of(table: Table, grammar: str) -> Estimate:
    """Return the geometric mean of models' ratios, in which those that were cut count as larger (Tobit).

    Of one or two models the values stand there, with a dagger if they were cut. Where half of them or more were cut,
    it is a lower bound.
    """
    ratios, cut = np.exp(table.values[grammar].to_numpy(float)), table.cut[grammar].to_numpy(bool)
    if len(ratios) < 3:
        pairs = sorted(zip(ratios, cut, strict=True))
        text = " and ".join(f"{ratio:.2f}{'†' if was_cut else ''}" for ratio, was_cut in pairs)
        return Estimate(text or "-", *((ratios.min(), np.inf if cut.any() else ratios.max()) if pairs else ()))
    if cut.any() and (~cut).sum() < max(KNOWN, len(cut) / 2):
        bound = LogSummary(float(np.exp(np.log(ratios).mean())), bound=">")
        return Estimate(bound.text(2), bound.centre, np.inf)
    found = log_summary(ratios, cut)
    return Estimate(f"{found.centre:.2f} ({_between(*found.interval)})", *found.interval)


def quotient_of(ours: Table, theirs: Table, grammar: str, names: Sequence[tuple[str, str]] | None = None) -> Estimate:
    """Return the geometric mean of quotients of ratios, model by model, as `icy compare` takes them.

    Where both were cut a pair says nothing, and where one was, only a bound is known.

    Args:
        ours: the ratios that are divided.
        theirs: by those.
        grammar: on which.
        names: the models of each pair; by default those that both have.
    """
    pairs = names or [(name, name) for name in ours.models if name in set(theirs.models)]
    columns = [
        (table.values.loc[list(of), grammar].to_numpy(float), table.cut.loc[list(of), grammar].to_numpy(bool))
        for table, of in zip((ours, theirs), zip(*pairs, strict=True), strict=True)
    ] if pairs else []  # fmt: skip
    if not columns:
        return Estimate("-")
    (a, a_cut), (b, b_cut) = columns
    found = paired(np.exp(a), np.exp(b), a_cut, b_cut, log=True)
    if np.isnan(found.effect):
        return Estimate("-")
    if found.bound:
        ends = {">": (found.effect, np.inf), "<": (0.0, found.effect)}[found.bound]
        return Estimate(f"{found.bound} {found.effect:.2f}", *(ends if found.p < LEVEL else ()))
    low, high = found.interval
    if found.told < 3 or not np.isfinite(low):
        return Estimate(f"{found.effect:.2f}")
    return Estimate(f"{found.effect:.2f} ({_between(low, high)})", low, high)


def mean_of(values: Sequence[float], sign: str = "") -> Estimate:
    """Return the mean of accuracies or of their differences; of one or two models their values."""
    found = np.asarray(values, float)
    if len(found) < 3:
        return Estimate(" and ".join(f"{value:{sign}.2f}" for value in sorted(found)) or "-")
    middle, low, high = over_models(found)
    return Estimate(f"{middle:{sign}.2f} ({_between(low, high, sign)})", low, high)


def over_models(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of some models' values and its 95 % interval, by Student's t over models."""
    found = np.asarray(values, float)
    mean, half = float(found.mean()), student(len(found) - 1) * float(found.std(ddof=1)) / np.sqrt(len(found))
    return mean, mean - half, mean + half


def correlation_of(one: Table, other: Table, grammar: str, grammar_there: str | None = None) -> RankCorrelation | None:
    """Return Spearman's correlation over the models that both have; None if too few, or too many were cut."""
    there, both = grammar_there or grammar, [name for name in one.models if name in set(other.models)]
    a, b = one.only(both), other.only(both)
    if len(both) < FEW or not (a.tells(grammar) and b.tells(there)):
        return None
    return rank_correlation(a.values[grammar].to_numpy(float), b.values.loc[a.models, there].to_numpy(float))


def shown(found: RankCorrelation | None, models: bool = True) -> str:
    """Return a correlation with its interval, and over how many models it is; "-" for none."""
    if found is None or np.isnan(found.value):
        return "-"
    inside = f", {found.pairs} models" if models else ""
    return f"{found.value:+.2f} ({_between(found.low, found.high, '+')}{inside})"


def _between(low: float, high: float, sign: str = "") -> str:
    return f"{low:{sign}.2f} to {high:{sign}.2f}"
