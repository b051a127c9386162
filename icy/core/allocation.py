"""Make the C library keep freed memory for later allocations instead of returning it to the system."""

from __future__ import annotations

import ctypes

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
