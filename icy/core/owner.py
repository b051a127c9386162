"""Owners of files: which process left one, and whether it is still there."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROCESSES = Path("/proc")  # Linux tells there when a process began
MACHINE = Path("/etc/machine-id")
TEXT = re.compile(r"([0-9a-f]{8})-([0-9]{1,10})-([0-9]{1,20})")
STATE, BEGAN = 0, 19  # fields of /proc/PID/stat after the name of the command


@dataclass(frozen=True)
class Owner:
    """A process, told from a later one that the system gives the same number.

    Attributes:
        space: where the number holds: a hash of the machine and of its container.
        pid: its number.
        began: when it began, in ticks of the system's clock since the machine did; 0 where the system does not tell.
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
        """Return the owner that the name of a file tells; None if it tells none."""
        found = TEXT.search(name)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))

    def __str__(self) -> str:
        return f"{self.space}-{self.pid}-{self.began}"

    @property
    def local(self) -> bool:
        """Whether this process can tell if it is there: not of other machines, nor on Windows."""
        return self.space == _space() and os.name == "posix"

    def gone(self) -> bool:
        """Return whether it is known to have ended."""
        if not self.local:
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:  # another user's
            pass
        return _began(self.pid) not in (None, self.began)


def _began(pid: int) -> int | None:
    """Return when a process began; -1 for a zombie, None where the system does not tell."""
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
