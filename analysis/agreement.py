"""How far a result lies from the published numbers."""

from __future__ import annotations

import pandas as pd

from icy.long_table import EXTRA

from .literature import KEYS, PAIR_KEYS, end_to_end, supervised

NAMES = {"mean": "published", "standard_error": "published_error"}


def agreement(long: pd.DataFrame) -> pd.DataFrame:
    """Every cell of `long` that was measured at the papers' sizes and has a published value, beside it.

    Args:
        long: results in long form, of `icy.long_table.to_long`.

    Returns:
        One row per model, preset, changed settings, grammar and table: mean, error (standard error of the mean), seeds,
        the published mean and error, `distance` in combined standard errors, and `within`, whether that is at most 2.
    """
    good = long[_at_published_sizes(long) & ~long["failed"].astype(bool)].copy()
    good["model"] = good["model"].str.partition("/")[2]
    kinds = ["preset", "settings", "options"]
    cells = good.groupby([*KEYS, *kinds], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"}).fillna({"icy_error": 0.0})
    both = cells.merge(supervised(), on=KEYS).rename(columns=NAMES)
    both = _with_distance(both)
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*KEYS, *kinds, *columns]]


def end_to_end_agreement(long: pd.DataFrame) -> pd.DataFrame:
    """As `agreement`, for end-to-end runs: a row per pair, link, grammar of pre-training and measure.

    A single run has no error, and no distance from what was published.
    """
    theirs = end_to_end()
    good = long[_at_published_sizes(long) & long["side"].eq("pair") & ~long["failed"].astype(bool)]
    measures = [name for name in EXTRA if theirs["measure"].eq(name).any()]
    names = [*PAIR_KEYS[:-1], "preset", "seed"]
    tall = good[[*names, *measures]].melt(names, measures, "measure", "value").dropna(subset="value")
    cells = tall.groupby([*PAIR_KEYS, "preset"], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})
    both = _with_distance(cells.merge(theirs, on=PAIR_KEYS).rename(columns=NAMES))
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*PAIR_KEYS, "preset", *columns]]


def _with_distance(both: pd.DataFrame) -> pd.DataFrame:
    """Cells with how far they lie from the published ones, in combined standard errors."""
    # Where the paper gives no error, its runs are taken to have spread as ours did.
    assumed = both["icy_error"] * (both["seeds"] / both["n"]) ** 0.5
    both["published_error"] = both["published_error"].fillna((assumed**2 + both["rounding"] ** 2) ** 0.5)
    combined = (both["icy_error"] ** 2 + both["published_error"] ** 2) ** 0.5
    both["distance"] = (both["icy"] - both["published"]) / combined
    both["within"] = both["distance"].abs() <= 2
    return both


def _at_published_sizes(long: pd.DataFrame) -> pd.Series[bool]:
    """Which results are of the setting that the tables report: 5x10, V = 4, w = 4, and the usual cap."""
    sizes = long["meanings"].eq("5x10") & long["vocab_size"].eq(4) & long["word_length"].eq(4)
    return sizes & (long["measure"].ne("ratio") | long["cap"].eq(20))
