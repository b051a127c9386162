"""Tracker for Weights & Biases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icy.records.record import Record

from .base import Tracker, curve_of, metrics_of, parameters_of, run_name, version_of


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
