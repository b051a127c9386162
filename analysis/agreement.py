"""How far a result lies from the published numbers."""

from __future__ import annotations

import math

import pandas as pd

from icy.long_table import EXTRA

from .literature import KEYS, PAIR_KEYS, end_to_end, supervised

NEAR = 2.0  # combined standard errors
NAMES = {"mean": "published", "standard_error": "published_error"}


def agreement(long: pd.DataFrame, table: str = "") -> pd.DataFrame:
    """Every cell of `long` that was measured at the papers' sizes and has a published value, beside it.

    Args:
        long: results in long form, of `icy.long_table.to_long`.
        table: the name of one published table; by default all.

    Returns:
        One row per model, preset, changed settings, grammar and table: mean, error (standard error of the mean), seeds,
        the published mean and error, `distance` in combined standard errors, and `within`, whether that is at most 2.
    """
    good = long[_at_published_sizes(long) & ~long["failed"].astype(bool)].copy()
    good["model"] = good["model"].str.replace(r"^\w+/", "", regex=True)
    kinds = ["preset", "settings", "options"]
    cells = good.groupby([*KEYS, *kinds], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})
    both = with_distance(cells.merge(supervised(table), on=KEYS).rename(columns=NAMES))
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*KEYS, *kinds, *columns]]


def end_to_end_agreement(long: pd.DataFrame, table: str = "") -> pd.DataFrame:
    """As `agreement`, for end-to-end runs: a row per pair, link, grammar of pre-training and measure."""
    theirs = end_to_end(table)
    good = long[_at_published_sizes(long) & long["side"].eq("pair") & ~long["failed"].astype(bool)]
    measures = [name for name in EXTRA if theirs["measure"].eq(name).any()]
    names = [*PAIR_KEYS[:-1], "preset", "seed"]
    tall = good[[*names, *measures]].melt(names, measures, "measure", "value").dropna(subset="value")
    cells = tall.groupby([*PAIR_KEYS, "preset"], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})
    both = with_distance(cells.merge(theirs, on=PAIR_KEYS).rename(columns=NAMES))
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*PAIR_KEYS, "preset", *columns]]


def with_distance(cells: pd.DataFrame) -> pd.DataFrame:
    """Measured cells beside published ones, with how far they lie apart.

    Where one of the two has no error (a single seed, or a paper that prints none), its runs are taken to have spread as
    the other's did.

    Args:
        cells: with icy, icy_error, seeds, published, published_error, n (the paper's runs) and rounding.

    Returns:
        The same, no error missing that can be had, with `combined_error`, `distance` in units of it (NaN without
        one), and `within`, whether that is at most 2.
    """
    seeds = cells["seeds"].clip(lower=1)
    runs = cells["n"].fillna(seeds).astype(float)
    ours = cells["icy_error"].fillna(cells["published_error"] * (runs / seeds) ** 0.5)
    spread = (cells["icy_error"] * (seeds / runs) ** 0.5).fillna(math.nan)
    theirs = cells["published_error"].fillna((spread**2 + cells["rounding"] ** 2) ** 0.5)
    combined = (ours**2 + theirs**2) ** 0.5
    distance = (cells["icy"] - cells["published"]) / combined
    return cells.assign(
        icy_error=ours,
        published_error=theirs,
        combined_error=combined,
        distance=distance,
        within=distance.abs() <= NEAR,
    )


def _at_published_sizes(long: pd.DataFrame) -> pd.Series[bool]:
    """Which results are of the setting that the tables report: 5x10, V = 4, w = 4, and the usual cap."""
    sizes = long["meanings"].eq("5x10") & long["vocab_size"].eq(4) & long["word_length"].eq(4)
    return sizes & (long["measure"].ne("ratio") | long["cap"].eq(20))
