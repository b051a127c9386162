"""`icy power`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from icy.analysis.statistics import pairs_needed
from tests.cli.helpers import run as icy_run
from tests.helpers import long

MODELS = {"A": {"rot": [2.0, 3.0, 4.1], "hol": [20.0] * 3}, "B": {"rot": [2.2, 2.9, 3.6], "hol": [20.0] * 3}}


run = partial(icy_run, "power")


def test_a_remark_on_all_rows_is_one_note(tmp_path: Path) -> None:
    values = {
        "A": {"rot": [2.0, 3.0, 4.1], "hol": [3.0, 4.0, 4.1]},
        "B": {"rot": [2.2, 2.9, 3.6], "hol": [3.3, 4.8, 5]},
    }
    long(values, protocol="acquire", measure="ratio", cap=20.0).to_parquet(tmp_path / "pilot.parquet")
    shown = run(str(tmp_path / "pilot.parquet"), "--effect", "1.2").stdout
    assert shown.count("only 3 pairs: the spread is a poor estimate") == 1
    assert "all rows: only 3 pairs" in shown.splitlines()[-1]


def test_languages_crossed_with_weights(tmp_path: Path) -> None:
    table = pd.concat(
        long({"A": {"rot": [2.0, 3.0, 2.2]}, "B": {"rot": [b, b + 0.3, b - 0.1]}}, protocol="acquire", measure="ratio",
             cap=20.0, options=f"word_seed={seed}")
        for seed, b in enumerate((1.1, 1.9, 2.5))
    )  # fmt: skip
    table.to_parquet(tmp_path / "pilot.parquet")
    one, four = (
        run(str(tmp_path / "pilot.parquet"), "--effect", "1.3", "--per-language", count).stdout.splitlines()
        for count in ("1", "4")
    )
    assert one[0].startswith("sender/A and sender/B: languages that find an effect of 1.3")
    assert one[2].split()[3:8] == ["effect", "spread", "share", "languages", "Holm"]
    assert one[3].split()[1] == "9"
    assert int(one[3].split()[7]) > int(four[3].split()[7])
    assert "languages: with 4 seeds of weights each" in four[6]


@pytest.mark.parametrize(
    ("seeds", "stated", "low", "high"),
    [(3, True, 4, 21), (3, False, 3, 78), (5, True, 5, 18), (5, False, 4, 46), (10, True, 6, 15), (10, False, 5, 26)],
)
def test_a_stated_effect_needs_less_of_a_pilot(seeds: int, stated: bool, low: int, high: int) -> None:
    """The ranges of the documentation: by quantiles of the pilot's effect or spread, without a simulation."""
    assert pairs_needed(1, 1) == 10
    quantiles = [0.1, 0.9]
    if stated:
        sizes = [1 / spread for spread in np.sqrt(stats.chi2.ppf(quantiles, seeds - 1) / (seeds - 1))]
    else:  # |t| of the pilot is noncentral
        t = stats.nct(seeds - 1, seeds**0.5)
        sizes = [optimize.brentq(lambda x, q=q: t.cdf(x) - t.cdf(-x) - q, 0, 100) / seeds**0.5 for q in (0.9, 0.1)]
    found = sorted(pairs_needed(size, 1) or 0 for size in sizes)
    assert found == [low, high]


def test_settings_are_told_apart(tmp_path: Path) -> None:
    settings = [{}, {"settings": "check_every=50"}, {"preset": "published"}]
    parts = [long(MODELS, protocol="acquire", measure="ratio", cap=20.0, **one) for one in settings]
    pd.concat(parts).to_parquet(tmp_path / "pilot.parquet")
    _, _, head, *rows = run(str(tmp_path / "pilot.parquet"), "-g", "rot").stdout.splitlines()
    assert head.split()[:3] == ["preset", "settings", "grammar"]
    assert [row.split()[:3] for row in rows[:3]] == [
        ["default", "-", "rot"], ["default", "check_every=50", "rot"], ["published", "-", "rot"],
    ]  # fmt: skip
    seeds = [row.split()[7:9] for row in rows[:3]]
    assert all(one == holm for one, holm in seeds)  # one grammar per setting, so that there is nothing to correct
