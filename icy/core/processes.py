"""Processes: signals that end them, the owners of files, and temporary folders."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

from .errors import StoreError
from .files import ROOM

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
NOTHING = "nothing was trained"  # the text of an interrupt before a training
KEPT = "kept"  # name of an attribute of a KeyboardInterrupt
_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextlib.contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals until the end of the block. Processes that are started in the block inherit this.

    Otherwise Ctrl-C in a worker that has not yet set its handlers would print a stack trace, and a signal to all
    processes of a job would kill it.
    """
    if not _CAN_HOLD:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """Ignore signals that end a process, because the parent of this worker handles them; drop delayed signals too."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


_ending = False  # whether a signal has ended the running command


def set_ending(ending: bool) -> None:
    """Set whether a signal has ended the running command."""
    global _ending
    _ending = ending


def stop_if_ending() -> None:
    """Raise the KeyboardInterrupt of a signal again, in case a library has dropped it, as a bare `except:` does."""
    if _ending:
        raise KeyboardInterrupt


def hides_interrupt(error: BaseException | None) -> bool:
    """Return whether a KeyboardInterrupt caused this error: Python replaces an interrupt while it creates a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def interrupt_with(kept: str) -> KeyboardInterrupt:
    """Return a KeyboardInterrupt with a message about the finished part of a training.

    If a program does not catch the exception, Python prints a sentence instead of a stack trace, and exits as usual.
    Other exceptions are shown as before. A `sys.excepthook` of the program is not replaced.

    Args:
        kept: description of the finished part, such as "3 of 4 finished"; the attribute `kept` of the result.
    """
    error = KeyboardInterrupt(f"{kept}. To continue, run the same call or script again.")
    setattr(error, KEPT, kept)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    return error


@contextlib.contextmanager
def interrupted_with(kept: str) -> Iterator[None]:
    """Replace interrupts in the block by `interrupt_with(kept)`. It also works as a function decorator."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise error if interrupt_text(error) else interrupt_with(kept) from None


def interrupt_text(error: BaseException) -> str:
    """Return the text of an exception from `interrupt_with`; "" for other exceptions."""
    return str(getattr(error, KEPT, ""))


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if interrupt_text(error):
        print(f"\nInterrupted: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


# -- owners of files ---------------------------------------------------------------------------------------------------

PROCESSES = Path("/proc")  # on Linux, has the start times of processes
MACHINE = Path("/etc/machine-id")
TEXT = re.compile(r"([0-9a-f]{8})-([0-9]{1,10})-([0-9]{1,20})")
STATE, BEGAN = 0, 19  # fields of /proc/PID/stat after the name of the command


@dataclass(frozen=True)
class Owner:
    """A process, distinguished from later processes with the same number.

    Attributes:
        space: scope of the number: a hash of the machine and of its container.
        pid: number of the process.
        began: start time in clock ticks since the machine started; 0 if unknown.
    """

    space: str
    pid: int
    began: int

    @classmethod
    def here(cls) -> Owner:
        """Return this process."""
        return cls(_space(), os.getpid(), _began(os.getpid()) or 0)

    @classmethod
    def in_name(cls, name: str) -> Owner | None:
        """Return the owner in the name of a file; None if the name has no owner."""
        match = TEXT.search(name)
        return None if match is None else cls(match[1], int(match[2]), int(match[3]))

    def __str__(self) -> str:
        return f"{self.space}-{self.pid}-{self.began}"

    @property
    def local(self) -> bool:
        """Whether this process can check that the owner runs: on the same machine, not on Windows."""
        return self.space == _space() and os.name == "posix"

    def gone(self) -> bool:
        """Return whether the process has ended; False if unknown."""
        if not self.local:
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # the process of another user
            pass
        return _began(self.pid) not in (None, self.began)


def _began(pid: int) -> int | None:
    """Return the start time of a process; -1 for a zombie, None if unknown."""
    try:
        fields = (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return -1 if fields[STATE] in "ZX" else int(fields[BEGAN])
    except (OSError, IndexError, ValueError):
        return None


@cache
def _space() -> str:
    machine = MACHINE.read_text() if MACHINE.is_file() else ""
    try:
        container = os.readlink(PROCESSES / "self" / "ns" / "pid")
    except OSError:
        container = ""
    return hashlib.blake2b(f"{platform.node()}\n{machine}\n{container}".encode(), digest_size=4).hexdigest()


# -- temporary folders -------------------------------------------------------------------------------------------------

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
