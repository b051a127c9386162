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
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, cast

from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError, StoreError, what_and_where
from icy.core.surroundings import log_level
from icy.experiments.plan import Plan
from icy.experiments.progress import Watcher
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
