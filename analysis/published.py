"""The published numbers, and how far a result lies from them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pandas as pd

DATA = Path(__file__).parent / "data"
KEYS = ["protocol", "representation", "side", "model", "hidden_size", "grammar", "target"]
PAIR_KEYS = ["representation", "model", "hidden_size", "grammar", "measure"]
Z95 = 1.96  # Icy22's intervals are 1.96 standard errors


@cache
def _read(name: str) -> pd.DataFrame:
    table = pd.read_csv(DATA / f"{name}.csv", dtype={"table": str})
    decimals = pd.Series(
        [len(str(mean).partition(".")[2]) for mean in pd.read_csv(DATA / f"{name}.csv", dtype=str)["mean"]]
    )
    table["rounding"] = 10.0**-decimals / math.sqrt(12)
    scale = table["spread_kind"].map({"sem": 1.0, "ci95": 1 / Z95, "none": math.nan})
    # The papers divide the population deviation by sqrt(n); with so few runs the sample deviation is the fair one.
    unbiased = (table["runs"] / (table["runs"] - 1)) ** 0.5
    table["error"] = ((table["spread"] * scale * unbiased) ** 2 + table["rounding"] ** 2) ** 0.5
    return table


def published() -> pd.DataFrame:
    """The supervised tables of Perkins21 and Icy22: one row per cell.

    Columns: source, table, protocol, representation, side, model, hidden_size, grammar, mean, spread, spread_kind
    ("sem", "ci95", or "none" where the paper gives none), runs, target, and `rounding`, the error that printing made.
    `error` is the standard error, NaN where the paper gives none; at least that of rounding, sqrt(1/12) of the last
    digit.
    """
    return _read("published").copy()


def published_end_to_end() -> pd.DataFrame:
    """The end-to-end tables of Perkins21 (6: from scratch; 17 and 18: after pre-training), one row per cell.

    Columns as of `published`, with the pair as model and with `measure`, the column of the long table.
    """
    return _read("published-endtoend").copy()


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
    both = cells.merge(published(), on=KEYS).rename(columns={"mean": "published", "error": "published_error"})
    both = _with_distance(both)
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*KEYS, *kinds, *columns]]


def end_to_end_agreement(long: pd.DataFrame) -> pd.DataFrame:
    """As `agreement`, for end-to-end runs: a row per pair, link, grammar of pre-training and measure.

    A single run has no error, and no distance from what was published.
    """
    good = long[_at_published_sizes(long) & long["side"].eq("pair") & ~long["failed"].astype(bool)]
    measures = list(published_end_to_end()["measure"].unique())
    names = [*PAIR_KEYS[:-1], "preset", "seed"]
    tall = good[[*names, *measures]].melt(names, measures, "measure", "value").dropna(subset="value")
    cells = tall.groupby([*PAIR_KEYS, "preset"], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})
    theirs = published_end_to_end().rename(columns={"mean": "published", "error": "published_error"})
    both = _with_distance(cells.merge(theirs, on=PAIR_KEYS))
    columns = ["source", "table", "icy", "icy_error", "seeds", "published", "published_error", "distance", "within"]
    return both[[*PAIR_KEYS, "preset", *columns]]


def _with_distance(both: pd.DataFrame) -> pd.DataFrame:
    """Cells with how far they lie from the published ones, in combined standard errors."""
    # Where the paper gives no error, its runs are taken to have spread as ours did.
    assumed = both["icy_error"] * (both["seeds"] / both["runs"]) ** 0.5
    both["published_error"] = both["published_error"].fillna((assumed**2 + both["rounding"] ** 2) ** 0.5)
    combined = (both["icy_error"] ** 2 + both["published_error"] ** 2) ** 0.5
    both["distance"] = (both["icy"] - both["published"]) / combined
    both["within"] = both["distance"].abs() <= 2
    return both


def _at_published_sizes(long: pd.DataFrame) -> pd.Series[bool]:
    """Which results are of the setting that the tables report: 5x10, V = 4, w = 4, and the usual cap."""
    sizes = long["meanings"].eq("5x10") & long["vocab_size"].eq(4) & long["word_length"].eq(4)
    return sizes & (long["measure"].ne("ratio") | long["cap"].eq(20))
