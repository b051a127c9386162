"""Messages of icy as they are assembled: `python -m pytest --messages FILE` writes each that a test causes into a file.

The file is for reading, as a user would: every error, warning and note should be a sentence.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.cli import output
from icy.core.errors import IcyError


class Messages:
    """Plugin of pytest that appends each new error, warning and note to a file.

    Args:
        path: of the file, which processes that run tests may share.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.written = path, set[str]()
        printable, init = output.printable, IcyError.__init__

        def printed(text: str) -> str:
            self.write("note", text)
            return printable(text)

        def raised(error: IcyError, *args: object) -> None:
            init(error, *args)
            self.write(type(error).__name__, str(args[0]) if args else "")

        output.printable, IcyError.__init__ = printed, raised  # type: ignore[method-assign]

    def write(self, kind: str, text: str) -> None:
        """Append a message, unless this process has written it."""
        if text not in self.written:
            self.written.add(text)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{kind}: {text}\n")

    def pytest_warning_recorded(self, warning_message: pytest.WarningsRecorder) -> None:
        """Append a warning of icy."""
        if issubclass(warning_message.category, UserWarning) and "/icy/" in warning_message.filename:
            self.write("warning", str(warning_message.message))
