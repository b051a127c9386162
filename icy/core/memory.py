"""How much memory something takes at its peak."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Self

from .errors import InvalidSettingError

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # what the kernel takes, written there, as the word to forget the peak so far
FALLBACK_MEMORY = 8 * 10**9  # bytes; where the system does not tell


class PeakMemory:
    """Measures the peak of what is taken within a `with` block: of a GPU's memory, or of this process on Linux.

    It is what the system gave, so that what the allocator keeps in reserve counts, as it does for whoever runs out of
    memory.

    Args:
        device: "cpu", "cuda", ...

    Attributes:
        before: bytes that were taken before; None where it cannot be measured.
        bytes: above these, likewise.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._on_gpu = device.startswith("cuda")
        self.before: int | None = None
        self.bytes: int | None = None

    def __enter__(self) -> Self:
        gc.collect()
        if self._on_gpu:
            import torch

            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self._device)
            self.before = torch.cuda.memory_reserved(self._device)
        else:
            self.before = _reset_peak()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.before is None:
            return
        if self._on_gpu:
            import torch

            peak: int | None = torch.cuda.max_memory_reserved(self._device)
        else:
            peak = _status("VmHWM")
        self.bytes = None if peak is None else max(0, peak - self.before)


def _reset_peak() -> int | None:
    """Give back what the allocator has in reserve and forget the peak; bytes that this process has then."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    try:
        RESET.write_text(RESET_PEAK)
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> int | None:
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def available_memory() -> int:
    """Bytes of memory that can be had now: MemAvailable on Linux, elsewhere all physical memory.

    SC_AVPHYS_PAGES is not used, because it leaves out what the file cache would give back.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = next(line.split() for line in lines if line.startswith("MemAvailable"))
        return int(found[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return FALLBACK_MEMORY


def require_memory(needed: int, what: str) -> None:
    """Refuse what does not fit in memory, in a sentence that begins with `what`.

    Args:
        needed: bytes.
        what: the thing to be made, as in "A table of 5x10".

    Raises:
        InvalidSettingError: `needed` is more than is available.
    """
    available = available_memory()
    if needed > available:
        raise _too_large(what, _bytes(needed), available)


def _too_large(what: str, needed: str, available: int) -> InvalidSettingError:
    return InvalidSettingError(
        f"{what} needs about {needed} of memory and {_bytes(available)} is available; "
        "take fewer attributes, fewer values or shorter messages."
    )


def _bytes(number: int) -> str:
    exponent = min(max(len(str(number)) - 1, 6) // 3, 6)
    return f"{number / 1000**exponent:,.1f} {['', 'k', 'M', 'G', 'T', 'P', 'E'][exponent]}B"
