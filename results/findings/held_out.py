"""The finding on meanings held out of training: does the speed of learning predict generalisation?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd
import scipy

from icy.analysis.correlations import (
    CrossedCorrelations,
    MeanCorrelation,
    MeanInterval,
    RankCorrelation,
    WithinOrder,
    across_models,
    crossed_correlations,
    rank_correlation,
    within_model_order,
)
from icy.analysis.statistics import Interval, holm, student
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.languages.language import Language
from results.findings import pictures
from results.findings.data import MOST_CUT, NAMES, SIDES, Table, cluster_of, mean_of, with_logs
from results.findings.finding import ALPHA, VERDICTS, Claim, Finding, supported, verdict_of

SHOWN, FAILED, UNKNOWN = VERDICTS
MARGIN = 0.3  # correlations over models up to this size count as none
POWER = 0.8
VARIANTS: dict[str, tuple[tuple[str, ...], str]] = {  # grammars that are left out, and the measure
    "all grammars": ((), "value"),
    "without `proj`": (("proj",), "value"),
    "without `proj` and `hol`": (("proj", "hol"), "value"),
    "relative accuracy": ((), "relative"),
}


@dataclass(frozen=True)
class HeldOut:
    """The runs of one side of a sweep with held-out meanings.

    Attributes:
        runs: runs in long form, with the logarithms of ratios (`log`) and updates (`updates`), the held-out accuracy
            (`value`), and the accuracy between chance (0) and the best possible accuracy (1) (`relative`).
    """

    runs: pd.DataFrame

    @classmethod
    def of(cls, result: ProbeResult, side: str) -> HeldOut:
        """Take the runs of a side."""
        long = with_logs(result.to_dataframe())
        long = long[long["side"].eq(side)]
        keys = ("grammar", "meanings", "vocab_size", "word_length", "seed")
        ends = [accuracy_range(side, *of) for of in zip(*(long[key] for key in keys), strict=True)]
        chance, best = np.array(ends).T
        return cls(long.assign(relative=(long["value"] - chance) / (best - chance)))

    @cached_property
    def grammars(self) -> list[str]:
        """All grammars except concat, the easiest first."""
        means = self.runs.groupby("grammar")["log"].mean().drop("concat")
        return [str(name) for name in means.sort_values().index]

    @cached_property
    def ordered(self) -> list[str]:
        """Grammars on which models can be compared: not `hol`, and at most MOST_CUT of the runs were cut."""
        cut = self.runs.groupby("grammar")["cut"].mean()
        return [g for g in self.grammars if g != "hol" and cut[g] <= MOST_CUT]

    def table(self, column: str) -> Table:
        """Return the means over seeds of all grammars and concat."""
        return Table.of(self.runs, column, ["concat", *self.grammars])

    def halves(self, x: str, y: str, left_out: Sequence[str] = ()) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the means of one measure over the first half of the seeds, and of another over the other half."""
        seeds = np.sort(self.runs["seed"].unique())
        first = self.runs["seed"].isin(seeds[: len(seeds) // 2])
        names = [g for g in self.grammars if g not in left_out]
        return tuple(  # type: ignore[return-value]
            self.runs[half].pivot_table(index="model", columns="grammar", values=column)[names]
            for half, column in ((first, x), (~first, y))
        )

    def within(self, variant: str) -> WithinOrder:
        """Correlate ratios and accuracies in each model, over grammars (test 1)."""
        left_out, column = VARIANTS[variant]
        return within_model_order(*self.halves("log", column, left_out), cluster_of)

    def reliability_within(self, column: str) -> WithinOrder:
        """Correlate the two halves of the seeds of one measure in each model, over grammars."""
        return within_model_order(*self.halves(column, column), cluster_of)

    def over_grammars(self) -> RankCorrelation:
        """Correlate the mean ranks that models give to the grammars, with grammars as units (test 1)."""
        x, y = (of.rank(axis=1).mean() for of in self.halves("log", "value"))
        return rank_correlation(x.tolist(), y.tolist())

    def crossed(self, speed: str = "log", uncut: bool = False) -> CrossedCorrelations:
        """Correlate speeds and accuracies over models, in the interaction, and in models (tests 2 to 4)."""
        runs = self.runs[self.runs["grammar"].isin(self.ordered)]
        if uncut:
            runs = runs[~runs.groupby("model")["cut"].transform("any")]
        speeds, accuracies = (
            {g: of.pivot_table(index="model", columns="seed", values=column) for g, of in runs.groupby("grammar")}
            for column in (speed, "value")
        )
        return crossed_correlations(speeds, accuracies, cluster_of)

    def over_models(self, grammar: str) -> str:
        """Return the correlation over models on a grammar, as text; "-" if too many runs were cut."""
        if grammar not in self.ordered:
            return "-"
        log, value = (self.table(column).seeds(grammar) for column in ("log", "value"))
        return str(across_models(log, value, cluster_of).correlation)


@cache
def accuracy_range(
    side: str, grammar: str, meanings: str, vocab_size: int, word_length: int, seed: int
) -> tuple[float, float]:
    """Return the accuracy by chance (of the best constant answer) and the best possible accuracy in a language."""
    language = make_language(grammar, meanings, int(vocab_size), int(word_length), int(seed))
    targets = pd.DataFrame(language.messages if side == "sender" else language.meanings)
    chance = float(np.mean([targets[place].value_counts().max() / len(targets) for place in targets]))
    return chance, 1.0 if side == "sender" else best_accuracy(language)


def best_accuracy(language: Language) -> float:
    """Return the largest possible accuracy of attributes of a receiver that hears this language.

    A message of several meanings leaves their attributes ambiguous; the best answer is the most frequent value.
    """
    messages = pd.Series([tuple(message) for message in language.messages.tolist()])
    attributes = pd.DataFrame(language.meanings)
    return float(attributes.groupby(messages).transform(lambda of: of.eq(of.mode()[0]).mean()).to_numpy().mean())




def cells_needed(mean: MeanInterval) -> int:
    """Return how many cells would show with a power of POWER that a mean correlation of 0 is within MARGIN."""
    spread = mean.error * math.sqrt(mean.freedom + 1)
    cells = 3
    while (
        student(cells - 1, 1 - 2 * ALPHA) + scipy.stats.t.ppf((1 + POWER) / 2, cells - 1)
    ) * spread > MARGIN * math.sqrt(cells):
        cells += 1
    return cells


def p_absent(mean: MeanCorrelation) -> float:
    """Return the p-value of the claim that a correlation is within MARGIN, as it is and corrected for noise."""
    return float(np.fmax(mean.plain.p_equal(MARGIN), mean.true.p_equal(MARGIN)))


def verdict_of_absence(mean: MeanCorrelation, p: float) -> str:
    """Return the verdict of the claim that there is no correlation (tests 2 and 4)."""
    if p < ALPHA:
        return SHOWN
    return FAILED if any(of.low > 0 or of.high < 0 for of in (mean.plain, mean.true)) else UNKNOWN


def verdict_within(within: Mapping[str, WithinOrder], units: RankCorrelation, p: float) -> str:
    """Return the verdict of test 1."""
    main = within["all grammars"]
    if not main.high < 0:
        return UNKNOWN
    return SHOWN if p < ALPHA and units.high < 0 and all(one.high < 0 for one in within.values()) else FAILED


@dataclass(frozen=True)
class Tests:
    """The tests of one side, in the order of the page.

    Attributes:
        within: test 1, by variant.
        units: test 1 with grammars as units.
        speeds: tests 2 to 4, with ratios ("log") and updates.
        uncut: tests 2 to 4 with ratios, of models without cut runs.
    """

    within: dict[str, WithinOrder]
    units: RankCorrelation
    speeds: dict[str, CrossedCorrelations]
    uncut: CrossedCorrelations

    @classmethod
    def of(cls, runs: HeldOut) -> Tests:
        """Make all tests of the runs of a side."""
        speeds = {speed: runs.crossed(speed) for speed in ("log", "updates")}
        within = {variant: runs.within(variant) for variant in VARIANTS}
        return cls(within, runs.over_grammars(), speeds, runs.crossed(uncut=True))

    @property
    def absent(self) -> dict[str, MeanCorrelation]:
        """Correlations of which the claim is that there is none: tests 2 and 4."""
        over = {f"over models, {NAMES[speed]}": one.across for speed, one in self.speeds.items()}
        return {**over, "interaction": self.speeds["log"].interaction}

    @property
    def contrasts(self) -> dict[str, MeanInterval]:
        """Test 3."""
        return {f"contrast, {NAMES[speed]}": one.contrast for speed, one in self.speeds.items()}

    def rows(self) -> dict[str, str]:
        """Return the estimates as text, by the name of the row."""
        rows = {f"1. within models: {name}": _median(one) for name, one in self.within.items()}
        rows["1. mean ranks of grammars"] = f"{Interval(self.units.value, self.units.low, self.units.high)}"
        for name, one in self.absent.items():
            test = 4 if name == "interaction" else 2
            rows[f"{test}. {name}"] = _with_ends(one.plain)
            rows[f"{test}. {name}, corrected for noise"] = _with_ends(one.true)
            rows[f"{test}. {name}, reliabilities"] = f"{one.reliability_x:.2f} and {one.reliability_y:.2f}"
        rows["2. over models, ratio, models without cut runs"] = _with_ends(self.uncut.across.plain)
        return rows | {f"3. {name}": str(one) for name, one in self.contrasts.items()}


def generalisation(result: ProbeResult, earlier: ProbeResult) -> Finding:
    """Return the finding.

    Args:
        result: the sweep at 3x4, by whose rules (on the page) the claims have their verdicts.
        earlier: the sweep at 4x5.
    """
    new, old = ({side: HeldOut.of(of, side) for side in SIDES} for of in (result, earlier))
    tests, before = ({side: Tests.of(one) for side, one in of.items()} for of in (new, old))
    sign = dict(zip(SIDES, holm([tests[side].within["all grammars"].p for side in SIDES]), strict=True))
    verdicts = {("within", side): verdict_within(of.within, of.units, sign[side]) for side, of in tests.items()}
    absent = {(name, side): one for side, of in tests.items() for name, one in of.absent.items()}
    equal = dict(zip(absent, holm([p_absent(one) for one in absent.values()]), strict=True))
    verdicts |= {pair: verdict_of_absence(one, equal[pair]) for pair, one in absent.items()}
    contrasts = {(name, side): one for side, of in tests.items() for name, one in of.contrasts.items()}
    differ = dict(zip(contrasts, holm([one.p for one in contrasts.values()]), strict=True))
    for pair, one in contrasts.items():
        verdicts[pair] = verdict_of(differ[pair], one.p) if one.value < 0 else UNKNOWN
    headline = worst(of for pair, of in verdicts.items() if pair[0] != "interaction")


def worst(verdicts: Iterable[str]) -> str:
    """Return "shown" if all verdicts are; else "not shown" if one of them is, or "unknown"."""
    found = set(verdicts)
    return FAILED if FAILED in found else UNKNOWN if UNKNOWN in found else SHOWN


def _median(order: WithinOrder) -> str:
    """Return the median over cells with its interval."""
    return str(Interval(order.median, order.low, order.high))


def _with_ends(mean: MeanInterval) -> str:
    """Return a mean with its intervals of 95 % and 90 %."""
    low, high = mean.ends(1 - 2 * ALPHA)
    return f"{mean}, 90 %: {low:+.2f} to {high:+.2f}"
