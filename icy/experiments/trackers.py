"""Trackers: results in TensorBoard, MLflow or Weights & Biases, in addition to the results folder.

A tracker is a Watcher (`icy.experiments.progress`). It writes a row, the tracker's run, when a result is recorded.
The run has the result's configuration as its parameters, the numbers with their names in results.csv, and the learning
curve, under `curve/`, step by step. All files stay on this machine, below `tracking` in the results folder. A package
is imported only if its tracker is requested.

The results folder remains the reference. Results that were on file before are added when a run begins, so another
tracker can be added later by the same command. A result that is trained again replaces the earlier one. If a tracker
fails, it logs one warning and writes nothing more; no result is lost.
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
from typing import Any, ClassVar, cast

from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError, StoreError, require_known, what_and_where
from icy.core.surroundings import log_level
from icy.core.text import words
from icy.experiments.plan import Plan
from icy.experiments.progress import Watcher, Watchers
from icy.records.kinds import kind_of, points_of
from icy.records.record import Record, plain_key, value_of

log = logging.getLogger(__name__)
CHATTY = ("alembic", "mlflow", "tensorboard", "wandb")  # loggers to silence
ALSO = ("side", "measure", "preset", "reason", "engine", "device", "git", "finished", "key")  # added parameters


# -- the content of a run ----------------------------------------------------------------------------------------------


def run_name(record: Record) -> str:
    """Return the name of a result's run.

    Example:
        >>> run_name({"model": "sender/HierZero:GRU", "side": "sender", "grammar": "perm", "seed": 123})
        'HierZero:GRU perm seed 123'
    """
    return f"{record['model'].removeprefix(record['side'] + '/')} {record['grammar']} seed {record['seed']}"


def parameters_of(record: Record) -> dict[str, str | float | bool]:
    """Return the configuration of a result, flattened to names such as `settings.learning_rate`.

    The conventions of its metrics are included, as in `convention.topsim`.
    """
    config = dict(record["config"])
    for group in ("options", "settings"):
        config.update({f"{group}.{name}": value for name, value in config.pop(group, {}).items()})
    if "steps" in config:  # the configured steps of a game; the metric `steps` has the steps made
        config["game_steps"] = config.pop("steps")
    own = record["parameters"]
    counts = {"parameters": own.get("true"), "parameters_published": own.get("published")}
    used = kind_of(record).conventions_of(record["config"])
    named = {f"convention.{metric}": Convention(metric, values).text for metric, values in used.items()}
    given = {**config, **{name: record.get(name) for name in ALSO}, **counts, **named}
    return {n: v if isinstance(v, (str, int, float)) else str(v) for n, v in given.items() if v is not None}


def metrics_of(record: Record) -> dict[str, float]:
    """Return the finite numbers of a result, by their names in results.csv."""
    complete = "curve" in record  # else training raised, and `steps`, if present, are the configured steps
    own = {n: v for n, v in record.items() if n not in (*record["config"], "filed") or (n == "steps" and complete)}
    numbers = {n: v for n, v in own.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return {n: float(v) for n, v in {**numbers, "value": value_of(record)}.items() if math.isfinite(v)}


def curve_of(record: Record) -> list[tuple[int, dict[str, float]]]:
    """Return the learning curve of a result: for each evaluation, the updates so far and the measured numbers.

    Example:
        >>> curve_of({"curve": [[50, 0.25], [100, 0.5]]})
        [(50, {'curve/accuracy': 0.25}), (100, {'curve/accuracy': 0.5})]
    """
    names = points_of(record)[1:]
    return [
        (cast(int, row[0]), {f"curve/{n}": float(v) for n, v in zip(names, row[1:], strict=False) if v is not None})
        for row in record.get("curve", ())
    ]


def version_of(record: Record) -> str:
    """Return an identifier of a result that changes when it is trained again."""
    return f"{plain_key(record['key'])}-{re.sub('[^0-9]', '', record['finished'].split('+')[0])}"


def _span(record: Record) -> tuple[float, float]:
    """Return the begin and end of training in seconds since 1970. Replicates of a stack share its time equally."""
    end = datetime.fromisoformat(record["finished"]).timestamp()
    return end - (record.get("seconds") or 0.0), end


# -- trackers ----------------------------------------------------------------------------------------------------------


class Tracker(Watcher, ABC):
    """Callbacks that write a row per result; subclasses determine the format.

    Args:
        folder: the tracker writes into a subfolder named after the tracker.

    Raises:
        InvalidSettingError: the package is not installed.
        StoreError: the folder cannot be written, or its content cannot be used.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # packages to import; errors name the first as the one to install

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.place = folder.absolute(), folder.absolute() / self.name
        self._failed = False
        self._import()
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            with _quietly():
                self._open()
        except Exception as error:  # any exception of the package
            cause = what_and_where(error)
            raise StoreError(f"{self.title} cannot use {self.place}, so nothing was trained: {cause}.") from error

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
        """Add the plan's results that were on file before the run and are not tracked yet."""
        super().started(plan)
        self._try(self._catch_up, [record for row in plan.rows for record in row.filed])

    def filed(self, record: Record) -> None:
        """Write the row of a result."""
        self._try(self._write_checked, record)

    def _try(self, action: Any, given: Any) -> None:
        """Run an action unless an earlier action failed. Failures here never stop the training."""
        if self._failed:
            return
        try:
            with _quietly():
                action(given)
        except Exception as error:  # any exception of the package
            self._failed = True
            log.warning("%s failed, and gets no more results of this run: %s.", self.title, what_and_where(error))

    def _catch_up(self, records: list[Record]) -> None:
        tracked = set(self._versions()) if records else set()
        for record in records:
            if version_of(record) not in tracked:
                self._write_checked(record)

    def _write_checked(self, record: Record) -> None:
        plain_key(record["key"])  # raises if the key is unsafe in names of folders and in searches
        self._write(record)

    def _open(self) -> None:
        """Prepare the tracker before training."""

    @abstractmethod
    def _versions(self) -> Iterable[str]:
        """Return the `version_of` of every result that is completely tracked."""

    @abstractmethod
    def _write(self, record: Record) -> None:
        """Write a result, and remove older versions of it."""


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the packages, since their messages would disturb the progress display."""
    with log_level(logging.CRITICAL, *CHATTY), warnings.catch_warnings(action="ignore"):
        yield


# -- tracker for TensorBoard -------------------------------------------------------------------------------------------


class TensorBoardTracker(Tracker):
    """Event files, a folder per result: `tensorboard --logdir OUT/tracking/tensorboard`.

    The parameters are in the HPARAMS tab. A folder is named after the result and its key. The folder of a result that
    is trained again is replaced. Writing a folder takes 0.01 seconds.
    """

    name, title, packages = "tensorboard", "TensorBoard", ("tensorboard", "torch.utils.tensorboard")

    def _versions(self) -> Iterator[str]:
        return (path.suffix[1:] for path in self.place.glob("*/events.out.tfevents.*"))

    def _write(self, record: Record) -> None:
        folder = self.place / f"{re.sub('[^A-Za-z0-9._+-]', '-', run_name(record))}-{record['key'][:8]}"
        # TensorBoard watches self.place, so the files are moved there when they are complete.
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
            # Not writer.add_hparams: it makes a subfolder, and HPARAMS then shows only the first run's parameters.
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
    """Return the event with the final status for the HPARAMS tab; TensorBoard's own function needs TensorFlow."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    status = api_pb2.STATUS_FAILURE if record["failed"] else api_pb2.STATUS_SUCCESS
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=ended)
    content = plugin_data_pb2.HParamsPluginData(session_end_info=end, version=metadata.PLUGIN_DATA_VERSION)
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString())
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=SummaryMetadata(plugin_data=plugin))
    return Summary(value=[value])


# -- tracker for MLflow ------------------------------------------------------------------------------------------------


class MLflowTracker(Tracker):
    """Runs of the experiment "icy" in a SQLite file: `mlflow ui --backend-store-uri sqlite:///OUT/tracking/mlflow/mlflow.db`.

    No server is needed. A result that is trained again is a new run, and the earlier run is marked as deleted. Starting
    takes some seconds, for the import and, once per folder, the database. Writing a run takes 0.1 to 0.2 seconds.
    Do not use this tracker on machines that share a results folder over a network, as SQLite may fail to lock the file.
    """

    name, title, packages = "mlflow", "MLflow", ("mlflow",)
    EXPERIMENT = "icy"
    KEY, VERSION = "icy.key", "icy.version"  # tags of a run
    PARAMETERS, METRICS = 100, 1000  # most that MLflow takes in a call
    LONGEST = 500  # most characters of a parameter's value

    def _import(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing leaves this machine
        super()._import()

    def _open(self) -> None:
        from mlflow import MlflowClient

        path = str(self.place / "mlflow.db").replace("%", "%25").replace("?", "%3F")  # escaped, as it is part of a URI
        self._client = MlflowClient(f"sqlite:///{path}")
        experiment = self._client.get_experiment_by_name(self.EXPERIMENT)
        where = (self.place / "artifacts").as_uri()  # the default is below the current folder
        self._experiment = (
            experiment.experiment_id if experiment else self._client.create_experiment(self.EXPERIMENT, where)
        )

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
            tags["mlflow.note.content"] = str(record["error"])  # the description on the page of a run
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


# -- tracker for Weights & Biases --------------------------------------------------------------------------------------


class WandbTracker(Tracker):
    """Offline runs of the project "icy"; `wandb sync OUT/tracking/wandb/offline-run-*` uploads them.

    The id of a run is the result's key and finishing time, so a result that is trained again is a new run. The folder
    of the earlier run is removed; an uploaded run stays on the server. Writing a run takes some tenths of a second, and
    the first run a second.
    """

    name, title, packages = "wandb", "Weights & Biases", ("wandb",)
    PROJECT = "icy"
    WHOLE = "icy-whole"  # an empty file that marks the folder of a complete run

    def _import(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # nothing leaves this machine
        super()._import()

    def _versions(self) -> Iterator[str]:
        return (run for run, folder in self._runs() if (folder / self.WHOLE).exists())

    def _runs(self) -> Iterator[tuple[str, Path]]:
        """Yield the id and the folder of every run."""
        for folder in self.place.glob("offline-run-*-*"):
            yield folder.name.split("-", 3)[3], folder

    def _write(self, record: Record) -> None:
        for older in [folder for run, folder in self._runs() if run.partition("-")[0] == record["key"]]:
            shutil.rmtree(older)
        run = self._begin(record)
        try:
            for steps, readings in curve_of(record):
                run.log(readings, step=steps)
            run.summary.update(metrics_of(record))
        finally:
            run.finish(int(record["failed"]))
        for folder in [folder for run, folder in self._runs() if run == version_of(record)]:
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
            reinit="create_new",  # does not end a run of the user in this process
            settings=settings,
        )


# -- create the trackers of a run --------------------------------------------------------------------------------------


TRACKING = "tracking"  # folder of the trackers, in the results folder

TRACKERS: dict[str, type[Tracker]] = {t.name: t for t in (TensorBoardTracker, MLflowTracker, WandbTracker)}


def watching(watcher: Watcher | None, track: str | Iterable[str], out: str | Path) -> Watcher | None:
    """Combine callbacks and trackers.

    Args:
        watcher: callbacks of the run, if there are any.
        track: the names of trackers, if any.
        out: the results folder.

    Raises:
        UnknownNameError: the name of a tracker is unknown.
        InvalidSettingError: a tracker's package is not installed.
        StoreError: the folder cannot be written, or its content cannot be used.
    """
    names = list(TRACKERS) if "all" in words(track) else words(track)
    for name in names:  # all names, before the first tracker makes a folder
        require_known("tracker", name, TRACKERS)
    folder = Path(out) / TRACKING
    watchers = [*([] if watcher is None else [watcher]), *(TRACKERS[name](folder) for name in names)]
    return Watchers(*watchers) if len(watchers) > 1 else next(iter(watchers), None)
