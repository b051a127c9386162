"""Bias tables: groups, order and frames."""

from __future__ import annotations

import math

import pandas as pd

from icy.analysis.tables.bias import bias_table
from tests.analysis.tables.helpers import marks
from tests.helpers import APART, THREE, long


def test_rows_of_other_representations_are_groups_with_marks_of_their_own() -> None:
    both = pd.concat([long(APART, representation="discr", target=0.95), long(APART)], ignore_index=True)
    table = bias_table(both)
    assert [(heading, len(rows)) for heading, rows in table.groups()] == [
        ("soft, target 0.99", 3),
        ("discr, target 0.95", 3),
    ]
    assert table.shown_labels == ["model", "parameters", "seeds", "concat updates"]
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


def test_rows_without_parameters_are_sorted_last() -> None:
    table = long(THREE, preset="published")
    table["parameters_published"] = table["model"].map({"sender/A": 300, "sender/B": 250})
    assert [labels[1] for labels, _ in bias_table(table, sort="parameters").rows] == ["250", "300", "-"]
    assert [labels[1] for labels, _ in bias_table(table, sort="-parameters").rows] == ["300", "250", "-"]


def test_a_dataframe_has_counts_of_cut_and_failed_runs() -> None:
    both = [long({"A": {"rot": [20.0, 20.0]}}, censored=True), long({"A": {"rot": math.nan}}, seed=9, failed=True)]
    frame = bias_table(pd.concat(both, ignore_index=True)).to_dataframe()
    assert frame["rot"].iloc[0].to_dict() == {"mean": 20.0, "spread": 0.0, "seeds": 2, "censored": 2, "failed": 1}


def test_undefined_values_are_not_failures() -> None:
    (line,) = bias_table(long({"A": {"rot": [0.5, math.nan]}})).rows
    assert (line[1]["rot"].seeds, line[1]["rot"].failed) == (1, 0)


RATIO = {"protocol": "acquire", "measure": "ratio", "cap": 20.0, "target": 0.8}


def test_under_a_common_budget_cuts_name_it_and_unknown_ends_are_not_marked() -> None:
    values = {"A": {"rot": [12.0, 12.1]}, "B": {"rot": [15.0, 15.1]}, "C": {"rot": [3.0, 3.1]}}
    results = long(values, **RATIO | {"cap": None, "max_updates": 1000})
    results["censored"] = results["model"].eq("sender/A")  # it may have a larger ratio than B
    table = bias_table(results)
    assert "target 0.8, 1000 updates of each grammar" in table.title
    assert "† cut at the budget of 1000 updates in at least one seed: the true ratio is larger" in table.notes
    marks = {labels[0]: cells["rot"].mark for labels, cells in table.rows}
    assert marks == {"sender/A": "", "sender/B": "", "sender/C": "worst"}
    results["censored"] = results["model"].eq("sender/B")
    marks = {labels[0]: cells["rot"].mark for labels, cells in bias_table(results).rows}
    assert marks == {"sender/A": "", "sender/B": "", "sender/C": "worst"}
    both = pd.concat([results, long(values, **RATIO).assign(censored=True)], ignore_index=True)
    assert any("cut at the cap of 20 or at the budget of 1000 updates" in note for note in bias_table(both).notes)


def test_a_ratio_of_a_stopped_run_is_not_called_the_best() -> None:
    ratio = {"measure": "ratio", "protocol": "acquire", "cap": 20.0}
    values = {"A": [2.0, 2.1], "B": [3.0, 3.1], "C": [4.0, 4.1]}
    rows = {name: {"concat": [1.0, 1.0], "shufdet": own} for name, own in values.items()}
    stopped = bias_table(long({**rows, "D": {"concat": [1.0, 1.0], "shufdet": [1.5]}}, **ratio))
    marks = {labels[0]: cells["shufdet"].mark for labels, cells in stopped.rows}
    assert marks == {"sender/A": "best", "sender/B": "", "sender/C": "worst", "sender/D": ""}


def test_steps_of_concat_are_a_mean_over_seeds() -> None:
    """Where it is not in the table, each seed counts once, whatever its grammars; where it is, failures do not."""
    others = [long({"A": {"rot": [0.5, 0.5]}}), long({"A": {"perm": 0.5}})]
    results = pd.concat(others, ignore_index=True).assign(baseline_steps=[100, 400, 100])
    assert [labels[-1] for labels, _ in bias_table(results).rows] == ["250"]
    concat = long({"A": {"concat": [1.0, math.nan], "rot": [0.5, 0.5]}})
    results = concat.assign(steps=[100, 900, 100, 100], failed=[False, True, False, False])
    assert [labels[-1] for labels, _ in bias_table(results).rows] == ["100"]
