"""Check that arrays fit in the available memory."""

from __future__ import annotations

import os

from .errors import InvalidSettingError

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
