"""Write files atomically: a reader or a crash never meets half a file."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import StoreError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write under a temporary name; rename it to `path` once it is complete.

    Raises:
        OSError: the folder cannot be written, or the disk is full. An earlier file at `path` is kept.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave an empty file at `path`
        os.chmod(temporary, 0o644)  # temporary files are private by default
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it; make its folder if there is none.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            sentence = f"The disk is full, so {path} was not written; what had finished before is kept."
            raise StoreError(f"{sentence} Free some space and run the same command again.") from error
        reason = error.strerror or error
        raise StoreError(f"Cannot write {path}: {reason}. Choose another folder with --out.") from error
