"""Trackers: one row per result, complete and never twice."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.specs import ProbeSpec
from icy.experiments.plan import make_plan
from icy.experiments.trackers import TRACKERS, curve_of, make_tracker, metrics_of, parameters_of, run_name, version_of
from icy.records.long_table import LONG, to_long
from icy.records.record import Record
from icy.records.store import Store
from tests.experiments.trackers.helpers import ONE, assert_all_there, assert_is, runs

# -- content of a row --------------------------------------------------------------------------------------------------


def test_a_row_has_the_parameters_numbers_and_curve_of_its_result(
    name: str, variety: list[Record], tmp_path: Path
) -> None:
    tracker = make_tracker(name, tmp_path / "tracking")
    for record in variety:
        tracker.filed(record)
    found = {run.parameters["key"]: run for run in runs(name, tmp_path)}
    assert len(found) == len(runs(name, tmp_path)) == len(variety)
    for record in variety:
        assert_is(found[record["key"]], record)


def test_numbers_have_the_names_and_values_that_they_have_in_the_table(variety: list[Record]) -> None:
    for record in variety:
        (row,) = to_long([record]).to_dict("records")
        metrics, parameters = metrics_of(record), parameters_of(record)
        assert not metrics.keys() & parameters.keys()
        for n in set(LONG) & set(metrics):
            assert metrics[n] == pytest.approx(row[n]), n
        for n in ("model", "grammar", "seed", "meanings", "hidden_size", "preset", "representation", "protocol", "key"):
            assert parameters[n] == row[n]
        if record["side"] == "pair":
            assert parameters["game_steps"] == row["game_steps"]
    probed, played = metrics_of(variety[0]), metrics_of(variety[2])
    assert {"steps", "accuracy", "value", "seconds", "baseline_steps"} <= probed.keys()
    assert {"steps", "end_to_end_accuracy", "end_to_end_loss", "topsim"} <= played.keys()
    assert {"curve/accuracy", "curve/loss", "curve/topsim"} == curve_of(variety[2])[0][1].keys()
    assert {"curve/sender_accuracy", "curve/receiver_accuracy"} <= curve_of(variety[3])[0][1].keys()
    assert parameters_of(variety[0])["settings.check_every"] == 20


def test_a_result_that_raised_has_its_configuration_and_no_numbers(tmp_path: Path) -> None:
    plan = make_plan(ProbeSpec.asked(model="sender/FC1L", grammar="perm", out=tmp_path, **ONE))
    job = plan.rows[0].job
    record = job.failure(job.replicates[0], ValueError("no"))
    assert metrics_of(record) == {}
    assert curve_of(record) == []
    assert parameters_of(record)["reason"] == "error"
    assert run_name(record) == "FC1L concat seed 1"


def test_metrics_are_finite(variety: list[Record]) -> None:
    odd = {**variety[0], "train_accuracy": math.nan, "topsim": None, "baseline_steps": 0}
    assert not {"train_accuracy", "topsim", "value"} & metrics_of(odd).keys()


# -- one row per result ------------------------------------------------------------------------------------------------


def test_resuming_adds_only_new_results(name: str, tmp_path: Path) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    icy.probe("sender/FC1L", ["perm", "rot"], out=tmp_path, track=[name, name], **ONE)
    assert_all_there(name, tmp_path)
    assert len(runs(name, tmp_path)) == 3
    assert {run.parameters["grammar"] for run in runs(name, tmp_path)} == {"concat", "perm", "rot"}


def test_results_that_are_trained_again_replace_the_earlier_ones(name: str, tmp_path: Path) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, rerun="always", **ONE)
    assert_all_there(name, tmp_path)
    assert len(runs(name, tmp_path)) == 2


def test_results_on_file_are_added(name: str, tmp_path: Path) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, **ONE)
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)
    old = Store(tmp_path).records()[0]
    Store(tmp_path).put({**old, "finished": "2030-01-01T00:00:00+00:00", "seconds": 7.0})  # again, and not tracked
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)


def test_a_row_that_was_not_written_to_its_end_is_written_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, **ONE)
    record = Store(tmp_path).records()[0]
    with monkeypatch.context() as patch:
        patch.setattr("icy.experiments.trackers.metrics_of", lambda _: 1 / 0)
        make_tracker(name, tmp_path / "tracking").filed(record)
    assert version_of(record) not in set(make_tracker(name, tmp_path / "tracking")._versions())
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)


def test_nothing_of_it_is_in_the_keys_or_the_records(tmp_path: Path) -> None:
    given: Any = {"model": "sender/FC1L", "grammar": "perm", "out": tmp_path, **ONE}
    plain, tracked = make_plan(ProbeSpec.asked(**given)), make_plan(ProbeSpec.asked(**given, track="mlflow"))
    (row,), (other,) = plain.rows, tracked.rows
    assert [row.job.key(r) for r in row.job.replicates] == [other.job.key(r) for r in other.job.replicates]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_a_tracker_that_fails_says_so_once_and_loses_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def full(self: Any, record: Record) -> None:
        tried.append(record["key"])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TRACKERS[name], "_write", full)
    with caplog.at_level(logging.WARNING, "icy"):
        result = icy.probe("sender/FC1L", ["perm", "rot"], out=tmp_path, track=name, **ONE)
    assert len(result.records) == 3
    assert not result.failures
    assert len(Store(tmp_path).records()) == 3
    assert len(tried) == 1
    (said,) = [record.getMessage() for record in caplog.records if "no more" in record.getMessage()]
    assert said.startswith(TRACKERS[name].title)
    assert "No space left on device" in said
    caplog.clear()
    icy.probe("sender/FC1L", ["perm", "rot"], out=tmp_path, track=name, **ONE)  # it fails on results on file, too
    assert len(tried) == 2
    assert "no more" in caplog.text
