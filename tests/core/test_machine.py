"""Memory: what is available, and what a process keeps."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import Any

import pytest

from icy.core import machine as allocation
from icy.core import machine as memory
from icy.core.machine import MEGABYTE, keep_memory, keeps_memory

# -- available memory --------------------------------------------------------------------------------------------------


def test_available_memory_is_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10**6 < memory.available_memory() < 10**15

    def no_such_file(*args: object, **options: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", no_such_file)  # as on a system without /proc
    assert 10**6 < memory.available_memory() < 10**15
    monkeypatch.delattr("os.sysconf")  # as on Windows
    assert memory.available_memory() == memory.FALLBACK_MEMORY


# -- keeping freed memory: the calls of the C library, and other C libraries -------------------------------------------


class Library:
    """A C library with a mallopt that records its calls and rejects thresholds above `most`."""

    def __init__(self, most: int) -> None:
        self.set: dict[int, int] = {}
        self._most = most

    def mallopt(self, parameter: int, value: int) -> int:
        if parameter == allocation.M_MMAP_THRESHOLD and value > self._most:
            return 0
        self.set[parameter] = value
        return 1


@pytest.mark.parametrize(("most", "threshold"), [(2**40, 1024), (32 * MEGABYTE, 32)])
def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch, most: int, threshold: int) -> None:
    monkeypatch.setattr(allocation, "_kept", False)
    library = Library(most)
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: library)
    assert keep_memory()
    assert keeps_memory()
    assert library.set == {-3: threshold * MEGABYTE, -1: -1, -2: 64 * MEGABYTE}


def test_other_c_libraries_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_kept", False)
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda _: object())
    assert not keep_memory()
    assert not keeps_memory()

    def windows(_: Any) -> None:
        raise TypeError

    monkeypatch.setattr(allocation.ctypes, "CDLL", windows)
    assert not keep_memory()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_a_freed_array_is_reused() -> None:
    """An array of 64 MB that is made and freed again causes page faults only the first time."""
    script = (
        "import resource, numpy as np; from icy.core.machine import keep_memory\n"
        "def faults():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    np.ones(8 * 2**20)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "without = [faults() for _ in range(3)][-1]; keep_memory(); with_ = [faults() for _ in range(3)][-1]\n"
        "print(without, with_)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=900, check=True)
    without, kept = map(int, done.stdout.split())
    assert without >= 32  # pages of the array: 2 MB each if the system uses huge pages
    assert kept < without / 10
