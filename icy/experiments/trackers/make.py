"""Create the trackers of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icy.core.errors import require_known
from icy.core.text import words
from icy.experiments.progress import Watcher, Watchers

from .base import Tracker
from .mlflow import MLflowTracker
from .tensorboard import TensorBoardTracker
from .wandb import WandbTracker

TRACKING = "tracking"  # folder of the trackers, in the results folder

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
    names = list(TRACKERS) if "all" in words(track) else words(track)
    for name in names:  # check all names before the first tracker makes a folder
        _class_of(name)
    watchers = [*([] if watcher is None else [watcher]), *(make_tracker(name, Path(out) / TRACKING) for name in names)]
    return Watchers(*watchers) if len(watchers) > 1 else next(iter(watchers), None)


def make_tracker(name: str, folder: str | Path) -> Tracker:
    """Make a tracker by its name.

    Args:
        name: a name in TRACKERS.
        folder: the tracker writes into a subfolder named after the tracker.

    Raises:
        UnknownNameError: the name is unknown.
        InvalidSettingError: the tracker's package is not installed.
        StoreError: the folder cannot be written, or its content cannot be used.
    """
    return _class_of(name)(Path(folder))


def _class_of(name: str) -> type[Tracker]:
    require_known("tracker", name, TRACKERS)
    return TRACKERS[name]
