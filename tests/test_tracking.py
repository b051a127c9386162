"""Trackers: one row per result, read back with the packages' own readers, and no result lost for their sake."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import TINY

import icy
from icy.cli import main
from icy.config.specs import ProbeSpec, SweepSpec
from icy.core.errors import IcyError, InvalidSettingError, StoreError, UnknownNameError
from icy.experiments.probe import make_plan
from icy.experiments.sweep import make_sweep
from icy.experiments.trackers.base import curve_of, metrics_of, parameters_of, run_name, version_of
from icy.experiments.trackers.make import TRACKERS, make_tracker, watching
from icy.experiments.watcher import Watcher, Watchers
from icy.records.long_table import LONG, to_long
from icy.records.record import Record
from icy.records.store import Store

ONE = {**TINY, "seeds": [1], "workers": 1}
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(params=TRACKERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each tracker whose package is installed."""
    for package in TRACKERS[request.param].packages:
        pytest.importorskip(package)
    return str(request.param)


@dataclass(frozen=True)
class Run:
    """A row as a tracker's package reads it."""

    name: str
    parameters: dict[str, Any]
    metrics: dict[str, float]
    curve: list[tuple[int, dict[str, float]]]
    failed: bool
    error: str | None


def runs(name: str, out: Path) -> list[Run]:
    """Every row that a tracker has of a results folder."""
    reader: Callable[[Path], list[Run]] = {
        "tensorboard": runs_in_tensorboard,
        "mlflow": runs_in_mlflow,
        "wandb": runs_in_wandb,
    }[name]
    return reader(out / "tracking" / name)


def by_step(readings: list[tuple[int, str, float]]) -> list[tuple[int, dict[str, float]]]:
    """Single readings as rows of a curve."""
    steps = sorted({step for step, _, _ in readings})
    return [(s, {n: v for step, n, v in readings if step == s}) for s in steps]


def runs_in_tensorboard(folder: Path) -> list[Run]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import api_pb2
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    found = []
    for path in sorted(folder.iterdir()):
        events = EventAccumulator(str(path))
        events.Reload()
        content = events.PluginTagToContent("hparams")
        start = HParamsPluginData.FromString(content["_hparams_/session_start_info"]).session_start_info
        end = HParamsPluginData.FromString(content["_hparams_/session_end_info"]).session_end_info
        hparams = {n: getattr(v, v.WhichOneof("kind")) for n, v in start.hparams.items()}
        scalars = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
        readings = [(e.step, tag, e.value) for tag, points in scalars.items() if "curve/" in tag for e in points]
        text = [t for t in events.Tags()["tensors"] if t.startswith("error")]
        found.append(
            Run(
                path.name,
                hparams,
                {tag: points[-1].value for tag, points in scalars.items() if "curve/" not in tag},
                by_step(readings),
                end.status == api_pb2.STATUS_FAILURE,
                events.Tensors(text[0])[0].tensor_proto.string_val[0].decode() if text else None,
            )
        )
    return found


def runs_in_mlflow(folder: Path) -> list[Run]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("icy")
    found = []
    for run in client.search_runs([experiment.experiment_id]):
        curves = [n for n in run.data.metrics if n.startswith("curve/")]
        history = [(m.step, n, m.value) for n in curves for m in client.get_metric_history(run.info.run_id, n)]
        found.append(
            Run(
                run.info.run_name,
                run.data.params,
                {n: v for n, v in run.data.metrics.items() if n not in curves},
                by_step(history),
                {"FAILED": True, "FINISHED": False}[run.info.status],
                run.data.tags.get("mlflow.note.content"),
            )
        )
    return found


def runs_in_wandb(folder: Path) -> list[Run]:
    """By `wandb leet inspect`, which older versions do not have."""

    def inspect(path: Path, *more: str) -> str:
        command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *more, str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if "No such command" in done.stderr:
            pytest.skip("this wandb cannot read offline runs")
        return done.stdout

    found = []
    for path in sorted(folder.glob("offline-run-*")):
        about = json.loads(inspect(path, "--summary"))
        records = [json.loads(line) for line in inspect(path).splitlines()]
        items = [r["history"]["item"] for r in records if r["type"] == "history"]
        summary = {n: v for n, v in about["summary"].items() if not n.startswith(("_", "curve/"))}
        curve = [(i["_step"], {n: v for n, v in i.items() if n.startswith("curve/")}) for i in items]
        failed = about["exit_code"] != 0
        found.append(Run(about["name"], about["config"], summary, curve, failed, about["notes"] or None))
    return found


def assert_is(run: Run, record: Record) -> None:
    """A row has everything of a result."""
    expected = parameters_of(record)
    assert run.parameters.keys() == expected.keys()
    for n, value in expected.items():
        assert run.parameters[n] == value or run.parameters[n] == str(value), n
    close = pytest.approx(metrics_of(record), rel=1e-6)  # TensorBoard keeps 32 bits
    assert run.metrics == close
    assert [step for step, _ in run.curve] == [step for step, _ in curve_of(record)]
    for (_, found), (_, readings) in zip(run.curve, curve_of(record), strict=True):
        assert found == pytest.approx(readings, rel=1e-6)
    assert run.failed == record["failed"]
    assert run.error == (record["error"] if record["failed"] else None)


def assert_all_there(name: str, out: Path) -> None:
    """One row per result on file, and each is right."""
    found = {run.parameters["key"]: run for run in runs(name, out)}
    records = Store(out).records()
    assert len(runs(name, out)) == len(records) == len(found)
    for record in records:
        assert_is(found[record["key"]], record)


# -- what a row holds --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def variety(tiny: icy.ProbeResult, tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Results of a probe, of a game from scratch, and of pairs that failed before it."""
    out = tmp_path_factory.mktemp("pairs")
    small: Any = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1, "out": out}
    played = icy.end_to_end("FC1L", "FC1L", steps=20, report_every=10, **small)
    learnt = icy.end_to_end("FC1L", "FC1L", "concat", steps=20, target=0.2, settings={"check_every": 5}, **small)
    failed = icy.end_to_end("FC1L", "FC1L", "perm", steps=10, settings={"max_steps": 10, "check_every": 5}, **small)
    assert not played.failures
    assert not learnt.failures
    assert failed.failures
    return [*list(tiny.records)[:2], *played.records, *learnt.records, *failed.records]


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


def test_resuming_adds_only_what_is_new(name: str, tmp_path: Path) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    icy.probe("sender/FC1L", ["perm", "rot"], out=tmp_path, track=[name, name], **ONE)
    assert_all_there(name, tmp_path)
    assert len(runs(name, tmp_path)) == 3
    assert {run.parameters["grammar"] for run in runs(name, tmp_path)} == {"concat", "perm", "rot"}


def test_what_is_trained_again_takes_the_place_of_what_was(name: str, tmp_path: Path) -> None:
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, rerun="always", **ONE)
    assert_all_there(name, tmp_path)
    assert len(runs(name, tmp_path)) == 2


def test_what_was_on_file_before_is_added(name: str, tmp_path: Path) -> None:
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
        patch.setattr("icy.experiments.trackers.base.metrics_of", lambda _: 1 / 0)
        make_tracker(name, tmp_path / "tracking").filed(record)
    assert version_of(record) not in set(make_tracker(name, tmp_path / "tracking")._versions())
    icy.probe("sender/FC1L", "perm", out=tmp_path, track=name, **ONE)
    assert_all_there(name, tmp_path)


def test_nothing_of_it_is_in_the_keys_or_the_records(tmp_path: Path) -> None:
    given: Any = {"model": "sender/FC1L", "grammar": "perm", "out": tmp_path, **ONE}
    plain, tracked = make_plan(ProbeSpec.asked(**given)), make_plan(ProbeSpec.asked(**given, track="mlflow"))
    (row,), (other,) = plain.rows, tracked.rows
    assert [row.job.key(r) for r in row.job.replicates] == [other.job.key(r) for r in other.job.replicates]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


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
    icy.probe("sender/FC1L", ["perm", "rot"], out=tmp_path, track=name, **ONE)  # it fails on what is on file, too
    assert len(tried) == 2
    assert "no more" in caplog.text


def test_an_unknown_tracker_is_answered_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean tensorboard"):
        icy.probe("sender/FC1L", "perm", out=tmp_path / "out", track=["tensorbord"], **ONE)
    with pytest.raises(UnknownNameError, match="known: tensorboard, mlflow, wandb"):
        make_tracker("xyz", tmp_path)
    assert not (tmp_path / "out").exists()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def quick(out: Path, command: str = "probe") -> list[str]:
    models = ["-s", "FC1L", "-r", "FC1L", "--steps", "20"] if command == "e2e" else ["-m", "sender/FC1L", "-g", "perm"]
    return [command, *models, "--quick", "--seeds", "1", "--workers", "1", "-o", str(out)]


def test_an_unknown_tracker_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    result = run(*quick(tmp_path / "out"), "--track", "tensorbord")
    assert result.exit_code == 2
    assert "'tensorbord' is not one of 'tensorboard', 'mlflow', 'wandb'" in result.stderr
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
        make_tracker(name, out)


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
    assert {path.name for path in tmp_path.iterdir()} == {"out", "tracked"}  # and nothing beside the results
    assert_all_there(name, tmp_path / "tracked")


def test_nothing_is_imported_that_was_not_asked_for(tmp_path: Path) -> None:
    """Not even TensorBoard, which torch would bring along."""
    code = (
        "import sys, icy, icy.experiments.trackers.make\n"
        "import icy.cli.commands.probe, icy.cli.commands.sweep, icy.cli.commands.e2e\n"
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


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert run(*quick(tmp_path / "out"), "--track", "tensorboard", "--dry-run").exit_code == 0
    assert not (tmp_path / "out").exists()


def test_a_sweep_is_tracked_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    given: Any = {"model": "*/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 2, "out": tmp_path}
    icy.sweep(**given, track="tensorboard")
    assert_all_there("tensorboard", tmp_path)
    with pytest.raises(IcyError, match="'track' is for the whole sweep"):
        make_sweep(SweepSpec.asked(**given, parts=({"track": "wandb"},)))


def test_watching_is_as_much_as_was_asked_for(tmp_path: Path) -> None:
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
