"""Plans to reproduce a published table."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.requests import ReproduceRequest
from icy.experiments.reproduce import Reproducing
from icy.s2b import AcquisitionSettings, ease_of_acquisition


def asked(table: str, **options: Any) -> Reproducing:
    return Reproducing.of(ReproduceRequest.asked(table=table, **options))


def rows_of(reproducing: Reproducing) -> dict[tuple[str, str, int], set[tuple[str, int]]]:
    return {
        (row.name, row.job.settings.representation, row.job.settings.hidden): {
            (r.condition, r.seed) for r in row.job.replicates
        }
        for row in reproducing.plan().rows
    }


def test_the_plan_is_the_table() -> None:
    rows = rows_of(asked("icy22/table3"))
    assert {name for name, _, _ in rows} == {
        f"sender/{n}"
        for n in ("FC1L", "FC2L", "RNNAutoReg:LSTM", "RNNAutoReg2L:LSTM", "TransDecSoft", "TransDecSoft2L", "Hashtable")
    }
    grammars = {"concat", "perm", "proj", "rot", "shufdet", "hol"}
    assert rows["sender/FC2L", "soft", 128] == {(g, s) for g in grammars for s in range(123, 128)}
    job = asked("icy22/table3", only="FC2L").plan().rows[0].job
    assert (job.preset, job.settings.rules.name, job.settings.rules.target) == ("published", "acquire", 0.8)
    assert job.training.round_ratio


def test_sizes_representations_and_targets_come_from_the_table() -> None:
    four = rows_of(asked("icy22/table4"))
    assert {hidden for _, _, hidden in four} == {128, 1280}
    thirteen = asked("perkins21/table13", only=["FC2L"], grammar="rot", seeds=[7])
    assert rows_of(thirteen) == {
        ("sender/FC2L", r, 128): {("concat", 7), ("rot", 7)} for r in ("soft", "gumb", "discr")
    }
    assert {row.job.settings.rules.target for row in thirteen.plan().rows} == {0.99, 0.95}
    assert {name for name, _, _ in rows_of(asked("perkins21/15", representation="gumb", only="RNN1L:*"))} == {
        f"receiver/RNN1L:{cell}" for cell in ("RNN", "GRU", "LSTM", "dgrecv")
    }


def test_pairs_are_planned_from_scratch_and_after_grammars() -> None:
    scratch = rows_of(asked("perkins21/table6", representation="discr", seeds=1))
    assert {grammar for found in scratch.values() for grammar, _ in found} == {"none"}
    assert len(scratch) == 3
    (drift,) = rows_of(asked("perkins21/17", only="FC1L+FC", representation="soft", seeds=1)).values()
    assert drift == {("concat", 123), ("perm", 123)}


def test_updates_to_a_target_are_planned_at_the_sizes_of_the_table() -> None:
    """Perkins21 table 7: 3x10 to 0.9 and 5x10 to 0.8, 50 hidden units."""
    rows = asked("perkins21/table7", only="FC2L").plan().rows
    found = {(str(r.job.settings.space), r.job.settings.rules.target, r.job.settings.rules.cap) for r in rows}
    assert found == {("3x10", 0.9, 45), ("5x10", 0.8, 65)}
    for row in rows:
        assert (row.job.settings.hidden, row.job.training.check_every) == (50, 10)
        assert {r.condition for r in row.job.replicates} == {"concat", "perm", "rot", "shuf", "hol"}
        assert len({r.seed for r in row.job.replicates}) == 5


@pytest.mark.slow
def test_metrics_are_measured_without_training() -> None:
    """Icy22 tables 1, 9 and 10 are exact, except for a column of zeros that is a defect of the paper's program."""
    done = icy.reproduce("icy22/table10", only="greedy", grammar="concat,perm,rot,hol")
    assert done.cells["icy"].tolist() == done.cells["published"].tolist() == ["0.0000", "0.0000", "0.3867", "0.6183"]
    assert str(done.verdict) == "All 4 cells are as printed."
    assert "on the authors' languages of seeds 123, 124" in done.page()
    assert "| greedy | rot | 0.3867 | 0.3867 | equal |" in done.page()
    other = icy.reproduce("icy22/table10", only="greedy", grammar="perm,rot", seeds=[1])
    assert str(other.verdict) == "1 of 2 cells are as printed, not greedy rot."
    messages = icy.reproduce("icy22/table1", grammar="hol").shown()
    assert messages.iloc[0].tolist() == ["(0, 0, 0)", "hol", "adbcddadc", "adbcddadc", "equal"]
    nine = icy.reproduce("icy22/table9", only="exhaustive", grammar="rot,hol")
    assert nine.cells["icy"].tolist() == ["0.0000", "0.2672"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("icy22/table3", {"sender/FC1L"}),
        ("perkins21/table15", {"receiver/FC2L"}),
        ("metarg22/listener", {"LSTM+r2d2"}),
    ],
)
def test_quick_takes_the_fastest_row(table: str, names: set[str]) -> None:
    plan = asked(table, quick=True).plan()
    assert {row.name for row in plan.rows} == names
    assert len(plan.rows) == 1
    if table == "metarg22/listener":
        assert plan.rows[0].facts["samples"] == plan.rows[0].facts["shots"] == "1"


@pytest.mark.slow
def test_quick_is_one_seed_of_one_model_in_one_representation() -> None:
    (((name, _, _), replicates),) = rows_of(asked("icy22/table20", quick=True)).items()
    assert name == "sender/FC2L"
    assert {seed for _, seed in replicates} == {123}
    drift = rows_of(asked("perkins21/table17", quick=True))
    assert {name for name, _, _ in drift} == {"FC1L+FC"}
    assert len(drift) == 1  # of one representation


def test_names_of_other_tables_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "icy"):
        found = asked("icy22/table3", only="FC2L,HierZero:dgsend")
    assert set(found.wanted["model"]) == {"FC2L"}
    assert "HierZero:dgsend is not in icy22/table3, but in perkins21/table13, icy22/table6" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "only", "models", "count"),
    [
        ("metarg22/listener", ["lstm"], ["LSTM+r2d2"], 9),
        ("metarg22/cores", [], ["LSTM+r2d2", "ESBN+r2d2", "DCEM+r2d2"], 3),
        ("metarg24/figure9", [], ["LSTM+r2d2", "DNC+r2d2"], 4),
        ("metarg24/marl", [], ["LSTM+vdn"], 2),
        ("metarg24/eoa", [], ["LSTM+vdn"], 2),
    ],
)
def test_agents_are_planned_with_their_learners(table: str, only: list[str], models: list[str], count: int) -> None:
    rows = asked(table, only=only, observations=3000, seeds=1).plan().rows
    assert (len(rows), list(dict.fromkeys(row.name for row in rows))) == (count, models)
    for row in rows:
        game, settings = row.job.settings.game, row.job.settings.learning
        assert (settings.observations, game.query_of) == (3000, "speaker")
        pair = settings.players == "both"
        assert pair == settings.sad == bool(row.job.settings.eoa)
        assert row.job.settings.preset == "metarg22"
    losses = [row.job.settings.learning.reconstruction is not None for row in rows]
    assert losses == ([False, True] * 2 if table == "metarg24/figure9" else [True] * count)


def test_the_recall_figure_compares_one_hot_with_continuous_stimuli() -> None:
    spec = ReproduceRequest.asked(table="metarg22/figure4", observations=3000)
    rows = Reproducing.of(spec).plan().rows
    assert [row.job.config(row.job.replicates[0])["stimuli"] for row in rows] == ["ohe", "scs"]
    for row in rows:
        settings, task = row.job.settings.learning, row.job.settings.game
        assert row.job.name == "LSTM+r2d2"
        assert (len(row.job.replicates), settings.observations, settings.reconstruction is not None) == (3, 3000, True)
        assert (task.shots, task.least, task.most, task.dimensions, task.split) == (2, 2, 5, 3, "all")


@pytest.mark.slow
def test_a_pair_is_trained_again_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quickly = partial(ease_of_acquisition, settings=AcquisitionSettings(epochs=2))
    monkeypatch.setattr("icy.s2b.agents.agent_run.ease_of_acquisition", quickly)
    monkeypatch.setattr("icy.s2b.agents.agent_run.READ_EPISODES", 2)
    options = {"observations": 120, "seeds": 1, "workers": 1, "out": str(tmp_path)}
    few = {"actors": 2, "least": 0, "length": 6, "burn_in": 2, "overlap": 2, "observations_per_update": 100}
    reproducing = asked("metarg24/eoa", settings={**few, "reconstruction": {"hidden": 8}}, **options)
    plan = reproducing.plan()
    jobs = [replace(row.job, settings=replace(row.job.settings, episodes=4, eoa=1)) for row in plan.rows[:1]]
    rows = tuple(replace(row, job=job) for row, job in zip(plan.rows, jobs, strict=False))
    cells = reproducing.run(replace(plan, rows=rows)).cells
    measured = cells[cells["verdict"] != "missing"]
    assert set(measured["grammar"]) == {"S=1, O=4"}
    assert {"zsct", "ease_of_acquisition"} <= set(measured["measure"])


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_quick_and_checks_of_wide_models() -> None:
    rows = asked("icy22/table4", seeds=1).plan().rows
    checks = {(row.name, row.job.settings.hidden): row.job.training.check_every for row in rows}
    assert checks["sender/FC2L", 1280] == 1
    assert checks["sender/FC2L", 128] == 50
    ((_, _, hidden),) = rows_of(asked("icy22/table4", quick=True))
    assert hidden == 128


def test_other_names_of_models_and_grammars() -> None:
    assert set(asked("perkins21/15", only="RNN:GRU", grammar="comp", representation="soft").wanted["model"]) == {
        "RNN1L:GRU"
    }
    assert set(asked("perkins21/17", only="RNNZero:GRU+RNN:GRU").wanted["model"]) == {"RNNZero:GRU+RNN1L:GRU"}


def test_quick_is_one_row_of_each_named_model() -> None:
    named = rows_of(asked("perkins21/table13", quick=True, only=["RNNZero:GRU", "FC2L"]))
    assert sorted(name for name, *_ in named) == ["sender/FC2L", "sender/RNNZero:GRU"]
    (alone,) = rows_of(asked("icy22/table3", quick=True, only="Hashtable"))  # which does not learn
    assert alone[0] == "sender/Hashtable"
