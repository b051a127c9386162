"""Paired comparison of results, seed by seed: differences, tests, two results cell by cell, and the seeds needed."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from icy.analysis.mixed import mixed_effects, with_languages
from icy.analysis.order import Facts, Series, in_order, text_of
from icy.analysis.statistics import (
    CONFIDENCE,
    LEAST_RATIO,
    Paired,
    holm,
    log_summary,
    paired,
    pairs_needed,
    require_probability,
    signs_needed,
    spread_limit,
)
from icy.config.protocols import BASELINE
from icy.core.checks import whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError, StoreError, UnknownNameError
from icy.core.text import counted, listed, markdown_table
from icy.core.types import Options
from icy.records.load import ATLAS, Results, long_of, read_any, select, with_measure
from icy.records.long_table import ROW, column_of
from icy.records.versions import at_revision, revision_of

from .references import IDENTITY, matched_rows, numbered, training_differences

EACH = "each"  # instead of the name of a model: compare every model with every other
OWN = ("model", "options", "hidden_size")  # columns that describe the model, not its setting
SETTING = [name for name in ROW if name not in OWN]  # columns that describe the setting
PAIRED_BY = ("grammar", "seed")  # columns by which runs are paired
FEW_PAIRS = 10  # with fewer pairs, the spread of a pilot is a poor estimate
PILOT = ("pairs", "one_censored", "both_censored", "effect", "bound", "spread")  # fields of `Paired` that are columns
NEEDED = ("seeds", "seeds_holm", "seeds_cautious")  # columns of `seeds_needed`
Differences = tuple[pd.DataFrame, list[tuple[str, ...]], int, str]


# -- pairs -------------------------------------------------------------------------------------------------------------


def paired_differences(
    long: pd.DataFrame, other: Results, name: str = "the other", apart: Sequence[str] = ()
) -> Differences:
    """Subtract the values of other results from the values of `long`, replicate by replicate.

    Replicates match in model, sizes, protocol, grammar and seed, so that they share words and the sequence of meanings.
    Replicates of two models match only if all settings agree, preset and training settings included.

    Args:
        long: results in long form.
        other: other results, or their folder or file; the name of a model of `long`, to subtract it from all other
            models of its side; or "each", to subtract every model from every earlier model.
        name: name of the other results.
        apart: columns of the long table in which matching replicates may differ.

    Returns:
        Four values. The matched replicates of `long`, with `row`: `value` is the difference, and further columns have
        both values (`ours`, `theirs`, `our_censored`, `their_censored`). For every matched row, the columns in which
        training differs. The number of runs without a match. The name of the subtracted results or model.

    Raises:
        IncompatibleError: no replicate has a match.
        InvalidSettingError: as for `matched_rows`.
        StoreError: `other` is not a model, a file or a folder.
    """
    if isinstance(other, str) and other == EACH:
        return _each(long)
    model = _find_model(long, other)
    if model is None:
        if isinstance(other, str) and other != ATLAS and not Path(other).exists():
            raise StoreError(f"'{other}' is not a file, a folder or a model in these results.")
        return *_subtracted(long, long_of(other), [column for column in IDENTITY if column not in apart]), name
    rest = long[(long["model"] != model) & (long["role"] == model.partition("/")[0])]
    if not len(rest):
        raise IncompatibleError(f"These results have no other {model.partition('/')[0]} to compare with {model}.")
    return *_subtracted(rest, long[long["model"] == model], SETTING), model


def _find_model(long: pd.DataFrame, name: object) -> str | None:
    """Return the full name of a model; None if `name` is not a model's name, or is a file or folder."""
    if not isinstance(name, str) or name == ATLAS or Path(name).exists():
        return None
    try:
        found = sorted(set(select(long, [name])["model"]))
    except UnknownNameError:
        return None
    if len(found) > 1:
        raise InvalidSettingError(f"'{name}' may mean {' or '.join(found)}; name one of them.")
    return str(found[0])


def _each(long: pd.DataFrame) -> Differences:
    """Compare every model with every other model of its side, as rows "one - other"."""
    parts: list[pd.DataFrame] = []
    training: list[tuple[str, ...]] = []
    lone = 0
    for _, side in long.groupby("role", sort=False):
        for one, other in combinations(dict.fromkeys(side["model"]), 2):
            mine, theirs = side[side["model"] == one], side[side["model"] == other]
            try:
                both, differ, alone = _subtracted(mine, theirs, SETTING)
            except IncompatibleError:
                continue
            parts.append(both.assign(model=f"{one} - {other.partition('/')[2]}"))
            training, lone = [*training, *differ], lone + alone
    if not parts:
        raise IncompatibleError("No two models in these results share side, setting, grammar and seed.")
    return numbered(pd.concat(parts, ignore_index=True)), training, lone, "each other"


def _subtracted(
    long: pd.DataFrame, other: pd.DataFrame, names: Sequence[str]
) -> tuple[pd.DataFrame, list[tuple[str, ...]], int]:
    long, other = numbered(long), numbered(other)
    partner = matched_rows(long, other, names)
    good = other[~other["failed"].astype(bool)].set_index(["row", "grammar", "seed"])[["value", "censored"]]
    keys = pd.MultiIndex.from_arrays([long["row"].map(partner), long["grammar"], long["seed"]])
    theirs = good.reindex(keys).set_index(long.index)
    values = {"ours": long["value"], "theirs": theirs["value"]}
    cuts = {"our_censored": long["censored"].astype(bool), "their_censored": theirs["censored"].eq(True)}
    both = long.assign(
        **values, **cuts, value=long["value"] - theirs["value"], censored=cuts["our_censored"] | cuts["their_censored"]
    )
    tried = ~long["failed"].astype(bool)
    both = both[both["value"].notna() & tried]
    if not len(both):
        raise IncompatibleError(_explain_no_pairs(long, other, names))
    differ = list(training_differences(long, other, partner).values())
    return numbered(both), differ, int(tried.sum()) - len(both)


def _explain_no_pairs(long: pd.DataFrame, other: pd.DataFrame, names: Sequence[str]) -> str:
    """Return why no run has a counterpart."""
    if any(runs["failed"].astype(bool).all() for runs in (long, other)):
        return "Nothing can be compared, as all runs of one of the two failed."
    apart = [n for n in (*names, *PAIRED_BY) if not set(long[n].map(str)) & set(other[n].map(str))]
    of_models = list(names) == SETTING
    subject = "These models" if of_models else "The two results"
    instead = "" if of_models else " `icy table --compare` shows them side by side."
    differ = f"; they differ in {listed(apart)}" if apart else ""
    if {*apart} & {*PAIRED_BY}:
        differ += f". Runs are paired by {' and '.join(PAIRED_BY)}, so they cannot be compared"
    return f"{subject} have no run with the same setting, grammar and seed{differ}.{instead}"


def compare_pairs(part: pd.DataFrame) -> Paired:
    """Compare the replicates of one cell of `paired_differences`."""
    values = [part[name].to_numpy(float) for name in ("ours", "theirs")]
    cuts = [part[name].to_numpy(bool) for name in ("our_censored", "their_censored")]
    return paired(values[0], values[1], cuts[0], cuts[1], part["measure"].iloc[0] == "ratio")


# -- as data -----------------------------------------------------------------------------------------------------------


def paired_tests(results: Results, other: Results = EACH) -> pd.DataFrame:
    """Compare models, or two results, on each grammar: paired by seed, and corrected for the number of tests.

    Ratios are compared by their logarithms, accuracies as they are; `icy.analysis.statistics.paired` has more.

    Args:
        results: a ProbeResult, or a long table.
        other: what to compare with: other results, the name of a model, or "each", for all pairs of models.

    Returns:
        A row per model (or pair of models, "A - B"), setting and grammar, without concat. `pairs`: number of pairs.
        `one_censored`, `both_censored`: number of pairs with one cut run, and with two. `effect`: quotient of geometric
        means, or mean difference; only a bound of it if `bound` is "<" or ">". `low`, `high`: its 95 % interval.
        `spread`: standard deviation over pairs of log quotients or differences. `test`, and its `p`. `p_holm`: p
        corrected over all rows of one protocol and measure. Further columns of a setting, such as `preset` and
        `settings`, if they vary.

    Raises:
        IncompatibleError, InvalidSettingError, StoreError: as for `paired_differences`.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis import paired_tests
        >>> rows = [(m, "rot", s, v + s) for m, v in (("sender/A", 2), ("sender/B", 4)) for s in range(3)]
        >>> long = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value"]).assign(measure="accuracy")
        >>> paired_tests(long.assign(value=long["value"] / 10))[["model", "effect", "test"]].values.tolist()
        [['sender/A - B', -0.2, 'sign']]
    """
    both = paired_differences(long_of(results), other)[0]
    both = both[both["grammar"] != BASELINE]
    return tests_of(both)[[*_cell_columns(both), *PILOT[:-1], "low", "high", "spread", "test", "p", "p_holm"]]


def tests_of(both: pd.DataFrame) -> pd.DataFrame:
    """Return the means, the effect and the test of each cell of `paired_differences`, with `row`.

    `p_holm` is corrected by Holm's method within each protocol and measure.
    """
    rows = []
    for about, part in split_cells(both):
        found = compare_pairs(part)
        low, high = found.interval
        rows.append(
            {
                **about,
                "row": part["row"].iloc[0],
                **{name: getattr(found, name) for name in (*PILOT, "test", "p")},
                "effect": round(found.effect, 12),
                "first": _center(part["theirs"], found),
                "second": _center(part["ours"], found),
                "low": low,
                "high": high,
                "identical": int((part["ours"] == part["theirs"]).sum()),
            }
        )
    table = pd.DataFrame(rows, columns=["row", *_cell_columns(both), *NUMBERS, "spread", "identical"])
    families = table.astype({"p": float}).groupby(["protocol", "measure"], dropna=False)["p"]
    return table.assign(p_holm=families.transform(lambda p: pd.Series(holm(p.tolist()), p.index, dtype=float)))


def _center(values: pd.Series[float], found: Paired) -> float:
    """Return the mean of values; for ratios, the geometric mean."""
    return log_summary(values.to_list(), [False] * len(values)).center if found.log else float(values.mean())


_CELL = ["model", "representation", "meanings", "protocol", "measure", "grammar"]


def split_cells(both: pd.DataFrame) -> list[tuple[Facts, pd.DataFrame]]:
    """Split `paired_differences` into cells; return the identifying values and the replicates of each cell."""
    names, found = _cell_columns(both), []
    for _, row in both.groupby("row", sort=False):
        for grammar in in_order(row["grammar"]):
            part = row[row["grammar"] == grammar]
            found.append(({name: part[name].iloc[0] for name in names}, part))
    return found


def _cell_columns(both: pd.DataFrame) -> list[str]:
    """Return the columns that identify cells: those of every table, and further columns of ROW that vary."""
    varying = [name for name in ROW if name not in _CELL and both[name].nunique(dropna=False) > 1]
    return [*_CELL[:-1], *varying, _CELL[-1]]


# -- seeds needed ------------------------------------------------------------------------------------------------------


def seeds_needed(
    results: Results,
    models: Sequence[str] = (),
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    effect: float | None = None,
    per_language: int = 1,
) -> pd.DataFrame:
    """Estimate from a pilot how many seeds a significant difference between two models needs on each grammar.

    The pilot's runs are paired by seed. The number of seeds comes from a paired two-sided t-test of the pilot's effect
    and spread, by the noncentral t distribution. Where runs of one model were cut, it comes from an exact sign test,
    assuming that all further pairs have the same sign.

    A seed draws the words and the initial weights, so seeds are a sample of languages. If the pilot has languages
    crossed with weights (`icy probe --word-seeds`), the variances of both are estimated (`mixed_effects`), and the
    number of seeds is the number of languages, with `per_language` seeds of weights each.

    Args:
        results: results of the two models: a ProbeResult, a long table, or a results folder or file.
        models: names of the two models; not needed if the results have no others.
        power: the probability of finding the effect, if it is real.
        alpha: significance level of a single test.
        effect: effect to detect, instead of the pilot's: a quotient of ratios, such as 1.2, or a difference in
            accuracy.
        per_language: seeds of weights for each language; more than 1 needs a pilot with languages crossed with weights.

    Returns:
        A row per setting (with the columns in which settings vary) and grammar, without concat. `pairs`,
        `one_censored`, `both_censored`, `effect` and `bound` are as in `paired_tests`. `languages`: number of languages
        of the pilot. `language_share`: fraction of the variance of a pair that is the language's; NaN if languages and
        weights are not crossed. `spread`: standard deviation over seeds, or over languages, of log quotients or
        differences. `seeds`: the number needed. `seeds_holm`: the number if all grammars of a setting are tested and
        corrected by Holm's method (first step: alpha / grammars). `seeds_cautious`: the number for alpha with the
        spread at its upper limit of 80 % confidence (Browne 1995). `remark`: limits of the pilot. Unknown numbers are
        missing.

    Raises:
        InvalidSettingError: the results are not of two models of one side; or a power, level, effect or number of
            seeds is invalid, or does not fit the pilot.
        IncompatibleError: the models share no seed, or no setting.
    """
    require_probability("power", power)
    require_probability("alpha", alpha)
    if power <= alpha:
        raise InvalidSettingError(f"The power must be larger than alpha ({alpha}); not {power}.")
    whole_number("number of seeds of each language", per_language, least=1)
    long = long_of(results)
    one, other = two_models(long, models)
    pairs = numbered(with_languages(paired_differences(long[long["model"].isin([one, other])], other)[0]))
    pairs = pairs[pairs["grammar"] != BASELINE]
    if not len(pairs):
        raise IncompatibleError("The two models share only the grammar concat, on which all ratios are 1.")
    target = None if effect is None else _effect(effect, set(pairs["measure"].eq("ratio")))
    tests = pairs.groupby("row")["grammar"].nunique()
    how = (per_language, power, alpha, target)
    return pd.DataFrame(
        [{**about, **_needed(part, int(tests[int(part["row"].iloc[0])]), *how)} for about, part in split_cells(pairs)]
    ).drop(columns="model")


def _spread(part: pd.DataFrame, found: Paired, per_language: int) -> tuple[float, float, int]:
    """Return the spread of a pilot over independent units, the language's fraction of the variance, and their number.

    Units are seeds; or languages, with means of `per_language` pairs, if they are crossed with seeds of weights.
    """
    crossed = _are_crossed(part)
    part = part[~(part["our_censored"] & part["their_censored"])] if found.log else part
    if not _are_crossed(part) or not found.spread > 0:
        return math.nan if crossed else found.spread, math.nan, found.informative
    ours, theirs = (part[name].to_numpy(float) for name in ("ours", "theirs"))
    if found.log:
        ours, theirs = (np.log(np.maximum(one, LEAST_RATIO)) for one in (ours, theirs))
    model = mixed_effects(part[["language", "seed"]].assign(gap=ours - theirs), ["language", "seed"], value="gap",
                          censored=None, log=False)  # fmt: skip
    language, *rest = model.deviations**2
    spread = math.sqrt(language + sum(rest) / per_language)
    return spread, float(model.shares["language"]), int(part["language"].nunique())


def _are_crossed(part: pd.DataFrame) -> bool:
    """Return whether several languages have several seeds of weights, and the reverse."""
    return all(1 < part[name].nunique() < len(part) for name in ("language", "seed"))


def _needed(
    part: pd.DataFrame, tests: int, per_language: int, power: float, alpha: float, target: float | None
) -> Facts:
    """Return the columns of `seeds_needed` for a cell; `target` is an effect to use instead of the pilot's.

    Raises:
        InvalidSettingError: `per_language` is not 1, and languages are not crossed with seeds.
    """
    found, languages, crossed = compare_pairs(part), int(part["language"].nunique()), _are_crossed(part)
    if per_language > 1 and not crossed:
        raise InvalidSettingError(
            f"{per_language} seeds for each language need a pilot with languages crossed with seeds, as of icy probe "
            "--word-seeds 5 --seeds 5."
        )
    spread, share, units = _spread(part, found, per_language)
    effect = target if target is not None else math.nan
    if target is None and not found.bound:
        effect = math.log(found.effect) if found.log and found.effect > 0 else found.effect
    limit = spread_limit(spread, units)
    seeds = [pairs_needed(effect, spread, power, alpha / n) if spread > 0 else None for n in (1, tests)]
    cautious = pairs_needed(effect, limit, power, alpha) if limit > 0 else None
    fewer, more = sorted(found.directions)
    if found.one_censored and not crossed and target is None and fewer == 0 < more:
        seeds = [signs_needed(alpha / n) for n in (1, tests)]
    return {
        **{name: getattr(found, name) for name in PILOT},
        "languages": languages,
        "language_share": share,
        "spread": spread,
        **dict(zip(NEEDED, (*seeds, cautious), strict=True)),
        "remark": _remark(found, languages, units, crossed, seeds[0], target is not None),
    }


def _remark(found: Paired, languages: int, units: int, crossed: bool, seeds: int | None, has_target: bool) -> str:
    """Return the limits of a pilot as text."""
    cut = f"{found.both_censored} of {found.pairs} pairs cut in both" if found.both_censored else ""
    if not (pairs := found.informative):
        return f"{cut}: a higher cap is needed"
    alone = ""
    if found.one_censored:
        way = "by a sign test, if all pairs have the same sign" if seeds and not has_target else "too many cut runs"
        limit = f"{found.one_censored} of {found.pairs} pairs cut in one: {way}"
    elif pairs < 2:
        limit = "one pair has no spread: run more seeds"
    elif not found.spread > 0:
        limit = "no spread in the pilot: evaluations may be too coarse to show it"
    else:
        alone = f"all {pairs} pairs share one language: the numbers hold only for it" if languages == 1 else ""
        unit = "languages" if crossed else "pairs"
        few = f"only {units} {unit}: the spread is a poor estimate" if units < FEW_PAIRS else ""
        limit = "almost no effect" if seeds is None else few
    return "; ".join(filter(None, (cut, alone, limit)))


def _effect(effect: float, kinds: set[bool]) -> float:
    if len(kinds) > 1:
        raise InvalidSettingError(
            "An effect is for ratios or for accuracies, and these results have both; choose a protocol."
        )
    (log,) = kinds
    if log and not (0 < effect < math.inf and effect != 1):
        raise InvalidSettingError(f"The effect must be a quotient of ratios, such as 1.2; not {effect}.")
    if not log and not 0 < abs(effect) < 1:
        raise InvalidSettingError(f"The effect must be a difference in accuracy, such as 0.05; not {effect}.")
    return math.log(effect) if log else effect


def two_models(long: pd.DataFrame, models: Sequence[str] = ()) -> tuple[str, str]:
    """Return the full names of the two models to compare.

    Raises:
        InvalidSettingError: not two models, or two of different sides.
        UnknownNameError: the results do not have a model of this name.
    """
    chosen = list(dict.fromkeys(select(long, list(models))["model"]))
    sides = {name.partition("/")[0] for name in chosen}
    if len(chosen) != 2 or len(sides) != 1:
        raise InvalidSettingError(
            f"A comparison needs two models of one side, and these are {', '.join(chosen)}: name two, with their side."
        )
    ordered = sorted(chosen, key=[str(one) for one in long["model"]].index)
    return ordered[0], ordered[1]


# -- comparison of two results, run by run -----------------------------------------------------------------------------


LEVEL = 1 - CONFIDENCE  # significance level of corrected p-values
MOST_SEEDS = 6  # with more, only the number of positive and negative differences is shown
NAMES = ("first", "second")
NUMBERS = [
    *("first", "second", "effect", "bound", "low", "high"),
    *("test", "p", "p_holm", "pairs", "one_censored", "both_censored"),
]


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
        ratios = self.cells["measure"] == "ratio"
        effect = "second / first" if ratios.all() else "difference, or quotient (×)" if ratios.any() else "difference"
        heads = [*about, *self.names, effect, "95 %", "by seed", "p"]
        seeds: dict[Hashable, pd.DataFrame] = dict(iter(self.runs.groupby("cell")))
        lines = [
            [*(text_of(cell[name]) for name in about), *_line(cell, seeds[place])]
            for place, cell in self.cells.reset_index(drop=True).iterrows()
        ]
        return heads, lines

    def markdown(self) -> str:
        """Return the comparison as Markdown, for a pull request or an appendix."""
        first, second = self.names
        said = [f"- {line}" for line in self.said()]
        return "\n".join([f"**{second} against {first}**", "", *said, "", markdown_table(*self.rows())])

    def __repr__(self) -> str:
        return "\n".join(self.said())


CHOICE = re.compile(r":(?=[A-Za-z_-]+=)")  # between a path and the chosen rows


@dataclass(frozen=True)
class Side:
    """One of two results that are compared.

    Attributes:
        text: place of the results as given; "" for results in memory.
        path: the path in this text.
        revision: the commit, or None.
        where: the chosen values by column.
        long: all results of the place.
    """

    text: str
    path: str
    revision: str | None
    where: dict[str, str]
    long: pd.DataFrame

    @classmethod
    def of(cls, results: Results, measure: str | None) -> Side:
        """Read results, which may be `PATH[@REVISION][:COLUMN=VALUE,...]`; an existing path is not split."""
        if not isinstance(results, str | Path):
            return cls("", "", None, {}, long_of(results))
        text = str(results)
        whole, *chosen = [text] if Path(text).exists() else CHOICE.split(text, maxsplit=1)
        path, revision = revision_of(whole)
        with nullcontext(path) if revision is None else at_revision(path, revision) as place:
            found = read_any(place)
        long = long_of(found if measure is None else with_measure(found, measure))
        pairs = [one.partition("=") for one in re.split(r",(?=[A-Za-z_-]+=)", chosen[0])] if chosen else []
        where = {column_of(name.replace("-", "_"), long): value for name, _, value in pairs}
        return cls(text, path, revision, where, long)

    def selected(self, models: Sequence[str], grammars: Sequence[str], where: Options) -> pd.DataFrame:
        """Return the chosen rows; its own choice replaces the choice for both results."""
        own = dict(self.where)
        models, grammars = (
            [own.pop(name)] if name in own else others for name, others in (("model", models), ("grammar", grammars))
        )
        return long_of(select(self.long, models, grammars, {**where, **own}))


def _names(first: Side, second: Side, differing: Sequence[str]) -> tuple[str, str]:
    """Return short names that distinguish two results.

    Raises:
        InvalidSettingError: both are the same.
    """
    if not first.text or not second.text:
        return NAMES
    if first.text == second.text:
        raise InvalidSettingError("A and B are the same results; give two different results.")
    if differing and (first.path, first.revision) == (second.path, second.revision):
        values = [[side.where[name] for name in side.where if name in differing] for side in (first, second)]
        return ", ".join(values[0]) or "all", ", ".join(values[1]) or "all"
    if first.path == second.path:
        return first.revision or "now", second.revision or "now"
    stems = Path(first.path).name, Path(second.path).name
    return stems if stems[0] != stems[1] and all(stems) else (first.text, second.text)


def compare(
    first: Results,
    second: Results,
    names: tuple[str, str] | None = None,
    apart: Sequence[str] = (),
    *,
    models: Sequence[str] = (),
    grammars: Sequence[str] = (),
    where: Options | None = None,
    measure: str | None = None,
) -> ResultsComparison:
    """Compare two results, run by run.

    Runs match in model, sizes, protocol, grammar, seed and kind of job; if several match, also in their training.
    Ratios are compared by their logarithms, accuracies as they are (`icy.analysis.statistics.paired`). The ratio of
    concat, 1 by definition, is left out.

    Args:
        first: the reference: a ProbeResult, a long table, or the path of a results folder or file. After a path, a
            commit of git and values of columns may follow, as in "mine@HEAD~1" and "mine:model=FC2L,hidden_size=64".
        second: the results to compare with the reference, in any of these forms.
        names: names of the two in texts and tables; by default their paths, or the values in which they differ.
        apart: columns of the long table in which matching runs may differ, such as "representation"; also the columns
            in which the values after the paths differ.
        models: use only these models of both: names, wildcards.
        grammars: use only these grammars of both: names, wildcards.
        where: use only rows of both with these values, see `icy.records.load.select`.
        measure: measure of long tables without a column "measure": "ratio", "accuracy" or "held_out".

    Returns:
        The comparison. `cells` has a row per model, setting and grammar, with the effect, its 95 % interval and its
        p-value; `runs` has a row per pair of runs.

    Raises:
        IncompatibleError: no run of one has a match in the other, or only runs of concat have.
        InvalidSettingError: several rows of the first match one of the second, or both are the same place.
        StoreError: a folder or file holds no results, or the commit does not have it.
        UnknownNameError: a model, grammar, column or value is not in the results.

    Example:
        >>> import pandas as pd
        >>> rows = [("sender/A", "rot", seed, value) for seed, value in enumerate([0.5, 0.6, 0.7])]
        >>> long = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value"]).assign(measure="accuracy")
        >>> compare(long, long.assign(value=long["value"] + 0.1)).cells[["model", "grammar", "effect"]].values.tolist()
        [['sender/A', 'rot', 0.1]]
    """
    sides = Side.of(first, measure), Side.of(second, measure)
    chosen = [side.where for side in sides]
    differing = sorted({name for name in {**chosen[0], **chosen[1]} if chosen[0].get(name) != chosen[1].get(name)})
    one, other = (side.selected(models, grammars, where or {}) for side in sides)
    names, apart = names or _names(*sides, differing), [*apart, *differing]
    both, training, lone, _ = paired_differences(other, one, names[0], apart)
    tested = both[both["measure"].ne("ratio") | both["grammar"].ne(BASELINE)]
    if not len(tested):
        raise IncompatibleError("The two results share only concat, and its ratio is 1 by definition.")
    cells = tests_of(tested)
    shown = {"theirs": "first", "ours": "second", "value": "difference"}
    shown |= {"their_censored": "first_cut", "our_censored": "second_cut"}
    runs = tested.merge(cells[["row", "grammar"]].reset_index(names="cell"))
    runs = runs.sort_values(["cell", "seed"], kind="stable", ignore_index=True)
    good = int((~one["failed"].astype(bool) & one["value"].notna()).sum())
    return ResultsComparison(
        names,
        cells.drop(columns=["row", "spread"]),
        runs[[*_cell_columns(tested), "seed", "cell", *shown]].rename(columns=shown),
        (max(0, good - len(both)), lone),
        tuple(dict.fromkeys(name for differ in training for name in differ if name not in apart)),
    )


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
