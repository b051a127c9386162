"""Budgets of updates, and frequencies of meanings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.analysis import bias_table
from icy.analysis.tables.references import matched_rows, numbered
from icy.core.errors import InvalidSettingError
from icy.experiments.e2e import pair_jobs
from icy.experiments.expected_updates import ExpectedUpdates, Updates
from icy.experiments.plan import make_plan, plan_rows
from icy.experiments.probe import probe_jobs
from icy.experiments.sweep import make_sweep, over, read_sweep, sweep_request
from icy.languages.frequencies import Frequencies
from icy.languages.meanings import MeaningSpace
from icy.records.long_table import resolution_of, to_long
from icy.training.job import Replicate
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest
from tests.helpers import numbers

# -- acquisition under a common budget of updates, `max_updates` -------------------------------------------------------


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
    assert make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=["perm", "hol"], **given)).total == 0
    plan = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar=["perm", "rot"], **given))
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
    plan = make_sweep(sweep_request(**over(read_sweep(str(file)), {"out": str(tmp_path / "r")})))
    configs = {row.facts["protocol"]: row.job.config(row.job.replicates[0]) for row in plan.rows}
    assert configs["acquire"]["max_updates"] == 90
    assert "cap" not in configs["acquire"]
    assert "max_steps" not in configs["acquire"]["settings"]
    assert configs["budget"]["cap"] == 1
    assert "max_updates" not in configs["budget"]
    assert "nothing" not in caplog.text


def test_max_steps_does_nothing_with_max_updates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = {**TINY, "max_updates": 100, "settings": {"max_steps": 7}}
    plan = make_plan(ProbeRequest.asked(model="sender/FC2L", grammar="perm", out=tmp_path, **given))
    assert "'max_steps' does nothing with max_updates" in caplog.text
    plain = make_plan(
        ProbeRequest.asked(model="sender/FC2L", grammar="perm", out=tmp_path, **{**given, "settings": {}})
    )
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


# -- probes of meanings that exist in part, or that are drawn by weights -----------------------------------------------


SMALL: dict[str, Any] = {"grammar": ["perm"], "word_length": 2, "hidden": 8, "seeds": 2}
TEXT = "kind,color,weight\ncat,black,5\ncat,white,1\ndog,brown,3\nfish,brown,1\nbird,white,1\n"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    file = tmp_path / "pets.csv"
    file.write_text(TEXT)
    return file


def only_job(**given: Any) -> Any:
    (job,) = probe_jobs(ProbeRequest("sender/FC1L", **SMALL, **given))
    return job


def test_equal_frequencies_have_the_keys_of_before() -> None:
    plain, equal = only_job(meanings="2x3"), only_job(meanings="2x3", frequencies="equal")
    zipf = only_job(meanings="2x3", frequencies="zipf:1.0")
    replicate = Replicate("perm", 123)
    assert plain.key(replicate) == equal.key(replicate) == "09c50f52e8fd74965f01"
    assert zipf.config(replicate) == {**plain.config(replicate), "frequencies": "zipf:1"}


def test_a_file_is_known_by_its_content(pets: Path) -> None:
    job, replicate = only_job(meanings=str(pets)), Replicate("perm", 123)
    assert str(job.settings.space) == "4,3"
    other = pets.rename(pets.with_name("animals.csv"))
    assert only_job(meanings=other).key(replicate) == job.key(replicate)
    other.write_text(TEXT.replace("5", "6"))
    assert only_job(meanings=other).key(replicate) != job.key(replicate)


def test_space_files_and_laws_are_axes(pets: Path) -> None:
    jobs = probe_jobs(
        ProbeRequest("sender/FC1L", **SMALL, meanings=["2x3", str(pets), "4,2"], frequencies="equal,zipf:1")
    )
    drawn = [job.frequencies.config.values() if job.frequencies else () for job in jobs]
    assert [(job.settings.meanings, *law) for job, law in zip(jobs, drawn, strict=True)] == [
        ("2x3",), ("2x3", "zipf:1"), ("4,3", jobs[2].frequencies.file, "equal"),
        ("4,3", jobs[2].frequencies.file, "zipf:1"), ("4,2",), ("4,2", "zipf:1"),
    ]  # fmt: skip


def test_both_accuracies_are_recorded_and_a_run_resumes(pets: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": str(pets), "out": tmp_path / "out", "workers": 1, "progress": False}
    first = icy.probe("receiver/FC1L", **SMALL, **how).to_dataframe()
    assert (first["unweighted_accuracy"] != first["accuracy"]).any()
    assert first["unweighted_accuracy"].between(0, 1).all()
    assert first["options"].str.fullmatch("existing=pets@[0-9a-f]{16}").all()
    kept = list((tmp_path / "out" / "meanings").iterdir())
    assert [file.read_text().count("\n") for file in kept] == [6]
    how["meanings"] = kept[0]  # the copy in the results continues the run
    again = icy.probe("receiver/FC1L", **SMALL, **how).to_dataframe()
    assert again["finished"].tolist() == first["finished"].tolist()


def test_alone_equals_in_a_stack_with_held_out_meanings(tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": "4,3,2", "frequencies": "zipf:1", "protocol": "generalise", "target": 0.7}
    both = icy.probe("sender/FC2L", **SMALL, **how, out=tmp_path / "both", workers=1, progress=False)
    alone = icy.probe(
        "sender/FC2L", **{**SMALL, "seeds": [124]}, **how, out=tmp_path / "one", workers=1, progress=False
    )
    columns = ["grammar", "accuracy", "unweighted_accuracy", "train_accuracy", "steps"]
    expected = both.to_dataframe().query("seed == 124")[columns].reset_index(drop=True)
    assert alone.to_dataframe()[columns].equals(expected)


@pytest.mark.parametrize("agents", [{}, {"senders": 2, "receivers": 2}])
def test_pairs_and_populations_draw_by_the_weights_too(agents: dict[str, int], pets: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"steps": 20, "report_every": 10, "hidden": 8, "word_length": 1, "seeds": 2, "workers": 1}
    result = icy.e2e("FC1L", "FC1L", meanings=str(pets), **how, **agents, out=tmp_path / "out", progress=False)
    table = result.to_dataframe("long")
    assert table["options"].str.contains("existing=pets@").all()
    assert table["unweighted_accuracy"].between(0, 1).all()
    assert (table["unweighted_accuracy"] != table["end_to_end_accuracy"]).any()
    assert list((tmp_path / "out" / "meanings").iterdir())


def test_keys_of_pairs_with_equal_frequencies_are_those_of_before() -> None:
    keys = []
    for given in ({}, {"frequencies": "equal"}, {"frequencies": "zipf:2"}):
        (job,) = pair_jobs(EndToEndRequest("FC1L", "FC1L", meanings="3x4", hidden=8, seeds=1, **given))
        keys.append(job.key(job.replicates[0]))
    assert keys[0] == keys[1] != keys[2]


def test_saved_models_of_other_frequencies_do_not_start_a_pair(tmp_path: Path) -> None:
    how: dict[str, Any] = {"meanings": "3x4", "hidden": 8, "word_length": 2, "seeds": 1}
    kept = tmp_path / "kept"
    icy.probe(["sender/FC2L", "receiver/FC2L"], "concat", **how, keep_models=True, out=kept, workers=1, progress=False)
    given = EndToEndRequest("FC2L", "FC2L", pretrain="concat", pretrained=kept, updates=1, out=tmp_path / "out", **how)
    assert len(pair_jobs(given)) == 1
    with pytest.raises(InvalidSettingError, match=r"no saved model of sender/FC2L .* frequencies zipf:1"):
        pair_jobs(replace(given, frequencies="zipf:1"))


def remark_of(tmp_path: Path, **given: Any) -> str:
    """Return the remark on a language in which both meanings with the first value share a message."""
    language = icy.Language("2x2", [[0, 0], [0, 0], [0, 1], [1, 1]], 4, name="shared")
    options = {**SMALL, **given, "grammar": language, "word_length": 1, "meanings": "2x2"}
    rows = plan_rows(ProbeRequest.asked(model="receiver/FC1L", out=tmp_path, **options))
    return str(rows[0].job.remarks()[0])


def test_the_best_reading_of_shared_messages_counts_meanings_as_they_are_drawn(tmp_path: Path) -> None:
    assert "at most 87.5%" in remark_of(tmp_path)  # one of eight values is wrong
    law = Frequencies("zipf:2")
    rare = [min(law.of_seed(MeaningSpace(2, 2), seed)[1][:2]) for seed in (123, 124)]
    assert f"at most {1 - min(rare) / 2:.1%}" in remark_of(tmp_path, frequencies="zipf:2")
