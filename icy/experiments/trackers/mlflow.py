"""Tracker for MLflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from icy.records.record import Record

from .base import Tracker, _span, curve_of, metrics_of, parameters_of, run_name, version_of


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
