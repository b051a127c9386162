"""Have the C library keep the memory that a process frees, where it would return it and fetch it anew."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # names of mallopt(3)
NEVER = -1
MEGABYTE = 2**20
MMAP_THRESHOLDS = 1024 * MEGABYTE, 32 * MEGABYTE  # bytes; glibc before 2.35 takes no more than the second

_kept = False


def keep_memory() -> bool:
    """Have this process keep freed memory for its next allocation; return whether it does.

    By default glibc maps every large array anew and unmaps it when it is freed, so that each update of a training
    touches thousands of pages for the first time. This is for icy's own workers, which train and end: a process that
    does other things, too, would never give back what it once needed. Without effect where the C library is another
    than glibc.
    """
    global _kept
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library; the last, Windows
        return False
    _kept = any(mallopt(M_MMAP_THRESHOLD, size) for size in MMAP_THRESHOLDS)
    mallopt(M_TRIM_THRESHOLD, NEVER)
    mallopt(M_TOP_PAD, 64 * MEGABYTE)
    return _kept


def keeps_memory() -> bool:
    """Return whether this process keeps freed memory, which it does in icy's workers alone."""
    return _kept
