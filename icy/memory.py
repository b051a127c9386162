"""How much memory something takes at its peak."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
from pathlib import Path
from types import TracebackType
from typing import Self

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # what the kernel takes, written there, as the word to forget the peak so far


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
