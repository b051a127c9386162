"""Claims: runs that share a results folder claim the replicates they train, so that none is trained twice.

Each run has a file in the folder `claims`, with the keys of the replicates that it trains. Runs read the other files
and write their own under a lock, so that two runs never claim one key. The file of a killed run is ignored: on the same
machine its process no longer exists; on another machine its file is out of date, because a run touches its file twice a
minute. At its end a run removes its file, and the last run removes the folder.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock

from icy.core.errors import StoreError
from icy.core.escapes import in_a_line
from icy.core.files import write_atomically
from icy.core.processes import Owner

log = logging.getLogger(__name__)
FOLDER = "claims"
LOCK = "lock"
BEAT_SECONDS = 30.0  # between updates of the time of a run's file
STALE_SECONDS = 10 * BEAT_SECONDS  # after this time a run on another machine counts as ended
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
                elif (claim := _read(path)) is not None:
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
        return now - path.stat().st_mtime > STALE_SECONDS
    return owner.gone()


def _read(path: Path) -> Claim | None:
    """Return the claim in a file; None if the file cannot be read."""
    try:
        content: Any = json.loads(path.read_text())
        keys = frozenset(map(str, content["keys"]))
        claim = Claim(int(content["pid"]), str(content["host"]), float(content["since"]), keys)
        str(claim)  # raises if the time is not valid
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return claim
