"""Means with random effects, such as cells, architectures and languages, from runs of which some are cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from icy.analysis.statistics import CONFIDENCE, FEWEST_KNOWN, LEAST_RATIO, Mask, Values, known_runs, student
from icy.core.checks import number_column, require_names
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.text import listed
from icy.records.load import with_current_names
from icy.records.long_table import option_cell, option_columns, option_rows

from .order import without_repeats

if TYPE_CHECKING:
    import pandas as pd

RESIDUAL = "residual"
LEAST_RESIDUAL = 1e-6  # least variance of the residuals, as a fraction of the variance of all values
LEAST_SHARE = 1e-5  # a smaller variance, as a fraction, counts as 0
STEP = 0.02  # step of finite differences, in the logarithm of a variance
ROUNDS = 200  # most iterations of expectation propagation
TOLERANCE = 1e-9  # tolerance of its result


@dataclass(frozen=True)
class MixedEffects:
    """Means with 95 % intervals that respect random effects; see `mixed_effects`.

    Attributes:
        means: a row per level of the fixed column (or one row, "mean"), with the columns `mean` (for ratios, the
            geometric mean), `low` and `high` (95 % interval), `error` (standard error; for ratios, of the logarithm),
            `freedom` (degrees of freedom), and `bound` (">" if only a lower bound of the mean is known; it is in
            `low`).
        deviations: standard deviation of each random effect and of the residuals; for ratios, of logarithms.
        levels: number of levels of each random effect.
        runs: number of runs with a value.
        censored: number of runs that were cut.
        log: whether values are ratios.
        likelihood: the logarithm of the restricted likelihood.
    """

    means: pd.DataFrame
    deviations: pd.Series[float]
    levels: dict[str, int]
    runs: int
    censored: int
    log: bool
    likelihood: float
    _model: _Model = field(repr=False)
    _names: dict[object, str] = field(default_factory=dict, repr=False)  # the text of each level of the fixed column

    @property
    def shares(self) -> pd.Series[float]:
        """Fraction of the variance of runs that is due to each random effect, and to the residuals."""
        variances = self.deviations**2
        return variances / variances.sum()

    def contrast(self, weights: Mapping[Any, float]) -> pd.Series[float]:
        """Return a weighted sum of means with its 95 % interval and a test.

        Args:
            weights: weights of levels of the fixed column, such as {"FC": 1, "RNN": -1} for a difference. A level is
                its value or its text, such as 32 or "32". For ratios, logarithms are summed, so weights that add up to
                0 give a quotient.

        Returns:
            `value`, `low`, `high`, `error` and `freedom`, as in `means`, and `p` (two-sided test of a sum of 0).

        Raises:
            InvalidSettingError: a name is not a level, or only a bound of its mean is known.
        """
        import pandas as pd

        known = list(self.means.index[self.means["bound"].eq("")])
        of_level = dict.fromkeys(known, 0.0)
        for level, weight in dict(weights).items():
            name = self._names.get(level, str(level))
            if name not in known:
                why = f"The mean of {name} is not known" if name in self.means.index else f"'{name}' is not a level"
                raise InvalidSettingError(f"{why}; choose from {listed(known)}.")
            of_level[name] += weight
        value, error, freedom = self._model.estimate(np.array(list(of_level.values())))
        row = _mean_row(value, error, freedom, self.log)
        p = 2 * float(scipy.stats.t.sf(abs(value) / error, freedom))
        return pd.Series({"value": row["mean"], **{n: row[n] for n in ("low", "high", "error", "freedom")}, "p": p})

    def profile(self, effect: str) -> tuple[float, float]:
        """Return the 95 % interval of the standard deviation of a random effect, by its profile likelihood.

        Args:
            effect: name of the random effect, or "residual".
        """
        low, high = self._model.profile(list(self.deviations.index).index(effect))
        return math.sqrt(low), math.sqrt(high)

    def p(self, effect: str) -> float:
        """Return the p-value of a likelihood-ratio test of a random effect.

        It is half the p-value of chi-squared with one degree of freedom, as a variance cannot be below 0.

        Args:
            effect: name of the random effect.
        """
        gain = 2 * (self.likelihood - self._model.best({list(self.deviations.index).index(effect): 0.0}))
        return float(scipy.stats.chi2.sf(max(gain, 0.0), 1)) / 2 if gain > 0 else 1.0


def mixed_effects(
    results: pd.DataFrame,
    random: Sequence[str],
    fixed: str | None = None,
    *,
    value: str = "value",
    censored: str | None = "censored",
    log: bool = True,
) -> MixedEffects:
    """Estimate means with intervals that generalize to new cells, architectures or seeds.

    The value of a run is modeled as a mean (for each level of `fixed`), plus a normal effect of each level of each
    random column, plus a normal residual. Effects may be crossed or nested. So models that share a cell, or a language,
    do not count as independent.

    Runs that were cut contribute the probability of a larger value (expectation propagation: Cunningham, Hennig and
    Lacoste-Julien 2011, "Gaussian Probabilities and Expectation Propagation"). Variances are estimated by restricted
    maximum likelihood (REML). Intervals of means are by Student's t with Satterthwaite's degrees of freedom.

    Args:
        results: a row per run, such as rows of one grammar of `result.to_dataframe()`. Rows without a value are left
            out, with a warning, and so are runs of a long table that repeat others, as of a model without a hidden
            layer at several hidden sizes.
        random: columns, or several joined by colons (`"cell:architecture"`) for each combination of their values.
        fixed: column with a mean for each of its levels.
        value: column of values.
        censored: column that says whether each run was cut, so that its true value is larger; see
            `icy.core.checks.boolean_column`. If it is None or a missing column, no run was cut. In tables of icy 0.1
            the column is `cut`, which is also read.
        log: whether values are ratios, which are modeled by their logarithms (ratios below 0.01 are raised to 0.01).

    Returns:
        The means with their 95 % intervals in the unit of the values (geometric means of ratios), and the standard
        deviation of each random effect.

    Raises:
        IncompatibleError: a random column has one level, or as many levels as runs; or fewer than three runs were not
            cut; or values do not vary.
        InvalidSettingError: a column is missing, a run has no value in `random` or `fixed`, or values or `censored` are
            not as for `icy.analysis.statistics.known_runs`.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis import mixed_effects
        >>> ratios = {"GRU": [1.9, 2.0, 2.2, 2.1], "LSTM": [3.1, 3.0, 2.7, 2.8], "SRU": [2.4, 2.6, 2.4, 2.3]}
        >>> runs = pd.DataFrame([(cell, ratio) for cell in ratios for ratio in ratios[cell]], columns=["cell", "value"])
        >>> found = mixed_effects(runs, random=["cell"])
        >>> found.means.round(2)[["mean", "low", "high", "freedom"]].values.tolist()
        [[2.43, 1.58, 3.74, 2.0]]
    """
    import pandas as pd

    columns = [*(name for one in random for name in one.split(":")), *([fixed] if fixed else [])]
    for name in (*columns, value):
        if name not in results:
            raise InvalidSettingError(f"Column {name} is missing; the columns are {listed([*map(str, results)])}.")
    results = without_repeats(with_current_names(results))
    (values,), (is_cut,) = known_runs(
        {f"Column {value}": results[value]}, {f"Column {censored}": results.get(censored)}
    )
    runs = results[~np.isnan(number_column(f"Column {value}", results[value]))].reset_index(drop=True)
    require_names(runs, columns)
    level = runs[fixed].astype(str) if fixed else pd.Series("mean", runs.index)
    cuts = pd.Series(is_cut).groupby(level.to_numpy()).all()
    bounded = level.map(cuts).to_numpy(bool)
    y = np.log(np.maximum(values, LEAST_RATIO)) if log else values
    names = list(dict.fromkeys(level[~bounded]))
    used = ~bounded
    if (~is_cut).sum() < FEWEST_KNOWN or not np.ptp(y[used]) > 0:
        raise IncompatibleError(
            f"{(~is_cut).sum()} of {len(runs)} runs were not cut; random effects need {FEWEST_KNOWN} that differ."
        )
    design = (level[used].to_numpy()[:, None] == np.array(names)).astype(float)
    effects = {name: _levels(runs[used], name) for name in random}
    model = _Model(y[used], is_cut[used], design, [effect[:, None] == effect for effect in effects.values()])
    found: dict[str, dict[str, float | str]] = {}
    for name in dict.fromkeys(level[bounded]):  # of levels with only cut runs
        mean = float(y[level.eq(name).to_numpy()].mean())
        limit, unknown = math.exp(mean) if log else mean, dict.fromkeys(("error", "freedom"), math.nan)
        found[name] = {"mean": math.nan, "low": limit, "high": math.inf, **unknown, "bound": ">"}
    for name, unit in zip(names, np.eye(len(names)), strict=True):
        found[name] = _mean_row(*model.estimate(unit), log)
    order = list(dict.fromkeys(level))
    means = pd.DataFrame([found[name] for name in order], index=order)
    deviations = pd.Series(np.sqrt(model.variances), [*random, RESIDUAL])
    levels = {name: int(effect.max()) + 1 for name, effect in effects.items()}
    names_of = dict(zip(runs[fixed], level, strict=True)) if fixed else {}
    return MixedEffects(means, deviations, levels, len(runs), int(is_cut.sum()), log, model.likelihood, model, names_of)


def with_languages(results: pd.DataFrame) -> pd.DataFrame:
    """Return runs with a column `language`: the seed of their words.

    It is the value of `icy probe --word-seeds`, or else the run's own seed. It is removed from the column `options`, so
    that runs of one model with several languages belong to one row.

    Args:
        results: results in long form, with the columns `options` and `seed`.

    Returns:
        A copy of the results, a row per run, with the column `language` of whole numbers.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis import with_languages
        >>> with_languages(pd.DataFrame({"options": ["a=1, word_seed=7", ""], "seed": [1, 2]})).values.tolist()
        [['a=1', 1, 7], ['', 2, 2]]
    """
    options = option_columns(results)
    languages = options.get("word_seed", results["seed"]).fillna(results["seed"]).astype(int)
    rest = option_rows(options.drop(columns="word_seed", errors="ignore"))
    return results.assign(options=[*map(option_cell, rest)], language=languages)


def _levels(runs: pd.DataFrame, name: str) -> Values:
    """Return the index of each run's level.

    Raises:
        IncompatibleError: there is only one level, or there are as many levels as runs.
    """
    found = runs.groupby(name.split(":"), sort=False, dropna=False).ngroup().to_numpy()
    count = int(found.max()) + 1
    if not 1 < count < len(runs):
        raise IncompatibleError(
            f"{name} has {count} levels in {len(runs)} runs; a random effect needs at least two levels, and "
            "fewer levels than runs."
        )
    return np.asarray(found)


def _mean_row(value: float, error: float, freedom: float, log: bool) -> dict[str, float | str]:
    """Return a row of `MixedEffects.means`."""
    width = student(freedom) * error
    ends = np.array([value, value - width, value + width])
    mean, low, high = map(float, np.exp(np.clip(ends, -700, 700)) if log else ends)
    return {"mean": mean, "low": low, "high": high, "error": error, "freedom": freedom, "bound": ""}


# -- likelihood --------------------------------------------------------------------------------------------------------


class _Fit(NamedTuple):
    """The restricted log likelihood at some variances, with the coefficients and their covariance."""

    likelihood: float
    coefficients: Values
    covariance: Values


class _Model:
    """A linear mixed model of values; some values are lower limits.

    Attributes:
        variances: REML estimates of the variance of each random effect and of the residuals.
        likelihood: the restricted log likelihood.
    """

    def __init__(self, y: Values, cut: Mask, design: Values, same: Sequence[Mask]) -> None:
        """Fit the model.

        Args:
            y: values [run].
            cut: for each value, whether it is a lower limit.
            design: matrix of fixed effects [run, coefficient].
            same: for each random effect, a mask of the pairs of runs that share a level [run, run].
        """
        order = np.argsort(cut, kind="stable")
        self.known = int((~cut).sum())
        self.scale = float(y.std())
        self.y, self.design = y[order] / self.scale, design[order]
        self.same = [one[np.ix_(order, order)].astype(float) for one in same]
        self.scaled, self.likelihood = self._maximum({})
        self.variances = self.scaled * self.scale**2

    def at(self, variances: Values) -> _Fit:
        """Return the restricted log likelihood at variances (in units of the variance of all values)."""
        n, known = len(self.y), self.known
        v = sum((size * one for size, one in zip(variances, self.same, strict=False)), variances[-1] * np.eye(n))
        factor = np.linalg.cholesky(v[:known, :known])

        def solve(right: Values) -> Values:
            return np.asarray(scipy.linalg.solve_triangular(factor, right, lower=True, check_finite=False), float)

        x, y = solve(self.design[:known]), solve(self.y[:known])
        inverse = np.asarray(np.linalg.inv(x.T @ x), float)
        b = np.asarray(inverse @ (x.T @ y), float)
        rest = y - x @ b
        size = known - x.shape[1]
        likelihood = -0.5 * (
            2 * np.log(np.diag(factor)).sum() - np.linalg.slogdet(inverse)[1] + rest @ rest
            + size * math.log(2 * math.pi)
        ) - size * math.log(self.scale)  # fmt: skip
        if known == n:
            return _Fit(float(likelihood), b, inverse)
        link = solve(v[:known, known:])
        slope = self.design[known:] - link.T @ x
        mean = self.design[known:] @ b + link.T @ rest
        covariance = v[known:, known:] - link.T @ link + slope @ inverse @ slope.T
        chance, shift, narrowed = beyond(self.y[known:] - mean, covariance)
        gain = np.asarray(np.linalg.solve(covariance, slope @ inverse).T, float)
        return _Fit(float(likelihood + chance), b + gain @ shift, inverse + gain @ (narrowed - covariance) @ gain.T)

    def _maximum(self, fixed: Mapping[int, float]) -> tuple[Values, float]:
        """Return the variances that maximize the likelihood, given fixed variances, and the log likelihood."""
        count = len(self.same) + 1
        free = [i for i in range(count) if i not in fixed]
        values = np.full(count, 1 / count)
        values[list(fixed)] = list(fixed.values())

        def loss(some: Values) -> float:
            values[free] = some
            return -self.at(values).likelihood

        limits = [(LEAST_RESIDUAL if i == count - 1 else 0.0, None) for i in free]
        best = scipy.optimize.minimize(loss, np.full(len(free), 1 / count), method="L-BFGS-B", bounds=limits)
        values[free] = np.where((best.x < LEAST_SHARE) & (np.array(free) < count - 1), 0.0, best.x)
        return values.copy(), self.at(values).likelihood

    def best(self, fixed: Mapping[int, float]) -> float:
        """Return the largest log likelihood, given fixed variances (in units of the values squared)."""
        return self._maximum({i: size / self.scale**2 for i, size in fixed.items()})[1]

    def estimate(self, weights: Values) -> tuple[float, float, float]:
        """Return a weighted sum of coefficients, its standard error, and Satterthwaite's degrees of freedom."""
        found = self.at(self.scaled)
        variance = float(weights @ found.covariance @ weights)
        positive = np.flatnonzero(self.scaled > 0)

        def moved(change: Values) -> _Fit:
            values = self.scaled.copy()
            values[positive] *= np.exp(change)
            return self.at(values)

        steps = STEP * np.eye(len(positive))
        sides = [[moved(side * step) for side in (1, -1)] for step in steps]
        slope = np.array([weights @ (up.covariance - down.covariance) @ weights for up, down in sides]) / (2 * STEP)
        information = np.empty((len(positive), len(positive)))
        for i, (up, down) in enumerate(sides):
            information[i, i] = (2 * found.likelihood - up.likelihood - down.likelihood) / STEP**2
            for j in range(i):
                corners = [a * b * moved(a * steps[i] + b * steps[j]).likelihood for a in (1, -1) for b in (1, -1)]
                information[i, j] = information[j, i] = -sum(corners) / (4 * STEP**2)
        spread = float(slope @ np.linalg.pinv(information, hermitian=True) @ slope)
        freedom = 2 * variance**2 / spread if spread > 0 else math.inf
        freedom = min(max(freedom, 1.0), float(len(self.y) - len(weights)))
        return float(weights @ found.coefficients) * self.scale, math.sqrt(variance) * self.scale, freedom

    def profile(self, effect: int) -> tuple[float, float]:
        """Return the interval of a variance within which twice the log likelihood falls by less than 3.84."""
        drop = float(scipy.stats.chi2.ppf(CONFIDENCE, 1)) / 2
        size = float(self.scaled[effect])

        def lost(value: float) -> float:
            return self.likelihood - self._maximum({effect: value})[1] - drop

        least = LEAST_RESIDUAL if effect == len(self.same) else 0.0
        low = 0.0 if lost(least) <= 0 else _root(lost, least, size)
        high = max(2 * size, LEAST_SHARE)
        while lost(high) <= 0 and high < 1e6:
            high *= 4
        return low * self.scale**2, _root(lost, size, high) * self.scale**2


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(scipy.optimize.brentq(function, low, high, rtol=1e-3))


def beyond(limits: Values, covariance: Values) -> tuple[float, Values, Values]:
    """Return the log probability that normal variables of mean 0 are all above their limits, and their moments there.

    The method is expectation propagation.

    Args:
        limits: limits [variable].
        covariance: covariance [variable, variable], positive definite.

    Returns:
        The logarithm of the probability, and the mean and the covariance of the variables above their limits.

    Example:
        >>> import numpy as np
        >>> found = beyond(np.zeros(2), np.array([[1, 0.5], [0.5, 1]]))  # 1/4 + arcsin(0.5) / 2 pi = 1/3
        >>> round(float(np.exp(found[0])), 3)
        0.333
    """
    precision, shift = np.zeros(len(limits)), np.zeros(len(limits))  # parameters of each site
    mean, now, before = np.zeros(len(limits)), covariance, math.inf
    for _ in range(ROUNDS):
        cavity = 1 / np.diag(now) - precision
        pull = mean / np.diag(now) - shift
        width = 1 / np.sqrt(cavity)
        edge = (limits - pull / cavity) / width
        tail = scipy.special.log_ndtr(-edge)
        hazard = np.exp(-0.5 * edge**2 - 0.5 * math.log(2 * math.pi) - tail)
        center = pull / cavity + width * hazard
        narrow = np.maximum(width**2 * (1 - hazard * (hazard - edge)), 1e-12)
        precision, shift = np.maximum(1 / narrow - cavity, 0.0), center / narrow - pull
        root = np.sqrt(precision)
        inner = np.eye(len(limits)) + root[:, None] * covariance * root
        scaled = root[:, None] * covariance
        now = covariance - scaled.T @ np.linalg.solve(inner, scaled)
        mean = now @ shift
        total = cavity + precision
        sites = tail - 0.5 * ((pull + shift) ** 2 / total - pull**2 / cavity) + 0.5 * np.log(total / cavity)
        chance = float(sites.sum() + 0.5 * shift @ mean - 0.5 * np.linalg.slogdet(inner)[1])
        if abs(chance - before) < TOLERANCE:
            break
        before = chance
    return chance, mean, now
