"""Bias tables: groups, order and frames."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from icy.analysis.tables.bias import bias_table, difference_table
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


def test_log_scale_is_below_rows_of_ratios() -> None:
    part = [
        long({"A": {"concat": [1.0, 1.0], "rot": [2.0, 8.0]}}, **RATIO),
        long({"A": {"hol": [20.0, 20.0]}}, **RATIO),
    ]
    results = pd.concat([part[0], part[1].assign(censored=True)], ignore_index=True)
    table = bias_table(results)
    ((_, (row, below, updates)),) = table.groups()
    assert row[-3:] == ["1.00±0.00", "5.00±4.24", "20.00±0.00†"]  # as without
    assert below == ["  log scale", "", "", "", "", "4.00×/2.67", "> 20"]
    assert updates == ["  updates", "", "", "", "500", "500", "> 500"]
    assert table.notes[-2] == (
        "log scale: geometric mean, times or divided by its geometric standard deviation over seeds; "
        "cut runs count as larger (Tobit: maximum likelihood)"
    )
    frame = table.to_dataframe()
    assert frame[("rot", "geometric_mean")].item() == pytest.approx(4)
    assert frame[("hol", "low")].item() == pytest.approx(20)
    assert math.isnan(frame[("hol", "geometric_mean")].item())
    whole = bias_table(results, "ci95")
    assert whole.groups()[0][1][0][-3:] == ["1.00±0.00", f"4.00×/{math.exp(12.7062 * math.log(2)):.0e}", "> 20†"]
    assert whole.below == {"updates": "updates"}  # no second summary
    latex = table.render("latex")
    assert r"4.00$\times$/2.67" in latex
    assert latex.partition(r"\end{tabular}")[0].count(r"\\") == 4
    assert [len(rows) for _, rows in bias_table(results, log=False).groups()] == [1]


@pytest.mark.slow
def test_the_log_scale_is_for_several_seeds_of_ratios() -> None:
    assert bias_table(long({"A": {"rot": 4.0}}, **RATIO)).below == {"updates": "updates"}
    assert bias_table(long(THREE)).below == {}


def test_updates_to_the_target_are_below_every_ratio() -> None:
    """They are interpolated where the crossing is known, and a bound where a run was cut."""
    runs = {"A": {"concat": [1.0, 1.0], "rot": [2.0, 8.0], "perm": [1.1, 1.2]}}
    results = long(runs, **RATIO).assign(crossing=[3.5, 4.5, 8.0, math.nan, math.nan, math.nan])
    results["steps"] = [4, 5, 9, 36, 1500, 1700]
    results["censored"] = [False, False, False, True, False, False]
    table = bias_table(results)
    assert table.groups()[0][1][-1] == ["  updates", "", "", "", "4.0", "1,600", "> 22"]
    assert table.notes[-1] == "updates: mean updates to the target; > where a run was cut"
    assert table.to_dataframe()[("rot", "updates")].item() == 22
    assert not bias_table(results, log=False).below
    assert "updates" not in bias_table(long(runs)).below  # accuracies after as many updates as concat takes


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


def test_a_row_with_coarse_evaluations_has_a_note() -> None:
    """Three receivers that learn the baseline by the first evaluation, so the grid determines their ratios."""
    results = long({"CNN": {"rot": [1.0, 1.0], "hol": [8.0, 12.0]}}, **RATIO)
    assert not any("uncertain" in note for note in bias_table(results).notes)
    results["resolution"] = results["grammar"].map({"rot": 0.5, "hol": 0.05})
    table = bias_table(results)
    assert table.groups()[0][1][0][-2:] == ["~1.00±0.00", "10.00±2.83"]
    assert "~ coarse evaluations: the ratio is uncertain by up to ±50%, more than it varies over seeds" in table.notes
    assert table.to_dataframe()[("rot", "resolution")].item() == 0.5
    without = bias_table(results, log=False)
    assert without.groups()[0][1] == [["sender/CNN", *table.groups()[0][1][0][1:]]]
    assert [note for note in table.notes if not note.startswith(("log scale", "updates"))] == without.notes
    assert ("rot", "geometric_mean") not in without.to_dataframe()


@pytest.mark.slow
def test_cells_with_fewer_seeds_than_their_row_say_so() -> None:
    accuracies = bias_table(long({"A": {"rot": [0.5, 0.7], "hol": 0.2}}))
    assert accuracies.rows[0][1]["hol"].text(2) == "0.20 (1 of 2)"
    assert accuracies.rows[0][1]["rot"].text(2) == "0.60±0.14"
    assert accuracies.notes[-1] == "(n of m): on n of the row's m seeds"
    ratio = {"measure": "ratio", "protocol": "acquire", "cap": 20.0}
    ratios = bias_table(long({"A": {"concat": [1.0, 1.0], "hol": 4.0}}, **ratio))
    assert ratios.notes[-1].endswith("so these ratios are too low")
    assert not any("n of m" in note for note in bias_table(long({"A": {"rot": [0.5, 0.7]}})).notes)
    differences = difference_table(
        long({"A": {"rot": [2.0, 3.0], "hol": [4.0]}}, **ratio), long({"A": {"rot": [1.0, 2.0], "hol": [3.0]}}, **ratio)
    )
    assert "(n of m): on n of the row's m seeds" in differences.notes


def test_failed_and_undefined_runs_are_not_missing() -> None:
    failed = bias_table(long({"A": {"rot": [0.5, 0.7]}}).assign(failed=[False, True], value=[0.5, None]))
    assert failed.rows[0][1]["rot"].text(2) == "0.50 (1 failed)"
    undefined = bias_table(long({"A": {"rot": [0.5, 0.7], "hol": [0.5, None]}}))
    assert undefined.rows[0][1]["hol"].text(2) == "0.50"


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


def test_only_ratios_are_said_to_be_larger_than_a_cap() -> None:
    rows = long(THREE).assign(censored=True, cap=20.0)
    assert "the true ratio is larger" in bias_table(rows.assign(measure="ratio")).render("text")
    accuracies = bias_table(rows.assign(measure="accuracy")).render("text")
    assert "true ratio" not in accuracies
    assert "† training stopped at its limit in at least one seed, before the target" in accuracies


@pytest.mark.parametrize(
    ("changed", "chances"),
    [({}, ("25%", "20%")), ({"meanings": "5x10"}, ("25%", "10%")), ({"vocab_size": 5}, ("20%", "20%"))],
)
def test_a_note_explains_accuracies_of_both_sides(changed: dict[str, Any], chances: Any) -> None:
    senders = long(THREE, meanings="3x5", vocab_size=4).assign(**changed)
    receivers = senders.assign(model=senders["model"].str.replace("sender", "receiver"), role="receiver")
    (note,) = [note for note in bias_table(pd.concat([senders, receivers])).notes if note.startswith("accuracy is of")]
    assert f"tokens for senders (chance {chances[0]}) and of attributes for receivers (chance {chances[1]})" in note
    for one in (senders, receivers):
        assert not any("accuracy is of" in note for note in bias_table(one).notes)
    spaces = pd.concat([senders, receivers, receivers.assign(meanings="4x7")])
    assert any("(chance 1/K)" in note for note in bias_table(spaces).notes)
