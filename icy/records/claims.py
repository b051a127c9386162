"""Claims: which replicates each of several runs is at that share a results folder, so that none is trained twice.

A run keeps a file in the folder `claims`, with the keys that it is training. It reads those of the others and writes
its own under a lock, so that no two claim one key. The file of a run that was killed counts no longer: on one machine
its process is gone; on another, the file was not touched for a while, which a run does twice a minute. At its end a run
removes its file, and the last one the folder.
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
from icy.core.owner import Owner

log = logging.getLogger(__name__)
FOLDER = "claims"
LOCK = "lock"
BEAT_SECONDS = 30.0  # between two touches of a run's file
STALE_SECONDS = 10 * BEAT_SECONDS  # after which a run on another machine counts as gone
LOCK_SECONDS = 60.0  # to wait for the lock, which is held for milliseconds
TRIES = 100  # to make the folder, while others remove it at their end


@dataclass(frozen=True)
class Claim:
    """What another run is at.

    Attributes:
        pid: the number of its process.
        host: its machine.
        since: when the run began, in seconds since 1970.
        keys: of the replicates.
    """

    pid: int
    host: str
    since: float
    keys: frozenset[str]

    def __str__(self) -> str:
        begun = time.strftime("%H:%M", time.localtime(self.since))
        return f"process {self.pid} on {in_a_line(self.host)}, begun at {begun}"


class Claims:
    """The claims of one run on replicates, by key; a context manager, which gives them up at its end.

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
        self._alone = False  # as the folder cannot be locked
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
        """Claim keys; return those that no other run has claimed.

        Look into the folder only then for what is on file: a run files a record before it gives up its claim.

        Raises:
            StoreError: the folder cannot be written, or the disk is full.
        """
        with self._locked():
            taken = {key for other in self._others() for key in other.keys}
            mine = set(keys) - taken
            self._keys |= mine
            self._write()
        return mine

    def done(self, keys: Iterable[str]) -> None:
        """Give keys up whose records are on file, where others look; the next writing tells."""
        self._keys -= set(keys)

    def drop(self, keys: Collection[str]) -> None:
        """Give keys up that were not trained."""
        if self._keys.isdisjoint(keys):
            return
        with self._locked():
            self._keys -= set(keys)
            self._write()

    def others(self) -> list[Claim]:
        """Return what the other runs are at that are still there."""
        with self._locked():
            return self._others()

    # -- with the lock held ------------------------------------------------------------------------------------------

    def _write(self) -> None:
        told = {"pid": os.getpid(), "host": platform.node(), "since": self._since, "keys": sorted(self._keys)}
        write_atomically(self._path, json.dumps(told).encode())
        if self._beating is None:  # not sooner: beside a thread no worker can be copied
            self._beating = threading.Thread(target=self._beat, daemon=True)
            self._beating.start()

    def _others(self) -> list[Claim]:
        """Return the claims of the other runs, and remove the files of those that are gone."""
        if self._alone:
            return []
        for left in self._folder.glob(".*.tmp"):  # by a run that was killed as it wrote: no other writes now
            left.unlink(missing_ok=True)
        found, now = [], self._now()
        for path in self._files():
            if path == self._path:
                continue
            with contextlib.suppress(OSError):
                if _gone(path, now):
                    path.unlink()
                elif (claim := _read(path)) is not None:
                    found.append(claim)
        return found

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _now(self) -> float:
        """Return the time by the clock that touches files: the file server's, where there is one."""
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
        """Return the lock, acquired; None where the file system has none, or someone holds it for ever."""
        for _ in range(TRIES):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock = filelock.FileLock(self._folder / LOCK, timeout=LOCK_SECONDS)
                lock.acquire()
                return lock
            except FileNotFoundError:  # another run ended in between, and removed the folder
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
        raise StoreError(f"Cannot write {self._folder}, which someone keeps removing. Choose another folder.")

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(self._path)


def sweep_claims(folder: str | Path) -> None:
    """Remove what killed runs have left, of a folder in which nothing is to be claimed."""
    if (Path(folder) / FOLDER).is_dir() and os.access(Path(folder) / FOLDER, os.W_OK):
        with contextlib.suppress(OSError), Claims(folder) as claims:
            claims.others()


def _gone(path: Path, now: float) -> bool:
    """Return whether the run of a file has ended: its process, or, where this cannot be told, its beat."""
    owner = Owner.in_name(path.name)
    if owner is None or not owner.local:
        return now - path.stat().st_mtime > STALE_SECONDS
    return owner.gone()


def _read(path: Path) -> Claim | None:
    """Return the claim in a file; None where it cannot be read, so that nothing is known to be claimed."""
    try:
        told: Any = json.loads(path.read_text())
        claim = Claim(int(told["pid"]), str(told["host"]), float(told["since"]), frozenset(map(str, told["keys"])))
        str(claim)  # which fails for a time that no calendar has
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return claim
