"""Temporary folders of runs, and the removal of the folders of killed runs."""

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
    """Make a temporary folder. Its name identifies this process, so that other processes can remove it later.

    Args:
        what: purpose of the folder, a word for its name.

    Raises:
        StoreError: the temporary folder is full, or cannot be written.
    """
    folder: Path | None = None
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-{Owner.here()}-"))
        room = folder / "room"  # a full disk may still have room for a folder or a small file
        room.write_bytes(os.urandom(ROOM))
        room.unlink()
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        where = tempfile.tempdir or "any of the default folders"  # None if Python found no writable folder
        raise StoreError(
            f"Cannot make a temporary folder in {where}: {error.strerror or error}. Free some space there, or "
            "set another folder in the environment variable TMPDIR."
        ) from error
    named = os.environ.get("TMPDIR")
    if named and not (Path(named).exists() and folder.parent.samefile(named)):
        log.warning("The temporary folder %s (TMPDIR) is full or cannot be written; %s is used.", named, folder.parent)
    return folder


def sweep_scratch() -> None:
    """Remove the folders of processes that have ended."""
    with contextlib.suppress(OSError):  # the temporary folder does not exist
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            owner = Owner.in_name(folder.name)
            if owner is not None and owner.gone():
                shutil.rmtree(folder, ignore_errors=True)
