"""Checkpoints: what long trainings leave in the results folder, and go on from after they were killed."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from pathlib import Path
from typing import Any

import torch

from icy.core.errors import StoreError
from icy.core.files import write_atomically
from icy.records.store import RECORDS

log = logging.getLogger(__name__)
FOLDER = "checkpoints"  # in a results folder
SECONDS = 30.0  # between two of a training
SHARE = 0.05  # of the time that they may take


class Checkpoint:
    """The checkpoint of one training: a file in the results folder, which its record replaces.

    Args:
        folder: the results folder.
        key: what the training's record is filed under.
        label: what to call the training in warnings.
        used: whether one is left, and gone on from, at all.
    """

    def __init__(self, folder: str | Path, key: str, label: str, used: bool = True) -> None:
        self.path = Path(folder) / FOLDER / f"{key}.pt"
        self.label, self.used = label, used
        self._saved, self._cost = time.perf_counter(), 0.0

    @property
    def due(self) -> bool:
        """Whether it is time for one: twice a minute, unless they take too long."""
        return self.used and time.perf_counter() - self._saved > max(SECONDS, self._cost / SHARE)

    def save(self, state: dict[str, Any]) -> None:
        """Leave a state of tensors, numbers, text and lists and dicts of these, whole or not at all.

        A training that cannot leave one goes on without.
        """
        began, held = time.perf_counter(), io.BytesIO()
        torch.save(state, held)
        try:
            write_atomically(self.path, held.getvalue())
        except StoreError as error:
            log.warning("No checkpoint of %s: %s", self.label, error)
        self._saved = time.perf_counter()
        self._cost = self._saved - began

    def load(self, device: str = "cpu") -> dict[str, Any] | None:
        """Return the state that was left, with its tensors on a device; None if there is none that can be read."""
        if not self.used or not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        except Exception as error:  # of whatever kind: what was half done is then done again
            self.refuse(error)
            return None
        return state

    def refuse(self, error: Exception) -> None:
        """Say that the state cannot be gone on from."""
        log.warning("The checkpoint %s cannot be read, so its training begins anew: %s.", self.path, error)

    def forget(self) -> None:
        """Remove it."""
        _remove(self.path)


def sweep_checkpoints(folder: str | Path) -> None:
    """Remove checkpoints of what is on file, left by what was killed in between."""
    folder = Path(folder)
    for path in (folder / FOLDER).glob("*.pt"):
        if (folder / RECORDS / f"{path.stem}.json").exists():
            _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other processes may have theirs in the folder, or have removed it
        path.parent.rmdir()
