"""The database of studies, in SQLite. Writes are atomic and survive a crash."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from icy.core.errors import StoreError
from icy.study.columns import DATABASE, DECLARED

VERSION = 2  # version of the tables; missing tables are added to a database of version 1
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
            for table, columns in DATABASE.items():
                declared = ", ".join(f"{name} {column.type}" for name, column in columns.items() if column.type)
                self._anchor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared}) STRICT")
            for name, of in DECLARED["indexes"].items():
                self._anchor.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {of}")
            self._anchor.execute(f"PRAGMA user_version = {VERSION}")
        self._anchor.execute("COMMIT")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was created by a later version of icy (its tables have version {version}, and this icy "
                f"reads version {VERSION}); install a later version."
            )

    @contextlib.contextmanager
    def _store_errors(self, path: Path | None = None) -> Iterator[None]:
        """Context manager that converts errors of SQLite to StoreError."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StoreError(f"The database {path or self.path} cannot be used: {error}.") from error


def insert(connection: sqlite3.Connection, table: str, **row: object) -> int:
    """Insert a row into a table, given as values by column, and return its number."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    return connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()]).lastrowid or 0


def update(connection: sqlite3.Connection, table: str, where: str, *values: object, **changes: object) -> bool:
    """Change rows of a table, and return whether any row meets the condition.

    Args:
        connection: connection for writing.
        table: name of the table.
        where: condition in SQL, with a question mark for each of `values`.
        *values: values in the condition.
        **changes: new values by column.
    """
    assigned = ", ".join(f"{name} = ?" for name in changes)
    statement = f"UPDATE {table} SET {assigned} WHERE {where}"
    return connection.execute(statement, [*changes.values(), *values]).rowcount > 0
