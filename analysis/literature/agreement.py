"""Distances of results from published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import scipy

from icy.analysis.statistics import CONFIDENCE, tost
from icy.config.protocols import SCRATCH
from icy.records.long_table import EXTRA

from .catalogue import KEYS, PAIR_KEYS, end_to_end, supervised

NAMES = {"mean": "published", "standard_error": "published_error"}  # new names of published columns
TRAINED_AS = ["preset", "settings", "options"]  # columns in which runs of one published cell may differ
# Length of the papers' games: 50,000 updates from scratch; after pre-training 20 times concat's updates, up to 10,000.
SCRATCH_STEPS, DRIFT_CAP, DRIFT_MOST = 50_000, 20, 10_000
EQUIVALENT = 0.2  # margin of the test of equivalence, as a fraction of the published value
CHANCE = {"sender": 1 / 4, "receiver": 1 / 10}  # accuracy per token of 4, and per attribute of 10 values
# Number of tokens or attributes in an evaluation of the papers' preset, 128 meanings. The error of an accuracy near 1
# is at least the binomial error of this number.
READ = {"sender": 128 * 16, "receiver": 128 * 5}
NEAR_ONE = 0.996
# Evaluations of the models of Perkins21 tables 7 and 8, which give the numbers of updates. The early program looked
# first every 0.01 seconds, then every 10 to 30 % of its time. The smallest printed number is 31.
EVALUATIONS = {"check_every": 10, "check_growth": 0.13}
MEASURED = ["icy", "icy_error", "seeds"]  # mean, standard error and number of runs of a cell
AGREEMENT_COLUMNS = ["source", "table", *MEASURED, *NAMES.values(), "distance", "within"]


def agreement(long: pd.DataFrame, table: str = "", by: Sequence[str] = ()) -> pd.DataFrame:
    """Compare results at the papers' sizes with published values, cell by cell.

    Args:
        long: results in long form, as `icy.records.long_table.to_long` makes.
        table: name of one published table; by default all.
        by: further columns to group results by.

    Returns:
        One row per model, preset, changed settings, grammar and published table: mean (`icy`), its standard error and
        number of seeds, the published mean and error, `distance` in combined standard errors, and `within`, whether
        the 95 % interval of the difference contains 0 (`with_distance`).
    """
    good = long[_as_published(long)].copy()
    good["model"] = good["model"].str.replace(r"^\w+/", "", regex=True)
    keys = [*by, *KEYS, *TRAINED_AS]
    cells = _summarize(good, keys)
    both = with_distance(cells.merge(supervised(table), on=KEYS).rename(columns=NAMES))
    return both[[*keys, *AGREEMENT_COLUMNS]]


def end_to_end_agreement(long: pd.DataFrame, table: str = "", by: Sequence[str] = ()) -> pd.DataFrame:
    """Compare sender-receiver pairs, trained end to end, with published values; see `agreement`.

    Only pairs that were trained for as long as in the papers are compared.

    Returns:
        As `agreement`, with a row per pair, representation, grammar of pre-training and measure.
    """
    theirs = end_to_end(table)
    good = long[_as_published(long) & _at_published_lengths(long)]
    measures = [name for name in EXTRA if theirs["measure"].eq(name).any()]
    keys = [*by, *PAIR_KEYS, *TRAINED_AS]
    names = [name for name in (*keys, "seed") if name != "measure"]
    tall = good[[*names, *measures]].melt(names, measures, "measure", "value").dropna(subset="value")
    both = with_distance(_summarize(tall, keys).merge(theirs, on=PAIR_KEYS).rename(columns=NAMES))
    return both[[*keys, *AGREEMENT_COLUMNS]]


def _summarize(good: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    cells = good.groupby(list(keys), sort=False)["value"].agg(["mean", "sem", "count"])
    return cells.set_axis(MEASURED, axis=1).reset_index()


def with_distance(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the distance between measured and published means.

    If one of the two has no error (a single seed, or a paper that prints none), its runs are assumed to vary as much
    as the other's. The error from rounding is known, so it takes no degrees of freedom. The error of a run's accuracy
    is at least the error of an evaluation near 1, 0.0014 for senders and 0.0025 for receivers, even if all runs have
    1.000. A number of updates is that of an evaluation, so its error is at least that of the gap between evaluations.

    Args:
        cells: cells with the columns icy, icy_error, seeds, published, published_error, n (the paper's runs) and
            rounding; and with measure and side, if there are accuracies.

    Returns:
        The cells with new columns:

        - `combined_error`, and `distance` in units of it; NaN if neither has an error;
        - `freedom`, the degrees of freedom of the distance as Student's t (Welch's, or of the only known error);
        - `p`, the two-sided p-value of the distance; NaN if unknown;
        - `within`, whether the 95 % interval of the difference contains 0;
        - `margin`, 20 % of the published value; for accuracies, 20 % of its difference from chance;
        - `equivalence`: "equivalent" if the 90 % interval of the difference is within the margin (two one-sided tests
          at 5 %), "further away" if it is outside, else "unclear"; "" without a margin.
    """
    seeds = cells["seeds"].clip(lower=1).astype(float)
    runs = cells["n"].fillna(seeds).astype(float)
    reading = _reading_error(cells)
    own = cells["icy_error"].astype(float).clip(lower=reading / seeds**0.5)
    printed = cells["published_error"].astype(float).clip(lower=reading / runs**0.5)
    ours = own.fillna(printed * (runs / seeds) ** 0.5)
    theirs = printed.fillna(((own * (seeds / runs) ** 0.5) ** 2 + cells["rounding"] ** 2) ** 0.5)
    combined = (ours**2 + theirs**2) ** 0.5
    distance = (cells["icy"] - cells["published"]) / combined.replace(0, np.nan)
    distance = distance.mask(combined.eq(0) & cells["icy"].eq(cells["published"]), 0.0)
    sampled = (theirs**2 - cells["rounding"] ** 2).clip(lower=0) ** 0.5
    terms = [e**4 / (n - 1).clip(lower=1) for e, n in ((ours, seeds), (sampled, runs))]
    welch = (combined**4 / (terms[0] + terms[1]).replace(0, np.nan)).fillna(np.inf)
    freedom = welch.mask(own.isna(), runs - 1).mask(printed.isna(), seeds - 1).clip(lower=1)
    p = 2 * scipy.stats.t.sf(distance.abs().to_numpy(float), freedom.to_numpy(float))
    margin = EQUIVALENT * (cells["published"] - _of_accuracies(cells, CHANCE)).abs()
    difference = cells["icy"] - cells["published"]
    within = tost(*(np.asarray(one, float) for one in (difference, combined, freedom, margin)))
    cases = [np.isnan(within) | ~margin.gt(0).to_numpy(bool), within <= 1 - CONFIDENCE, within >= CONFIDENCE]
    equivalence = np.select(cases, ["", "equivalent", "further away"], "unclear").tolist()
    found = {"combined_error": combined, "distance": distance, "freedom": freedom, "p": p, "margin": margin}
    return cells.assign(**found, within=p >= 1 - CONFIDENCE, equivalence=equivalence)


def _of_accuracies(cells: pd.DataFrame, by_side: Mapping[str, float]) -> pd.Series[float]:
    """Return `by_side` of the side of each cell that is an accuracy, and 0 for other cells."""
    if "role" not in cells or "measure" not in cells:
        return pd.Series(0.0, cells.index)
    return cells["role"].map(by_side).where(cells["measure"].eq("accuracy")).fillna(0.0).astype(float)


def _reading_error(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the least standard deviation of a single run: the binomial error of its evaluation, or that of a gap."""
    near_one = {side: (NEAR_ONE * (1 - NEAR_ONE) / read) ** 0.5 for side, read in READ.items()}
    if "measure" not in cells:
        return _of_accuracies(cells, near_one)
    gap = (cells["icy"] * EVALUATIONS["check_growth"]).clip(lower=EVALUATIONS["check_every"])
    return (gap / 12**0.5).where(cells["measure"].eq("steps"), _of_accuracies(cells, near_one))


def _as_published(long: pd.DataFrame) -> pd.Series[bool]:
    """Return a mask of the results that the papers' tables contain: 5x10, V = 4, w = 4, the papers' cap, no options.

    Languages may be icy's or the authors'.
    """
    sizes = long["meanings"].eq("5x10") & long["vocab_size"].eq(4) & long["word_length"].eq(4)
    models = long["options"].fillna("").isin(["", "draws=authors"]) & ~long["failed"].astype(bool)
    return models & sizes & (long["measure"].ne("ratio") | long["cap"].eq(20))


def _at_published_lengths(long: pd.DataFrame) -> pd.Series[bool]:
    """Return a mask of the end-to-end runs that were trained for as long as in the papers."""
    steps, most = (pd.to_numeric(long[name], errors="coerce") for name in ("game_steps", "most"))
    scratch = long["grammar"].eq(SCRATCH) & steps.ge(SCRATCH_STEPS)
    drift = long["grammar"].ne(SCRATCH) & steps.isna() & long["cap"].eq(DRIFT_CAP) & most.eq(DRIFT_MOST)
    return long["role"].eq("pair") & (scratch | drift)
