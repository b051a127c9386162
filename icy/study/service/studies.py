"""A study that is open for use: its plan, database, key and clock."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.machine import git_revision
from icy.core.text import counted
from icy.version import __version__

from .clock import stamp, utc_now
from .database import Database
from .keys import Key
from .plan import StudyPlan

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
    """Save the settings of a study, and return its id."""
    row = connection.execute("SELECT * FROM study WHERE name = ?", (plan.name,)).fetchone()
    own = (json.dumps(plan.to_json(), sort_keys=True), plan.digest, __version__, git_revision(), plan.state)
    if row is None:
        found = connection.execute(
            "INSERT INTO study (settings_json, settings_hash, software, revision, state, name, created) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*own, plan.name, time),
        )
        return int(found.lastrowid or 0)
    if row["settings_hash"] != plan.digest:
        _check_unused(connection, row["id"], plan)
    connection.execute(
        "UPDATE study SET settings_json = ?, settings_hash = ?, software = ?, revision = ?, state = ? WHERE id = ?",
        (*own, row["id"]),
    )
    return int(row["id"])


def _check_unused(connection: sqlite3.Connection, number: int, plan: StudyPlan) -> None:
    """Check that nobody has taken part, except in the pilot.

    Raises:
        InvalidSettingError: a person has taken part.
    """
    (count,) = connection.execute("SELECT count(*) FROM person WHERE study = ? AND NOT pilot", (number,)).fetchone()
    if count:
        raise InvalidSettingError(
            f"{counted(count, 'person', 'have')} taken part in '{plan.name}', and settings of its pages or its game "
            "have changed since. Restore these settings, or copy the file to a study with another name."
        )
