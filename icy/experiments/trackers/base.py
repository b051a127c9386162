"""Trackers: results in TensorBoard, MLflow or Weights & Biases, in addition to the results folder.

A tracker is a Watcher (`icy.experiments.watcher`) which writes one row per result as soon as the result is filed: a
run, with the result's configuration as its parameters, its numbers under the names that they have in results.csv, and
its learning curve, under `curve/`, step by step. Everything stays on this machine, below `tracking` in the results
folder, and none of the packages is imported before it is asked for.

The results folder remains what counts. Results that were on file before are added when a run begins, so that the same
command with another tracker shows them there too; a result that is trained again takes the place of the one before. A
tracker that fails says so once and is silent from then on; no result is lost.
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
from icy.core.logs import log_level
from icy.experiments.plan import Plan
from icy.experiments.watcher import Watcher
from icy.records.kinds import kind_of, points_of
from icy.records.record import Record, plain_key, value_of

log = logging.getLogger(__name__)
CHATTY = ("alembic", "mlflow", "tensorboard", "wandb")  # their loggers
ALSO = ("side", "measure", "preset", "reason", "engine", "device", "git", "finished", "key")  # beside the configuration


# -- what is written of a result ---------------------------------------------------------------------------------------


def run_name(record: Record) -> str:
    """Return the name of a result's run.

    Example:
        >>> run_name({"model": "sender/HierZero:GRU", "side": "sender", "grammar": "perm", "seed": 123})
        'HierZero:GRU perm seed 123'
    """
    return f"{record['model'].removeprefix(record['side'] + '/')} {record['grammar']} seed {record['seed']}"


def parameters_of(record: Record) -> dict[str, str | float | bool]:
    """Return the configuration of a result, flattened to names such as `settings.learning_rate`.

    The conventions of its metrics are there too, as `convention.topsim`.
    """
    config = dict(record["config"])
    for group in ("options", "settings"):
        config.update({f"{group}.{name}": value for name, value in config.pop(group, {}).items()})
    if "steps" in config:  # that a game was to have; `steps` are those that were made
        config["game_steps"] = config.pop("steps")
    own = record["parameters"]
    counts = {"parameters": own.get("true"), "parameters_published": own.get("published")}
    used = kind_of(record).conventions_of(record["config"])
    named = {f"convention.{metric}": Convention(metric, values).text for metric, values in used.items()}
    given = {**config, **{name: record.get(name) for name in ALSO}, **counts, **named}
    return {n: v if isinstance(v, (str, int, float)) else str(v) for n, v in given.items() if v is not None}


def metrics_of(record: Record) -> dict[str, float]:
    """Return the finite numbers of a result, by their names in results.csv."""
    made = "curve" in record  # else it raised, and its `steps`, if it has any, are those that it was to have
    own = {n: v for n, v in record.items() if n not in (*record["config"], "filed") or (n == "steps" and made)}
    numbers = {n: v for n, v in own.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return {n: float(v) for n, v in {**numbers, "value": value_of(record)}.items() if math.isfinite(v)}


def curve_of(record: Record) -> list[tuple[int, dict[str, float]]]:
    """Return the learning curve of a result: updates made, and the numbers read.

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
    """Return the begin and end of its training in seconds since 1970; of a stack each replicate has its share."""
    end = datetime.fromisoformat(record["finished"]).timestamp()
    return end - (record.get("seconds") or 0.0), end


# -- trackers ----------------------------------------------------------------------------------------------------------


class Tracker(Watcher, ABC):
    """Callbacks that write a row per result; subclasses say where.

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
        """Add the plan's results that were on file before and are not tracked yet."""
        super().started(plan)
        self._try(self._catch_up, [record for row in plan.rows for record in row.filed])

    def filed(self, record: Record) -> None:
        """Write the row of a result."""
        self._try(self._write_checked, record)

    def _try(self, action: Any, given: Any) -> None:
        """Run an action unless one failed before; no failure here may stop a training or lose a result."""
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
                self._write_checked(record)

    def _write_checked(self, record: Record) -> None:
        plain_key(record["key"])  # it becomes part of names of folders, and of searches
        self._write(record)

    def _open(self) -> None:
        """Prepare, before anything is trained."""

    @abstractmethod
    def _versions(self) -> Iterable[str]:
        """Return `version_of` every result that is tracked completely."""

    @abstractmethod
    def _write(self, record: Record) -> None:
        """Write a result, replacing an older version of it."""


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the packages, whose remarks would break into the progress display."""
    with log_level(logging.CRITICAL, *CHATTY), warnings.catch_warnings(action="ignore"):
        yield
