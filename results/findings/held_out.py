"""The finding on meanings held out of training: does the speed of learning predict generalisation?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
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
    WithinModelCorrelation,
    across_models,
    crossed_correlations,
    rank_correlation,
    within_model_order,
)
from icy.analysis.statistics import Interval, holm, student
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from icy.experiments.sweep_file import read_sweep
from icy.grammars import make_language
from icy.languages.language import Language
from results.findings import pictures
from results.findings.data import MOST_CUT, NAMES, SIDES, Table, cluster_of, mean_of, with_logs
from results.findings.finding import ALPHA, HERE, VERDICTS, Claim, Finding, supported, verdict_of

SHOWN, FAILED, UNKNOWN = VERDICTS
EARLIER = "icy table results/findings/records.parquet"
GRAMMARS_SWEEP = HERE / "generalise-grammars.toml"
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
        long = long[long["role"].eq(side)]
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
        cut = self.runs.groupby("grammar")["censored"].mean()
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

    def within(self, variant: str) -> WithinModelCorrelation:
        """Correlate ratios and accuracies in each model, over grammars (test 1)."""
        left_out, column = VARIANTS[variant]
        return within_model_order(*self.halves("log", column, left_out), cluster_of)

    def reliability_within(self, column: str) -> WithinModelCorrelation:
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
            runs = runs[~runs.groupby("model")["censored"].transform("any")]
        speeds, accuracies = (
            {str(g): of.pivot_table(index="model", columns="seed", values=column) for g, of in runs.groupby("grammar")}
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
    """Return the verdict on the absence of a correlation (tests 2 and 4)."""
    if p < ALPHA:
        return SHOWN
    return FAILED if any(of.low > 0 or of.high < 0 for of in (mean.plain, mean.true)) else UNKNOWN


def verdict_within(within: Mapping[str, WithinModelCorrelation], units: RankCorrelation, p: float) -> str:
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

    within: dict[str, WithinModelCorrelation]
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


@dataclass(frozen=True)
class Judged:
    """The tests of both sides of a sweep, their corrected p-values and their verdicts, by test and side.

    Attributes:
        tests: tests by side.
        p: p-values after Holm's correction, by test and side.
        verdicts: verdicts, by test and side.
    """

    tests: dict[str, Tests]
    p: dict[tuple[str, str], float]
    verdicts: dict[tuple[str, str], str]

    @classmethod
    def of(cls, tests: dict[str, Tests]) -> Judged:
        """Judge the tests by the rules on the page."""
        signs = {("within", side): of.within["all grammars"].p for side, of in tests.items()}
        absent = {(name, side): p_absent(one) for side, of in tests.items() for name, one in of.absent.items()}
        contrasts = {(name, side): one.p for side, of in tests.items() for name, one in of.contrasts.items()}
        p = {
            key: one for of in (signs, absent, contrasts) for key, one in zip(of, holm(list(of.values())), strict=True)
        }
        verdicts = {}
        for side, of in tests.items():
            verdicts["within", side] = verdict_within(of.within, of.units, p["within", side])
            for name, mean in of.absent.items():
                verdicts[name, side] = verdict_of_absence(mean, p[name, side])
            for name, gap in of.contrasts.items():
                verdicts[name, side] = verdict_of(p[name, side], gap.p) if gap.value < 0 else UNKNOWN
        return cls(tests, p, verdicts)

    def verdict(self, *names: str) -> str:
        """Return "shown" if all verdicts of the tests are; else "not shown" if one of them is, or "unknown"."""
        found = {verdict for (name, _), verdict in self.verdicts.items() if name in names}
        return FAILED if FAILED in found else UNKNOWN if UNKNOWN in found else SHOWN

    @property
    def headline(self) -> str:
        """Verdict of the headline."""
        return self.verdict(*{name for name, _ in self.verdicts} - {"interaction"})


def claims_of(judged: Judged, setting: str, n: str) -> tuple[Claim, ...]:
    """Return the claims of the sweep at 3x4."""
    tests, p = judged.tests, judged.p
    main = [of.within["all grammars"] for of in tests.values()]
    least = [max(of.within.values(), key=lambda one: one.median) for of in tests.values()]
    claims = [
        Claim(
            "within a model, grammars with a larger ratio generalize less",
            setting,
            n,
            listed([f"{one.median:+.2f}" for one in main])
            + "; with the weakest variant "
            + listed([f"{one.median:+.2f}" for one in least]),
            listed([f"{one.low:+.2f} to {one.high:+.2f}" for one in (*main, *least)]),
            "median of Spearman's correlations over grammars, cells as clusters; sign test, p = "
            + listed([f"{p['within', side]:.2g}" for side in SIDES]),
            "Holm, two sides",
            judged.verdict("within"),
            "with grammars as units: "
            + listed([f"{Interval(of.units.value, of.units.low, of.units.high)}" for of in tests.values()]),
        )
    ]
    for (side, of), name in itertools.product(tests.items(), tests["sender"].absent):
        mean, verdict, size = of.absent[name], judged.verdicts[name, side], of.speeds["log"]
        what = name.removeprefix("over models, ")
        claims.append(
            Claim(
                f"over {side}s, {what} and held-out accuracy do not correlate (up to ±{MARGIN})"
                if what != name
                else f"{side}s do not generalize more on the grammars that they learn sooner than other {side}s do",
                setting,
                f"{size.models} {side}s in {size.groups} cells, {size.grammars} grammars",
                f"{mean.plain.value:+.2f}; corrected for noise {mean.true.value:+.2f}",
                "; ".join(f"{one.low:+.2f} to {one.high:+.2f}" for one in (mean.plain, mean.true)),
                f"mean correlation, jackknife over cells; two one-sided tests, p = {p[name, side]:.2g}",
                "Holm, six tests",
                verdict,
                {
                    UNKNOWN: f"decided by about {cells_needed(mean.true)} cells, if there is none",
                    FAILED: "an interval excludes 0",
                    SHOWN: "",
                }[verdict],
            )
        )
    for name in tests["sender"].contrasts:
        gaps = [of.contrasts[name] for of in tests.values()]
        what = name.removeprefix("contrast, ")
        claims.append(
            Claim(
                f"{what} predicts held-out accuracy better over grammars than over models",
                setting,
                n,
                listed([f"{one.value:+.2f}" for one in gaps]),
                listed([f"{one.low:+.2f} to {one.high:+.2f}" for one in gaps]),
                "difference of mean correlations, corrected for noise, jackknife over cells, p = "
                + listed([f"{p[name, side]:.2g}" for side in SIDES]),
                "Holm, two sides, ratio and updates",
                judged.verdict(name),
            )
        )
    headline = Claim(
        "learning speed predicts generalisation across grammars, not across architectures",
        *(setting, n, "-", "-", "all of the above, except interactions", "as above", judged.headline),
        "its second half: the correlations over models",
    )
    return (*claims, headline)


def generalisation(result: ProbeResult, earlier: ProbeResult) -> Finding:
    """Return the finding.

    Args:
        result: the sweep at 3x4, by whose rules (on the page) the claims have their verdicts.
        earlier: the sweep at 4x5.
    """
    new, old = ({side: HeldOut.of(of, side) for side in SIDES} for of in (result, earlier))
    judged, before = (Judged.of({side: Tests.of(one) for side, one in of.items()}) for of in (new, old))
    tests, old_tests = judged.tests, before.tests
    crossed = {side: of.speeds["log"] for side, of in tests.items()}
    n = listed([f"{one.models} {side}s in {one.groups} cells" for side, one in crossed.items()])
    grammars, seeds = new["sender"].grammars, result.to_dataframe()["seed"].nunique()
    setting = f"3x4, a fifth held out, {len(grammars)} grammars, {seeds} languages, hidden size 32"
    main = {side: of.within["all grammars"] for side, of in tests.items()}
    weakest = max((one for of in tests.values() for one in of.within.values()), key=lambda one: one.median)
    halves = {column: [one.reliability_within(column).median for one in new.values()] for column in ("log", "value")}
    cut = [one.runs.loc[one.runs["grammar"].ne("concat"), "censored"].mean() for one in new.values()]
    interaction = "receivers generalize more on the grammars that they learn sooner than other receivers do"
    planned = read_sweep(GRAMMARS_SWEEP)
    missing = len(planned["model"]) - sum(one.models for one in crossed.values())
    trained = (
        f"""Not trained, for lack of machine time: {missing} of the {len(planned["model"])} models (slow ones, which
        were left out before any analysis), and {10 - seeds} of the ten seeds; receivers learned `proj` in two
        languages only. `python -m results.findings --train` trains them in about 20 core-minutes."""
        if missing or seeds < 10
        else ""
    )
    points = {
        f"{side}s": pd.DataFrame(
            {
                "x": np.exp(of.table("log").values.mean()),
                "y": of.table("value").values.mean(),
                "name": ["two in a row" if "+" in g else g for g in of.table("log").values],
            }
        )
        for side, of in new.items()
    }
    return Finding(
        supported(
            judged.verdict("within") == SHOWN
            and judged.headline != SHOWN
            and tests["receiver"].speeds["updates"].across.plain.value
            < 0
            < tests["receiver"].speeds["log"].across.plain.value
            and tests["receiver"].speeds["log"].interaction.plain.high < 0,
            """Models generalize better on grammars that they learn sooner; whether models that learn sooner generalize
            better is open.""",
        ),
        f"""At 3x4 (a fifth of 64 meanings held out), the median over cells of Spearman's correlations of ratio and
        accuracy on held-out meanings, over {len(grammars)} grammars with {seeds} languages each, is
        {_median(main["sender"])} for {crossed["sender"].models} senders and {_median(main["receiver"])} for
        {crossed["receiver"].models} receivers. Over models, the claim is the absence of a correlation. Corrected for
        noise, it is {_verdicts(judged, "over models, ratio")} with ratios, and
        {_verdicts(judged, "over models, updates")} with updates.""",
        f"""Words have two tokens, and the hidden size is 32. With grammars as units, the correlations are
        {_units(tests)}; the weakest of the variants of test 1 is {_median(weakest)}, and at 4x5 the medians are
        {listed([_median(of.within["all grammars"]) for of in old_tests.values()])}. Over models, the answer depends on
        the measure of speed: ratios and updates differ only by the updates of `concat`. Before the correction, at 4x5,
        they are {_values(old_tests, "over models, ratio")} with ratios, and
        {_values(old_tests, "over models, updates")} with
        updates. *Interaction* (claim: none): {_verdicts(judged, "interaction")}: {interaction}. *Contrast* of
        grammars and models: {_verdicts(judged, "contrast, ratio")} with ratios, and
        {_verdicts(judged, "contrast, updates")} with updates. *Noise*: 13 meanings are held out in each
        language; within a model, halves of the seeds correlate over grammars by
        {listed([f"{of:.2f}" for of in halves["log"]])} (ratios of senders and receivers) and by
        {listed([f"{of:.2f}" for of in halves["value"]])} (accuracies). {listed([f"{100 * of:.0f} %" for of in cut])} of
        the runs of senders and receivers were cut at 20 times concat's updates. *Relative* accuracy is 0 for the best
        constant answer, and 1 for the best possible answer. {trained}""",
        f"{_grammar_table(new)}\n\n{_test_table({'3x4': judged, '4x5': before})}",
        pictures.scatter(points, f"{pictures.RATIO}, mean of models", "accuracy on held-out meanings"),
        (*claims_of(judged, setting, n), *_earlier_claims(before)),
    )


def _units(tests: Mapping[str, Tests]) -> str:
    """Return the correlations with grammars as units, as text."""
    return listed(
        [f"{Interval(of.units.value, of.units.low, of.units.high)} for {side}s" for side, of in tests.items()]
    )


def _verdicts(judged: Judged, name: str) -> str:
    """Return the estimates of a test, corrected for noise, with their verdicts."""
    found = {side: (of.absent.get(name), of.contrasts.get(name)) for side, of in judged.tests.items()}
    return listed([
        f"{of.true if of else gap} for {side}s (*{judged.verdicts[name, side]}*)" for side, (of, gap) in found.items()
    ])  # fmt: skip


def _values(tests: Mapping[str, Tests], name: str) -> str:
    """Return the correlations over models of a sweep, as text."""
    return listed([f"{of.absent[name].plain} for {side}s" for side, of in tests.items()])


def _earlier_claims(before: Judged) -> tuple[Claim, ...]:
    """Return the claims of the sweep at 4x5."""
    tests = before.tests
    sizes = {side: of.speeds["log"] for side, of in tests.items()}
    n = listed([f"{one.models} {side}s in {one.groups} cells" for side, one in sizes.items()])
    setting, names = "4x5, a fifth held out, six grammars, three languages, hidden size 32", ("ratio", "updates")
    main = [of.within["all grammars"] for of in tests.values()]
    pairs = [of.absent[f"over models, {name}"].plain for name in names for of in tests.values()]
    p = holm([one.p for one in pairs])
    least = int(np.argmin(p))
    return (
        Claim(
            "within a model, grammars with a larger ratio generalize less (4x5)",
            setting,
            n,
            listed([f"{one.median:+.2f}" for one in main]),
            listed([f"{one.low:+.2f} to {one.high:+.2f}" for one in main]),
            "median of Spearman's correlations over grammars, cells as clusters",
            "no",
            SHOWN if all(one.high < 0 for of in tests.values() for one in of.within.values()) else FAILED,
            "also without `proj`, without `hol`, and relative to the best possible accuracy",
            EARLIER,
        ),
        Claim(
            "models that learn sooner generalize more (4x5)",
            setting,
            f"{n}, {sizes['sender'].grammars} grammars",
            "ratio " + listed([f"{one.value:+.2f}" for one in pairs[:2]])
            + "; updates " + listed([f"{one.value:+.2f}" for one in pairs[2:]]),
            "; ".join(f"{one.low:+.2f} to {one.high:+.2f}" for one in pairs),
            f"mean of correlations over models, jackknife over cells; smallest p = {p[least]:.2g}",
            "Holm, two sides, ratio and updates",
            verdict_of(p[least], pairs[least].p) if pairs[least].value < 0 else UNKNOWN,
            "only senders with updates, without the correction",
            EARLIER,
        ),
    )  # fmt: skip


def _grammar_table(new: Mapping[str, HeldOut]) -> str:
    """Return the table with the means of models on each grammar, and the correlations over models."""
    columns = {side: [one.table(column) for column in ("log", "value", "relative")] for side, one in new.items()}
    rows = []
    for grammar in ("concat", *new["sender"].grammars):
        row = [grammar]
        for side, (ratios, held, relative) in columns.items():
            row += [
                "1" if grammar == "concat" else str(mean_of(ratios, grammar)),
                str(mean_of(held, grammar, log=False)),
                f"{relative.values[grammar].mean():.2f}",
                new[side].over_models(grammar),
            ]
        rows.append(row)
    heads = [f"{side}s: {name}" for side in SIDES for name in ("ratio", "accuracy", "relative", "over models")]
    return markdown_table(["3x4", *heads], rows)


def _test_table(judged: Mapping[str, Judged]) -> str:
    """Return the table of all tests, of each sweep and side."""
    columns = {f"{space}, {side}s": of.rows() for space, one in judged.items() for side, of in one.tests.items()}
    names = list(next(iter(columns.values())))
    return markdown_table(["test", *columns], [[name, *(of[name] for of in columns.values())] for name in names])


def _median(order: WithinModelCorrelation) -> str:
    """Return the median over cells with its interval."""
    return str(Interval(order.median, order.low, order.high))


def _with_ends(mean: MeanInterval) -> str:
    """Return a mean with its intervals of 95 % and 90 %."""
    low, high = mean.ends(1 - 2 * ALPHA)
    return f"{mean}, 90 %: {low:+.2f} to {high:+.2f}"
