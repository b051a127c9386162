"""Write files atomically: readers never see an incomplete file, even after a crash."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from .errors import StoreError

FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}  # the disk is full, or the user's quota
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # only on Windows
ROOM = 1 << 18  # free bytes that a folder must have: more than a record needs


@contextlib.contextmanager
def whole_file(path: Path, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing under a temporary name; rename the complete file to `path`.

    Args:
        path: path of the file.
        private: whether only its owner may read it; otherwise the umask of the process applies.

    Raises:
        OSError: the folder cannot be written, or the disk is full. An earlier file at `path` is kept.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, CREATE, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a power failure could leave an empty file at `path`
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def write_atomically(path: Path, content: bytes | memoryview, option: str = "--out", *, private: bool = False) -> None:
    """Write a file under a temporary name, then rename it; make its folder if it does not exist.

    Args:
        path: path of the file.
        content: content of the file.
        option: option that chooses another path, for the error.
        private: whether only its owner may read it; otherwise the umask of the process applies.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, private) as file:
            file.write(content)
    except OSError as error:
        if error.errno in FULL:
            sentence = f"The disk is full, so {path} was not written; finished results are kept."
            raise StoreError(f"{sentence} Free some space and run the same command again.") from error
        reason = error.strerror or error
        raise StoreError(f"Cannot write {path}: {reason}. Choose another place with {option}.") from error


def require_room(folder: Path) -> None:
    """Check that a folder is writable and the disk is not full: write, sync and remove a test file.

    Raises:
        StoreError: as for `write_atomically`.
    """
    probe = folder / ".writable"
    write_atomically(probe, os.urandom(ROOM))  # random bytes, which no file system can compress
    probe.unlink(missing_ok=True)


def is_inside(place: str) -> bool:
    """Return whether a relative path stays inside its folder, on every system.

    Example:
        >>> is_inside("models/a.safetensors"), is_inside("models/../../a"), is_inside("/a")
        (True, False, False)
    """
    paths = PurePosixPath(place), PureWindowsPath(place)
    return bool(place) and "\0" not in place and not any(p.anchor or ".." in p.parts for p in paths)


def free_name(path: Path, mark: str) -> Path:
    """Return an unused path in the same folder: the name with a suffix, and with a number if this name is used.

    Example:
        >>> free_name(Path("nowhere/a.json"), "odd").name
        'a.json.odd'
    """
    names = (path.with_name(f"{path.name}.{mark}{number or ''}") for number in range(10_000))
    return next(name for name in names if not name.exists())
