"""Marks of the best and the worst, and when there are none."""

from __future__ import annotations

import pandas as pd

from icy.analysis.tables.bias import bias_table
from tests.analysis.tables.helpers import marks
from tests.helpers import APART, long


def test_best_and_worst_are_those_of_a_bias_to_composition() -> None:
    table = bias_table(long(APART))
    assert marks(table) == {
        ("sender/B", "rot"): "worst",
        ("sender/C", "rot"): "best",
        ("sender/B", "shufdet"): "best",
        ("sender/C", "shufdet"): "worst",
    }
    assert table.arrows == {"rot": "↓", "shufdet": "↑"}
    assert table.head()[-4:] == ["concat", "perm", "rot ↓", "shufdet ↑"]


def test_a_ratio_reads_the_other_way() -> None:
    table = bias_table(long(APART, measure="ratio", protocol="acquire"))
    assert table.arrows == {"rot": "↑", "shufdet": "↓"}
    assert marks(table)["sender/B", "rot"] == "best"


def test_two_rows_equal_rows_or_one_seed_have_no_best() -> None:
    assert not marks(bias_table(long({name: APART[name] for name in "AB"})))
    assert not marks(bias_table(long({name: {"rot": [0.5, 0.5]} for name in "ABC"})))
    assert not marks(bias_table(long({name: {"rot": mean} for name, mean in {"A": 0.1, "B": 0.5, "C": 0.9}.items()})))
    assert not marks(bias_table(long(APART), mark=False))


def test_an_end_that_does_not_differ_from_the_next_cell_has_no_mark() -> None:
    alike = {"A": {"hol": [0.24, 0.25, 0.26]}, "B": {"hol": [0.25, 0.26, 0.24]}, "C": {"hol": 0.262}}
    assert not marks(bias_table(long(alike)))
    tie = bias_table(long({**alike, "C": {"hol": 0.9}}))  # A and B are equal, and both are the best
    assert marks(tie) == {("sender/C", "hol"): "worst"}
    noise = {"A": {"hol": [0.24, 0.26]}, "B": {"hol": [0.25, 0.26]}, "C": {"hol": [0.25, 0.24]}}
    assert not marks(bias_table(long(noise)))
    assert not marks(bias_table(long(noise), "ci95"))
    for spread in ("sd", "sem", "ci95"):
        apart = bias_table(long({**noise, "C": {"hol": [0.45, 0.44]}}), spread)
        assert marks(apart) == {("sender/C", "hol"): "worst"}


def test_cut_cells_are_not_marked_and_hide_the_largest_ratio() -> None:
    values = {"A": {"hol": [2.0, 2.1]}, "B": {"hol": [9.0, 9.1]}, "C": {"hol": [20.0, 20.0]}}
    rows = long(values, measure="ratio", protocol="acquire", cap=20.0)
    assert marks(bias_table(rows)) == {("sender/A", "hol"): "worst", ("sender/C", "hol"): "best"}
    assert marks(bias_table(rows.assign(censored=rows["value"].eq(20)))) == {("sender/A", "hol"): "worst"}
    assert marks(bias_table(rows.assign(censored=rows["value"].lt(20)))) == {}


def test_a_noisy_mean_is_not_the_best() -> None:
    """A model of which one seed never learns a grammar has the largest mean, but a mean of nothing in particular."""
    values = {"A": {"rot": [0.6, 1.0, 13.4]}, "B": {"rot": [2.0, 2.1, 2.2]}, "C": {"rot": [2.3, 2.2, 2.4]}}
    assert not marks(bias_table(long(values, measure="ratio", protocol="acquire", cap=20.0)))


def test_models_that_learn_by_heart_are_not_marked() -> None:
    memory = long({"Hashtable": {"rot": 0.99, "shufdet": 0.99}}, parameters=0)
    table = bias_table(pd.concat([long(APART), memory]))
    assert marks(table)["sender/B", "shufdet"] == "best"
    assert ("sender/Hashtable", "shufdet") not in marks(table)


def test_only_rows_with_the_same_frequencies_and_lengths_are_compared() -> None:
    drawn = {"frequencies=zipf:1": 0.5, "frequencies=zipf:2, layers=2": 0.7, "word_lengths=1-4": 0.8, "layers=2": 0.9}
    parts = [long({"A": {"rot": [value, value + 0.01]}}).assign(options=text) for text, value in drawn.items()]
    assert not marks(bias_table(pd.concat(parts)))
    assert marks(bias_table(pd.concat([part.assign(options=f"layers={n}") for n, part in enumerate(parts)])))
