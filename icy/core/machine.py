"""The machine: devices, memory, and the versions and names that records state."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from icy.version import __version__

from .errors import InvalidSettingError
from .text import counted


def resolve_device(device: str) -> str:
    """Check that a device is available and return its name; "auto" is a GPU if there is one; see `icy.core.gpu`."""
    if device == "cpu":
        return device
    from .gpu import resolve  # imports torch

    return resolve(device)


def release(device: str) -> None:
    """Free unused memory. Stacks refer to themselves, so that only the garbage collector frees them."""
    from . import gpu  # imports torch

    gc.collect()
    gpu.empty_cache(device)


# -- memory ------------------------------------------------------------------------------------------------------------

FALLBACK_MEMORY = 8 * 10**9  # bytes; assumed if the system does not report its memory


def available_memory() -> int:
    """Return the available memory in bytes: MemAvailable on Linux, elsewhere all physical memory.

    SC_AVPHYS_PAGES is not used, because it does not count the file cache, which can be freed.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            fields = next(line.split() for line in lines if line.startswith("MemAvailable"))
        return int(fields[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return FALLBACK_MEMORY


def require_memory(needed: int, what: str) -> None:
    """Raise an error if `needed` bytes are not available.

    Args:
        needed: needed bytes.
        what: object that needs the memory, such as "A table of 5x10"; the beginning of the message.

    Raises:
        InvalidSettingError: `needed` exceeds the available memory.
    """
    available = available_memory()
    if needed > available:
        raise too_large(what, _bytes(needed), available)


def require_allocation(needed: int, what: str, instead: str) -> None:
    """Raise a MemoryError before an allocation that would make the system kill the process.

    Args:
        needed: needed bytes.
        what: object that needs the memory; the beginning of the message.
        instead: advice; the end of the message.

    Raises:
        MemoryError: `needed` exceeds the available memory.
    """
    available = available_memory()
    if needed > available:
        raise MemoryError(
            f"{what} needs {_bytes(needed)} of memory or more, and {_bytes(available)} is free; {instead}."
        )


def too_large(what: str, needed: str, available: int) -> InvalidSettingError:
    """Return the error for an object that needs more memory (as text) than is available (in bytes)."""
    return InvalidSettingError(
        f"{what} needs about {needed} of memory and {_bytes(available)} is available; "
        "take fewer attributes, fewer values or shorter messages."
    )


def _bytes(number: int) -> str:
    exponent = min(max(len(str(number)) - 1, 6) // 3, 6)
    return f"{number / 1000**exponent:,.1f} {['', 'k', 'M', 'G', 'T', 'P', 'E'][exponent]}B"


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory was exhausted."""
    # torch has its own error for GPU memory, but not for CPU memory
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return full or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # names of mallopt(3)
NEVER = -1
MEGABYTE = 2**20
MMAP_THRESHOLDS = 1024 * MEGABYTE, 32 * MEGABYTE  # bytes; glibc before 2.35 takes no more than the second

_kept = False


def keep_memory() -> bool:
    """Keep freed memory in this process for later allocations; return whether this succeeded.

    By default glibc maps memory for every large array and unmaps it when the array is freed, so that each update of a
    training touches thousands of new pages. Only icy's workers call this, because they train and end: a process with
    other tasks would never return its peak memory to the system. Without glibc, nothing happens.
    """
    global _kept
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library; TypeError on Windows
        return False
    _kept = any(mallopt(M_MMAP_THRESHOLD, size) for size in MMAP_THRESHOLDS)
    mallopt(M_TRIM_THRESHOLD, NEVER)
    mallopt(M_TOP_PAD, 64 * MEGABYTE)
    return _kept


def keeps_memory() -> bool:
    """Return whether this process keeps freed memory. Only icy's workers do."""
    return _kept


# -- provenance of results ---------------------------------------------------------------------------------------------

LIBRARIES = ("torch", "numpy")
SOFTWARE = ("icy", "python", *LIBRARIES)  # keys of `software`


@functools.cache
def software() -> dict[str, str]:
    """Return the versions of icy, Python and the libraries that can change numbers."""
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"icy": __version__, "python": platform.python_version(), **libraries}


@functools.cache
def git_revision() -> str | None:
    """Return the commit of a checkout of icy, with "+changes" if files were changed; None without a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        revision = _git(root, "rev-parse", "HEAD")
        return revision + ("+changes" if _git(root, "--no-optional-locks", "status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def device_name(device: str) -> str:
    """Return the name of a GPU, or the architecture and number of cores of a CPU."""
    if device != "cpu":
        from . import gpu  # imports torch

        return gpu.product_name(device) or device
    return f"{platform.machine()} CPU, {counted(usable_cores(), 'core')}"


def usable_cores() -> int:
    """Return the number of cores that this process may use, which may be fewer in a container or with Slurm."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


def now() -> str:
    """Return the time in UTC, with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def circumstances(records: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the first and last day of records (`made`), their `versions`, and their `devices`."""
    days = sorted(str(record["finished"])[:10] for record in records)
    return {
        "made": [days[0], days[-1]],
        "versions": sorted({f"icy {r['versions'].get('icy')}, torch {r['versions'].get('torch')}" for r in records}),
        "devices": sorted({str(r.get("device_name") or r.get("device")) for r in records}),
    }
