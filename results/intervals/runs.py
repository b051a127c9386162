"""Simulated runs: each function returns the true value, icy's interval, and a plain interval to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from icy.analysis import (
    across_models,
    crossed_correlations,
    equivalence,
    mixed_effects,
    reliability,
    within_model_order,
)
from icy.analysis.correlations import median_interval, rank_correlation
from icy.analysis.statistics import log_summary, student

Draws = np.random.Generator
Ends = tuple[float, float]  # ends of an interval
Try = tuple[float, Ends, Ends]  # the true value, icy's interval, and a plain interval
NONE = (math.nan, math.nan)


def spearman(pearson: float) -> float:
    """Return the Spearman correlation of normal variables with this Pearson correlation."""
    return 6 / math.pi * math.asin(pearson / 2)


# -- means -------------------------------------------------------------------------------------------------------------


def seeds(draws: Draws, count: int, cap: float = math.inf) -> Try:
    """Simulate the ratios of one model; the cap is in standard deviations above the mean."""
    values = draws.normal(size=count)
    found = log_summary(np.exp(np.minimum(values, cap)), values > cap)
    plain = np.minimum(values, cap)
    width = student(count - 1) * plain.std(ddof=1) / math.sqrt(count)
    ends = NONE if found.bound else tuple(np.log(found.interval))
    return 0.0, ends, (plain.mean() - width, plain.mean() + width)


def models(
    draws: Draws, cell: float, architecture: float, language: float, model: float, cap: float = math.inf,
    languages: int = 3, part: str = "mean",
) -> Try:  # fmt: skip
    """Simulate runs of 5 cells in 6 architectures in the same languages.

    `cell`, `architecture`, `language` and `model` are standard deviations; the standard deviation of seeds is 1.
    """
    sizes = (5, 6, languages)
    shapes = {(5, 1, 1): cell, (6, 1): architecture, (languages,): language, (5, 6, 1): model, sizes: 1}
    y = sum(size * draws.normal(size=shape) for shape, size in shapes.items())
    c, a, s = (one.ravel() for one in np.indices(sizes))
    runs = pd.DataFrame({"cell": c, "architecture": a, "model": 6 * c + a, "seed": s})
    runs = runs.assign(value=np.minimum(y, cap).ravel(), censored=(y > cap).ravel())
    found = mixed_effects(runs, ["cell", "architecture", "model", "seed"], log=False)
    if part == "cell":
        return cell, found.profile("cell"), NONE
    means = runs.groupby("model")["value"].mean()
    width = student(29) * float(means.std()) / math.sqrt(30)
    row = found.means.loc["mean"]
    return 0.0, (row["low"], row["high"]), (means.mean() - width, means.mean() + width)


def contrast(draws: Draws, cell: float) -> Try:
    """Simulate the difference of two families with four cells, three models per cell and three seeds.

    `cell` is the standard deviation of cells, which the families share.
    """
    y = cell * draws.normal(size=(8, 1, 1)) + draws.normal(size=(8, 3, 1)) + draws.normal(size=(8, 3, 3))
    c, m, _ = (one.ravel() for one in np.indices(y.shape))
    runs = pd.DataFrame({"cell": c, "model": 3 * c + m, "family": np.where(c < 4, "a", "b"), "value": y.ravel()})
    row = mixed_effects(runs, ["cell", "model"], fixed="family", log=False).contrast({"a": 1, "b": -1})
    means = [runs[runs["family"].eq(name)].groupby("model")["value"].mean() for name in "ab"]
    plain = equivalence(*means, 1.0, log=False)
    return 0.0, (row["low"], row["high"]), (plain.low, plain.high)


def quotient(draws: Draws, ours: int, theirs: int) -> Try:
    """Simulate the quotient of two sets of runs with standard deviations 1 and 2."""
    found = equivalence(draws.normal(size=ours), 2 * draws.normal(size=theirs), 1.0, log=False)
    return 0.0, (found.low, found.high), NONE


# -- correlations ------------------------------------------------------------------------------------------------------


def orders(draws: Draws, count: int, cell: float, grammars: int) -> tuple[pd.DataFrame, pd.DataFrame, list[int]]:
    """Draw two measures of models over grammars, with noise of cells and models; also return each model's cell."""
    cells = [i // 6 if cell else i for i in range(count)]
    noise = cell * draws.normal(size=(count, grammars))[cells] + draws.normal(size=(count, grammars))
    ease = np.linspace(-1, 1, grammars)
    return pd.DataFrame(ease + draws.normal(size=(count, grammars)) / 2), pd.DataFrame(noise - ease), cells


@cache
def true_median(cell: float, grammars: int) -> float:
    """Return the true median over models, or cells, from a very large sample."""
    x, y, cells = orders(np.random.default_rng(0), 24_000 if cell else 8_000, cell, grammars)
    return within_model_order(x, y, groups=dict(enumerate(cells))).median


def within(draws: Draws, count: int, grammars: int, cell: float = 0) -> Try:
    x, y, cells = orders(draws, count, cell, grammars)
    found = within_model_order(x, y, groups=dict(enumerate(cells)))
    plain = median_interval(found.correlations.to_numpy(float)) if cell else NONE
    return true_median(cell, grammars), (found.low, found.high), plain


def across(
    draws: Draws, count: int, true: float, noise: float, shared: float = 0.0, language: float = 0.0, per_cell: int = 1,
    part: str = "correlation",
) -> Try:  # fmt: skip
    """Simulate two measures of models with a true correlation, and noise of two seeds that is partly shared."""
    cells = np.arange(count) // per_cell
    own = 1.0 if per_cell == 1 else 0.5  # share of the variance of models that is not due to cells
    mixed = (
        math.sqrt(own) * draws.normal(size=(2, count)) + math.sqrt(1 - own) * draws.normal(size=(2, count))[:, cells]
    )
    sides = [mixed[0], true * mixed[0] + math.sqrt(1 - true**2) * mixed[1]]
    both = math.sqrt(shared) * draws.normal(size=(count, 2))
    errors = (both + math.sqrt(1 - shared) * draws.normal(size=(count, 2)) for _ in sides)
    x, y = (
        pd.DataFrame(side[:, None] + language * draws.normal(size=2) + noise * error)
        for side, error in zip(sides, errors, strict=True)
    )
    groups = dict(enumerate(cells))
    one = 1 / (1 + noise**2)  # reliability of a seed
    if part == "reliability":
        found = reliability(x, groups)
        return 2 * spearman(one) / (1 + spearman(one)), (found.low, found.high), NONE
    found = getattr(across_models(x, y, groups), part)
    plain = rank_correlation(x[0], y[0])
    return spearman(true * one if part == "correlation" else true), (found.low, found.high), (plain.low, plain.high)


def crossed(draws: Draws, cells: Sequence[int], grammars: int, seeds: int, true: float, part: str) -> Try:
    """Simulate two measures of models and grammars with a true correlation over models and in the interaction.

    Args:
        draws: generator.
        cells: number of models of each cell.
        grammars: number of grammars.
        seeds: number of seeds.
        true: Pearson's correlation of models, and of interactions, of the two measures.
        part: "across" or "interaction", corrected for the noise of seeds.
    """
    cell = np.repeat(np.arange(len(cells)), cells)
    model, both = (  # [measure, model, 1] and [measure, model, grammar]
        draws.normal(size=(2, len(cells), size))[:, cell] + draws.normal(size=(2, len(cell), size)) / 2
        for size in (1, grammars)
    )
    first, rest = model + both
    measures = (first, true * first + math.sqrt(1 - true**2) * rest)
    ease = 3 * draws.normal(size=grammars)
    x, y = (
        {
            str(g): pd.DataFrame(of[:, [g]] + sign * ease[g] + 1.5 * draws.normal(size=(len(cell), seeds)))
            for g in range(grammars)
        }
        for sign, of in zip((1, -1), measures, strict=True)
    )
    found = getattr(crossed_correlations(x, y, dict(enumerate(cell))), part).true
    return spearman(true) if part == "across" else true, (found.low, found.high), NONE
