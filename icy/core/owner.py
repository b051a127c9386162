"""Owners of files: the process that made a file, and whether it still runs."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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
