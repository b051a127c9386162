"""Statistics of people with few items each, the people of Icy22, and distances of networks from people."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy  # loads its parts on first use
from numpy.typing import ArrayLike

from icy.analysis.statistics import CONFIDENCE, Interval, Values, holm, known_runs, require_probability
from icy.core.checks import LARGEST_SEED, MISSING_VALUES, boolean_column, number_column, real_number, whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.streams import stream
from icy.core.text import listed

from .literature.catalogue import published

RESAMPLES = 10_000
POWER_RESAMPLES = 2000  # per test of a simulated study
AT_ONCE = 2_000  # resamples in memory at a time
NORMAL = 1.96  # published half-widths, in standard errors


# -- intervals ---------------------------------------------------------------------------------------------------------


def cluster_bootstrap(
    values: ArrayLike, clusters: Sequence[object] | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of values and its 95 % interval, by a percentile bootstrap of clusters.

    Args:
        values: a value per game; games without a value (NaN) are left out with a warning, as in all functions here.
        clusters: cluster of each game, such as its person; by default every value is a separate cluster.
        resamples: number of resamples.
        seed: seed of the resampling.

    Raises:
        InvalidSettingError: a game without a cluster, or values as for `icy.analysis.statistics.known_runs`.

    Example:
        >>> found = cluster_bootstrap([0, 0, 1, 1])
        >>> found.value, found.low, found.high
        (0.5, 0.0, 1.0)
    """
    numbers = number_column("`values`", values)
    names = [str(name) for name in (range(len(numbers)) if clusters is None else clusters)]
    if len(names) != len(numbers) or any(name.lower() in MISSING_VALUES for name in names):
        raise InvalidSettingError(f"`clusters` must name a cluster for each of the {len(numbers)} values.")
    _, codes = np.unique(np.asarray(names, str), return_inverse=True)
    (array, kept), _ = known_runs({"`values`": numbers, "`clusters`": codes})
    if not len(array):
        return Interval(math.nan)
    _, places = np.unique(kept, return_inverse=True)
    sums, counts = np.bincount(places, array).astype(float), np.bincount(places)
    mean = float(array.mean())
    if len(sums) < 2:
        return Interval(mean)
    rng = stream(seed, "cluster bootstrap")
    means = []
    for done in range(0, resamples, AT_ONCE):
        chosen = rng.integers(len(sums), size=(min(AT_ONCE, resamples - done), len(sums)))
        means.append(sums[chosen].sum(1) / counts[chosen].sum(1))
    low, high = np.quantile(np.concatenate(means), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(mean, float(low), float(high))


def exact_interval(right: int, count: int) -> Interval:
    """Return a proportion and its exact 95 % interval (Clopper and Pearson 1934).

    Example:
        >>> found = exact_interval(1, 10)
        >>> found.value, round(found.low, 4), round(found.high, 4)
        (0.1, 0.0025, 0.445)
    """
    if not count:
        return Interval(math.nan)
    whole_number("number of right answers", right, least=0, most=count)
    found = scipy.stats.binomtest(right, count).proportion_ci(CONFIDENCE, "exact")
    return Interval(right / count, float(found.low), float(found.high))


# -- tests -------------------------------------------------------------------------------------------------------------


def _two_sides(ours: ArrayLike, theirs: ArrayLike, paired: bool) -> list[Values]:
    """Return the known values of two sides; if paired, only pairs with two values.

    Raises:
        InvalidSettingError: as for `icy.analysis.statistics.known_runs`.
    """
    sides = {"`ours`": ours, "`theirs`": theirs}
    if paired:
        return known_runs(sides)[0]
    return [known_runs({name: values})[0][0] for name, values in sides.items()]


def permutation_p(ours: ArrayLike, theirs: ArrayLike, paired: bool, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Return the two-sided p-value of a difference in means, by permutation of persons, or of signs in pairs.

    All permutations are counted if there are at most `resamples`.

    Args:
        ours: a value per person.
        theirs: a value per person to compare with; if paired, in the same order.
        paired: whether the values are paired.
        resamples: maximum number of permutations.
        seed: seed of the permutations.

    Example:
        >>> permutation_p([1, 1, 1], [0, 0, 0], paired=False), permutation_p([1, 1, 1], [0, 0, 0], paired=True)
        (0.1, 0.25)
    """
    a, b = _two_sides(ours, theirs, paired)
    if min(len(a), len(b)) < 2:
        return math.nan
    if np.ptp(np.concatenate([a, b])) == 0:
        return 1.0
    found = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(np.mean(x, axis=axis) - np.mean(y, axis=axis)),
        permutation_type="samples" if paired else "independent",
        alternative="greater",
        vectorized=True,
        n_resamples=resamples,
        random_state=stream(seed, "permutation test"),  # called rng from scipy 1.15 on, which takes both names
    )
    return float(found.pvalue)


def equivalence_p(ours: ArrayLike, theirs: ArrayLike, margin: float, paired: bool) -> float:
    """Return the p-value of two one-sided t-tests that the means differ by less than a margin (Schuirmann 1987).

    Args:
        ours: a value per person.
        theirs: a value per person to compare with.
        margin: the largest difference that does not matter.
        paired: whether the values are paired; otherwise the tests are Welch's.

    Example:
        >>> equivalence_p([0.5, 0.6, 0.5, 0.6], [0.6, 0.5, 0.6, 0.5], margin=0.5, paired=False) < 0.001
        True
    """
    a, b = _two_sides(ours, theirs, paired)
    fractions = all((np.abs(side) <= 1).all() for side in (a, b))
    margin = real_number("margin of an equivalence test", margin, above=True, **({"most": 1.0} if fractions else {}))
    if min(len(a), len(b)) < 2 or (np.ptp(a) == 0 and np.ptp(b) == 0):
        return math.nan
    if paired:
        if np.ptp(a - b) == 0:
            return math.nan
        above = scipy.stats.ttest_1samp(a - b, -margin, alternative="greater").pvalue
        below = scipy.stats.ttest_1samp(a - b, margin, alternative="less").pvalue
    else:
        above = scipy.stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue
        below = scipy.stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue
    return float(max(above, below))


def chance_p(right: int, count: int, chance: float) -> float:
    """Return the probability of at least `right` right answers by chance (exact binomial).

    Example:
        >>> round(chance_p(2, 3, 0.5), 3)
        0.5
    """
    if not count:
        return math.nan
    whole_number("number of right answers", right, least=0, most=count)
    chance = real_number("probability of a right answer by chance", chance, most=1.0)
    return float(scipy.stats.binomtest(right, count, chance, alternative="greater").pvalue)


# -- as printed --------------------------------------------------------------------------------------------------------


def half_width(values: ArrayLike) -> float:
    """Return the half-width of a mean as in Icy22: 1.96 s / sqrt(N), where s divides by N - 1 (spycodes-facts 7)."""
    ((array,), _) = known_runs({"`values`": values})
    return NORMAL * float(array.std(ddof=1)) / math.sqrt(len(array)) if len(array) > 1 else math.nan


def as_printed(mean: float, half: float) -> str:
    """Return a mean and its half-width as Icy22 prints them.

    The half-width has one significant digit, and the mean ends at the same digit. If the half-width is at least 10,
    both are truncated, not rounded.

    Example:
        >>> as_printed(0.2222, 0.1234), as_printed(147.9, 19.8), as_printed(17.4, 3.6), as_printed(0, 0)
        ('0.2±0.1', '140±10', '17±4', '0.000±0.000')
    """
    if not math.isfinite(half):
        return f"{mean:.3f}"
    if half == 0:
        return f"{mean:.3f}±0.000"
    if half >= 10:
        place = 10 ** math.floor(math.log10(half))
        return f"{math.floor(mean / place) * place:g}±{math.floor(half / place) * place:g}"
    decimals = max(0, -math.floor(math.log10(half)))
    if round(half, decimals) >= 10 ** (1 - decimals):  # 0.097 has the one digit of 0.1
        decimals = max(0, decimals - 1)
    return f"{mean:.{decimals}f}±{half:.{decimals}f}"


def printed(values: ArrayLike) -> str:
    """Return the mean and half-width of values as Icy22 prints them.

    Example:
        >>> printed([1 / 3, 1 / 3] + 15 * [0])
        '0.04±0.05'
    """
    ((array,), _) = known_runs({"`values`": values})
    return as_printed(float(array.mean()), half_width(array)) if len(array) else ""


# -- power -------------------------------------------------------------------------------------------------------------


def draw_accuracies(
    mean: float, spread: float, persons: int, items: int, rng: np.random.Generator, studies: int = 1
) -> Values:
    """Draw accuracies of persons from a beta-binomial distribution: [studies, persons].

    Args:
        mean: mean of the accuracies.
        spread: their standard deviation over persons. It is clipped to the possible range: from equal persons to
            persons who are always or never right.
        persons: number of persons.
        items: number of items per person.
        rng: random generator.
        studies: number of studies.
    """
    size = (studies, persons)
    if mean in (0.0, 1.0):
        return np.full(size, mean)
    alike = mean * (1 - mean) / items  # variance if all persons are equal
    shared = 0.0 if items == 1 else (spread**2 / alike - 1) / (items - 1)
    shared = min(max(shared, 0.0), 0.999)
    if shared == 0.0:
        return rng.binomial(items, mean, size) / items
    total = 1 / shared - 1
    rates = rng.beta(mean * total, (1 - mean) * total, size)
    return rng.binomial(items, rates) / items


def power_of_study(
    means: Mapping[str, float],
    persons: int,
    spread: float = 0.35,
    items: int = 3,
    baseline: str = "concat",
    alpha: float = 0.05,
    studies: int = 500,
    seed: int = 0,
) -> dict[str, float]:
    """Return the power of a study to distinguish grammars from a baseline, by simulation.

    Each simulated study has permutation tests, corrected by Holm's method.

    Args:
        means: accuracy on held-out items by grammar, including the baseline.
        persons: number of persons per grammar.
        spread: standard deviation of the accuracy over persons; see `draw_accuracies`.
        items: held-out items per person.
        baseline: the grammar that others are compared with.
        alpha: significance level.
        studies: number of simulated studies.
        seed: seed of the simulation.

    Returns:
        The fraction of studies in which the difference is significant, by grammar; under "all", the fraction in which
        all differences are significant.

    Raises:
        InvalidSettingError: an invalid accuracy, spread, level or number, or a missing baseline.

    Example:
        >>> power_of_study({"concat": 0.9, "rot": 0.0}, persons=12, studies=50)["rot"]
        1.0
    """
    if baseline not in means or len(means) < 2:
        raise InvalidSettingError(f"`means` needs the accuracy of '{baseline}' and of at least one other grammar.")
    checked = {name: real_number(f"accuracy of {name}", value, most=1.0) for name, value in means.items()}
    whole_number("number of persons", persons, least=2)
    whole_number("number of items", items)
    whole_number("number of studies", studies)
    real_number("spread over persons", spread, most=1.0)
    require_probability("alpha", alpha)
    whole_number("seed", seed, -LARGEST_SEED - 1, LARGEST_SEED)
    rng = stream(seed, "power of a study")
    accuracies = {name: draw_accuracies(mean, spread, persons, items, rng, studies) for name, mean in checked.items()}
    others = [name for name in means if name != baseline]
    p = np.stack([_fast_p(accuracies[baseline], accuracies[name], rng) for name in others], 1)
    found = np.array([holm(row) for row in p.tolist()]) <= alpha
    return {**dict(zip(others, found.mean(0).tolist(), strict=True)), "all": float(found.all(1).mean())}


def _fast_p(ours: Values, theirs: Values, rng: np.random.Generator) -> Values:
    """Return two-sided p-values of permutation tests, one per study [studies]; all share the same permutations."""
    both = np.concatenate([ours, theirs], 1)
    half, whole = ours.shape[1], both.shape[1]
    first = np.zeros((POWER_RESAMPLES, whole))
    first[:, :half] = 1
    first = rng.permuted(first, axis=1)
    sums, total = both @ first.T, both.sum(1, keepdims=True)
    gaps = np.abs(sums / half - (total - sums) / (whole - half))
    observed = np.abs(ours.mean(1) - theirs.mean(1))[:, None]
    found: Values = ((gaps >= observed - 1e-12).sum(1) + 1) / (POWER_RESAMPLES + 1)
    return found


# -- the people of Icy22 as rows of the study's table, with counts derived from the printed means ----------------------


PUBLISHED = "published"
PEOPLE = "people (Icy22)"
STUDY_COLUMNS = (
    *("agent_kind", "agent", "protocol", "preset", "dataset", "grammar", "instance", "person", "metric", "split"),
    *("value", "items", "persons", "low", "high", "printed", "version", "pilot", "settings"),
)


def published_people() -> pd.DataFrame:
    """Return the published accuracies on held-out items, scores and minutes of people.

    The table has a row per dataset, grammar and metric.

    Accuracies are computed from counts. If several counts fit the printed numbers, `value` is their middle, and `low`
    and `high` are the smallest and the largest. `persons` is the number of games.

    Example:
        >>> people = published_people()
        >>> row = people[(people.dataset == "eng") & (people.grammar == "rot") & (people.metric == "exact")].iloc[0]
        >>> round(float(row["value"] * row["items"])), int(row["persons"]), str(row["printed"])
        (1, 21, '0.02±0.03')
    """
    tables = pd.concat([published(f"icy22/table{number}") for number in (21, 22)])
    exact = tables["measure"].eq("acc_holdout")
    least, most = ((tables[name] / tables["items"]).where(exact) for name in ("correct_min", "correct_max"))
    rows = tables.assign(
        **dict.fromkeys(("instance", "person", "version", "pilot", "settings")),
        agent_kind=PUBLISHED,
        agent=PEOPLE,
        protocol="played",
        preset=PUBLISHED,
        metric=tables["measure"].mask(exact, "exact"),
        split=np.where(exact, "held-out", "game"),
        value=((least + most) / 2).where(exact, tables["mean"]),
        items=tables["items"].where(exact),
        persons=tables["n"],
        low=least,
        high=most,
    )
    return rows[list(STUDY_COLUMNS)].reset_index(drop=True)


def published_draws(rows: pd.DataFrame, resamples: int, rng: np.random.Generator, share: float = 1.0) -> Values:
    """Draw mean accuracies of people from beta distributions of the printed mean and standard error.

    Args:
        rows: rows of `published_people` with the metric "exact".
        resamples: number of draws.
        rng: random generator.
        share: the share of the people that a mean is of. Half of the people have twice the variance.

    Returns:
        Draws [resample, row], 0 to 1.
    """
    means = rows["value"].to_numpy(float)
    errors = [float(str(text).partition("±")[2]) / NORMAL for text in rows["printed"]]
    sizes = [mean * (1 - mean) / (error**2 / share) - 1 for mean, error in zip(means, errors, strict=True)]
    draws = [rng.beta(m * n, (1 - m) * n, resamples) for m, n in zip(means, sizes, strict=True)]
    return np.stack(draws, 1)


# -- distance between the held-out accuracies of a network and of people, and of people from one another ---------------


log = logging.getLogger(__name__)
DRAWS = 4000
HUMAN = "human"  # kind of agent in the rows of a study

Condition = tuple[str, str]  # a dataset and a grammar


@dataclass(frozen=True)
class PeopleAccuracies:
    """Accuracies of people on held-out items in several conditions.

    Attributes:
        conditions: dataset and grammar of each condition.
        means: mean accuracy [condition], 0 to 1.
        draws: resampled means of all people [resample, condition].
        halves: resampled means of two halves of the people, each [resample, condition].
    """

    conditions: tuple[Condition, ...]
    means: Values
    draws: Values
    halves: tuple[Values, Values]

    def part(self, dataset: str) -> PeopleAccuracies:
        """Return the conditions of one dataset.

        Raises:
            InvalidSettingError: no condition has this dataset.
        """
        own = [place for place, (name, _) in enumerate(self.conditions) if name == dataset]
        if not own:
            known = ", ".join(dict.fromkeys(name for name, _ in self.conditions))
            raise InvalidSettingError(f"The people have no results of the dataset '{dataset}'; they have: {known}.")
        halves = self.halves[0][:, own], self.halves[1][:, own]
        return PeopleAccuracies(tuple(self.conditions[i] for i in own), self.means[own], self.draws[:, own], halves)

    def ceiling(self) -> Interval:
        """Return the distance between two halves of the people: the median over splits, and the 95 % interval.

        The accuracies of a half vary more than the accuracies of all people. So a network with the true accuracies of
        people, measured without error, has about half of this distance.
        """
        far = rms(self.halves[0] - self.halves[1])
        low, middle, high = np.quantile(far, [(1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2])
        return Interval(float(middle), float(low), float(high))


def rms(differences: Values) -> Values:
    """Return the root mean square of differences over the last axis."""
    return np.asarray(np.sqrt((differences**2).mean(-1)))


def published_accuracies(resamples: int = DRAWS) -> PeopleAccuracies:
    """Return the people of Icy22: the middle of the counts that fit tables 21 and 22.

    Draws come from beta distributions with the printed mean and standard error. A half of the people has half of the
    weight of all people.

    Args:
        resamples: number of draws.
    """
    rows = published_people()
    rows = rows[rows["metric"] == "exact"]
    conditions = tuple((str(d), str(g)) for d, g in zip(rows["dataset"], rows["grammar"], strict=True))
    rng = stream(0, "people")
    draws, first, second = (published_draws(rows, resamples, rng, share) for share in (1.0, 0.5, 0.5))
    return PeopleAccuracies(conditions, rows["value"].to_numpy(float), draws, (first, second))


def study_accuracies(rows: pd.DataFrame) -> PeopleAccuracies:
    """Return the people of a study. Draws are a bootstrap over persons, and halves are random splits of persons.

    Args:
        rows: rows of the study table, as `icy study export` writes them.

    Raises:
        InvalidSettingError: a condition has fewer than two persons, the rows have no people, or a value is not an
            accuracy.
    """
    own = rows[(rows["agent_kind"] == HUMAN) & (rows["metric"] == "exact") & (rows["split"] == "held-out")]
    numbers = pd.to_numeric(own["value"], errors="coerce")
    if len(wrong := own["value"][~numbers.between(0, 1)]):
        raise InvalidSettingError(f"An accuracy of people is a number from 0 to 1, not {quoted(wrong.iloc[0])}.")
    agents = sorted(set(own["agent"].astype(str)))
    if len(agents) > 1 or ("pilot" in own and boolean_column("Column pilot", own["pilot"]).any()):
        log.warning("The people are %s: choose the games of one study, without its pilot.", listed(agents))
    # Sorted, so that the draws do not depend on the order of the rows.
    own = own.assign(value=numbers).sort_values("value")
    groups = {(str(d), str(g)): part["value"].to_numpy(float) for (d, g), part in own.groupby(["dataset", "grammar"])}
    if not groups:
        raise InvalidSettingError("These rows have no answers of people to held-out items.")
    for (dataset, grammar), values in groups.items():
        if len(values) < 2:
            raise InvalidSettingError(f"Only one person played {grammar} of {dataset}; a distance needs two or more.")
    rng = stream(0, "people")
    draws = [values[rng.integers(len(values), size=(DRAWS, len(values)))].mean(1) for values in groups.values()]
    # The means of two halves of each group, for many random splits.
    mixed = [rng.permuted(np.tile(values, (DRAWS, 1)), axis=1) for values in groups.values()]
    first = np.stack([values[:, : values.shape[1] // 2].mean(1) for values in mixed], 1)
    second = np.stack([values[:, values.shape[1] // 2 :].mean(1) for values in mixed], 1)
    means = np.array([values.mean() for values in groups.values()])
    return PeopleAccuracies(tuple(groups), means, np.stack(draws, 1), (first, second))


def people_distance(accuracies: Values, people: PeopleAccuracies) -> Interval:
    """Return the root mean square difference between the accuracies of a network and of people.

    The 95 % interval is a bootstrap of both: of the network's instances, and of people.

    Args:
        accuracies: accuracies of the network [instance, condition], 0 to 1, in the order of `people.conditions`.
        people: the people.
    """
    rng = stream(0, "network")
    chosen = accuracies[rng.integers(len(accuracies), size=(len(people.draws), len(accuracies)))].mean(1)
    low, high = np.quantile(rms(chosen - people.draws), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(rms(accuracies.mean(0) - people.means)), float(low), float(high))


def grammars_of(people: PeopleAccuracies) -> dict[str, Sequence[str]]:
    """Return the grammars of each dataset."""
    found: dict[str, list[str]] = {}
    for dataset, grammar in people.conditions:
        found.setdefault(dataset, []).append(grammar)
    return dict(found)
