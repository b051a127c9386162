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
import platform
import secrets
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import filelock

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import free_name, is_inside, require_room, write_atomically
from icy.core.machine import SOFTWARE
from icy.core.processes import Owner
from icy.core.text import in_a_line

from .check import LARGEST, checked, warn_left_out
from .kinds import row_of
from .record import INTERRUPTED, Record, by_filing, filing_of, is_better, model_file, plain_key
from .versions import NONE, Versions, newest

# -- claims ------------------------------------------------------------------------------------------------------------

# Each run has a file in the folder `claims`, with the keys of the replicates that it trains. Runs read the other files
# and write their own under a lock, so that two runs never claim one key. The file of a killed run is ignored: on the
# same machine its process no longer exists; on another machine its file is out of date, because a run touches its file
# twice a minute. At its end a run removes its file, and the last run removes the folder.


log = logging.getLogger(__name__)
FOLDER = "claims"
LOCK = "lock"
BEAT_SECONDS = 30.0  # between updates of the time of a run's file
SILENT_SECONDS = 10 * BEAT_SECONDS  # after this time a run on another machine counts as ended
LOCK_SECONDS = 60.0  # longest wait for the lock, which a run holds for milliseconds
TRIES = 100  # to make the folder, while other runs remove it at their end


@dataclass(frozen=True)
class Claim:
    """The claims of another run.

    Attributes:
        pid: process number of the run.
        host: name of the machine of the run.
        since: time when the run began, in seconds since 1970.
        keys: keys of the replicates that the run trains.
    """

    pid: int
    host: str
    since: float
    keys: frozenset[str]

    def __str__(self) -> str:
        begun = time.strftime("%H:%M", time.localtime(self.since))
        return f"process {self.pid} on {in_a_line(self.host)}, begun at {begun}"


class Claims:
    """The claims of one run on replicates, by key. A context manager that releases them at its end.

    Args:
        folder: the results folder.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with Claims(folder) as one, Claims(folder) as other:
        ...     sorted(one.take(["a", "b"])), sorted(other.take(["b", "c"]))
        (['a', 'b'], ['c'])
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder) / FOLDER
        self._path = self._folder / f"{Owner.here()}-{secrets.token_hex(4)}.json"
        self._keys: set[str] = set()
        self._since = time.time()
        self._used = False
        self._alone = False  # because the folder cannot be locked
        self._over = threading.Event()
        self._beating: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._beating is not None:
            self._beating.join()
        if not self._used:
            return
        with contextlib.suppress(OSError), self._locked():
            self._path.unlink(missing_ok=True)
            self._others()
            if not self._files():
                (self._folder / LOCK).unlink(missing_ok=True)
                self._folder.rmdir()

    def take(self, keys: Iterable[str]) -> set[str]:
        """Claim the keys that no other run has claimed, and return the claimed keys.

        Look for finished records after this call: a run saves a record before it releases the claim.

        Raises:
            StoreError: the folder cannot be written, or the disk is full.
        """
        with self._locked():
            claimed = {key for other in self._others() for key in other.keys}
            mine = set(keys) - claimed
            self._keys |= mine
            self._write()
        return mine

    def done(self, keys: Iterable[str]) -> None:
        """Release the keys of finished replicates. The claim file is updated at the next write."""
        self._keys -= set(keys)

    def drop(self, keys: Collection[str]) -> None:
        """Release keys that were not trained."""
        if self._keys.isdisjoint(keys):
            return
        with self._locked():
            self._keys -= set(keys)
            self._write()

    def others(self) -> list[Claim]:
        """Return the claims of other runs that are still running."""
        with self._locked():
            return self._others()

    # -- with the lock held ------------------------------------------------------------------------------------------

    def _write(self) -> None:
        content = {"pid": os.getpid(), "host": platform.node(), "since": self._since, "keys": sorted(self._keys)}
        write_atomically(self._path, json.dumps(content).encode())
        if self._beating is None:  # not earlier: a process with threads cannot be forked safely
            self._beating = threading.Thread(target=self._beat, daemon=True)
            self._beating.start()

    def _others(self) -> list[Claim]:
        """Return the claims of other runs, and remove the files of runs that have ended."""
        if self._alone:
            return []
        for left in self._folder.glob(".*.tmp"):  # from a run that was killed during a write: nobody writes now
            left.unlink(missing_ok=True)
        claims, now = [], self._now()
        for path in self._files():
            if path == self._path:
                continue
            with contextlib.suppress(OSError):
                if _gone(path, now):
                    path.unlink()
                elif (claim := _read_claim(path)) is not None:
                    claims.append(claim)
        return claims

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _now(self) -> float:
        """Return the time of the clock that sets file times: on a file server, the server's clock."""
        with contextlib.suppress(OSError):
            os.utime(self._folder / LOCK)
            return (self._folder / LOCK).stat().st_mtime
        return time.time()

    # -- the lock, and the beat --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._used = True
        lock = None if self._alone else self._acquired()
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def _acquired(self) -> filelock.BaseFileLock | None:
        """Acquire and return the lock; None if the file system has no locks or another run never releases the lock."""
        for _ in range(TRIES):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock = filelock.FileLock(self._folder / LOCK, timeout=LOCK_SECONDS)
                lock.acquire()
                return lock
            except FileNotFoundError:  # another run ended and removed the folder in the meantime
                continue
            except PermissionError as error:
                raise StoreError(f"Cannot write {self._folder}: {error.strerror}. Choose another folder.") from error
            except (OSError, NotImplementedError) as error:
                self._alone = True
                log.warning(
                    "%s cannot be locked (%s): if another run shares the folder, both may train the same replicates.",
                    self._folder,
                    error,
                )
                return None
        raise StoreError(f"Cannot write {self._folder}: another program keeps removing it. Choose another folder.")

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def sweep_claims(folder: str | Path) -> None:
    """Remove the files of killed runs from a folder in which nothing will be claimed."""
    if (Path(folder) / FOLDER).is_dir() and os.access(Path(folder) / FOLDER, os.W_OK):
        with contextlib.suppress(OSError), Claims(folder) as claims:
            claims.others()


def _gone(path: Path, now: float) -> bool:
    """Return whether the run of a file has ended, by its process or, if that is unknown, by the file's time."""
    owner = Owner.in_name(path.name)
    if owner is None or not owner.local:
        return now - path.stat().st_mtime > SILENT_SECONDS
    return owner.gone()


def _read_claim(path: Path) -> Claim | None:
    """Return the claim in a file; None if the file cannot be read."""
    try:
        content: Any = json.loads(path.read_text())
        keys = frozenset(map(str, content["keys"]))
        claim = Claim(int(content["pid"]), str(content["host"]), float(content["since"]), keys)
        str(claim)  # raises if the time is not valid
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return claim


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
