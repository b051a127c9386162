"""A study that is open for use: its plan, its database in SQLite, key and clock."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.machine import git_revision
from icy.core.text import counted
from icy.study.rows import DATABASE, DECLARED
from icy.version import __version__

from .plan import StudyPlan

# -- the database of studies, in SQLite. Writes are atomic and survive a crash -----------------------------------------


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
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
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


# -- a study that is open for use: its plan, database, key and clock ---------------------------------------------------


# -- times in UTC with milliseconds ------------------------------------------------------------------------------------


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Format a time as text that sorts chronologically.

    Example:
        >>> stamp(datetime(2026, 11, 23, 3, 7, 56, 123456, UTC))
        '2026-11-23T03:07:56.123Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def readable(text: str) -> str:
    """Format a timestamp from `stamp` for readers.

    Example:
        >>> readable("2026-11-23T03:07:56.123Z")
        '2026-11-23 03:07 UTC'
    """
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"


def before(now: datetime, *, minutes: float = 0, days: float = 0) -> str:
    """Return the timestamp of a time before `now`."""
    return stamp(now - timedelta(minutes=minutes, days=days))


def minutes_between(first: str, last: str) -> float:
    """Return the minutes between two timestamps.

    Example:
        >>> minutes_between("2026-11-23T03:07:00.000Z", "2026-11-23T03:08:30.000Z")
        1.5
    """
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() / 60


# -- tokens and keyed hashes -------------------------------------------------------------------------------------------

BYTES = 16  # length of tokens and marks: 128 bits
KEY_BYTES = 32


def new_token() -> str:
    """Return 128 random bits in upper-case hexadecimal, which cannot contain a (lower-case) code of a language."""
    return secrets.token_hex(BYTES).upper()


@dataclass(frozen=True)
class Key:
    """The secret key of the server, stored in a file next to the database.

    Attributes:
        secret: random bytes.
    """

    secret: bytes

    @classmethod
    def of_file(cls, path: Path, make: bool = True) -> Key:
        """Read the key from a file, or create it. Only the owner may read the file.

        Args:
            path: path of the file.
            make: whether to create a missing key; use False for a database with data, which needs its own key.

        Raises:
            StoreError: the key cannot be read or created.
        """
        try:
            if not path.exists() and not make:
                raise StoreError(
                    f"The key '{path}' of the database is missing; restore it from a backup. Without the key, icy "
                    "cannot recognize people who took part. If it is lost, name another database in the settings."
                )
            if not path.exists():
                _create(path, secrets.token_bytes(KEY_BYTES))
            found = path.read_bytes()
        except OSError as error:
            raise StoreError(f"The key '{path}' cannot be read or created: {error.strerror or error}.") from error
        if len(found) != KEY_BYTES:
            raise StoreError(
                f"'{path}' is not a key; restore the right file. Without the key, icy cannot recognize people who took "
                "part."
            )
        return cls(found)

    def mark(self, *names: str | int) -> str:
        """Return a 128-bit keyed hash of names, which cannot be computed or inverted without the key."""
        text = "\x1f".join(str(name) for name in names)
        return hmac.new(self.secret, text.encode(), "sha256").hexdigest()[: 2 * BYTES].upper()

    def matches(self, mark: str, *names: str | int) -> bool:
        """Return whether a mark is the hash of names, in constant time."""
        return hmac.compare_digest(mark.encode(), self.mark(*names).encode())


def _create(path: Path, content: bytes) -> None:
    """Create a file that only its owner may read, atomically. A file that exists by then is kept."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        temporary.unlink(missing_ok=True)


# -- a study -----------------------------------------------------------------------------------------------------------

KEY_SUFFIX = ".key"


@dataclass(frozen=True)
class Study:
    """A study that is open for use.

    Attributes:
        plan: settings of the study.
        number: id of the study in the database.
        database: database with all data.
        key: key of the keyed hashes.
        now: function that returns the current time.
    """

    plan: StudyPlan
    number: int
    database: Database
    key: Key
    now: Callable[[], datetime] = utc_now

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.plan.name

    @property
    def time(self) -> str:
        """The current time, in the format of the database."""
        return stamp(self.now())

    @property
    def is_pilot(self) -> bool:
        """Whether new participants are marked as pilot."""
        return self.plan.state == "pilot"


def open_study(plan: StudyPlan, now: Callable[[], datetime] = utc_now) -> Study:
    """Open a study to serve it, and save its settings in the database.

    Raises:
        StoreError: the database or the key cannot be read or created.
        InvalidSettingError: a required text is missing, or settings changed after people took part.
    """
    plan.check_ready()
    if not plan.database_path.parent.is_dir():
        raise StoreError(f"The folder {plan.database_path.parent} does not exist.")
    # The key must exist before the database.
    key = Key.of_file(plan.database_path.with_suffix(KEY_SUFFIX), make=not plan.database_path.exists())
    database = Database(plan.database_path, make=True)
    with database.writing() as connection:
        number = _save_settings(connection, plan, stamp(now()))
        connection.execute("INSERT OR IGNORE INTO consent VALUES (?, ?)", (plan.consent_version, plan.information_text))
    return Study(plan, number, database, key, now)


def look_at_study(plan: StudyPlan, now: Callable[[], datetime] = utc_now) -> Study:
    """Open a study that was served before, to read its data.

    Raises:
        StoreError: the database does not exist, or does not have the study.
    """
    database = Database(plan.database_path)
    with database.reading() as connection:
        row = connection.execute("SELECT id FROM study WHERE name = ?", (plan.name,)).fetchone()
        names = [name for (name,) in connection.execute("SELECT name FROM study ORDER BY name")]
    if row is None:
        known = f"; it has {', '.join(names)}" if names else ""
        raise StoreError(f"The database {plan.database_path} does not have the study '{plan.name}'{known}.")
    key = Key.of_file(plan.database_path.with_suffix(KEY_SUFFIX), make=False)
    return Study(plan, row["id"], database, key, now)


def _save_settings(connection: sqlite3.Connection, plan: StudyPlan, time: str) -> int:
    """Save the settings of a study, and return its id.

    Raises:
        InvalidSettingError: settings changed after people took part, except in the pilot.
    """
    row = connection.execute("SELECT * FROM study WHERE name = ?", (plan.name,)).fetchone()
    own = {
        "settings_json": json.dumps(plan.to_json(), sort_keys=True),
        "settings_hash": plan.digest,
        "software": __version__,
        "revision": git_revision(),
        "state": plan.state,
    }
    if row is None:
        return insert(connection, "study", name=plan.name, created=time, **own)
    people = connection.execute("SELECT count(*) FROM person WHERE study = ? AND NOT pilot", (row["id"],)).fetchone()[0]
    if people and row["settings_hash"] != plan.digest:
        raise InvalidSettingError(
            f"{counted(people, 'person', 'have')} taken part in '{plan.name}', and settings of its pages or its game "
            "have changed since. Restore these settings, or copy the file to a study with another name."
        )
    update(connection, "study", "id = ?", row["id"], **own)
    return int(row["id"])
