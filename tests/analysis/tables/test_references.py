"""Reference values in tables: other results, published values, and differences."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.table_cells import Reference
from icy.analysis.tables.bias import bias_table, difference_table
from icy.analysis.tables.printed_table import BiasTable
from icy.core.errors import IncompatibleError, InvalidSettingError
from tests.helpers import THREE, long


def reference(table: BiasTable, grammar: str = "rot") -> Reference:
    """Return the reference value of the first row on a grammar."""
    found = table.rows[0][1][grammar].reference
    assert found is not None
    return found


def test_other_results_stand_beside_in_combined_standard_errors() -> None:
    other = long({"A": {"rot": [0.2, 0.4], "shufdet": 0.9}, "D": {"rot": 0.1}}, preset="published")
    table = bias_table(long(THREE), "sem", compare=other, compared="old")
    beside = reference(table)
    assert (beside.mean, beside.error) == pytest.approx((0.3, 0.1))
    assert beside.distance == pytest.approx(0.3 / math.hypot(0.1, 0.1))
    assert table.rows[1][1]["rot"].reference is None
    (first, below, *_) = table.groups()[0][1]
    assert first[-4:] == ["1.00 (1 of 2)", "1.00 (1 of 2)", "0.60±0.10", "0.90 (1 of 2)"]
    assert (below[0], below[-4:]) == ("  old", ["", "", "0.30±0.10 (+2.1)", "0.90"])
    assert table.head()[-2:] == ["rot ↓", "shufdet"]
    assert table.to_dataframe()[("rot", "distance")].iloc[0] == pytest.approx(2.1213, abs=1e-3)
    assert {"other": pytest.approx(0.3)}.items() <= table.to_records()[0]["rot"].items()


@pytest.mark.slow
def test_several_rows_may_have_the_same_partner() -> None:
    twice = pd.concat([long({"A": {"rot": 0.5}}), long({"A": {"rot": 0.6}}, settings="check_every=400")])
    table = bias_table(twice, compare=long({"A": {"rot": 0.4}}, preset="published"))
    assert [cells["rot"].reference.mean for _, cells in table.rows if cells["rot"].reference] == [0.4, 0.4]


def test_published_values_are_next_to_results() -> None:
    mine = long({"FC2L": {"rot": [0.48, 0.49, 0.50], "hol": [0.25, 0.25, 0.26]}}, preset="published")
    table = bias_table(mine, "sem", compare="published")
    assert reference(table).mean == 0.49  # of the table with most of the row's cells, Perkins21's
    assert abs(reference(table).distance) < 1e-6
    assert reference(bias_table(mine, "sem", compare="icy22/table20")).mean == 0.481
    assert "in combined standard errors" in table.notes[-1]


def test_published_values_are_next_to_rows_of_their_sizes_only() -> None:
    both = pd.concat(
        [long({"FC2L": {"rot": [0.48, 0.49]}}, preset="published"), long({"FC2L": {"rot": 5.0}}, meanings="3x10")],
        ignore_index=True,
    )
    found = [cells["rot"].reference for _, cells in bias_table(both, compare="published").rows]
    assert [beside is None for beside in found] == [False, True]


def test_a_cut_is_marked_on_whichever_side_of_a_difference() -> None:
    other = long({"A": {"rot": [20.0, 20.0]}}, censored=True)
    assert difference_table(long(THREE), other).rows[0][1]["rot"].censored == 2


def test_differences_are_taken_seed_by_seed() -> None:
    other = long({"A": {"rot": [0.4, 0.5]}}, settings="check_every=400")
    table = difference_table(long(THREE), other, "wide", "sem")
    ((labels, cells),) = table.rows
    assert labels[0] == "sender/A"
    assert cells["rot"].mean == pytest.approx(0.15)
    assert cells["rot"].spread == pytest.approx(0.05)  # of 0.1 and 0.2; apart they would have 0.11
    assert table.groups()[0][1][0][-1] == "+0.15±0.05"
    assert "from wide" in table.notes[0]
    assert table.notes[-1] == "the other results differ from these in settings"


def test_several_matching_rows_are_an_error() -> None:
    other = pd.concat([long({"A": {"rot": 0.1}}, settings=s, key=s) for s in ("x=1", "x=2")], ignore_index=True)
    with pytest.raises(
        InvalidSettingError, match=r"several rows of sender/A at .* differ in settings: .*FOLDER:settings=x=1"
    ):
        bias_table(long(THREE), compare=other)
    same = long({"A": {"rot": 0.3}})
    both = pd.concat([other, same], ignore_index=True)
    assert reference(bias_table(long(THREE), compare=both)).mean == 0.3


def test_missing_references_have_a_note() -> None:
    nothing = bias_table(long(THREE), compare=long({"D": {"rot": 0.1}}))
    assert all(cell.reference is None for _, cells in nothing.rows for cell in cells.values())
    assert nothing.notes[-1] == (
        "No reference: the other results do not have the models, sizes, options and protocol of these rows."
    )
    cut = {"measure": "ratio", "protocol": "acquire", "censored": True, "cap": 20.0}
    both = bias_table(long({"A": {"hol": [20.0, 20.0]}}, **cut), compare=long({"A": {"hol": [20.0, 20.0]}}, **cut))
    assert reference(both, "hol").text(2) == "20.00±0.00†"  # that both were cut says nothing of their distance


def test_models_with_other_options_are_other_models() -> None:
    deep = long({"RNNZero:GRU": {"rot": [0.5, 0.6]}}, options="layers=3")
    plain = long({"RNNZero:GRU": {"rot": [0.4, 0.5]}})
    compared = [bias_table(deep, compare=plain), *(bias_table(one, compare="published") for one in (plain, deep))]
    found = [[name for _, cells in table.rows for name in cells if cells[name].reference] for table in compared]
    assert found == [[], ["rot"], []]
    with pytest.raises(IncompatibleError):
        difference_table(deep, plain)


def test_only_of_ratios_does_a_cut_hide_the_distance() -> None:
    low, high = {"A": {"rot": [0.30, 0.32]}}, {"A": {"rot": [0.80, 0.82]}}
    held_out = {"protocol": "generalise", "measure": "held_out", "censored": True, "held_out": 0.2, "split": "random"}
    for one, other, sign in ((low, high, "-"), (high, low, "+")):
        table = bias_table(long(one, **held_out), compare=long(other, **held_out))
        assert reference(table).text(2).endswith(f"({sign}35.4)")
    cap = {"protocol": "acquire", "measure": "ratio"}
    larger = long({"A": {"rot": [30.0, 32.0]}}, cap=40.0, **cap)
    at_20 = long({"A": {"rot": [20.0, 20.0]}}, cap=20.0, censored=True, **cap)
    assert reference(bias_table(larger, compare=at_20)).text(2) == "20.00±0.00†"  # it may be 30 as well


def test_a_single_seed_borrows_the_error_of_the_other() -> None:
    table = bias_table(long({"A": {"rot": 0.5}}), compare=long({"A": {"rot": [0.40, 0.42]}}))
    assert reference(table).distance == pytest.approx(0.09 / math.hypot(0.01, 0.01 * math.sqrt(2)))
