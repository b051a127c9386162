"""Create the trackers that a run asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icy.core.errors import unknown
from icy.core.text import words
from icy.experiments.watcher import Watcher, Watchers

from .base import Tracker
from .mlflow import MLflowTracker
from .tensorboard import TensorBoardTracker
from .wandb import WandbTracker

TRACKING = "tracking"  # the folder, beside the records

TRACKERS: dict[str, type[Tracker]] = {t.name: t for t in (TensorBoardTracker, MLflowTracker, WandbTracker)}


def watching(watcher: Watcher | None, track: str | Iterable[str], out: str | Path) -> Watcher | None:
    """Combine callbacks and trackers.

    Args:
        watcher: callbacks of the run, if there are any.
        track: the names of trackers, if any.
        out: the results folder.

    Raises:
        UnknownNameError, InvalidSettingError, StoreError: as for `make_tracker`.
    """
    asked = list(TRACKERS) if "all" in words(track) else words(track)
    for name in asked:  # all of them, before the first makes a folder
        _class_of(name)
    told = [*([] if watcher is None else [watcher]), *(make_tracker(name, Path(out) / TRACKING) for name in asked)]
    return Watchers(*told) if len(told) > 1 else next(iter(told), None)


def make_tracker(name: str, folder: str | Path) -> Tracker:
    """Make a tracker by its name.

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
