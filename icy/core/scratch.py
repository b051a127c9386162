"""Folders for the time of a run, in the system's temporary folder, and the removal of those that killed runs left."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from .errors import StoreError
from .owner import Owner

PREFIX = "icy-"


def scratch_folder(what: str) -> Path:
    """Make a folder whose name tells this process, so that another can remove it once this one is gone.

    Args:
        what: a word on what it is for, for its name.

    Raises:
        StoreError: the temporary folder is full, or cannot be written.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-{Owner.here()}-"))
    except OSError as error:
        raise StoreError(
            f"No temporary folder can be made in {_temporary()}: {error.strerror or error}. Free some space there, or "
            "name another folder in the environment variable TMPDIR."
        ) from error


def sweep_scratch() -> None:
    """Remove the folders of processes that are gone."""
    with contextlib.suppress(OSError):  # there is no temporary folder
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            owner = Owner.in_name(folder.name)
            if owner is not None and owner.gone():
                shutil.rmtree(folder, ignore_errors=True)


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # of several places none can be written
        return "any of the usual places"
