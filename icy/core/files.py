"""Writing files whole or not at all."""

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
    """A file to write, under a temporary name until it is complete, so that nobody ever meets half of it.

    Raises:
        OSError: the folder cannot be written, or the disk is full. What stood at `path` still stands.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave the new name on an empty file
        os.chmod(temporary, 0o644)  # temporary files are private, results are for sharing
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename, so that a reader or a crash never meets half a file.

    Raises:
        StoreError: the folder cannot be written.
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
