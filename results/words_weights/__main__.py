"""How much of a ratio's variance is the language's? `python -m results.words_weights [--train small|middle|large]...`.

Run the sweeps of this folder into runs/, starting from the records in records.parquet, which is committed; add all
records to this file, and write words-weights.md and its picture. Run it again to continue, on any machine. Without
--train, only pack and write.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from icy.analysis import mixed_effects, with_languages
from icy.analysis.correlations import MeanInterval
from icy.analysis.order import in_order
from icy.analysis.statistics import Interval, holm, student
from icy.core.streams import stream
from icy.core.text import listed, markdown_table
from icy.experiments.results import ProbeResult
from results.estimates import print_estimate
from results.findings import pictures
from results.findings.finding import ALPHA, supported, verdict_of
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

Values = NDArray[np.float64]
HERE = Path(__file__).parent
PAGE, FIGURE, RECORDS = HERE / "words-weights.md", HERE / "words-weights.png", RecordFolder(HERE)
STAGES = {"small": "3x4", "middle": "4x5", "large": "5x10"}
PARTS = ("language", "weights", "rest")
BASELINE = "concat, updates"  # row of the updates of the baseline itself
MARGINS = (1.2, 1.1)  # half widths of intervals, as factors
SEEDS = (1, 10)  # numbers of seeds of weights for each language
MOST_CUT = 0.5  # largest share of cut runs of an estimate for one model
DRAWS = 10_000
DESIGNS = {"2 pairs": (2, 2), "3 pairs": (3, 3), "5 pairs": (5, 5), "10 pairs": (10, 10),
           "1 language, 5 seeds": (1, 5), "1 language, 10 seeds": (1, 10)}  # fmt: skip
TESTS = {
    "share": "the language has a part",
    "against": "the language's variance differs from the weights'",
    "shared": "models of a side share language effects",
    "paired": "pairing changes the variance of a comparison",
}
LOGS = ("paired", "run", "difference")  # estimands on the log scale


# -- variance components -----------------------------------------------------------------------------------------------


def components(y: Values) -> Values:
    """Return the variances of language, weights and rest, by expected mean squares; they may be below 0.

    Args:
        y: values [..., language, weights], one of each combination.

    Returns:
        Variances [part, ...].
    """
    rows, columns = y.shape[-2:]
    mean = y.mean((-2, -1), keepdims=True)
    row, column = y.mean(-1, keepdims=True) - mean, y.mean(-2, keepdims=True) - mean
    rest = ((y - mean - row - column) ** 2).sum((-2, -1)) / ((rows - 1) * (columns - 1))
    by_row = columns * (row**2).sum((-2, -1)) / (rows - 1)
    by_column = rows * (column**2).sum((-2, -1)) / (columns - 1)
    return np.stack([(by_row - rest) / columns, (by_column - rest) / rows, rest])


def estimands(y: Values, sides: Sequence[str]) -> dict[str, float]:
    """Return the estimands of one grammar; those of LOGS are logarithms.

    Args:
        y: logarithms of ratios [model, language, weights].
        sides: side of each model.
    """
    each = components(y)
    language, weights, rest = each.mean(1)
    run = language + weights + rest
    found = {"share": language / run, "against": language - weights, "run": _log(run)}
    found |= {name: part / run for name, part in zip(PARTS[1:], (weights, rest), strict=True)}
    common = most = single = 0.0
    between = []
    for side in dict.fromkeys(sides):
        of = [side == other for other in sides]
        count, own, total = sum(of), each[:, of].sum(1), components(y[of].sum(0))
        common += total[0] - own[0]
        most += (count - 1) * own[0]
        single += (count - 1) * float(own.sum())
        between.append(float((count * own - total).sum()))  # sum over pairs of models of the variance of a difference
    if most > 0:
        found["shared"] = common / most
    if single > 0:
        pairs = sum(of * (of - 1) / 2 for of in (sides.count(side) for side in dict.fromkeys(sides)))
        differences = float(np.sum(between))
        found |= {"paired": _log(differences / single), "difference": _log(differences / pairs)}
    return {name: float(value) for name, value in found.items()}


def _log(value: float) -> float:
    return math.log(value) if value > 0 else math.nan


def text_of(one: Interval, log: bool = False, digits: int = 2) -> str:
    """Return an estimate with its interval, such as "0.50 (0.40 to 0.60)"; if `log`, of its exponential."""
    ends = np.array([one.value, one.low, one.high])
    return print_estimate(np.exp(ends) if log else ends, digits)


def jackknife(y: Values, sides: Sequence[str]) -> dict[str, MeanInterval]:
    """Return the estimands of one grammar with intervals that hold for other languages and weights."""
    values = estimands(y, sides)
    variances = dict.fromkeys(values, 0.0)
    for axis in (1, 2):
        count = y.shape[axis]
        without = [estimands(np.delete(y, place, axis), sides) for place in range(count)]
        for name in variances:
            found = np.array([one.get(name, math.nan) for one in without])
            variances[name] += (count - 1) / count * float(((found - found.mean()) ** 2).sum())
    freedom = y.shape[1] - 1
    estimates = {}
    for name, value in values.items():
        error = math.sqrt(variances[name])
        width = student(freedom) * error
        estimates[name] = MeanInterval(value, value - width, value + width, error, freedom)
    return estimates


def languages_needed(variance: float, margin: float) -> int:
    """Return the least number of languages whose 95 % interval of a mean reaches at most a factor to either side.

    Args:
        variance: variance over languages of the logarithm of a ratio, or of its mean over seeds of weights.
        margin: the factor, such as 1.1.
    """
    count = 2
    while student(count - 1) * math.sqrt(variance / count) > math.log(margin):
        count += 1
    return count


def coverage(y: Values, languages: int, runs: int, name: str) -> float:
    """Return how often the 95 % interval of some runs contains the mean of all runs of one model.

    Args:
        y: logarithms of ratios [language, weights].
        languages: 1 for runs with one language, drawn for each interval; else each run draws its own language.
        runs: number of runs of an interval, drawn with replacement.
        name: name of the random stream.
    """
    generator, (rows, columns) = stream(0, name), y.shape
    language = generator.integers(rows, size=(DRAWS, 1 if languages == 1 else runs))
    drawn = y[language, generator.integers(columns, size=(DRAWS, runs))]
    reach = student(runs - 1) * drawn.std(1, ddof=1) / math.sqrt(runs)
    return float((np.abs(drawn.mean(1) - y.mean()) <= reach).mean())


# -- a stage -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """The runs of one model on one grammar.

    Attributes:
        runs: a row per run, with the columns `value` (ratio, or updates of the baseline), `cut`, `language` and
            `weights`.
    """

    model: str
    grammar: str
    runs: pd.DataFrame

    @cached_property
    def y(self) -> Values:
        """Logarithms of values [language, weights]."""
        table = self.runs.pivot_table(index="language", columns="weights", values="value")
        return np.asarray(np.log(table.to_numpy(float)))

    @property
    def cut(self) -> int:
        """Number of runs that were cut."""
        return int(self.runs["censored"].sum())

    @cached_property
    def p(self) -> float:
        """p-value of the F test of the language; NaN if runs were cut."""
        if self.cut:
            return math.nan
        language, _, rest = components(self.y)
        rows, columns = self.y.shape
        return float(scipy.stats.f.sf((columns * language + rest) / rest, rows - 1, (rows - 1) * (columns - 1)))


class Stage:
    """The runs of a stage.

    Attributes:
        cells: cells of the table, by grammar and model.
        long: all runs, in long form, without models and grammars that lack some runs.
    """

    def __init__(self, result: ProbeResult) -> None:
        self.long = with_languages(result.to_dataframe()).rename(columns={"seed": "weights"})
        self.cells: dict[str, dict[str, Cell]] = {}
        size = self.long["language"].nunique() * self.long["weights"].nunique()
        whole = self.long.groupby(["grammar", "model"])["key"].transform("nunique").eq(size)
        self.long = self.long[whole]
        for grammar in in_order(self.long["grammar"]):
            for model, runs in self.long[self.long["grammar"] == grammar].groupby("model", sort=False):
                base = grammar == "concat"
                of = runs.assign(value=runs["crossing"], censored=False) if base else runs
                name = BASELINE if base else grammar
                self.cells.setdefault(name, {})[str(model)] = Cell(str(model), name, of)
        if BASELINE in self.cells:
            self.cells[BASELINE] = self.cells.pop(BASELINE)

    @property
    def grammars(self) -> list[str]:
        """Grammars, without the baseline."""
        return [name for name in self.cells if name != BASELINE]

    def used(self, grammar: str) -> list[Cell]:
        """Return the cells without cut runs."""
        return [cell for cell in self.cells[grammar].values() if not cell.cut]

    @cached_property
    def pooled(self) -> dict[str, dict[str, MeanInterval]]:
        """Pooled estimates of each grammar with at least two usable models."""
        return {
            grammar: jackknife(np.stack([cell.y for cell in cells]), [cell.model.partition("/")[0] for cell in cells])
            for grammar in self.cells
            if len(cells := self.used(grammar)) > 1
        }

    def variances(self, grammar: str) -> Values:
        """Return the pooled variances of a run: language, weights and rest."""
        return np.asarray(components(np.stack([cell.y for cell in self.used(grammar)])).mean(1))

    @cached_property
    def f_tests(self) -> dict[tuple[str, str], float]:
        """p-values of the language by grammar and model, corrected by Holm's method over all cells without cut runs."""
        cells = [cell for grammar in self.grammars for cell in self.used(grammar)]
        return dict(zip([(c.grammar, c.model) for c in cells], holm([c.p for c in cells]), strict=True))

    def verdicts(self, test: str) -> dict[str, tuple[MeanInterval, float, str]]:
        """Return estimate, p-value corrected by Holm's method, and verdict of a hypothesis on each grammar."""
        names = [grammar for grammar in self.grammars if test in self.pooled.get(grammar, {})]
        if test == "shared":
            shares = self.verdicts("share")
            names = [name for name in names if shares[name][2] == "shown"]
        found = {name: self.pooled[name][test] for name in names}
        corrected = dict(zip(names, holm([one.p for one in found.values()]), strict=True))
        return {name: (one, corrected[name], verdict_of(corrected[name], one.p)) for name, one in found.items()}

    @property
    def size(self) -> str:
        """Numbers of languages and weights, as text."""
        return f"{self.long['language'].nunique()} x {self.long['weights'].nunique()}"


# -- page --------------------------------------------------------------------------------------------------------------


def decomposition(stage: Stage) -> str:
    """Return the table of pooled variances of a stage."""
    lines = []
    for grammar, found in stage.pooled.items():
        cells = stage.used(grammar)
        each = components(np.stack([cell.y for cell in cells]))
        shares = each[0] / each.sum(0)
        spread = Interval(*(end / 2 for end in (found["run"].value, found["run"].low, found["run"].high)))
        over = f"{shares.min():.2f} to {shares.max():.2f}"
        lines.append(
            [grammar, len(cells), text_of(spread, log=True), text_of(found["share"]), over,
             *(f"{found[name].value:.2f}" for name in PARTS[1:])]
        )  # fmt: skip
    return markdown_table(
        ["grammar", "models", "SD of log ratio", "share of the language", "over models", "weights", "rest"], lines
    )


def left_out(stage: Stage) -> str:
    """Return the cells with cut runs, as a sentence."""
    cells = [cell for grammar in stage.grammars for cell in stage.cells[grammar].values() if cell.cut]
    cut = [f"{cell.model} on {cell.grammar} ({cell.cut})" for cell in cells]
    if not cut:
        return "No run was cut."
    return f"Left out of pooled numbers, with the number of cut runs of {stage.size}: {listed(cut)}."


def missing(name: str, stage: Stage) -> str:
    """Return the models of a sweep that lack runs, as a sentence with the command that trains them."""
    sweep = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))
    models = [model for part in sweep.get("sweep", [sweep]) for model in part["model"]]
    known = {model for of in stage.cells.values() for model in of}
    lacking = [model for model in models if model not in known]
    return f" Not trained yet: {listed(lacking)} (`--train {name}`)." if lacking else ""


def by_model(stage: Stage) -> str:
    """Return the table of REML estimates of each model on each grammar."""
    models = list(dict.fromkeys(model for of in stage.cells.values() for model in of))
    lines = []
    for model in models:
        line = [model]
        for grammar in stage.cells:
            cell = stage.cells[grammar].get(model)
            if cell is None or cell.runs["censored"].mean() > MOST_CUT:
                line.append("-" if cell is None else f"{cell.cut} cut")
                continue
            found = mixed_effects(cell.runs, ["language", "weights"])
            low, high = found.profile("language")
            mark = "*" if stage.f_tests.get((grammar, model), 1.0) < ALPHA else "†" if cell.cut else ""
            line.append(f"{found.shares['language']:.2f}{mark} ({low:.2f} to {high:.2f})")
        lines.append(line)
    return markdown_table(["model", *stage.cells], lines)


def tests(stage: Stage) -> str:
    """Return the table of hypotheses with their verdicts."""
    found = {test: stage.verdicts(test) for test in TESTS}
    lines = []
    for grammar in stage.grammars:
        line = [grammar]
        for test in TESTS:
            if grammar in found[test]:
                one, p, verdict = found[test][grammar]
                digits = 4 if test == "against" else 2
                line.append(f"{text_of(one, test in LOGS, digits)}, p = {p:.2g}: **{verdict}**")
            else:
                line.append("-")
        lines.append(line)
    return markdown_table(["grammar", *TESTS.values()], lines, markup=True)


def needed(stages: Mapping[str, Stage]) -> str:
    """Return the table of languages needed."""
    lines = []
    for name, stage in stages.items():
        for grammar, found in stage.pooled.items():
            if grammar == BASELINE:
                continue
            language, *rest = stage.variances(grammar)
            run, difference = found["run"], found.get("difference")
            line = [STAGES[name], grammar]
            for margin in MARGINS:
                one, low, high = (languages_needed(math.exp(end), margin) for end in (run.value, run.low, run.high))
                line.append(f"{one} ({low} to {high})")
            line += [str(languages_needed(language + sum(rest) / SEEDS[1], margin)) for margin in MARGINS]
            line += ["-" if difference is None else str(languages_needed(math.exp(difference.value), margin))
                     for margin in MARGINS]  # fmt: skip
            lines.append(line)
    kinds = ("mean", f"{SEEDS[1]} seeds each", "two models")
    heads = [f"{kind}, ±{100 * (margin - 1):.0f} %" for kind in kinds for margin in MARGINS]
    return markdown_table(["space", "grammar", *heads], lines)


def covered(stage: Stage) -> pd.DataFrame:
    """Return how often intervals of subsamples contain the mean, by grammar and model [cell, design]."""
    cells = [cell for grammar in stage.grammars for cell in stage.used(grammar)]
    return pd.DataFrame(
        [{design: coverage(cell.y, *size, f"{cell.grammar} {cell.model} {design}") for design, size in DESIGNS.items()}
         for cell in cells],
        index=pd.MultiIndex.from_tuples([(cell.grammar, cell.model) for cell in cells], names=["grammar", "model"]),
    )  # fmt: skip


def coverage_table(stage: Stage, found: pd.DataFrame) -> str:
    """Return the table of coverage, with the factor by which an interval from one language is too narrow."""
    lines = []
    for grammar, of in found.groupby("grammar", sort=False):
        language, *rest = stage.variances(str(grammar))
        factors = [math.sqrt(1 + runs * max(language, 0.0) / sum(rest)) for few, runs in DESIGNS.values() if few == 1]
        shown = [f"{100 * of[d].mean():.0f} ({100 * of[d].min():.0f} to {100 * of[d].max():.0f})" for d in DESIGNS]
        lines.append([grammar, *shown, *(f"{factor:.2f}" for factor in factors)])
    heads = [f"factor, {runs} seeds" for few, runs in DESIGNS.values() if few == 1]
    return markdown_table(["grammar", *(f"{design}, %" for design in DESIGNS), *heads], lines)


def draw(stages: Mapping[str, Stage]) -> None:
    """Draw the shares of the variance as stacked bars, a panel per stage."""
    panels: dict[str, dict[str, dict[str, float]]] = {}
    for name, stage in stages.items():
        panel = panels.setdefault(STAGES[name], {})
        for grammar in stage.pooled:
            parts = np.maximum(stage.variances(grammar), 0)
            panel[grammar] = dict(zip(("language", "weights", "rest"), parts / parts.sum(), strict=True))
    figure = pictures.stacked(panels)
    figure.savefig(FIGURE, dpi=160)


def page(results: Mapping[str, ProbeResult]) -> str:
    """Return the page."""
    records = f"records made with {describe_packs(RECORDS.pack)}" if RECORDS.pack.exists() else "no records yet"
    stages = {name: Stage(result) for name, result in results.items() if result.records}
    stages = {name: stage for name, stage in stages.items() if stage.pooled}
    return fill_template(PAGE, records=records, results="\n\n".join(sections(stages)))


def sections(stages: Mapping[str, Stage]) -> Iterable[str]:
    """Return the parts of the page with results."""
    if stages:
        draw(stages)
        small, found = stages["small"], covered(stages["small"])
        yield "## Results"
        models = ends((len(small.used(grammar)) for grammar in small.grammars), "{}")
        yield f"At 3x4, with hidden size 32, {small.size} languages and seeds of weights, and {models} models:"
        yield "\n".join([summary(small, found), *(larger(name, stages[name]) for name in stages if name != "small")])
        yield f"![shares of the variance of a run, by grammar and space]({FIGURE.name})"
        yield "## Hypotheses at 3x4"
        yield tests(small)
        yield (
            TESTED
            + f" The F test finds an effect of the language in {significant(small)} pairs of a model and a grammar."
        )
        yield "## Languages needed"
        yield needed(stages)
        yield NEEDED
        yield "## Check by subsamples of 3x4"
        yield coverage_table(small, found)
        yield COVERED
    for name, stage in stages.items():
        yield f"## {STAGES[name]}"
        runs = f"{stage.size}, {len(stage.long):,} runs, {stage.long['seconds'].sum() / 60:.0f} minutes on a busy core"
        yield f"{runs}. {left_out(stage)}{missing(name, stage)}"
        yield decomposition(stage)
        yield POOLED
        yield by_model(stage)
        yield SINGLE.format(cells=len(stage.f_tests))


TESTED = """Estimates with 95 % intervals, and p-values after Holm's correction. The second column is a difference of
variances of log ratios."""
NEEDED = """The number of languages whose 95 % interval reaches at most this factor to either side: for the mean ratio
of a model with one run for each language (with the interval of the number); with ten seeds of weights for each
language; and for the quotient of two models of one side on the same seeds, with one run of each for each language."""
COVERED = """Share of 95 % intervals that contain the mean of all runs: mean over models (smallest to largest).
*Factor*: by which an interval from one language is too narrow, by the pooled variances."""
POOLED = """Means over models, with intervals that hold for other languages and weights; *over models*: smallest and
largest share of the language. *SD*: of the logarithm of the ratio of a run, or of the updates for concat."""
SINGLE = """REML estimates of each model: share of the language in the variance of a run, and the 95 % profile interval
of the standard deviation of the language's effect. \\*: significant by the F test, after Holm's correction for {cells}
cells; †: some runs were cut."""


def significant(stage: Stage) -> str:
    """Return the number of cells with a significant effect of the language, and of all tested cells, as text."""
    return f"{sum(p < ALPHA for p in stage.f_tests.values())} of {len(stage.f_tests)}"


def ends(values: Iterable[float], form: str = "{:.0f}") -> str:
    """Return the smallest and the largest of some values as text."""
    found = list(values)
    return f"{form.format(min(found))} to {form.format(max(found))}"


def larger(name: str, stage: Stage) -> str:
    """Return what the runs of a larger space show."""
    pooled = {grammar: stage.pooled[grammar] for grammar in stage.grammars if grammar in stage.pooled}
    models = sorted({model.partition("/")[2] for of in stage.cells.values() for model in of})
    line = f"""
        - **At {STAGES[name]}** ({stage.size}; {listed(models)}) the language has
        {ends(100 * of["share"].value for of in pooled.values())} % and the weights
        {ends(100 * of["weights"].value for of in pooled.values())} % of the variance, over {listed(list(pooled))}. With
        {stage.long["language"].nunique()} languages these are estimates without tests, and their intervals are wide.
    """
    return " ".join(line.split())


def summary(stage: Stage, covering: pd.DataFrame) -> str:
    """Return what the runs at 3x4 show, after checking that they do."""
    grammars = stage.grammars
    pooled = {grammar: stage.pooled[grammar] for grammar in grammars}
    variances = {grammar: stage.variances(grammar) for grammar in grammars}
    verdicts = {test: {grammar: found[2] for grammar, found in stage.verdicts(test).items()} for test in TESTS}
    shown = {test: [grammar for grammar in of if of[grammar] == "shown"] for test, of in verdicts.items()}
    rates = covering.groupby("grammar").mean() * 100
    alone = "1 language, 10 seeds"
    factors = [math.sqrt(1 + 10 * v[0] / (v[1] + v[2])) for v in variances.values()]
    one = {m: [languages_needed(v.sum(), m) for v in variances.values()] for m in MARGINS}
    many = {m: [languages_needed(v[0] + (v[1] + v[2]) / 10, m) for v in variances.values()] for m in MARGINS}
    two = {m: [languages_needed(math.exp(of["difference"].value), m) for of in pooled.values()] for m in MARGINS}
    together = [f"{share:.2f}" for share in (pooled[grammar]["shared"].value for grammar in shown["shared"])]
    return "\n".join(
        f"- {line}"
        for line in (
            supported(
                shown["share"] == grammars and max(of["weights"].value for of in pooled.values()) < 0.06,
                f"""
                **The language has {ends(100 * of["share"].value for of in pooled.values())} % of the variance of a
                run**, depending on the grammar; the initial weights alone have
                {ends(100 * of["weights"].value for of in pooled.values())} %, and their interaction with the language
                and noise have the rest. The share of the language is shown on all {len(grammars)} grammars. It is
                shown to be larger than the weights' on {listed(shown["against"])}.
                """,
            ),
            supported(
                rates[alone].max() < 70 and rates[[d for d in DESIGNS if d.endswith("pairs")]].min().min() > 90,
                f"""
                **Ten seeds of weights with one language are not a sample of ten.** Their 95 % interval contains the
                mean over languages in {ends(rates[alone])} of 100 draws, because it is too narrow by a factor of
                {ends(factors, "{:.1f}")}. Intervals from pairs of a language and weights, as `--seeds` draws them,
                contain it in {ends(rates[[d for d in DESIGNS if d.endswith("pairs")]].to_numpy().ravel())} of 100,
                also with two or three pairs; those are wide.
                """,
            ),
            supported(
                all(10 * n > m for margin in MARGINS for n, m in zip(many[margin], one[margin], strict=True)),
                f"""
                **A mean ratio needs {ends(one[1.2])} languages** for an interval of ±20 %, and {ends(one[1.1])} for
                ±10 %, with one run for each. Three languages give an interval of a factor of
                {ends((math.exp(student(2) * math.sqrt(v.sum() / 3)) for v in variances.values()), "{:.1f}")} to either
                side. Ten seeds for each language lower this to {ends(many[1.2])} and
                {ends(many[1.1])} languages, but take more runs on every grammar.
                """,
            ),
            supported(
                not shown["paired"] and bool(shown["shared"]),
                f"""
                **A comparison of two models needs {ends(two[1.2])} and {ends(two[1.1])}.** That models share languages
                and weights is not shown to make the comparison more accurate on any grammar: two models of a side share
                language effects on {listed(shown["shared"])} (correlations of {listed(together)}), but the rest
                of the variance is their own. The quotient of the variance with and without shared seeds is
                {ends((math.exp(of["paired"].value) for of in pooled.values()), "{:.2f}")}.
                """,
            ),
        )
    )


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, STAGES)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
