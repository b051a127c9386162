"""Runs of the panel, and Kendall's tau between the orders of models and grammars under two settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.estimates import percentile_interval

SENDERS = ("sender/FC2L", "sender/RNNZero:RNN", "sender/RNNZero:GRU", "sender/HierZero:RNN")
RECEIVERS = ("receiver/FC2L", "receiver/CNN", "receiver/RNN1L:RNN", "receiver/RNN1L:GRU")
MODELS = (*SENDERS, *RECEIVERS)
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum")  # relative to concat
ALL = ("concat", *GRAMMARS)
DEFAULT = "default"
SETTINGS = {
    ("", "", 128): DEFAULT,
    ("learning_rate=0.003", "", 128): "rate ×3",
    ("learning_rate=0.000333", "", 128): "rate ×⅓",
    ("optimizer=rmsprop", "", 128): "RMSprop",
    ("batch_size=32", "", 128): "batch 32",
    ("batch_size=512", "", 128): "batch 512",
    ("", "scale=0.5", 128): "init ×½",
    ("", "scale=2.0", 128): "init ×2",
    ("", "", 64): "width 64",
    ("", "", 256): "width 256",
}
PAIRS = [*combinations(range(4), 2), *combinations(range(4, 8), 2)]  # of models of one side
RESAMPLES = 2000
LEAST = 1e-9  # smaller differences of mean taus are rounding errors
CUT = ["setting", "model", "grammar"]
POWER, ALPHA = 0.8, 0.05

Cube = NDArray[np.float64]  # logarithms of updates to the target: [model, grammar with concat first, seed]


@dataclass(frozen=True)
class Panel:
    """Logarithms of updates to the target per setting, and the runs that did not reach it.

    Attributes:
        cubes: cube of each setting, over the seeds that all models and grammars of the setting have.
        seeds: these seeds, by setting, in order.
        cut: setting, model and grammar of the runs that ended at the cap.
        runs: number of all runs.
        hours: total time of all runs, in hours.
    """

    cubes: Mapping[str, Cube]
    seeds: Mapping[str, Sequence[int]]
    cut: pd.DataFrame
    runs: int
    hours: float

    @property
    def default(self) -> Cube:
        """The cube of the default setting."""
        return self.cubes[DEFAULT]

    def both(self, setting: str) -> tuple[Cube, Cube]:
        """Return the cubes of the default setting and of another setting, over their common seeds."""
        shared = sorted({*self.seeds[DEFAULT]} & {*self.seeds[setting]})
        base, changed = (
            self.cubes[name][..., [list(self.seeds[name]).index(seed) for seed in shared]]
            for name in (DEFAULT, setting)
        )
        return base, changed


def read(long: pd.DataFrame) -> Panel:
    """Make the panel from records in long form. Settings with fewer than two complete seeds are left out."""
    good = long[~long["failed"].astype(bool)].copy()
    named = zip(good["settings"].fillna(""), good["options"].fillna(""), good["hidden_size"], strict=True)
    good["setting"] = [SETTINGS.get(key) for key in named]
    good["model"] = good["model"].str.replace("Scaled-", "")
    good["log"] = np.log(
        np.where(good["censored"].astype(bool), good["cap"] * good["baseline_crossing"], good["crossing"])
    )
    cubes, seeds, cut, place = {}, {}, [], pd.MultiIndex.from_product([MODELS, ALL], names=["model", "grammar"])
    for setting, rows in good.groupby("setting"):
        wide = rows.pivot_table(index=["model", "grammar"], columns="seed", values="log").reindex(place)
        whole = wide.dropna(axis=1)
        if whole.shape[1] >= 2:
            cubes[str(setting)] = whole.to_numpy().reshape(len(MODELS), len(ALL), -1)
            seeds[str(setting)] = list(whole.columns)
            cut.append(rows.loc[rows["censored"].astype(bool) & rows["seed"].isin(whole.columns), CUT])
    ordered = {name: cubes[name] for name in SETTINGS.values() if name in cubes}
    return Panel(ordered, seeds, pd.concat(cut, ignore_index=True), len(long), long["seconds"].sum() / 3600)


def ratios(cube: Cube) -> Cube:
    """Return logarithms of ratios to concat: [model, grammar, ...]."""
    return cube[:, 1:] - cube[:, :1]


def tau_of_models(first: Cube, second: Cube) -> Cube:
    """Return Kendall's tau of two orders of models, over pairs of models of one side: [grammar]."""
    signs = [np.stack([np.sign(means[a] - means[b]) for a, b in PAIRS]) for means in (first, second)]
    product: Cube = (signs[0] * signs[1]).mean(0)
    return product


def tau_of_grammars(first: Cube, second: Cube) -> Cube:
    """Return Kendall's tau of two orders of grammars: [model]."""
    pairs = list(combinations(range(first.shape[1]), 2))
    signs = [np.stack([np.sign(means[:, a] - means[:, b]) for a, b in pairs]) for means in (first, second)]
    product: Cube = (signs[0] * signs[1]).mean(0)
    return product


Order = Callable[[Cube, Cube], Cube]
ORDERS: dict[str, tuple[Order, Callable[[Cube], Cube], Sequence[str]]] = {
    "models, by ratio": (tau_of_models, ratios, GRAMMARS),
    "models, by updates": (tau_of_models, lambda cube: cube, ALL),
    "grammars, by ratio": (tau_of_grammars, ratios, MODELS),
}


def resampled(cubes: Sequence[Cube], order: Order, rng: np.random.Generator, apart: bool = False) -> Cube:
    """Return taus of means of resampled seeds: [resample, item].

    Args:
        cubes: two cubes of the same seeds.
        order: function that returns tau.
        rng: random generator.
        apart: whether seeds are drawn separately for each cube.
    """
    count, found = cubes[0].shape[-1], []
    for _ in range(RESAMPLES):
        chosen = rng.integers(count, size=(2, count))
        found.append(order(cubes[0][..., chosen[0]].mean(-1), cubes[1][..., chosen[1 if apart else 0]].mean(-1)))
    return np.array(found)


@dataclass(frozen=True)
class Tau:
    """Kendall's tau between the orders under a setting and under the default, per item and as a mean.

    Attributes:
        items: value and ends of the interval for each model or grammar.
        mean: value and ends of the interval of the mean over items.
        expected: expected mean if the setting changes nothing, from pairs of samples of the default's seeds.
        least: 5 % quantile of the means of these pairs.
        p: share of these pairs with a mean that is at most the observed mean.
    """

    items: dict[str, tuple[float, float, float]]
    mean: tuple[float, float, float]
    expected: float
    least: float
    p: float


def tau(panel: Panel, setting: str, kind: str) -> Tau:
    """Compare the order of models or grammars under a setting with the order under the default."""
    order, of, names = ORDERS[kind]
    rng = np.random.default_rng(0)
    cubes = [of(cube) for cube in panel.both(setting)]
    values = order(*(cube.mean(-1) for cube in cubes))
    draws = resampled(cubes, order, rng)
    null = resampled([cubes[0], cubes[0]], order, rng, apart=True).mean(1)
    items = {name: (float(values[at]), *percentile_interval(draws[:, at])) for at, name in enumerate(names)}
    whole = (float(values.mean()), *percentile_interval(draws.mean(1)))
    p = float(1 + (null <= whole[0] + LEAST).sum()) / (1 + len(null))
    return Tau(items, whole, float(null.mean()), float(np.quantile(null, ALPHA)), p)


def least_change(panel: Panel, setting: str, kind: str) -> float:
    """Return the largest true mean tau (smallest change of order) that a test by `Tau.least` finds with 80 % power.

    The true orders are the default's means with normal shifts of growing size, independent for every model and grammar.
    The noise of seeds is the default's.
    """
    order, of, _ = ORDERS[kind]
    rng = np.random.default_rng(1)
    base = of(panel.both(setting)[0])
    least = tau(panel, setting, kind).least
    means, count = base.mean(-1), base.shape[-1]
    noise = base - means[..., None]
    best = math.nan
    for size in np.geomspace(0.02, 2, 25):
        true, found = [], []
        for _ in range(200):
            shifted = means + rng.normal(0, size, means.shape)
            true.append(order(means, shifted).mean())
            chosen = rng.integers(count, size=(2, count))
            ours, theirs = (
                part + noise[..., pick].mean(-1) for part, pick in zip((means, shifted), chosen, strict=True)
            )
            found.append(order(ours, theirs).mean() < least)
        if np.mean(found) >= POWER:
            return float(np.mean(true))
    return best
