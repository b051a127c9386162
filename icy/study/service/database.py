"""The database of studies: SQLite, so that writes are whole, and survive a crash."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from icy.core.errors import StoreError

SCHEMA = Path(__file__).with_name("schema.sql")
VERSION = 2  # of the schema; a database of version 1 gets the tables that it lacks
SYNCHRONOUS = "FULL"  # a commit waits until the disk has it
PATIENCE = 20.0  # seconds to wait for another process that writes

Row = sqlite3.Row


def _make_private(path: Path) -> None:
    """Make a database that only its owner may read, before anything is in it; SQLite gives its logs the same rights."""
    with contextlib.suppress(OSError):  # SQLite explains the failure better
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)


class Database:
    """A database file. Every request opens a connection of its own.

    Args:
        path: of the file.
        make: whether to make one if there is none.

    Raises:
        StoreError: it cannot be opened, or is of another version of icy.
    """

    def __init__(self, path: Path, make: bool = False) -> None:
        self.path = path
        self._writing = threading.Lock()  # threads wait in turn, where SQLite would have them try again and again
        if not make and not path.is_file():
            raise StoreError(f"There is no database {path} yet; `icy study serve` makes it.")
        with self._told():
            _make_private(path)
            self._anchor = self._connect()  # open as long as this is, else every last one would tidy up
            self._set_up()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that sees one state of the database."""
        with self._told(), contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that reads and writes as if it were alone; an error undoes all that it wrote."""
        with self._told(), self._writing, contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def backup(self, path: Path) -> None:
        """Copy the database to a file, also while it is in use.

        Raises:
            StoreError: the file is there already, or cannot be written.
        """
        if path.exists():
            raise StoreError(f"{path} is there already; choose another name for the copy.")
        _make_private(path)
        closing = contextlib.closing
        with self._told(path), closing(sqlite3.connect(path)) as copy, closing(self._connect()) as connection:
            connection.backup(copy)

    def scrub(self) -> None:
        """Write everything from the log into the file, so that nothing deleted is left in either."""
        with self._told(), self._writing, contextlib.closing(self._connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close what is open."""
        self._anchor.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        for pragma in ("foreign_keys = ON", f"synchronous = {SYNCHRONOUS}", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _set_up(self) -> None:
        """Make the tables, unless they are there."""
        self._anchor.execute("PRAGMA journal_mode = WAL")
        self._anchor.execute("BEGIN IMMEDIATE")
        version = self._anchor.execute("PRAGMA user_version").fetchone()[0]
        if version < VERSION:
            for statement in self._statements:
                if version == 0 or "IF NOT EXISTS" in statement:
                    self._anchor.execute(statement)
            self._anchor.execute(f"PRAGMA user_version = {VERSION}")
        self._anchor.execute("COMMIT")
        if version > VERSION:
            raise StoreError(f"{self.path} is of another version of icy (tables {version}, here {VERSION}).")

    @cached_property
    def _statements(self) -> list[str]:
        """The statements of the schema one by one, since running them at once would end the transaction."""
        lines = [line.partition("--")[0] for line in SCHEMA.read_text(encoding="utf-8").splitlines()]
        return [statement for statement in "\n".join(lines).split(";") if statement.strip()]

    @contextlib.contextmanager
    def _told(self, path: Path | None = None) -> Iterator[None]:
        """Tell in a sentence what SQLite cannot do."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StoreError(f"The database {path or self.path} cannot be used: {error}.") from error
