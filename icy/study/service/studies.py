"""A study that is open for use: its plan, database, key and clock."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.machine import git_revision
from icy.core.text import counted
from icy.version import __version__

from .database import Database, insert, update
from .plan import StudyPlan

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


def moment(text: str) -> datetime:
    """Parse a timestamp from `stamp`."""
    return datetime.fromisoformat(text)


def readable(text: str) -> str:
    """Format a timestamp from `stamp` for readers.

    Example:
        >>> readable("2026-11-23T03:07:56.123Z")
        '2026-11-23 03:07 UTC'
    """
    return f"{moment(text):%Y-%m-%d %H:%M} UTC"


def before(now: datetime, *, minutes: float = 0, days: float = 0) -> str:
    """Return the timestamp of a time before `now`."""
    return stamp(now - timedelta(minutes=minutes, days=days))


def minutes_between(first: str, last: str) -> float:
    """Return the minutes between two timestamps.

    Example:
        >>> minutes_between("2026-11-23T03:07:00.000Z", "2026-11-23T03:08:30.000Z")
        1.5
    """
    return (moment(last) - moment(first)).total_seconds() / 60


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


def key_path(plan: StudyPlan) -> Path:
    """Return the path of the key file, next to the database."""
    return plan.database_path.with_suffix(KEY_SUFFIX)


def open_study(plan: StudyPlan, now: Callable[[], datetime] = utc_now) -> Study:
    """Open a study to serve it, and save its settings in the database.

    Raises:
        StoreError: the database or the key cannot be read or created.
        InvalidSettingError: a required text is missing, or settings changed after people took part.
    """
    plan.check_ready()
    if not plan.database_path.parent.is_dir():
        raise StoreError(f"The folder {plan.database_path.parent} does not exist.")
    key = Key.of_file(key_path(plan), make=not plan.database_path.exists())  # the key must exist before the database
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
    return Study(plan, row["id"], database, Key.of_file(key_path(plan), make=False), now)


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
