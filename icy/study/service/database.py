"""The database of studies, in SQLite. Writes are atomic and survive a crash."""

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
VERSION = 2  # version of the schema; missing tables are added to a database of version 1
SYNCHRONOUS = "FULL"  # a commit waits until the data are on disk
PATIENCE = 20.0  # seconds to wait while another process writes

Row = sqlite3.Row


def _make_private(path: Path) -> None:
    """Create an empty file that only its owner may read. SQLite gives its logs the same permissions."""
    with contextlib.suppress(OSError):  # SQLite reports the failure better
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)


class Database:
    """A database file. Every request opens its own connection.

    Args:
        path: path of the file.
        make: whether to create a missing database.

    Raises:
        StoreError: the database cannot be opened, or comes from another version of icy.
    """

    def __init__(self, path: Path, make: bool = False) -> None:
        self.path = path
        self._writing = threading.Lock()  # threads wait for the lock instead of retrying
        if not make and not path.is_file():
            raise StoreError(f"The database {path} does not exist yet; `icy study serve` creates it.")
        with self._store_errors():
            _make_private(path)
            self._anchor = self._connect()  # stays open, so that closing other connections does not truncate the log
            self._set_up()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that sees one consistent state of the database, for reading."""
        with self._store_errors(), contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one exclusive transaction; an error rolls it back."""
        with self._store_errors(), self._writing, contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def backup(self, path: Path) -> None:
        """Copy the database to a file, even while it is in use.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        if path.exists():
            raise StoreError(f"{path} exists already; choose another name for the copy.")
        _make_private(path)
        closing = contextlib.closing
        with self._store_errors(path), closing(sqlite3.connect(path)) as copy, closing(self._connect()) as connection:
            connection.backup(copy)

    def scrub(self) -> None:
        """Move SQLite's log into the database file and truncate it, so that no deleted data remain."""
        with self._store_errors(), self._writing, contextlib.closing(self._connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the database."""
        self._anchor.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        for pragma in ("foreign_keys = ON", f"synchronous = {SYNCHRONOUS}", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _set_up(self) -> None:
        """Create missing tables."""
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
            raise StoreError(
                f"{self.path} was created by a later version of icy (its tables have version {version}, and this icy "
                f"reads version {VERSION}); install a later version."
            )

    @cached_property
    def _statements(self) -> list[str]:
        """The statements of the schema as a list, because running them as one script would end the transaction."""
        lines = [line.partition("--")[0] for line in SCHEMA.read_text(encoding="utf-8").splitlines()]
        return [statement for statement in "\n".join(lines).split(";") if statement.strip()]

    @contextlib.contextmanager
    def _store_errors(self, path: Path | None = None) -> Iterator[None]:
        """Context manager that converts errors of SQLite to StoreError."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StoreError(f"The database {path or self.path} cannot be used: {error}.") from error
