"""News from worker processes: readings, finished records and log lines, through files."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

_icy_log = logging.getLogger("icy")


class Mailbox:
    """News from workers to this process: a file per job, appended to there and read on here.

    A line is a pair: "read" and readings, "filed" and the key of a record, or "log" and a log record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    @staticmethod
    def path(folder: str | Path, ticket: int) -> Path:
        """Where the worker of a ticket writes."""
        return Path(folder) / f"{ticket}.jsonl"

    def collect(self) -> Iterator[tuple[int, str, Any]]:
        """Ticket, kind and content of every line since the last call."""
        for path in sorted(self._folder.glob("*.jsonl"), key=lambda p: int(p.stem)):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _ = file.read().rpartition(b"\n")  # the last line may be half written
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):  # what a worker wrote as it was killed
                    kind, content = json.loads(line)
                    yield int(path.stem), kind, content


class MailedLog(logging.Handler):
    """Sends a worker's log, while it is open, to the process that the user looks at."""

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


def pass_on_log(content: Mapping[str, Any], said: set[str]) -> None:
    """Log here what a worker logged; once, however many stacks say it.

    Args:
        content: as MailedLog sends it.
        said: what was passed on before.
    """
    text = f"{content['name']} {content['msg']}"
    if text not in said:
        said.add(text)
        logging.getLogger(content["name"]).handle(logging.makeLogRecord(dict(content)))
