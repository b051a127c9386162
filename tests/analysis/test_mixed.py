"""Mixed models: results of other programs, censored likelihoods, and errors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from icy.analysis import mixed_effects
from icy.analysis.mixed import _Model, beyond
from icy.core.errors import InvalidSettingError

# Data of Davies and Goldsmith 1972, as lme4 has them.
DYESTUFF = """
1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560
1445 1440 1595 1465 1545 1595 1630 1515 1635 1625 1520 1455 1450 1480 1445
"""
PASTES = """
62.8 62.6 60.1 62.3 62.7 63.1 60.0 61.4 57.5 56.9 61.1 58.9 58.7 57.5 63.9 63.1 65.4 63.7 57.1 56.4 56.9 58.6 64.7
64.5 55.1 55.1 54.7 54.2 58.8 57.5 63.4 64.9 59.3 58.1 60.5 60.0 62.5 62.6 61.0 58.7 56.9 57.7 59.2 59.4 65.2 66.0
64.8 64.1 54.8 54.8 64.0 64.0 57.7 56.8 58.3 59.3 59.2 59.2 58.9 56.6
"""
PENICILLIN = """
27 23 26 23 23 21 27 23 26 23 23 21 25 21 25 24 24 20 26 23 25 23 23 20 25 22 26 22 23 20 24 22 25 23 22 19 24 20
23 21 22 19 26 22 26 24 24 21 24 21 24 22 22 20 24 21 24 23 22 19 26 23 26 24 24 21 25 22 26 24 24 20 26 24 26 24
25 22 26 23 26 23 23 20 26 23 25 24 24 22 25 22 25 23 23 20 25 21 24 23 23 20 25 22 24 23 23 19 24 21 23 21 21 19
26 23 26 24 24 21 25 21 24 22 22 18 25 22 25 22 22 20 24 21 24 22 24 19 24 21 24 22 21 18
"""


RUNS = pd.DataFrame(
    {"value": [2.0, 2.2, 1.9, 3.0, 3.3, 4.0, 4.0, 3.6, 3.5], "censored": [False] * 5 + [True] * 2 + [False] * 2,
     "model": list("aaabbbccc"), "hidden": [16, 16, 32] * 3}
)  # fmt: skip


def numbers(text: str) -> list[float]:
    return [float(one) for one in text.split()]


def dyestuff() -> pd.DataFrame:
    return pd.DataFrame({"value": numbers(DYESTUFF), "batch": np.repeat(list("ABCDEF"), 5)})


# -- other programs ----------------------------------------------------------------------------------------------------


def test_dyestuff_is_statsmodels_and_lme4s() -> None:
    """statsmodels 0.15.0, MixedLM; lme4's REML criterion is 319.6543. It is balanced: five degrees of freedom."""
    runs = dyestuff()
    found = mixed_effects(runs, ["batch"], log=False)
    row = found.means.loc["mean"]
    assert (row["mean"], row["error"]) == pytest.approx((1527.5, 19.383908), rel=1e-4)
    assert row["freedom"] == pytest.approx(5, abs=0.01)
    assert found.deviations.tolist() == pytest.approx([42.002031, 49.509836], rel=1e-3)
    assert found.likelihood == pytest.approx(-159.827138, abs=1e-4)
    means = runs.groupby("batch")["value"].mean()
    low, high = stats.t.interval(0.95, 5, 1527.5, means.std() / math.sqrt(6))
    assert (row["low"], row["high"]) == pytest.approx((low, high), rel=1e-4)


def test_pastes_is_statsmodels() -> None:
    """statsmodels 0.15.0, MixedLM with vc_formula: casks nested in batches."""
    runs = pd.DataFrame({"value": numbers(PASTES)})
    runs = runs.assign(batch=runs.index // 6, cask=runs.index // 2 % 3)
    found = mixed_effects(runs, ["batch", "batch:cask"], log=False)
    assert found.means[["mean", "error"]].values[0] == pytest.approx((60.053333, 0.676932), rel=1e-3)
    assert found.deviations.tolist() == pytest.approx([1.287796, 2.903939, 0.823410], rel=2e-3)
    assert found.likelihood == pytest.approx(-123.495373, abs=1e-4)
    assert found.levels == {"batch": 10, "batch:cask": 30}


@pytest.mark.slow
def test_penicillin_is_lme4s() -> None:
    """lme4 2.0.1 in R: six samples, each on all of 24 plates."""
    runs = pd.DataFrame({"value": numbers(PENICILLIN)})
    runs = runs.assign(plate=runs.index // 6, sample=runs.index % 6)
    found = mixed_effects(runs, ["plate", "sample"], log=False)
    assert found.means[["mean", "error"]].values[0] == pytest.approx((22.97222, 0.8085954), rel=1e-3)
    assert found.deviations.tolist() == pytest.approx([0.84670, 1.93161, 0.54992], rel=1e-3)
    assert found.likelihood == pytest.approx(-165.4302945, abs=1e-4)


# -- runs that were cut ------------------------------------------------------------------------------------------------


def test_the_probability_of_large_values_is_close_to_that_of_other_methods() -> None:
    alone = beyond(np.array([0.7]), np.array([[4.0]]))
    edge = 0.35
    hazard = stats.norm.pdf(edge) / stats.norm.sf(edge)
    assert alone[0] == pytest.approx(stats.norm.logsf(edge))
    assert alone[1][0] == pytest.approx(2 * hazard)
    assert alone[2][0, 0] == pytest.approx(4 * (1 - hazard * (hazard - edge)))
    for together in (0.0, 0.5, 0.9):  # of equal correlations: one integral
        grid = np.linspace(-8, 8, 4001)
        inside = stats.norm.sf((0.5 - math.sqrt(together) * grid) / math.sqrt(1 - together)) ** 4
        exact = math.log(integrate.trapezoid(stats.norm.pdf(grid) * inside, grid))
        found = beyond(np.full(4, 0.5), np.full((4, 4), together) + (1 - together) * np.eye(4))[0]
        assert found == pytest.approx(exact, abs=0.06)


def test_a_censored_likelihood_is_that_of_an_integral() -> None:
    """Four models with three runs each, three of them cut, integrated over models' effects and the mean."""
    draws = np.random.default_rng(0)
    y = (draws.normal(size=(4, 1)) + 0.5 * draws.normal(size=(4, 3))).ravel()
    cut = y > np.sort(y)[-4]
    y[cut] = y[~cut].max()
    group = np.repeat(np.arange(4), 3)
    model = _Model(y, cut, np.ones((12, 1)), [group[:, None] == group])
    grid = np.linspace(-6, 6, 401)

    def likelihood(between: float, within: float) -> float:
        each = np.where(cut, stats.norm.logsf(y, grid[:, None], within), stats.norm.logpdf(y, grid[:, None], within))
        inner = np.exp(np.array([each[:, group == one].sum(1) for one in range(4)]))  # [model, mean plus effect]
        effects = stats.norm.pdf(grid[:, None] - grid, scale=between)  # [mean plus effect, mean]
        given_mean = integrate.trapezoid(inner[:, :, None] * effects, grid, axis=1)  # [model, mean]
        return math.log(integrate.trapezoid(np.prod(given_mean, axis=0), grid))

    def difference(found: list[float]) -> float:
        return found[1] - found[0]

    sizes = [(0.8, 0.4), (1.2, 0.6)]
    exact = [likelihood(*size) for size in sizes]
    found = [model.at(np.array(size) ** 2 / model.scale**2).likelihood for size in sizes]
    assert found == pytest.approx(exact, abs=0.05)
    assert difference(found) == pytest.approx(difference(exact), abs=0.03)


def test_cut_runs_make_a_mean_larger() -> None:
    aware, naive = (mixed_effects(RUNS, ["model"], censored=one) for one in ("censored", None))
    assert aware.means.loc["mean", "mean"] > naive.means.loc["mean", "mean"] * 1.01
    assert (aware.censored, naive.censored) == (2, 0)


def test_a_level_with_only_cut_runs_has_a_bound() -> None:
    draws = np.random.default_rng(1)
    runs = pd.DataFrame({"model": np.repeat(list("abcdef"), 3), "family": np.repeat(["FC", "RNN", "CNN"], 6)})
    runs = runs.assign(value=np.exp(draws.normal(size=18)), censored=runs["family"].eq("FC"))
    found = mixed_effects(runs, ["model"], fixed="family")
    row = found.means.loc["FC"]
    assert (row["bound"], row["low"], row["high"]) == (">", pytest.approx(stats.gmean(runs["value"][:6])), math.inf)
    alone = mixed_effects(runs[~runs["censored"]], ["model"], fixed="family")
    assert found.means.loc[["RNN", "CNN"], "low"].tolist() == pytest.approx(alone.means["low"].tolist())
    with pytest.raises(InvalidSettingError, match="mean of FC is not known; choose from RNN and CNN"):
        found.contrast({"FC": 1, "RNN": -1})


# -- means and variances -----------------------------------------------------------------------------------------------


def test_contrasts_are_those_of_analysis_of_variance() -> None:
    """Balanced and nested: a t-test of the means of groups."""
    draws = np.random.default_rng(2)
    runs = pd.DataFrame({"model": np.repeat(range(10), 3), "family": np.repeat(["a", "b"], 15)})
    runs = runs.assign(value=np.repeat(draws.normal(size=10), 3) + 0.3 * draws.normal(size=30))
    found = mixed_effects(runs, ["model"], fixed="family", log=False)
    means = runs.groupby("model")["value"].mean()
    test = stats.ttest_ind(means[:5], means[5:])
    contrast = found.contrast({"a": 1, "b": -1})
    assert contrast["p"] == pytest.approx(test.pvalue, rel=1e-2)
    assert contrast["freedom"] == pytest.approx(8, rel=1e-2)
    interval = test.confidence_interval()
    assert (contrast["low"], contrast["high"]) == pytest.approx((interval.low, interval.high), rel=1e-2)
    ratios = mixed_effects(runs.assign(value=np.exp(runs["value"])), ["model"], fixed="family")
    assert ratios.contrast({"a": 1, "b": -1})["value"] == pytest.approx(math.exp(contrast["value"]), rel=1e-3)


@pytest.mark.slow
def test_intervals_and_tests_of_variances_are_by_profiles() -> None:
    runs = dyestuff()
    found = mixed_effects(runs, ["batch"], log=False)
    low, high = found.profile("batch")
    assert low < found.deviations["batch"] < high
    for end in (low, high):
        assert found.likelihood - found._model.best({0: end**2}) == pytest.approx(1.9207, abs=0.01)
    assert found.p("batch") == pytest.approx(0.0058, abs=1e-3)
    assert found.shares.sum() == pytest.approx(1)
    alike = mixed_effects(runs.assign(value=np.tile([1.0, 2, 3, 4, 5], 6)), ["batch"], log=False)
    assert alike.deviations["batch"] == 0
    assert (alike.p("batch"), alike.profile("batch")[0]) == (1, 0)


@pytest.mark.parametrize(
    "column",
    [RUNS["censored"].astype(str), RUNS["censored"].map({True: "T", False: None}), RUNS["censored"].astype(float)],
)
def test_cut_runs_may_be_text(column: pd.Series) -> None:
    expected, found = (mixed_effects(table, ["model"]) for table in (RUNS, RUNS.assign(censored=column)))
    assert found.censored == 2
    assert found.means.equals(expected.means)
    with pytest.raises(InvalidSettingError, match="Column censored must hold yes or no"):
        mixed_effects(RUNS.assign(censored="maybe"), ["model"])


def test_runs_without_a_value_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    found = mixed_effects(
        RUNS.assign(value=[math.nan, *RUNS["value"][1:]], hidden=[None, *RUNS["hidden"][1:]]), ["model"], "hidden"
    )
    assert found.runs == 8
    assert "Left out 1 of 9 runs without a value in Column value" in caplog.text


@pytest.mark.parametrize(("random", "fixed"), [(["model"], "family"), (["family"], None), (["model:family"], None)])
@pytest.mark.parametrize("missing", [None, math.nan, pd.NA])
def test_missing_names_of_groups_are_errors(random: list[str], fixed: str | None, missing: object) -> None:
    with pytest.raises(InvalidSettingError, match="Column family is empty in 4 of 9 rows"):
        mixed_effects(RUNS.assign(family=["x", "x", missing, "y", missing, "x", "y", missing, missing]), random, fixed)


def test_contrasts_of_levels_that_are_numbers() -> None:
    found = mixed_effects(RUNS, ["model"], "hidden")
    expected = found.contrast({"32": 1, "16": -1})
    for weights in ({32: 1, 16: -1}, {32.0: 1, 16.0: -1}, {np.int64(32): 1, "16": -1}, pd.Series({32: 1, 16: -1})):
        assert found.contrast(weights).equals(expected)
    with pytest.raises(InvalidSettingError, match="'8' is not a level; choose from 16 and 32"):
        found.contrast({8: 1})
