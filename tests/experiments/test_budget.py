"""Acquisition under a common budget of updates, `max_updates`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.analysis import bias_table
from icy.analysis.tables.references import matched_rows, numbered
from icy.config.specs import ProbeSpec
from icy.experiments.expected_updates import ExpectedUpdates, Updates
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep, over, read_sweep, sweep_spec
from icy.records.long_table import resolution_of, to_long
from tests.helpers import numbers

TINY: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 32, "seeds": 1, "target": 0.7, "workers": 1}
BUDGET = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("budget")


@pytest.fixture(scope="module")
def found(folder: Path) -> icy.ProbeResult:
    return icy.probe("sender/FC2L", ["perm", "hol"], max_updates=BUDGET, out=folder, **TINY)


def test_every_grammar_is_trained_to_the_budget(found: icy.ProbeResult, folder: Path) -> None:
    """Ratios, updates and accuracies at the budget are of the same runs, and a run of as many updates without."""
    by = {r["grammar"]: r for r in found.records}
    assert {name: r["steps"] for name, r in by.items()} == dict.fromkeys(("concat", "perm", "hol"), BUDGET)
    assert all(r["curve"][-1][0] == BUDGET for r in by.values())
    assert by["concat"]["crossing"] == by["perm"]["baseline_crossing"] < BUDGET
    assert (by["concat"]["reason"], by["concat"]["accuracy"] > 0.9) == ("target", True)
    plain = {r["grammar"]: r for r in icy.probe("sender/FC2L", ["perm", "hol"], out=folder, **TINY).records}
    for name in ("concat", "perm"):
        assert by[name]["crossing"] == plain[name]["crossing"]
        assert by[name]["curve"][: len(plain[name]["curve"])] == plain[name]["curve"]
        assert by[name]["key"] != plain[name]["key"]
    row = to_long([by["perm"]]).iloc[0]
    assert row["value"] == by["perm"]["crossing"] / by["concat"]["crossing"]
    assert (row["max_updates"], row["settings"], row["options"]) == (BUDGET, "", "")
    assert row["cap"] != row["cap"]  # missing


def test_cut_runs_are_bounded_by_the_budget(tmp_path: Path) -> None:
    least = {**TINY, "target": 0.8, "max_updates": 60}
    result = icy.probe("sender/FC2L", "hol", out=tmp_path, **least)
    concat, hol = result.records
    assert (concat["reason"], hol["reason"], hol["steps"]) == ("target", "cap", 60)
    assert result.to_dataframe("long")["value"].tolist() == [1.0, 60 / concat["crossing"]]
    assert "† cut at the budget of 60 updates in at least one seed" in str(bias_table(result))
    assert resolution_of(hol) != resolution_of(hol)  # NaN


def test_on_a_fixed_grid_the_check_counts(tmp_path: Path) -> None:
    result = icy.probe("sender/FC2L", "perm", max_updates=120, out=tmp_path, preset="published", **TINY,
                       settings={"check_every": 20})  # fmt: skip
    concat, perm = result.records
    assert concat["steps"] == perm["steps"] == 120
    assert concat["crossing"] % 20 == perm["crossing"] % 20 == 0
    assert perm["crossing"] < 120
    assert to_long([perm])["value"].item() == round(perm["crossing"] / concat["crossing"], 1)


def test_it_is_planned_resumed_and_estimated(found: icy.ProbeResult, folder: Path) -> None:
    given = {**TINY, "max_updates": BUDGET, "out": folder}
    assert make_plan(ProbeSpec.asked(model="sender/FC2L", grammar=["perm", "hol"], **given)).total == 0
    plan = make_plan(ProbeSpec.asked(model="sender/FC2L", grammar=["perm", "rot"], **given))
    assert [r.condition for row in plan.rows for r in row.missing] == ["rot"]
    assert list(ExpectedUpdates(plan).of_row(plan.rows[0]).values()) == [Updates(BUDGET, BUDGET)]
    assert plan.rows[0].job.length(None) == BUDGET
    assert plan.rows[0].facts["max updates"] == str(BUDGET)
    again = icy.probe("sender/FC2L", ["perm", "hol"], **given)
    assert numbers(again.records) == numbers(found.records)


def test_baselines_that_do_not_learn_within_the_budget_fail(tmp_path: Path) -> None:
    result = icy.probe("sender/FC2L", "perm", max_updates=2, out=tmp_path, **TINY)
    assert [r["reason"] for r in result.records] == ["max_steps", "no_baseline"]
    assert result.records[0]["error"] == "concat did not reach 0.7 within 2 updates"


def test_a_sweep_over_protocols_uses_it_where_it_means_something(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        'model = "sender/FC2L"\ngrammar = "perm"\nquick = true\nmax_updates = 90\nprotocol = ["acquire", "budget"]\n'
    )
    plan = make_sweep(sweep_spec(**over(read_sweep(str(file)), {"out": str(tmp_path / "r")})))
    configs = {row.facts["protocol"]: row.job.config(row.job.replicates[0]) for row in plan.rows}
    assert configs["acquire"]["max_updates"] == 90
    assert "cap" not in configs["acquire"]
    assert "max_steps" not in configs["acquire"]["settings"]
    assert configs["budget"]["cap"] == 1
    assert "max_updates" not in configs["budget"]
    assert "nothing" not in caplog.text


def test_max_steps_does_nothing_with_max_updates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = {**TINY, "max_updates": 100, "settings": {"max_steps": 7}}
    plan = make_plan(ProbeSpec.asked(model="sender/FC2L", grammar="perm", out=tmp_path, **given))
    assert "'max_steps' does nothing with max_updates" in caplog.text
    plain = make_plan(ProbeSpec.asked(model="sender/FC2L", grammar="perm", out=tmp_path, **{**given, "settings": {}}))
    keys = [[row.job.key(r) for r in row.job.replicates] for plan in (plan, plain) for row in plan.rows]
    assert keys[0] == keys[1]


def test_rows_are_first_compared_within_a_budget(found: icy.ProbeResult, folder: Path) -> None:
    capped = to_long(icy.probe("sender/FC2L", ["perm", "hol"], out=folder, **TINY).records)
    budget = to_long(found.records)
    import pandas as pd

    both = numbered(pd.concat([capped, budget], ignore_index=True))
    assert matched_rows(numbered(budget), both) == {0: 1}
    assert matched_rows(numbered(capped), both) == {0: 0}
    changed = numbered(budget.assign(settings="learning_rate=0.01"))
    assert matched_rows(changed, both) == {0: 1}
    assert matched_rows(numbered(budget), numbered(capped)) == {0: 0}
