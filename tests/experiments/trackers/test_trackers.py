"""Trackers."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import icy
from icy.cli import main
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.experiments.plan import make_plan
from icy.experiments.progress import Watcher, Watchers
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.trackers import (
    TRACKERS,
    WandbTracker,
    curve_of,
    metrics_of,
    parameters_of,
    run_name,
    version_of,
    watching,
)
from icy.records.long_table import LONG, to_long
from icy.records.record import Record
from icy.records.store import Store
from icy.training.probe_settings import ProbeRequest
from tests.experiments.trackers.helpers import ONE, assert_all_there, assert_is, runs
from tests.helpers import on_file

# -- trackers: one row per result, complete and never twice ------------------------------------------------------------


# -- content of a row --------------------------------------------------------------------------------------------------


def test_a_row_has_the_parameters_numbers_and_curve_of_its_result(
    name: str, variety: list[Record], tmp_path: Path
) -> None:
    tracker = TRACKERS[name](tmp_path / "tracking")
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
    plan = make_plan(ProbeRequest.asked(model="sender/FC1L", grammar="perm", out=tmp_path, **ONE))
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
        TRACKERS[name](tmp_path / "tracking").filed(record)
    assert version_of(record) not in set(TRACKERS[name](tmp_path / "tracking")._versions())
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)


def test_nothing_of_it_is_in_the_keys_or_the_records(tmp_path: Path) -> None:
    given: Any = {"model": "sender/FC1L", "grammar": "perm", "out": tmp_path, **ONE}
    plain, tracked = make_plan(ProbeRequest.asked(**given)), make_plan(ProbeRequest.asked(**given, track="mlflow"))
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


# -- choice of trackers by name and by command, and errors before training ---------------------------------------------


ROOT = Path(__file__).resolve().parents[3]

# -- errors ------------------------------------------------------------------------------------------------------------


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def quick(out: Path, command: str = "probe") -> list[str]:
    models = ["-s", "FC1L", "-r", "FC1L", "--steps", "20"] if command == "e2e" else ["-m", "sender/FC1L", "-g", "perm"]
    return [command, *models, "--quick", "--seeds", "1", "--workers", "1", "-o", str(out)]


def test_an_unknown_tracker_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    result = run(*quick(tmp_path / "out"), "--track", "tensorbord")
    assert result.exit_code == 2
    assert result.stderr == "Error: No tracker is called 'tensorbord'; did you mean tensorboard?\n"
    file = tmp_path / "sweep.toml"
    file.write_text('model = "sender/FC1L"\nquick = true\ntrack = "wand"\n')
    result = run("sweep", str(file), "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert result.stderr == "Error: No tracker is called 'wand'; did you mean wandb?\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.parametrize("command", ["probe", "sweep", "e2e"])
def test_a_missing_package_is_answered_before_anything_is_trained(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, TRACKERS[name].packages[0], None)
    out = tmp_path / "out"
    result = run(*quick(out, command), "--track", name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: Tracking with {TRACKERS[name].title} needs the package ")
    assert f'pip install "icy-toolkit[{name}]"' in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()
    with pytest.raises(InvalidSettingError, match="nothing was trained"):
        TRACKERS[name](out)


def test_a_folder_that_cannot_be_used_is_found_before_anything_is_trained(name: str, tmp_path: Path) -> None:
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / name).write_text("in the way")
    with pytest.raises(StoreError, match=f"cannot use .*{name}, so nothing was trained"):
        icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert not (tmp_path / "records").exists()


# -- all trackers and commands -----------------------------------------------------------------------------------------


def test_every_extra_of_setup_is_a_tracker() -> None:
    text = (ROOT / "setup.py").read_text()
    assert all(f'"{name}": ["{tracker.packages[0]}' in text for name, tracker in TRACKERS.items())


@pytest.mark.slow
def test_trackers_are_quiet(name: str, tmp_path: Path) -> None:
    """In a process of its own, as some of the packages write past sys.stdout."""
    words = [*quick(tmp_path / "out"), "--quiet", "--format", "csv"]
    plain = subprocess.run([sys.executable, "-m", "icy", *words], capture_output=True, text=True, cwd=tmp_path)
    words[words.index("-o") + 1] = "tracked"
    command = [sys.executable, "-m", "icy", *words, "--track", name]
    tracked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (tracked.returncode, tracked.stdout, tracked.stderr) == (0, plain.stdout, "")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "tracked"}  # no other files
    assert_all_there(name, tmp_path / "tracked")


@pytest.mark.process
def test_only_requested_packages_are_imported(tmp_path: Path) -> None:
    """Not even TensorBoard, which torch would bring along."""
    code = (
        "import sys, icy, icy.experiments.trackers\n"
        "import icy.cli.commands.training\n"
        f"icy.probe('sender/FC1L', 'perm', out={str(tmp_path)!r}, quick=True, seeds=1, workers=1)\n"
        f"loaded = {{m.partition('.')[0] for m in sys.modules}} & {set(TRACKERS)}\n"
        "assert not loaded, loaded\n"
        "assert 'torch.utils.tensorboard' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["probe", "sweep", "e2e"])
def test_every_command_tracks(command: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    result = run(*quick(tmp_path, command), "--track", "tensorboard")
    assert result.exit_code == 0, result.output
    assert_all_there("tensorboard", tmp_path)
    again = run(*quick(tmp_path, command), "--track", "tensorboard")
    assert "Nothing to train" in again.stderr
    assert_all_there("tensorboard", tmp_path)


@pytest.mark.slow
def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert run(*quick(tmp_path / "out"), "--track", "tensorboard", "--dry-run").exit_code == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.process
def test_a_sweep_is_tracked_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    given: Any = {"model": "*/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 2, "out": tmp_path}
    icy.sweep(**given, track="tensorboard")
    assert_all_there("tensorboard", tmp_path)
    with pytest.raises(IcyError, match="'track' is for the whole sweep"):
        make_sweep(sweep_request(**given, parts=({"track": "wandb"},)))


def test_watching_combines_the_requested_watchers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    mine = Watcher()
    assert watching(None, (), tmp_path) is None
    assert watching(mine, (), tmp_path) is mine
    alone = watching(None, "tensorboard", tmp_path)
    assert isinstance(alone, TRACKERS["tensorboard"])
    both = watching(mine, ["tensorboard", "tensorboard"], tmp_path)
    assert isinstance(both, Watchers)
    assert both.watchers[0] is mine
    assert len(both.watchers) == 2


# -- the tracker for Weights & Biases, with a stand-in for the package -------------------------------------------------


class StandIn:
    """A run that makes its folder and ignores its numbers."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.summary: dict[str, float] = {}

    def log(self, readings: dict[str, float], step: int) -> None:
        pass

    def finish(self, code: int) -> None:
        pass


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WandbTracker:
    def begin(self: WandbTracker, record: Any) -> StandIn:
        return StandIn(self.place / f"offline-run-20260101_000000-{version_of(record)}")

    monkeypatch.setattr(WandbTracker, "_import", lambda self: None)
    monkeypatch.setattr(WandbTracker, "_begin", begin)
    return WandbTracker(tmp_path / "tracking")


def test_a_result_takes_the_place_of_the_one_before_and_of_no_other(tracker: WandbTracker) -> None:
    one, other = on_file(), on_file("perm")
    for record in (one, other, {**one, "finished": "2026-02-02T00:00:00+00:00"}):
        tracker.filed(record)  # type: ignore[arg-type]
    assert sorted(tracker._versions()) == sorted([version_of(other), f"{one['key']}-20260202000000"])


@pytest.mark.parametrize("key", ["x/../../victim", "*", "[a-z]*", "../..", ""])
def test_a_key_from_elsewhere_removes_nothing(
    key: str, tracker: WandbTracker, caplog: pytest.LogCaptureFixture
) -> None:
    kept = [
        tracker.place / "offline-run-1-abc-1",
        tracker.place / "offline-run-x" / "a",
        tracker.folder.parent / "victim-1",
    ]
    for folder in kept:
        folder.mkdir(parents=True)
    with caplog.at_level(logging.WARNING):
        tracker.filed({**on_file(), "key": key})
    assert all(folder.is_dir() for folder in kept)
    assert "gets no more results of this run: The key of a result consists of letters and digits" in caplog.text
