"""Results in TensorBoard, MLflow or Weights & Biases, beside the results folder.

A tracker is a Watcher (`icy.watcher`) which writes one row per result as soon as the result is filed: a run, with the
result's configuration as its parameters, its numbers under the names that they have in results.csv, and its learning
curve, under `curve/`, step by step. Everything stays on this machine, below `tracking` in the results folder, and none
of the packages is imported before it is asked for.

The results folder remains what counts. Results that were on file before are added when a run begins, so that the same
command with another tracker shows them there too; a result that is trained again takes the place of the one before. A
tracker that fails says so once and is silent from then on; no result is lost.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from icy.errors import InvalidSettingError, StoreError, unknown, what_and_where
from icy.long_table import value_of
from icy.planning import Plan
from icy.store import Record
from icy.training.pair_job import CURVE
from icy.watcher import Watcher, Watchers

log = logging.getLogger(__name__)
TRACKING = "tracking"  # the folder, beside the records
CHATTY = ("alembic", "mlflow", "tensorboard", "wandb")  # their loggers
ALSO = ("side", "measure", "preset", "reason", "engine", "device", "git", "finished", "key")  # beside the configuration


def watching(watcher: Watcher | None, track: str | Iterable[str], out: str | Path) -> Watcher | None:
    """A watcher together with trackers, as one.

    Args:
        watcher: told of progress, if there is one.
        track: the names of trackers, if any.
        out: the results folder.

    Raises:
        UnknownNameError, InvalidSettingError, StoreError: as for `make_tracker`.
    """
    asked = list(dict.fromkeys([track] if isinstance(track, str) else track))
    for name in asked:  # all of them, before the first makes a folder
        _class_of(name)
    told = [*([] if watcher is None else [watcher]), *(make_tracker(name, Path(out) / TRACKING) for name in asked)]
    return Watchers(*told) if len(told) > 1 else next(iter(told), None)


def make_tracker(name: str, folder: str | Path) -> Tracker:
    """A tracker by its name, ready to write.

    Args:
        name: one of TRACKERS.
        folder: each tracker has a folder of its own name in it.

    Raises:
        UnknownNameError: there is no such tracker.
        InvalidSettingError: its package is not installed.
        StoreError: the folder cannot be written, or what is in it cannot be used.
    """
    return _class_of(name)(Path(folder))


def _class_of(name: str) -> type[Tracker]:
    if name not in TRACKERS:
        raise unknown("tracker", name, list(TRACKERS))
    return TRACKERS[name]


# -- what is written of a result ---------------------------------------------------------------------------------------


def run_name(record: Record) -> str:
    """What a result is called.

    Example:
        >>> run_name({"model": "sender/HierZero:GRU", "side": "sender", "grammar": "perm", "seed": 123})
        'HierZero:GRU perm seed 123'
    """
    return f"{record['model'].removeprefix(record['side'] + '/')} {record['grammar']} seed {record['seed']}"


def parameters_of(record: Record) -> dict[str, str | float | bool]:
    """The configuration of a result, flat; its options and settings by names such as `settings.learning_rate`."""
    config = dict(record["config"])
    for group in ("options", "settings"):
        config.update({f"{group}.{name}": value for name, value in config.pop(group, {}).items()})
    if "steps" in config:  # that a game was to have; `steps` are those that were made
        config["game_steps"] = config.pop("steps")
    own = record["parameters"]
    counts = {"parameters": own.get("true"), "parameters_published": own.get("published")}
    given = {**config, **{name: record.get(name) for name in ALSO}, **counts}
    return {n: v if isinstance(v, (str, int, float)) else str(v) for n, v in given.items() if v is not None}


def metrics_of(record: Record) -> dict[str, float]:
    """The numbers of a result, by the names that they have in results.csv; what is not finite is left out."""
    made = "curve" in record  # else it raised, and its `steps`, if it has any, are those that it was to have
    own = [n for n in record if n not in record["config"] or (n == "steps" and made)]
    numbers = {n: record[n] for n in own if isinstance(record[n], (int, float)) and not isinstance(record[n], bool)}
    return {n: float(v) for n, v in {**numbers, "value": value_of(record)}.items() if math.isfinite(v)}


def curve_of(record: Record) -> list[tuple[int, dict[str, float]]]:
    """The readings of a result: updates made, and what was read.

    Example:
        >>> curve_of({"curve": [[50, 0.25], [100, 0.5]]})
        [(50, {'curve/accuracy': 0.25}), (100, {'curve/accuracy': 0.5})]
    """
    return [
        (row[0], {f"curve/{n}": float(v) for n, v in zip(CURVE[1:], row[1:], strict=False) if v is not None})
        for row in record.get("curve", ())
    ]


def version_of(record: Record) -> str:
    """What tells a result from all others, and from itself trained at another time."""
    return f"{record['key']}-{re.sub('[^0-9]', '', record['finished'].split('+')[0])}"


def _span(record: Record) -> tuple[float, float]:
    """When its training began and ended, in seconds since 1970. Of a stack each replicate has its share of the time."""
    end = datetime.fromisoformat(record["finished"]).timestamp()
    return end - (record.get("seconds") or 0.0), end


# -- trackers ----------------------------------------------------------------------------------------------------------


class Tracker(Watcher, ABC):
    """Writes a row per result; the subclasses say where.

    Args:
        folder: the tracker's files go into a folder of its own name in this one.

    Raises:
        InvalidSettingError: the package is not installed.
        StoreError: the folder cannot be written, or what is in it cannot be used.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # to import; the first is the one that has to be installed

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.place = folder.absolute(), folder.absolute() / self.name
        self._failed = False
        self._import()
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            with _quietly():
                self._open()
        except Exception as error:  # of whatever kind the package has
            said = what_and_where(error)
            raise StoreError(f"{self.title} cannot use {self.place}, so nothing was trained: {said}.") from error

    def _import(self) -> None:
        try:
            with warnings.catch_warnings(action="ignore"):
                for package in self.packages:
                    importlib.import_module(package)
        except ImportError as error:
            raise InvalidSettingError(
                f"Tracking with {self.title} needs the package {self.packages[0]}, so nothing was trained: "
                f'pip install "icy-toolkit[{self.name}]".'
            ) from error

    def started(self, plan: Plan) -> None:
        """Add the plan's results that were on file before, as far as they are not there."""
        super().started(plan)
        self._try(self._catch_up, [record for row in plan.rows for record in row.filed])

    def filed(self, record: Record) -> None:
        """Write the row of a result."""
        self._try(self._write, record)

    def _try(self, action: Any, given: Any) -> None:
        """Do it, if all went well so far. Nothing that goes wrong here may stop a training or lose its result."""
        if self._failed:
            return
        try:
            with _quietly():
                action(given)
        except Exception as error:  # of whatever kind the package has
            self._failed = True
            log.warning("%s shows no more results of this run: %s.", self.title, what_and_where(error))

    def _catch_up(self, records: list[Record]) -> None:
        there = set(self._versions()) if records else set()
        for record in records:
            if version_of(record) not in there:
                self._write(record)

    def _open(self) -> None:
        """Get ready, before anything is trained."""

    @abstractmethod
    def _versions(self) -> Iterable[str]:
        """`version_of` every result that is there, written in full."""

    @abstractmethod
    def _write(self, record: Record) -> None:
        """Write a result, in the place of an older version of it."""


class TensorBoardTracker(Tracker):
    """Event files, a folder per result: `tensorboard --logdir OUT/tracking/tensorboard`.

    The parameters are in the HPARAMS tab. A folder is named after the result and its key; one of a result that is
    trained again is replaced. Writing one takes a hundredth of a second.
    """

    name, title, packages = "tensorboard", "TensorBoard", ("tensorboard", "torch.utils.tensorboard")

    def _versions(self) -> Iterator[str]:
        return (path.suffix[1:] for path in self.place.glob("*/events.out.tfevents.*"))

    def _write(self, record: Record) -> None:
        folder = self.place / f"{re.sub('[^A-Za-z0-9._+-]', '-', run_name(record))}-{record['key'][:8]}"
        # Not in the folder that TensorBoard watches until it is whole.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=f".{self.name}-") as scratch:
            self._write_events(record, Path(scratch) / folder.name)
            if folder.exists():
                shutil.rmtree(folder)
            (Path(scratch) / folder.name).rename(folder)

    def _write_events(self, record: Record, folder: Path) -> None:
        from tensorboard.plugins.hparams import summary_v2
        from torch.utils.tensorboard import SummaryWriter

        began, ended = _span(record)
        with SummaryWriter(str(folder), filename_suffix=f".{version_of(record)}") as writer:
            # Not writer.add_hparams: it makes a folder in the folder, and HPARAMS has the first run's parameters only.
            about = summary_v2.hparams_pb(parameters_of(record), trial_id=record["key"], start_time_secs=began)
            writer.file_writer.add_summary(about)
            for steps, readings in curve_of(record):
                for name, value in readings.items():
                    writer.add_scalar(name, value, steps)
            metrics = metrics_of(record)
            for name, value in metrics.items():
                writer.add_scalar(name, value, int(metrics.get("steps", 0)))
            if record["failed"]:
                writer.add_text("error", str(record["error"]))
            writer.file_writer.add_summary(_ending(record, ended))


def _ending(record: Record, ended: float) -> Any:
    """What tells the HPARAMS tab how a run ended; TensorBoard's own function for it needs TensorFlow."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    status = api_pb2.STATUS_FAILURE if record["failed"] else api_pb2.STATUS_SUCCESS
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=ended)
    content = plugin_data_pb2.HParamsPluginData(session_end_info=end, version=metadata.PLUGIN_DATA_VERSION)
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=SummaryMetadata(plugin_data=plugin))
    return Summary(value=[value])


class MLflowTracker(Tracker):
    """Runs of the experiment "icy" in a SQLite file: `mlflow ui --backend-store-uri sqlite:///OUT/tracking/mlflow/mlflow.db`.

    No server is needed. A result that is trained again is a new run, and the run before is marked as deleted. Beginning
    takes some seconds, for the import and, once per folder, the database; writing a run, one or two tenths of a second.
    Machines that share a results folder over a network had better not share this: SQLite cannot lock on all of them.
    """

    name, title, packages = "mlflow", "MLflow", ("mlflow",)
    EXPERIMENT = "icy"
    KEY, VERSION = "icy.key", "icy.version"  # tags of a run
    PARAMETERS, METRICS = 100, 1000  # that MLflow takes at once
    LONGEST = 500  # value of a parameter

    def _import(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing leaves this machine
        super()._import()

    def _open(self) -> None:
        from mlflow import MlflowClient

        path = str(self.place / "mlflow.db").replace("%", "%25").replace("?", "%3F")  # it is made an address
        self._client = MlflowClient(f"sqlite:///{path}")
        found = self._client.get_experiment_by_name(self.EXPERIMENT)
        where = (self.place / "artifacts").as_uri()  # else below the folder that one happens to be in
        self._experiment = found.experiment_id if found else self._client.create_experiment(self.EXPERIMENT, where)

    def _runs(self, filter_: str = "") -> Iterator[Any]:
        page = None
        while True:
            found = self._client.search_runs([self._experiment], filter_, page_token=page)
            yield from found
            if not (page := found.token):
                return

    def _versions(self) -> Iterator[str]:
        return (r.data.tags.get(self.VERSION, "") for r in self._runs() if r.info.status != "RUNNING")

    def _write(self, record: Record) -> None:
        older = list(self._runs(f"tags.`{self.KEY}` = '{record['key']}'"))
        began, ended = (int(1000 * moment) for moment in _span(record))
        tags = {self.KEY: record["key"], self.VERSION: version_of(record)}
        if record["failed"]:
            tags["mlflow.note.content"] = str(record["error"])  # what the page of a run shows as its description
        run = self._client.create_run(self._experiment, began, tags, run_name(record))
        self._log(run.info.run_id, record, ended)
        self._client.set_terminated(run.info.run_id, "FAILED" if record["failed"] else "FINISHED", ended)
        for run in older:
            self._client.delete_run(run.info.run_id)

    def _log(self, run_id: str, record: Record, ended: int) -> None:
        from mlflow.entities import Metric, Param

        metrics = metrics_of(record)
        readings = [*curve_of(record), (int(metrics.get("steps", 0)), metrics)]
        points = [Metric(n, value, ended, steps) for steps, values in readings for n, value in values.items()]
        params = [Param(n, str(value)[: self.LONGEST]) for n, value in parameters_of(record).items()]
        for first in range(0, len(params), self.PARAMETERS):
            self._client.log_batch(run_id, params=params[first : first + self.PARAMETERS])
        for first in range(0, len(points), self.METRICS):
            self._client.log_batch(run_id, metrics=points[first : first + self.METRICS])


class WandbTracker(Tracker):
    """Offline runs of the project "icy"; `wandb sync OUT/tracking/wandb/offline-run-*` uploads them, if that is wanted.

    The id of a run is the result's key and the time at which it was finished: a result that is trained again is a new
    run, and the folder of the run before is removed (on the server, if it was uploaded, it stays). Writing a run takes
    some tenths of a second, and the first one a second.
    """

    name, title, packages = "wandb", "Weights & Biases", ("wandb",)
    PROJECT = "icy"
    WHOLE = "icy-whole"  # an empty file in the folder of a run that was written to its end

    def _import(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # nothing leaves this machine
        super()._import()

    def _versions(self) -> Iterator[str]:
        return (path.name.split("-", 3)[3] for path in self.place.glob("offline-run-*") if (path / self.WHOLE).exists())

    def _write(self, record: Record) -> None:
        for folder in self.place.glob(f"offline-run-*-{record['key']}-*"):
            shutil.rmtree(folder)
        run = self._begin(record)
        try:
            for steps, readings in curve_of(record):
                run.log(readings, step=steps)
            run.summary.update(metrics_of(record))
        finally:
            run.finish(int(record["failed"]))
        for folder in self.place.glob(f"offline-run-*-{version_of(record)}"):
            (folder / self.WHOLE).touch()

    def _begin(self, record: Record) -> Any:
        import wandb

        settings = wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, x_disable_meta=True, x_disable_stats=True
        )
        return wandb.init(
            project=self.PROJECT,
            name=run_name(record),
            id=version_of(record),
            group=record["model"],
            config=parameters_of(record),
            notes=str(record["error"]) if record["failed"] else None,
            dir=self.folder,
            mode="offline",
            reinit="create_new",  # beside a run of the user's own, which goes on
            settings=settings,
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the remarks of the packages, which would break into the progress display."""
    loggers = [logging.getLogger(name) for name in CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


TRACKERS: dict[str, type[Tracker]] = {t.name: t for t in (TensorBoardTracker, MLflowTracker, WandbTracker)}
