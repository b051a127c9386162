"""Events of worker processes (readings, finished records, log lines), sent to their parent through files."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from icy.core.types import Fields

_icy_log = logging.getLogger("icy")


class EventLog:
    """Events from workers to this process: the worker of a job appends to a file, and this process reads it.

    A line is a pair: "read" and readings, "filed" and the key of a record, or "log" and a log record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    @staticmethod
    def path(folder: str | Path, ticket: int) -> Path:
        """Return the path of a ticket's file."""
        return Path(folder) / f"{ticket}.jsonl"

    @staticmethod
    @contextlib.contextmanager
    def writing(folder: str | Path, ticket: int) -> Iterator[Callable[[str, Any], None]]:
        """Open the file of a ticket for its worker; yield a function that appends a line of kind and content.

        Lines that cannot be written, for example to a full disk, are left out, as they only affect the display.
        """
        with contextlib.ExitStack() as stack:
            file: BinaryIO | None = None
            with contextlib.suppress(OSError):
                # Without a buffer: with a full disk, closing the file would raise for the rest of the buffer.
                file = stack.enter_context(EventLog.path(folder, ticket).open("ab", buffering=0))

            def append(line: str) -> None:
                if file is not None:
                    with contextlib.suppress(OSError):
                        file.write(f"{line}\n".encode())

            append("")  # ends a line that a killed worker may have left incomplete
            yield lambda kind, content: append(json.dumps([kind, content]))

    def collect(self) -> Iterator[tuple[int, str, Any]]:
        """Yield ticket, kind and content of every line since the last call."""
        for path in sorted(self._folder.glob("*.jsonl"), key=lambda p: int(p.stem)):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):  # an incomplete line of a killed worker
                    kind, content = json.loads(line)
                    yield int(path.stem), kind, content


class LogForwarder(logging.Handler):
    """Forwards a worker's log to its parent within a block."""

    def __init__(self, write: Callable[[str, Any], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        level, text = record.levelno, record.getMessage()
        self._write("log", {"name": record.name, "levelno": level, "levelname": record.levelname, "msg": text})

    def __enter__(self) -> Self:
        _icy_log.addHandler(self)
        _icy_log.propagate = False
        return self

    def __exit__(self, *exception: object) -> None:
        _icy_log.removeHandler(self)


def forward_log(content: Fields, logged: set[str]) -> None:
    """Log a worker's line in this process; if several stacks log the same line, only once.

    Args:
        content: the line, as from LogForwarder.
        logged: lines that were logged before; updated in place.
    """
    text = f"{content['name']} {content['msg']}"
    if text not in logged:
        logged.add(text)
        logging.getLogger(content["name"]).handle(logging.makeLogRecord(dict(content)))
