"""Bias tables: groups, order and frames."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.tables.bias import bias_table
from icy.core.errors import InvalidSettingError, UnknownNameError
from tests.analysis.tables.helpers import marks
from tests.helpers import THREE, long


def test_rows_of_other_representations_are_groups_with_marks_of_their_own() -> None:
    both = pd.concat([long(THREE, representation="discr", target=0.95), long(THREE)], ignore_index=True)
    table = bias_table(both)
    assert [(heading, len(rows)) for heading, rows in table.groups()] == [
        ("soft, target 0.99", 3),
        ("discr, target 0.95", 3),
    ]
    assert table.shown_labels == ["model", "parameters", "seeds", "concat steps"]
    assert len(marks(table)) == 4
    assert sum(cell.mark != "" for _, cells in table.rows for cell in cells.values()) == 8
    text = table.render("text").splitlines()
    assert text[text.index("soft, target 0.99") + 1].startswith("sender/A")
    frame = table.to_dataframe()
    assert frame.index.names[:4] == ["model", "parameters", "representation", "target"]


def test_groups_and_order() -> None:
    table = bias_table(long(THREE), sort="-rot")
    assert [labels[0][-1] for labels, _ in table.rows] == ["B", "A", "C"]
    mixed = pd.concat([long(THREE), long(THREE, hidden_size=64)], ignore_index=True)
    assert [heading for heading, _ in bias_table(mixed, by="hidden-size").groups()] == [
        "hidden size 128",
        "hidden size 64",
    ]
    with pytest.raises(UnknownNameError, match="representation"):
        bias_table(long(THREE), by="representations")
    with pytest.raises(UnknownNameError, match="No order of rows is called 'size'"):
        bias_table(long(THREE), sort="size")
    with pytest.raises(InvalidSettingError, match="no hol in these results"):
        bias_table(long(THREE), sort="hol")


def test_rows_without_parameters_are_sorted_last_and_by_what_is_shown() -> None:
    table = long(THREE, preset="published")
    table["parameters_published"] = table["model"].map({"sender/A": 300, "sender/B": 250})
    assert [labels[1] for labels, _ in bias_table(table, sort="parameters").rows] == ["250", "300", "-"]
    assert [labels[1] for labels, _ in bias_table(table, sort="-parameters").rows] == ["300", "250", "-"]


def test_a_frame_keeps_what_was_cut_and_failed() -> None:
    both = [long({"A": {"rot": [20.0, 20.0]}}, cut=True), long({"A": {"rot": math.nan}}, seed=9, failed=True)]
    frame = bias_table(pd.concat(both, ignore_index=True)).to_dataframe()
    assert frame["rot"].iloc[0].to_dict() == {"mean": 20.0, "spread": 0.0, "seeds": 2, "cut": 2, "failed": 1}


def test_what_is_undefined_has_not_failed() -> None:
    (line,) = bias_table(long({"A": {"rot": [0.5, math.nan]}})).rows
    assert (line[1]["rot"].seeds, line[1]["rot"].failed) == (1, 0)
