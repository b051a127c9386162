"""Standard streams of a command: closed streams, and an error stream without a reader."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class _Remarks(io.FileIO):
    """The error stream. After a failed write (no reader, full disk) it drops all output.

    Training does not stop because its progress cannot be shown.
    """

    def write(self, content: Any, /) -> int:
        """Write bytes, or drop them."""
        with contextlib.suppress(OSError):
            return super().write(content)
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        return memoryview(content).nbytes


def mend_streams() -> None:
    """Open standard streams that the caller closed (`>&-`), and make the error stream drop unwritable output.

    Call this only in a process that runs a single command. A closed stream is opened on the null device: otherwise the
    next file that is opened would get the stream's number, and receive everything that a library prints.
    """
    for number, (name, mode) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number and _is_closed(number):
                os.dup2(null, number)
                os.close(null)
                null = number
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        raw = io.BufferedWriter(_Remarks(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, sys.stderr.encoding, "backslashreplace", line_buffering=True)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False
