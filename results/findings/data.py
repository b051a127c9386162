"""Data for the findings, from the atlas: runs and means of models under one setting, and intervals over cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy

import icy
from icy.analysis import style
from icy.analysis.correlations import AcrossModels, across_models
from icy.analysis.mixed import mixed_effects
from icy.analysis.statistics import student
from icy.analysis.table_cells import LEAST_RATIO
from icy.core.text import listed

LARGE, SMALL = "5x10", "3x4"  # the papers' space, and that of `icy probe --quick`
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum", "hol")
FAMILIES = {
    "fully connected": ("FC",),
    "convolution": ("CNN",),
    "recurrent": ("RNNZero", "RNNAutoReg", "RNN"),
    "hierarchical": ("HierZero", "HierAutoReg", "Hier"),
    "attention": ("Transformer", "TransDecSoft"),
}
HIERARCHIES = (("HierZero", "RNNZero"), ("HierAutoReg", "RNNAutoReg"), ("Hier", "RNN1L"))  # with and without hierarchy
ARCHITECTURES = ("RNNZero", "RNNAutoReg", "HierZero", "HierAutoReg")
CELLS = ("RNN", "GRU", "LSTM", "dgsend")
SEQUENCE = ("recurrent", "hierarchical")  # families that take a message token by token
SIDES = ("sender", "receiver")
MOST_CUT = 0.2  # with a larger share of models with cut runs, ranks on a grammar are mostly ties at the cap
FEW = 8  # least number of models for a correlation over models
NAMES = {"log": "ratio", "updates": "updates", "value": "accuracy"}  # names of columns
MOST_CENSORED = 1 / 3  # largest share of cut runs for a mixed model
LISTED = 3  # up to this many models, values are printed instead of an interval


def probes(meanings: str = LARGE, representation: str = "soft", protocol: str = "acquire") -> pd.DataFrame:
    """Return the atlas's runs of gradient-trained models with default settings and complete seeds.

    Models with missing seeds are left out: these seeds failed, so the mean of the others would be biased.
    """
    long = icy.atlas().to_dataframe()
    setting = {"representation": representation, "meanings": meanings, "protocol": protocol}
    same = np.logical_and.reduce([long[name].eq(value) for name, value in setting.items()])
    usual = long["settings"].fillna("").eq("") & ~long["failed"].astype(bool) & long["parameters"].gt(0)
    good = long[same & usual]
    seeds = good.groupby("model")["seed"].transform("nunique")
    return with_logs(good[seeds.eq(good["seed"].nunique())])


def with_logs(long: pd.DataFrame) -> pd.DataFrame:
    """Add the logarithms of the ratio to concat's updates (`log`) and of the updates (`updates`).

    A cut run has the number of updates at which it was cut.
    """
    steps = long["crossing"].fillna(long["steps"]).astype(float)
    ratio = long["value"].where(long["measure"].eq("ratio"), steps / long["baseline_crossing"])
    return long.assign(log=np.log(ratio.clip(lower=LEAST_RATIO)), updates=np.log(steps.clip(lower=1)))


def family_of(model: str) -> str:
    """Return the family of a model, a key of FAMILIES."""
    name = style.family(model)
    return next(family for family, names in FAMILIES.items() if name in names)


def cluster_of(model: str) -> str:
    """Return the cluster of a model: its cell, or its family if it has no cell.

    Models of a cluster do not count as independent.
    """
    return style.cell(model) or family_of(model)


@dataclass(frozen=True)
class Table:
    """Means over seeds: a row per model that has all grammars, a column per grammar.

    Attributes:
        values: logarithms of ratios or updates, or accuracies.
        cut: for each cell of `values`, whether any run was cut at the cap, so that the true mean is larger.
        runs: runs in long form, also of other models.
        column: column of `runs` with the values.
    """

    values: pd.DataFrame
    cut: pd.DataFrame
    runs: pd.DataFrame
    column: str = "log"

    @classmethod
    def of(cls, long: pd.DataFrame, column: str = "log", grammars: Sequence[str] = GRAMMARS) -> Table:
        """Make the table of runs in long form; `column` is "log" (ratios), "updates" or "value" (accuracies)."""
        values = long.pivot_table(index="model", columns="grammar", values=column)[list(grammars)].dropna()
        cut = long.assign(cut=long["censored"].astype(float)).pivot_table(
            index="model", columns="grammar", values="cut"
        )
        return cls(values, cut.loc[values.index, list(grammars)].gt(0) & (column != "value"), long, column)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return [str(name) for name in self.values.index]

    def only(self, models: Sequence[str]) -> Table:
        """Return the table of the named models; models without a row are ignored."""
        names = [name for name in self.models if name in set(models)]
        return replace(self, values=self.values.loc[names], cut=self.cut.loc[names])

    def side(self, side: str) -> Table:
        """Return the table of senders, or of receivers."""
        return self.only([name for name in self.models if name.startswith(f"{side}/")])

    def families(self, *families: str) -> Table:
        """Return the table of the models of the named families."""
        return self.only([name for name in self.models if family_of(name) in families])

    def clusters(self) -> pd.Series[str]:
        """Return the cluster of each model."""
        return pd.Series([cluster_of(name) for name in self.models], self.models)

    def seeds(self, grammar: str) -> pd.DataFrame:
        """Return the values on a grammar: a row per model, a column per seed."""
        of = self.runs[self.runs["grammar"].eq(grammar) & self.runs["model"].isin(self.models)]
        return of.pivot_table(index="model", columns="seed", values=self.column)

    def has_order(self, grammar: str) -> bool:
        """Return whether the order of models on a grammar is known: at most MOST_CUT of them have cut runs."""
        return len(self) > 0 and float(self.cut[grammar].mean()) <= MOST_CUT


@dataclass(frozen=True)
class Estimate:
    """A mean over models with its 95 % interval, a bound of the mean, or a list of values.

    Attributes:
        text: text for tables.
        low: lower end of the interval; NaN if unknown.
        high: upper end.
        p: p-value of a mean of 1 of ratios (0 of differences), two-sided, with cells as clusters; of a bound, with cut
            runs at their cut. NaN if unknown.
        mean: the mean; NaN if only a bound or a list is known.
        values: values of the models.
        bounds: whether each of `values` is only a bound.
    """

    text: str = ""
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    mean: float = np.nan
    values: tuple[float, ...] = ()
    bounds: tuple[bool, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def worded(self) -> str:
        """Text for a sentence."""
        return self.text.replace("> ", "more than ").replace("< ", "less than ")


def number(value: float, sign: str = "") -> str:
    """Format a number with two decimals, with one from 10 on, and with none from 100 on."""
    return f"{value:{sign},.{2 if value < 10 else 1 if value < 100 and value % 1 else 0}f}"


def over_cells(values: pd.Series[float]) -> tuple[float, float, float]:
    """Return the mean of models' values and its 95 % interval, with cells as clusters.

    The interval is by Student's t over the means of cells, so models that share a cell do not count as independent.

    Args:
        values: values, indexed by names of models.
    """
    means = values.groupby([cluster_of(str(name)) for name in values.index]).mean().to_numpy(float)
    half = student(len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return float(means.mean()), float(means.mean() - half), float(means.mean() + half)


def mean_of(table: Table, grammar: str, log: bool = True) -> Estimate:
    """Return the geometric mean of models' ratios or updates, or the mean of their accuracies; see `estimate`."""
    return estimate(table.values[grammar], table.cut[grammar].astype(int), log)


def mixed_of(table: Table, grammar: str) -> Estimate:
    """Return the geometric mean of models' ratios by a mixed model, with cut runs censored.

    Cell, architecture, model and seed (which determines the language) are random effects, if they have several levels.
    The mean is unknown if more than MOST_CENSORED of the runs were cut.
    """
    runs = table.runs[table.runs["grammar"].eq(grammar) & table.runs["model"].isin(table.models)]
    if runs["censored"].mean() > MOST_CENSORED:
        return Estimate("-")
    parts = runs.assign(cell=runs["model"].map(cluster_of), architecture=runs["model"].str.partition(":")[0])
    effects = [name for name in ("cell", "architecture", "model", "seed") if parts[name].nunique() > 1]
    found = mixed_effects(parts, effects).means
    mean, low, high = (float(found[name].iloc[0]) for name in ("mean", "low", "high"))
    return Estimate(f"{number(mean)} ({number(low)} to {number(high)})", low, high, mean=mean)


def quotient_of(
    ours: Table, theirs: Table, grammar: str, names: Sequence[tuple[str, str]] | None = None, log: bool = True
) -> Estimate:
    """Return the mean of quotients of ratios or updates, or of differences of accuracies, model by model.

    Pairs in which both models were cut are left out; the text then has the number of remaining pairs.

    Args:
        ours: numerators.
        theirs: denominators.
        grammar: grammar of the values.
        names: the models of each pair; by default the models of both tables.
        log: whether the values are logarithms.
    """
    pairs = names or [(name, name) for name in ours.models if name in set(theirs.models)]
    (a, b), index = zip(*pairs, strict=True), [one for one, _ in pairs]
    values = ours.values.loc[list(a), grammar].to_numpy() - theirs.values.loc[list(b), grammar].to_numpy()
    cut, their_cut = (t.cut.loc[list(of), grammar].to_numpy(int) for t, of in ((ours, a), (theirs, b)))
    known = cut + their_cut < 2
    gaps, ways = pd.Series(values, index)[known], pd.Series(cut - their_cut, index)[known]
    found = estimate(gaps, ways, log, "" if log else "+")
    few = "" if known.all() or found.text == "-" else f", {known.sum()} of {len(known)}"
    return replace(found, text=found.text + few)


def estimate(values: pd.Series[float], ways: pd.Series[int], log: bool = True, sign: str = "") -> Estimate:
    """Return the mean of models' values with its 95 % interval.

    Values of up to LISTED models are listed, with a dagger if runs were cut. If some true values are larger, the
    estimate is a lower bound: the lower end of the interval without correction. If some are smaller, it is an upper
    bound.

    Args:
        values: values of models, indexed by their names; logarithms if `log`.
        ways: for each value, 1 if the true value is larger, -1 if it is smaller, 0 if the value is exact.
        log: whether to exponentiate the mean.
        sign: "+" to print signs.
    """
    back: Callable[[float], float] = math.exp if log else float

    def text(value: float) -> str:
        return number(value, sign)

    each = {"values": tuple(map(back, values)), "bounds": tuple(way != 0 for way in ways)}
    if len(values) <= LISTED:
        pairs = zip(*each.values(), strict=True)
        return Estimate(listed([f"{text(value)}{'†' if bound else ''}" for value, bound in pairs]) or "-", **each)
    mean, low, high = over_cells(values)
    freedom = values.groupby([cluster_of(str(name)) for name in values.index]).ngroups - 1
    error = (high - low) / 2 / student(freedom) if freedom else np.nan
    p = 2 * float(scipy.stats.t.sf(abs(mean) / error, freedom)) if error else np.nan
    mean, low, high = map(back, (mean, low, high))
    if 1 in set(ways) and -1 in set(ways):
        return Estimate("-", **each)
    if 1 in set(ways):
        return Estimate(f"> {text(low)}", low, np.inf, p, **each)
    if -1 in set(ways):
        return Estimate(f"< {text(high)}", -np.inf, high, p, **each)
    return Estimate(f"{text(mean)} ({text(low)} to {text(high)})", low, high, p, mean, **each)


def across(one: Table, other: Table, grammar: str, other_grammar: str | None = None) -> AcrossModels | None:
    """Return the correlation across seeds over common models; None if models are too few, or too many were cut.

    Args:
        one: first measure.
        other: second measure.
        grammar: grammar of the first measure.
        other_grammar: grammar of the second measure, if it is different.
    """
    other_grammar, both = other_grammar or grammar, [name for name in one.models if name in set(other.models)]
    a, b = one.only(both), other.only(both)
    if len(both) < FEW or not (a.has_order(grammar) and b.has_order(other_grammar)):
        return None
    return across_models(a.seeds(grammar), b.seeds(other_grammar), cluster_of)


def correlation_text(correlation: AcrossModels | None) -> str:
    """Return a correlation with its interval, and after a semicolon the disattenuated correlation if it is known."""
    if correlation is None:
        return "-"
    pure = correlation.disattenuated
    return f"{correlation.correlation}" + (f"; {pure.value:+.2f}" if np.isfinite(pure.low) else "")
