"""The published numbers, and how far a result lies from them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pandas as pd

DATA = Path(__file__).parent / "data" / "published.csv"
Z95 = 1.96  # Icy22's intervals are 1.96 standard errors


@cache
def _read() -> pd.DataFrame:
    return pd.read_csv(DATA, dtype={"table": str})


def published() -> pd.DataFrame:
    """The supervised tables of Perkins21 and Icy22: one row per cell.

    Columns: source, table, protocol, representation, side, model, hidden_size, grammar, mean, spread, spread_kind
    ("sem", "ci95", or "none" where the paper gives none), runs, target, and `decimals`, to which the mean is printed.
    `error` is the standard error, NaN where the paper gives none; at least that of rounding, sqrt(1/12) of the last
    digit.
    """
    table = _read().copy()
    table["decimals"] = [len(str(mean).partition(".")[2]) for mean in pd.read_csv(DATA, dtype=str)["mean"]]
    scale = table["spread_kind"].map({"sem": 1.0, "ci95": 1 / Z95, "none": math.nan})
    rounding = 10.0 ** -table["decimals"] / math.sqrt(12)
    # The papers divide the population deviation by sqrt(n); with so few runs the sample deviation is the fair one.
    unbiased = (table["runs"] / (table["runs"] - 1)) ** 0.5
    table["error"] = ((table["spread"] * scale * unbiased) ** 2 + rounding**2) ** 0.5
    return table


def agreement(long: pd.DataFrame) -> pd.DataFrame:
    """Every cell of `long` that has a published value, beside it.

    Args:
        long: results in long form, of `icy.results.to_long`.

    Returns:
        One row per model, settings, grammar and table: mean, error (standard error of the mean), seeds, the published
        mean and error, `distance` in combined standard errors, and `within`, whether that is at most 2.
    """
    good = long[~long["failed"].astype(bool)].copy()
    good["model"] = good["model"].str.partition("/")[2]
    keys = ["protocol", "representation", "side", "model", "hidden_size", "grammar", "target"]
    cells = good.groupby([*keys, "settings"], sort=False)["value"].agg(["mean", "sem", "count"]).reset_index()
    cells = cells.rename(columns={"mean": "icy", "sem": "icy_error", "count": "seeds"})
    cells["icy_error"] = cells["icy_error"].fillna(0)
    both = cells.merge(published(), on=keys).rename(columns={"mean": "published", "error": "published_error"})
    # Where the paper gives no error, its runs are taken to have spread as ours did.
    assumed = both["icy_error"] * (both["seeds"] / both["runs"]) ** 0.5
    both["published_error"] = both["published_error"].fillna(assumed)
    combined = (both["icy_error"] ** 2 + both["published_error"] ** 2) ** 0.5
    both["distance"] = (both["icy"] - both["published"]) / combined
    both["within"] = both["distance"].abs() <= 2
    columns = ["settings", "source", "table", "icy", "icy_error", "seeds", "published", "published_error"]
    columns += ["distance", "within"]
    return both[[*keys, *columns]]
