"""Rows of trackers, read back with the packages' own readers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icy.experiments.trackers import curve_of, metrics_of, parameters_of
from icy.records.record import Record
from icy.records.store import Store
from tests.helpers import TINY

ONE = {**TINY, "seeds": [1], "workers": 1}


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
    rows = runs(name, out)
    found = {run.parameters["key"]: run for run in rows}
    records = Store(out).records()
    assert len(rows) == len(records) == len(found)
    for record in records:
        assert_is(found[record["key"]], record)
