"""How often 95 % intervals hold the true value: `python benchmarks/coverage.py [--tries 1000] [--workers 2]`.

Write benchmarks/coverage.md: each statistic of `icy.analysis` for measured runs, on simulated runs of known truth, under
its own model and under dependences that icy's measurements have. It takes about 20 minutes of a core.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded; matrices are small
    os.environ.setdefault(name, "1")

import numpy as np
import pandas as pd
from about import describe_versions

from icy.analysis import across_models, equivalence, mixed_effects, reliability, within_model_order
from icy.analysis.correlations import median_interval
from icy.analysis.statistics import log_summary, rank_correlation, student
from icy.core.text import markdown_table

PAGE = Path(__file__).with_suffix(".md")
MOST_FAILED = 0.5  # share of tries without an interval, above which coverage says nothing
Draws = np.random.Generator
Ends = tuple[float, float]  # of an interval
Case = Callable[[Draws], tuple[float, Ends, Ends]]  # returns the truth, the interval, and a plain one to compare with
NONE = (math.nan, math.nan)


def spearman(pearson: float) -> float:
    """Return the rank correlation of normal variables."""
    return 6 / math.pi * math.asin(pearson / 2)


# -- means -------------------------------------------------------------------------------------------------------------


def seeds(draws: Draws, count: int, cap: float = math.inf) -> tuple[float, Ends, Ends]:
    """Ratios of one model, cut at a cap in standard deviations above the mean."""
    values = draws.normal(size=count)
    found = log_summary(np.exp(np.minimum(values, cap)), values > cap)
    plain = np.minimum(values, cap)
    width = student(count - 1) * plain.std(ddof=1) / math.sqrt(count)
    ends = NONE if found.bound else tuple(np.log(found.interval))
    return 0.0, ends, (plain.mean() - width, plain.mean() + width)


def models(
    draws: Draws, cell: float, architecture: float, language: float, model: float, cap: float = math.inf,
    languages: int = 3, part: str = "mean",
) -> tuple[float, Ends, Ends]:  # fmt: skip
    """Runs of 5 cells in 6 architectures, all in the same languages; standard deviations, that of seeds being 1."""
    sizes = (5, 6, languages)
    y = sum(
        size * draws.normal(size=shape)
        for size, shape in ((cell, (5, 1, 1)), (architecture, (6, 1)), (language, languages), (model, (5, 6, 1)), (1, sizes))
    )
    c, a, s = (one.ravel() for one in np.indices(sizes))
    runs = pd.DataFrame({"cell": c, "architecture": a, "model": 6 * c + a, "seed": s, "value": np.minimum(y, cap).ravel()})
    found = mixed_effects(runs.assign(cut=(y > cap).ravel()), ["cell", "architecture", "model", "seed"], log=False)
    if part == "cell":
        return cell, found.profile("cell"), NONE
    means = runs.groupby("model")["value"].mean()
    width = student(29) * float(means.std()) / math.sqrt(30)
    row = found.means.loc["mean"]
    return 0.0, (row["low"], row["high"]), (means.mean() - width, means.mean() + width)


def contrast(draws: Draws, cell: float) -> tuple[float, Ends, Ends]:
    """Difference of two families of four cells and three models each, three seeds, by models with a shared cell."""
    y = cell * draws.normal(size=(8, 1, 1)) + draws.normal(size=(8, 3, 1)) + draws.normal(size=(8, 3, 3))
    c, m, _ = (one.ravel() for one in np.indices(y.shape))
    runs = pd.DataFrame({"cell": c, "model": 3 * c + m, "family": np.where(c < 4, "a", "b"), "value": y.ravel()})
    row = mixed_effects(runs, ["cell", "model"], fixed="family", log=False).contrast({"a": 1, "b": -1})
    means = [runs[runs["family"].eq(name)].groupby("model")["value"].mean() for name in "ab"]
    plain = equivalence(*means, 1.0, log=False)
    return 0.0, (row["low"], row["high"]), (plain.low, plain.high)


def quotient(draws: Draws, ours: int, theirs: int) -> tuple[float, Ends, Ends]:
    """Two sets of runs, of spreads 1 and 2."""
    found = equivalence(draws.normal(size=ours), 2 * draws.normal(size=theirs), 1.0, log=False)
    return 0.0, (found.low, found.high), NONE


# -- correlations ------------------------------------------------------------------------------------------------------


def orders(draws: Draws, count: int, cell: float, grammars: int) -> tuple[pd.DataFrame, pd.DataFrame, list[int]]:
    """Two measures of models of six to a cell over grammars, with noise of cells and models."""
    cells = [i // 6 if cell else i for i in range(count)]
    noise = cell * draws.normal(size=(count, grammars))[cells] + draws.normal(size=(count, grammars))
    ease = np.linspace(-1, 1, grammars)
    return pd.DataFrame(ease + draws.normal(size=(count, grammars)) / 2), pd.DataFrame(noise - ease), cells


@cache
def true_median(cell: float, grammars: int) -> float:
    """Return the median over models, or cells, of very many."""
    x, y, cells = orders(np.random.default_rng(0), 60_000 if cell else 20_000, cell, grammars)
    return within_model_order(x, y, groups=dict(enumerate(cells))).median


def within(draws: Draws, count: int, cell: float, grammars: int) -> tuple[float, Ends, Ends]:
    x, y, cells = orders(draws, count, cell, grammars)
    found = within_model_order(x, y, groups=dict(enumerate(cells)))
    plain = median_interval(found.correlations.to_numpy(float)) if cell else NONE
    return true_median(cell, grammars), (found.low, found.high), plain


def across(
    draws: Draws, count: int, true: float, noise: float, shared: float = 0.0, language: float = 0.0, per_cell: int = 1,
    seeds: int = 2, part: str = "correlation",
) -> tuple[float, Ends, Ends]:  # fmt: skip
    """Two measures of models, of a true correlation, with noise of seeds, a share of it from a run that both share."""
    cells = np.arange(count) // per_cell
    mixed = draws.normal(size=(2, count)) if per_cell == 1 else (
        math.sqrt(0.5) * (draws.normal(size=(2, count))[:, cells] + draws.normal(size=(2, count)))
    )  # fmt: skip
    sides = [mixed[0], true * mixed[0] + math.sqrt(1 - true**2) * mixed[1]]
    both = math.sqrt(shared) * draws.normal(size=(count, seeds))
    x, y = (
        pd.DataFrame(
            side[:, None] + language * draws.normal(size=seeds)
            + noise * (both + math.sqrt(1 - shared) * draws.normal(size=(count, seeds)))
        )
        for side in sides
    )  # fmt: skip
    groups = dict(enumerate(cells))
    half = 1 / (1 + noise**2)  # reliability of one seed; with two, also that of a half
    plain = rank_correlation(x.mean(axis=1), y.mean(axis=1))
    if part == "reliability":
        found, target = reliability(x, groups), 2 * spearman(half) / (1 + spearman(half))
    else:
        found = getattr(across_models(x, y, groups), part)
        target = spearman(true * half if part == "correlation" else true)
    return target, (found.low, found.high), NONE if part == "reliability" else (plain.low, plain.high)


CASES: tuple[tuple[str, str, float, Case], ...] = (
    ("ratio of a model", "3 seeds", 2, partial(seeds, count=3)),
    ("", "5 seeds, 25 % cut", 2, partial(seeds, count=5, cap=0.67)),
    ("", "10 seeds, 25 % cut", 2, partial(seeds, count=10, cap=0.67)),
    ("quotient of two models (Welch, TOST)", "3 and 5 seeds", 2, partial(quotient, ours=3, theirs=5)),
    ("mean over models (`mixed_effects`)", "independent models", 1, partial(models, cell=0, architecture=0, language=0, model=1)),
    ("", "shared cells and architectures", 1, partial(models, cell=1, architecture=0.5, language=0, model=0.5)),
    ("", "the same three languages", 1, partial(models, cell=0.5, architecture=0.5, language=1, model=0.5)),
    ("", "the same two languages", 1, partial(models, cell=0.5, architecture=0.5, language=1, model=0.5, languages=2)),
    ("", "shared cells, 20 % cut", 0.4, partial(models, cell=1, architecture=0.5, language=0, model=0.5, cap=1.35)),
    ("", "shared cells, 40 % cut", 0.4, partial(models, cell=1, architecture=0.5, language=0, model=0.5, cap=0.4)),
    ("its deviation of cells (profile)", "shared cells and architectures", 0.3, partial(models, cell=1, architecture=0.5, language=0, model=0.5, part="cell")),
    ("difference of two families", "independent models", 1, partial(contrast, cell=0)),
    ("", "shared cells", 1, partial(contrast, cell=1)),
    ("median over models (`within_model_order`)", "24 models, 5 grammars", 1, partial(within, count=24, cell=0, grammars=5)),
    ("", "24 models, 12 grammars", 1, partial(within, count=24, cell=0, grammars=12)),
    ("", "48 models that share 8 cells, 5 grammars", 1, partial(within, count=48, cell=2, grammars=5)),
    ("correlation across seeds (`across_models`)", "30 models, 2 seeds", 1, partial(across, count=30, true=0.6, noise=0.8)),
    ("", "a shared concat run", 1, partial(across, count=30, true=0.3, noise=1, shared=0.7)),
    ("", "a shared concat run, the same two languages", 1, partial(across, count=30, true=0.3, noise=1, shared=0.7, language=1)),
    ("", "60 models that share 12 cells", 1, partial(across, count=60, true=0.6, noise=0.8, per_cell=5)),
    ("its disattenuated correlation", "30 models, 2 seeds", 1, partial(across, count=30, true=0.6, noise=0.8, part="disattenuated")),
    ("", "a shared concat run", 1, partial(across, count=30, true=0.3, noise=0.8, shared=0.7, part="disattenuated")),
    ("", "60 models that share 12 cells", 1, partial(across, count=60, true=0.6, noise=0.8, per_cell=5, part="disattenuated")),
    ("reliability of means", "30 models, 2 seeds", 1, partial(across, count=30, true=0.6, noise=0.8, part="reliability")),
    ("", "60 models that share 12 cells", 1, partial(across, count=60, true=0.6, noise=0.8, per_cell=5, part="reliability")),
)  # fmt: skip


def covered(index: int, tries: int) -> list[str]:
    """Return a row of the table."""
    statistic, setting, share, case = CASES[index]
    count = int(share * tries)
    found = [case(np.random.default_rng([index, i])) for i in range(count)]
    return [statistic, setting, str(count), *(held([(one[0], one[of]) for one in found]) for of in (1, 2))]


def held(found: Sequence[tuple[float, Ends]]) -> str:
    """Return the percentage of intervals that hold the truth, with its standard error and the share without one."""
    known = [(truth, ends) for truth, ends in found if np.isfinite(ends).all()]
    if len(known) < MOST_FAILED * len(found):
        return "-"
    share = float(np.mean([low <= truth <= high for truth, (low, high) in known]))
    error = math.sqrt(share * (1 - share) / len(known))
    without = 1 - len(known) / len(found)
    return f"{share:.1%} ± {error:.1%}" + (f" ({without:.0%} without one)" if without else "")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1000, help="simulations of most rows")
    parser.add_argument("--workers", type=int, default=2, help="processes at once")
    asked = parser.parse_args(given)
    with ProcessPoolExecutor(asked.workers) as pool:
        rows = list(pool.map(covered, range(len(CASES)), [asked.tries] * len(CASES)))
    table = markdown_table(["interval of", "simulated runs", "tries", "holds the truth", "plain interval"], rows)
    PAGE.write_text(TEXT.format(table=table, versions=describe_versions()))


if __name__ == "__main__":
    main()
