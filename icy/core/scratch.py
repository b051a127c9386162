"""Folders for the time of a run, in the system's temporary folder, and the removal of those that killed runs left."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

from .errors import StoreError
from .files import ROOM
from .owner import Owner

PREFIX = "icy-"
log = logging.getLogger(__name__)


def scratch_folder(what: str) -> Path:
    """Make a folder whose name tells this process, so that another can remove it once this one is gone.

    Args:
        what: a word on what it is for, for its name.

    Raises:
        StoreError: the temporary folder is full, or cannot be written.
    """
    folder: Path | None = None
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-{Owner.here()}-"))
        _write_some(folder)
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise StoreError(
            f"No temporary folder can be made in {_temporary()}: {error.strerror or error}. Free some space there, or "
            "name another folder in the environment variable TMPDIR."
        ) from error
    _tell_if_elsewhere(folder)
    return folder


def sweep_scratch() -> None:
    """Remove the folders of processes that are gone."""
    with contextlib.suppress(OSError):  # there is no temporary folder
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            owner = Owner.in_name(folder.name)
            if owner is not None and owner.gone():
                shutil.rmtree(folder, ignore_errors=True)


def _write_some(folder: Path) -> None:
    """Write a file in a folder, and remove it: a full disk still takes a folder, and a small file."""
    file = folder / "room"
    file.write_bytes(os.urandom(ROOM))
    file.unlink()


def _tell_if_elsewhere(folder: Path) -> None:
    """Warn where Python passed over the folder that TMPDIR names: full to the last byte, or not to be written."""
    named = os.environ.get("TMPDIR")
    if named and not (Path(named).exists() and folder.parent.samefile(named)):
        log.warning("The temporary folder %s (TMPDIR) is full or cannot be written; %s is used.", named, folder.parent)


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # of several places none can be written
        return "any of the usual places"
