"""Marks of the best and the worst, and when there are none."""

from __future__ import annotations

import pandas as pd

from icy.analysis.tables.bias import bias_table
from tests.analysis.tables.helpers import marks
from tests.helpers import THREE, long


def test_best_and_worst_are_those_of_a_bias_to_composition() -> None:
    table = bias_table(long(THREE))
    assert marks(table) == {
        ("sender/B", "rot"): "worst",
        ("sender/C", "rot"): "best",
        ("sender/B", "shufdet"): "best",
        ("sender/C", "shufdet"): "worst",
    }
    assert table.arrows == {"rot": "↓", "shufdet": "↑"}
    assert table.head()[-4:] == ["concat", "perm", "rot ↓", "shufdet ↑"]


def test_a_ratio_reads_the_other_way() -> None:
    both = {m: {g: v if isinstance(v, list) else [v, v] for g, v in of.items()} for m, of in THREE.items()}
    table = bias_table(long(both, measure="ratio", protocol="acquire"))
    assert table.arrows == {"rot": "↑", "shufdet": "↓"}
    assert marks(table)["sender/B", "rot"] == "best"


def test_two_rows_or_equal_rows_have_no_best() -> None:
    assert not marks(bias_table(long({name: THREE[name] for name in "AB"})))
    assert not marks(bias_table(long({name: {"rot": 0.5} for name in "ABC"})))
    assert not marks(bias_table(long(THREE), mark=False))


def test_a_row_with_one_seed_takes_part_in_the_analysis_of_variance() -> None:
    alike = {"A": {"hol": [0.24, 0.25, 0.26]}, "B": {"hol": [0.25, 0.26, 0.24]}, "C": {"hol": 0.262}}
    assert not marks(bias_table(long(alike)))
    assert marks(bias_table(long({**alike, "C": {"hol": 0.9}}))) == {
        ("sender/A", "hol"): "best",
        ("sender/B", "hol"): "best",
        ("sender/C", "hol"): "worst",
    }


def test_rows_that_differ_no_more_than_their_seeds_have_no_best() -> None:
    noise = {"A": {"hol": [0.24, 0.26]}, "B": {"hol": [0.25, 0.26]}, "C": {"hol": [0.25, 0.24]}}
    assert not marks(bias_table(long(noise)))
    assert not marks(bias_table(long(noise), "ci95"))
    apart = {**noise, "C": {"hol": [0.45, 0.44]}}
    for spread in ("sd", "sem", "ci95"):
        assert marks(bias_table(long(apart), spread)) == {("sender/A", "hol"): "best", ("sender/C", "hol"): "worst"}


def test_models_that_learn_by_heart_are_not_marked() -> None:
    memory = long({"Hashtable": {"rot": 0.99, "shufdet": 0.99}}, parameters=0)
    table = bias_table(pd.concat([long(THREE), memory]))
    assert marks(table)["sender/B", "shufdet"] == "best"
    assert ("sender/Hashtable", "shufdet") not in marks(table)


def test_only_rows_with_the_same_frequencies_and_lengths_are_compared() -> None:
    drawn = {"frequencies=zipf:1": 0.5, "frequencies=zipf:2, layers=2": 0.7, "word_lengths=1-4": 0.8, "layers=2": 0.9}
    rows = pd.concat([long({"A": {"rot": value}}).assign(options=text) for text, value in drawn.items()])
    assert not marks(bias_table(rows))
    assert marks(bias_table(rows.assign(options=["layers=1", "layers=2", "layers=3", "layers=4"])))
