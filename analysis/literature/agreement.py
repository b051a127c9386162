"""How far a result lies from the published numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from icy.records.long_table import EXTRA

from .catalogue import KEYS, PAIR_KEYS, end_to_end, supervised

NEAR = 2.0  # combined standard errors
NAMES = {"mean": "published", "standard_error": "published_error"}
KINDS = ["preset", "settings", "options"]  # how else results may have been trained
# The games that the papers played: 50,000 updates from scratch; after pre-training 20 times concat's, at most 10,000.
SCRATCH, SCRATCH_STEPS, DRIFT_CAP, DRIFT_MOST = "none", 50_000, 20, 10_000
FOUND = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]


def agreement(long: pd.DataFrame, table: str = "", by: Sequence[str] = ()) -> pd.DataFrame:
    """Every cell of `long` that was measured at the papers' sizes and has a published value, beside it.

    Args:
        long: results in long form, of `icy.records.long_table.to_long`.
        table: the name of one published table; by default all.
        by: further columns that tell results apart.

    Returns:
        One row per model, preset, changed settings, grammar and table: mean, error (standard error of the mean), seeds,
        the published mean and error, `distance` in combined standard errors, and `within`, whether that is at most 2.
    """
    good = long[_as_published(long)].copy()
    good["model"] = good["model"].str.replace(r"^\w+/", "", regex=True)
    keys = [*by, *KEYS, *KINDS]
    cells = _measured(good, keys)
    both = with_distance(cells.merge(supervised(table), on=KEYS).rename(columns=NAMES))
    return both[[*keys, *FOUND]]


def end_to_end_agreement(long: pd.DataFrame, table: str = "", by: Sequence[str] = ()) -> pd.DataFrame:
    """As `agreement`, for games of the papers' lengths: a row per pair, link, grammar of pre-training and measure."""
    theirs = end_to_end(table)
    good = long[_as_published(long) & _at_published_lengths(long)]
    measures = [name for name in EXTRA if theirs["measure"].eq(name).any()]
    keys = [*by, *PAIR_KEYS, *KINDS]
    names = [name for name in (*keys, "seed") if name != "measure"]
    tall = good[[*names, *measures]].melt(names, measures, "measure", "value").dropna(subset="value")
    both = with_distance(_measured(tall, keys).merge(theirs, on=PAIR_KEYS).rename(columns=NAMES))
    return both[[*keys, *FOUND]]


def _measured(good: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    cells = good.groupby(list(keys), sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    return cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})


def with_distance(cells: pd.DataFrame) -> pd.DataFrame:
    """Measured cells beside published ones, with how far they lie apart.

    Where one of the two has no error (a single seed, or a paper that prints none), its runs are taken to have spread as
    the other's did. What rounding adds to a printed error is known, and takes no degrees of freedom.

    Args:
        cells: with icy, icy_error, seeds, published, published_error, n (the paper's runs) and rounding.

    Returns:
        The same with `combined_error`; `distance` in units of it, NaN if neither has an error; `freedom`, the degrees
        of freedom that the distance has as Student's t (Welch's, or those of the one that has an error); and `within`,
        whether the distance is at most 2.
    """
    seeds = cells["seeds"].clip(lower=1).astype(float)
    runs = cells["n"].fillna(seeds).astype(float)
    own, printed = cells["icy_error"].astype(float), cells["published_error"].astype(float)
    ours = own.fillna(printed * (runs / seeds) ** 0.5)
    theirs = printed.fillna(((own * (seeds / runs) ** 0.5) ** 2 + cells["rounding"] ** 2) ** 0.5)
    combined = (ours**2 + theirs**2) ** 0.5
    distance = (cells["icy"] - cells["published"]) / combined.replace(0, np.nan)
    distance = distance.mask(combined.eq(0) & cells["icy"].eq(cells["published"]), 0.0)
    sampled = (theirs**2 - cells["rounding"] ** 2).clip(lower=0) ** 0.5
    terms = [e**4 / (n - 1).clip(lower=1) for e, n in ((ours, seeds), (sampled, runs))]
    welch = (combined**4 / (terms[0] + terms[1]).replace(0, np.nan)).fillna(np.inf)
    freedom = welch.mask(own.isna(), runs - 1).mask(printed.isna(), seeds - 1).clip(lower=1)
    found = {"combined_error": combined, "distance": distance, "freedom": freedom}
    return cells.assign(**found, within=distance.abs() <= NEAR)


def _as_published(long: pd.DataFrame) -> pd.Series[bool]:
    """Which results are of what the tables report: models as they are named, 5x10, V = 4, w = 4, and the usual cap."""
    sizes = long["meanings"].eq("5x10") & long["vocab_size"].eq(4) & long["word_length"].eq(4)
    models = long["options"].fillna("").eq("") & ~long["failed"].astype(bool)
    return models & sizes & (long["measure"].ne("ratio") | long["cap"].eq(20))


def _at_published_lengths(long: pd.DataFrame) -> pd.Series[bool]:
    """Which games of pairs are as long as the papers'."""
    steps, most = (pd.to_numeric(long[name], errors="coerce") for name in ("game_steps", "most"))
    scratch = long["grammar"].eq(SCRATCH) & steps.ge(SCRATCH_STEPS)
    drift = long["grammar"].ne(SCRATCH) & steps.isna() & long["cap"].eq(DRIFT_CAP) & most.eq(DRIFT_MOST)
    return long["side"].eq("pair") & (scratch | drift)
