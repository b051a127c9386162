"""The store: one JSON file per finished replicate, written atomically.

The key of a replicate (one model, one grammar, one seed) is a hash of everything that determines its numbers: the
merged configuration and the versions of model, grammar and protocol. A replicate with a record is not trained again.
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
from typing import cast

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import free_name, is_inside, require_room, write_atomically
from icy.core.machine import SOFTWARE

from .check import LARGEST, checked, warn_left_out
from .kinds import row_of
from .record import INTERRUPTED, Record, by_filing, filing_of, is_better, model_file, plain_key
from .versions import NONE, Versions, newest

log = logging.getLogger(__name__)
RECORDS = "records"
CHECKPOINTS = "checkpoints"  # folder of the checkpoints of unfinished trainings, a file per key
STALE_SECONDS = 3600
RERUN = {
    "missing": "train replicates that have no record, or an interrupted one (the default)",
    "failed": "train replicates that have no record, or a failed one",
    "always": "train all replicates again",
    "never": "train nothing, and show the saved results",
}
ODD = "odd"  # suffix of an unreadable file that is kept when a record replaces it
_of_users: dict[Path, tuple[int, dict[tuple[str, int], tuple[str, str, Record] | None]]] = {}  # see `Store.of_users`
_last: dict[Path, int] = {}  # largest `filed` of each folder that this process knows


class Store:
    """A results folder.

    Args:
        folder: path of the folder; it is created when the first result is written.
        packed: further records by key, which are not in the folder yet.
        warn: whether to warn about unreadable records, once per file.

    Attributes:
        plan_versions: versions in the running plan, which tables prefer to others (`newest`).

    Raises:
        InvalidSettingError: `folder` is not a path.

    Example:
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> store.records()
        []
    """

    def __init__(self, folder: str | Path, packed: Mapping[str, Record] | None = None, warn: bool = True) -> None:
        self.folder, self._packed, self._warn = folder_of(folder), packed or {}, warn
        self.plan_versions: Versions = NONE
        self._warned: set[Path] = set()  # files with a warning

    def prepare(self) -> None:
        """Make the folder and check that it is writable, before a long training.

        Remove incomplete files of killed processes if the files are so old that no process can be writing them.

        Raises:
            StoreError: the folder cannot be written.
        """
        require_room(self.folder / RECORDS)
        self._look_for_the_last()  # now, because workers are copies of this process
        for path in (self.folder / RECORDS).glob(".*.tmp"):
            with contextlib.suppress(OSError):  # another process may remove it at the same time
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    def path(self, key: str) -> Path:
        """Return the file of a key.

        Raises:
            StoreError: the key cannot be the name of a file.
        """
        return self.folder / RECORDS / f"{plain_key(key)}.json"

    def put(self, record: Record, files: Mapping[str, bytes] | None = None, number: bool = True) -> None:
        """Save a record under its key. If its file exists and is not a record, this file is renamed and kept.

        Args:
            record: the record to save.
            files: files of the record, by path in the folder. They are written before the record.
            number: whether to set `filed`, if the record does not have it; False for copies of records.

        Raises:
            StoreError: the record cannot be written, or a path is outside of the folder.
        """
        path = self.path(record["key"])
        for place, content in (files or {}).items():
            if not is_inside(place):
                raise StoreError(f"'{place}' is not a path in the results folder {self.folder}.")
            write_atomically(self.folder / place, content)
        self._remember(record, number)
        text = json.dumps(record, indent=1, allow_nan=False)
        _keep_unreadable(path)
        write_atomically(path, text.encode())

    def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is no record or, with a warning, if the file cannot be read."""
        saved, packed = self._in_the_folder(key), self._packed.get(key)
        return packed if packed is not None and is_better(packed, saved) else saved

    def lacks_model(self, record: Record) -> bool:
        """Return whether the model of a result was not saved, or no longer exists."""
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
        if self._warn and path not in self._warned:
            self._warned.add(path)
            warn_left_out(path, error)

    def _remember(self, record: Record, number: bool) -> None:
        """Set `filed` of a record, if wanted, and remember the largest number in the folder."""
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
        """Return the newest record of each configuration, for tables (see `newest`)."""
        return sorted(newest(self.all_records(), self.plan_versions), key=by_filing)

    def all_records(self) -> list[Record]:
        """Return all records in the folder, in the order of saving.

        Unreadable records are left out, with a warning.
        """
        return sorted(self._read_all(self._leave_out), key=by_filing)

    def of_users(self, model: str, row: str) -> list[Record]:
        """Return the records of a model with code of users, in one row of a table, without curves, the last one last.

        Every file is read only once in this process, if it is not replaced.

        Args:
            model: name of the model.
            row: the row (`icy.records.kinds.row_of`).
        """
        folder = (self.folder / RECORDS).absolute()
        if folder not in _of_users:
            _of_users.clear()  # of one folder, to limit memory
        stamp, known = _of_users.get(folder, (-1, {}))
        now, found = 0, {}
        with contextlib.suppress(OSError):
            now = folder.stat().st_mtime_ns  # changes with every new or replaced file
            if now != stamp:
                found = {(f.name, f.stat().st_mtime_ns): f.path for f in os.scandir(folder) if f.name.endswith(".json")}
        if now != stamp:
            known = {name: known[name] for name in known.keys() & found.keys()}
            for name in found.keys() - known.keys():
                try:
                    known[name] = _if_of_users(_read(Path(found[name])))
                except (OSError, ValueError):
                    known[name] = None
            _of_users[folder] = now, known
        packed = (_if_of_users(record) for record in self._packed.values() if record["model"] == model)
        each = [one[2] for one in (*known.values(), *packed) if one is not None and one[:2] == (model, row)]
        return sorted(each, key=by_filing)

    def _read_all(self, leave_out: Callable[[Path, Exception], None]) -> Iterator[Record]:
        for path in (self.folder / RECORDS).glob("*.json"):
            try:
                yield _read(path)
            except (OSError, ValueError) as error:
                leave_out(path, error)


def _if_of_users(record: Record) -> tuple[str, str, Record] | None:
    """Return the model, the row and the record without its curve, if code of users made it; otherwise None."""
    versions = [version for name, version in record["versions"].items() if name not in SOFTWARE]
    by_users = "made_by" in record or any("-" in version for version in versions)
    return (record["model"], row_of(record), cast(Record, {**record, "curve": []})) if by_users else None


def folder_of(given: object) -> Path:
    """Return the path of a results folder.

    Raises:
        InvalidSettingError: `given` is not a path.
    """
    if not isinstance(given, str | os.PathLike) or "\0" in str(given) or not str(given).strip():
        raise InvalidSettingError(
            f"out must be a folder for results, such as 'icy-results', the default; not {given!r}."
        )
    return Path(given)


def _read(path: Path) -> Record:
    """Return the record in a file.

    Raises:
        ValueError: the path is not a regular file (a folder, or a device or pipe, which might never end), or the file
            is not a record.
        OSError: the file does not exist, or cannot be read.
    """
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError("it is a link to itself") from error
        raise
    if not is_file:
        raise ValueError("it is not a file")
    return checked(path.read_bytes(), path.stem)


def _keep_unreadable(path: Path) -> None:
    """Rename a file that is not a record, before it is replaced."""
    try:
        _read(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        renamed = free_name(path, ODD)
        with contextlib.suppress(OSError):
            os.replace(path, renamed)
            log.warning("%s was not a readable result; it is kept as %s.", path, renamed.name)


def keys_to_train(
    records: Mapping[str, Record | None], store: Store, rerun: str, keep_models: bool = False
) -> set[str]:
    """Return the keys to train now.

    Args:
        records: the record of every key; None without a record.
        store: store of the records.
        rerun: a key of RERUN.
        keep_models: whether to train a key again if its result has no saved model.

    Raises:
        InvalidSettingError: `rerun` is not a key of RERUN.
    """
    if rerun not in RERUN:
        raise InvalidSettingError(f"--rerun takes {', '.join(RERUN)}; not '{rerun}'.")
    if rerun == "never":
        return set()
    if rerun == "always":
        return set(records)

    def wanted(record: Record | None) -> bool:
        if record is None or record.get("reason") == INTERRUPTED:
            return True
        return (keep_models and store.lacks_model(record)) or (rerun == "failed" and record["failed"])

    return {key for key, record in records.items() if wanted(record)}
