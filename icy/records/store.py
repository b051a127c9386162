"""The store: one JSON file per finished replicate, written whole or not at all.

A replicate (one model, one grammar, one seed) is filed under a hash of everything that determines its numbers: the
merged configuration and the versions of model, grammar and protocol. Work that is on file is not done again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import free_name, is_inside, require_room, write_atomically

from .check import LARGEST, checked, tell_left_out
from .record import INTERRUPTED, Record, by_filing, filing_of, is_better, model_file, plain_key
from .versions import NONE, Versions, newest

log = logging.getLogger(__name__)
RECORDS = "records"
CHECKPOINTS = "checkpoints"  # of trainings that are under way: a file per key
STALE_SECONDS = 3600
RERUN = {
    "missing": "train replicates that have no record, or an interrupted one (the default)",
    "failed": "run what has no record, and what failed",
    "always": "run everything again",
    "never": "run nothing, and show what is on file",
}
ODD = "odd"  # after the name of a file that was no record, and is kept beside the record that took its place
_last: dict[Path, int] = {}  # by folder, the number that was filed last, as far as this process knows


class Store:
    """A results folder.

    Args:
        folder: made when the first result is written.
        packed: further records by key, which are not in the folder yet.
        warn: whether files that are no readable records are named in a warning, each once.

    Attributes:
        asked: versions of the running plan, which tables show before others (`newest`).

    Raises:
        InvalidSettingError: `folder` is no path.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.records()
        []
    """

    def __init__(self, folder: str | Path, packed: Mapping[str, Record] | None = None, warn: bool = True) -> None:
        self.folder, self._packed, self._warn = folder_of(folder), packed or {}, warn
        self.asked: Versions = NONE
        self._told: set[Path] = set()  # files that a warning has named

    def prepare(self) -> None:
        """Make the folder and check that it can be written, before hours are spent.

        Half-written files of a process that was killed are swept out, once they are too old to be someone's work.

        Raises:
            StoreError: it cannot.
        """
        require_room(self.folder / RECORDS)
        self._look_for_the_last()  # now, as workers are copies of this process
        for path in (self.folder / RECORDS).glob(".*.tmp"):
            with contextlib.suppress(OSError):  # another process may be sweeping too
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    def path(self, key: str) -> Path:
        """Return the file of a key.

        Raises:
            StoreError: the key is no name of a file.
        """
        return self.folder / RECORDS / f"{plain_key(key)}.json"

    def put(self, record: Record, files: Mapping[str, bytes] | None = None, number: bool = True) -> None:
        """Store a record under its key. A file of its name that is no record is kept beside it.

        Args:
            record: what to store.
            files: what belongs to it, by path in the folder; written before it.
            number: whether it is given its place after those on file (`filed`), unless it has one; not for what is
                copied.

        Raises:
            StoreError: it cannot be written, or a path leads out of the folder.
        """
        path = self.path(record["key"])
        for place, content in (files or {}).items():
            if not is_inside(place):
                raise StoreError(f"'{place}' is no path within the results folder {self.folder}.")
            write_atomically(self.folder / place, content)
        self._remember(record, number)
        text = json.dumps(record, indent=1, allow_nan=False)
        _keep_if_odd(path)
        write_atomically(path, text.encode())

    def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is none, or, with a warning, none that can be read."""
        here, packed = self._in_the_folder(key), self._packed.get(key)
        return packed if packed is not None and is_better(packed, here) else here

    def lacks_model(self, record: Record) -> bool:
        """Whether the model of a result was not kept, or is no longer there."""
        if record["failed"]:
            return False
        file = model_file(record)
        in_a_pack = self._packed.get(record["key"]) == record
        return file is None or not ((self.folder / file).is_file() or in_a_pack)

    def _in_the_folder(self, key: str) -> Record | None:
        path = self.path(key)
        try:
            return _read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
        except ValueError as error:
            self._leave_out(path, error)
            return None

    def _leave_out(self, path: Path, error: Exception) -> None:
        if self._warn and path not in self._told:
            self._told.add(path)
            tell_left_out(path, error)

    def _remember(self, record: Record, number: bool) -> None:
        """Remember the largest number in the folder, and give a record the next one if it is to have one."""
        folder = self.folder.absolute()
        if folder not in _last:
            self._look_for_the_last()
        if number and "filed" not in record:
            record["filed"] = min(max(_last[folder] + 1, time.time_ns() // 1000), LARGEST - 1)
        _last[folder] = max(_last[folder], filing_of(record))

    def _look_for_the_last(self) -> None:
        folder = self.folder.absolute()
        _last[folder] = max([_last.get(folder, 0), *map(filing_of, self._read_all(lambda *_: None))])

    def records(self) -> list[Record]:
        """Return the records that tables show: the newest of each configuration (see `newest`)."""
        return sorted(newest(self.all_records(), self.asked), key=by_filing)

    def all_records(self) -> list[Record]:
        """Return all records in the folder, in the order they were filed.

        A file that is not a record is left out, with a warning.
        """
        return sorted(self._read_all(self._leave_out), key=by_filing)

    def _read_all(self, leave_out: Callable[[Path, Exception], None]) -> Iterator[Record]:
        for path in (self.folder / RECORDS).glob("*.json"):
            try:
                yield _read(path)
            except (OSError, ValueError) as error:
                leave_out(path, error)


def folder_of(given: object) -> Path:
    """Return the path of a results folder.

    Raises:
        InvalidSettingError: it is no path.
    """
    if not isinstance(given, str | os.PathLike) or "\0" in str(given) or not str(given).strip():
        raise InvalidSettingError(f"out is the folder for results, such as 'icy-results', the default; not {given!r}.")
    return Path(given)


def _read(path: Path) -> Record:
    """Return the record in a file.

    Raises:
        ValueError: there is something else: no record, a folder, a device or a pipe, whose reading might never end.
        OSError: there is nothing, or it cannot be read.
    """
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError("it is a link to itself") from error
        raise
    if not is_file:
        raise ValueError("it is no file")
    return checked(path.read_bytes(), path.stem)


def _keep_if_odd(path: Path) -> None:
    """Give a file that is no record, and about to be replaced, another name."""
    try:
        _read(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        kept = free_name(path, ODD)
        with contextlib.suppress(OSError):
            os.replace(path, kept)
            log.warning("What was in %s, no readable result, is kept as %s.", path, kept.name)


def to_run(found: Mapping[str, Record | None], store: Store, rerun: str, keep_models: bool = False) -> set[str]:
    """Return the keys to train now.

    Args:
        found: the record of every key; None if there is none.
        store: where the records are.
        rerun: one of the words of RERUN.
        keep_models: whether results without a kept model are trained again.

    Raises:
        InvalidSettingError: `rerun` is not one of the words of RERUN.
    """
    if rerun not in RERUN:
        raise InvalidSettingError(f"--rerun takes {', '.join(RERUN)}; not '{rerun}'.")
    if rerun == "never":
        return set()
    if rerun == "always":
        return set(found)

    def wanted(record: Record | None) -> bool:
        if record is None or record.get("reason") == INTERRUPTED:
            return True
        return (keep_models and store.lacks_model(record)) or (rerun == "failed" and record["failed"])

    return {key for key, record in found.items() if wanted(record)}
