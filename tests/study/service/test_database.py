"""The database: strict tables, atomic transactions and copies."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from icy.core.errors import StoreError
from icy.study.service import Database
from icy.study.service import studies as module
from tests.study.service.helpers import at_once, finish, rows, started, study, write

SYNCHRONOUS = module.SYNCHRONOUS  # the users' value; tests switch it off after collection


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(module, "SYNCHRONOUS", SYNCHRONOUS)
    return Database(tmp_path / "x.sqlite", make=True)


def names(connection: sqlite3.Connection) -> list[str]:
    return [row["text"] for row in connection.execute("SELECT text FROM consent ORDER BY text")]


def add(connection: sqlite3.Connection, text: str) -> None:
    connection.execute("INSERT INTO consent VALUES (?, ?)", (text, text))


def test_tables_are_strict_and_the_journal_is_a_write_ahead_log(database: Database) -> None:
    with database.reading() as connection:
        tables = [dict(row) for row in connection.execute("PRAGMA table_list") if row["type"] == "table"]
        own = [table for table in tables if not table["name"].startswith("sqlite_")]
        assert len(own) == 12
        assert all(table["strict"] for table in own)
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert stat.S_IMODE(database.path.stat().st_mode) == 0o600


def test_wrong_types_and_missing_foreign_keys_are_refused(tmp_path: Path) -> None:
    of = study(tmp_path)
    started(of)
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT"), of.database.writing() as connection:
        connection.execute("UPDATE person SET pilot = 'x'")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"), of.database.writing() as connection:
        connection.execute("INSERT INTO feedback VALUES ('nobody', 'x', 'x')")


def add_twice(database: Database, text: str) -> None:
    with database.writing() as connection:
        add(connection, text)
        add(connection, text)


def test_an_error_rolls_the_transaction_back(database: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        add_twice(database, "lost")
    with database.writing() as connection:
        add(connection, "kept")
    with database.reading() as connection:
        assert names(connection) == ["kept"]


def test_readers_see_one_state_while_another_writes(database: Database) -> None:
    with database.reading() as reader:
        assert names(reader) == []
        with database.writing() as writer:
            add(writer, "new")
        assert names(reader) == []
    with database.reading() as reader:
        assert names(reader) == ["new"]


def test_a_writer_has_the_lock_before_it_reads(database: Database) -> None:
    """The lock also stops other processes, which do not see the lock of this process's threads."""
    other = sqlite3.connect(database.path, timeout=0, isolation_level=None)
    with database.writing() as connection:
        names(connection)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.close()


def test_writes_of_threads_are_serialized(database: Database) -> None:
    with database.writing() as connection:
        add(connection, "0")

    def count() -> None:
        for _ in range(5):
            with database.writing() as connection:
                (found,) = names(connection)
                connection.execute("UPDATE consent SET text = ?", (str(int(found) + 1),))

    at_once([count] * 8)
    with database.reading() as connection:
        assert names(connection) == ["40"]


def test_a_copy_is_whole_while_a_game_is_played(tmp_path: Path) -> None:
    of = study(tmp_path)
    who = started(of)
    of.database.backup(tmp_path / "copy.sqlite")
    finish(of, who)
    copy = Database(tmp_path / "copy.sqlite")
    with copy.reading() as connection:
        assert connection.execute("SELECT state FROM game").fetchone()[0] == "open"
    assert rows(of, "SELECT state FROM game")[0]["state"] == "closed"
    assert stat.S_IMODE((tmp_path / "copy.sqlite").stat().st_mode) == 0o600
    with pytest.raises(StoreError, match="exists already"):
        of.database.backup(tmp_path / "copy.sqlite")


def test_files_that_are_not_databases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"The database .* does not exist yet"):
        Database(tmp_path / "x.sqlite")
    (tmp_path / "x.sqlite").write_text("not a database, but long enough to be read" * 20)
    with pytest.raises(StoreError, match="cannot be used"):
        Database(tmp_path / "x.sqlite")


def test_the_database_is_private_from_its_first_byte(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        of = study(tmp_path)
        started(of)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("studies.*")}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("studies.sqlite", "studies.sqlite-wal", "studies.sqlite-shm", "studies.key"), 0o600)


def test_a_database_of_version_1_gets_the_new_tables(tmp_path: Path) -> None:
    of = study(tmp_path)
    who = started(of)
    for statement in ("DROP TABLE refused_visit", "DROP TABLE link_test", "PRAGMA user_version = 1"):
        write(of, statement)
    of.database.close()
    again = study(tmp_path)
    finish(again, who)
    assert rows(again, "SELECT * FROM refused_visit") == rows(again, "SELECT * FROM link_test") == []
    assert rows(again, "PRAGMA user_version") == [{"user_version": 2}]


def test_a_later_version_is_refused(database: Database, tmp_path: Path) -> None:
    database.close()
    connection = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(StoreError, match=r"a later version of icy \(its tables have version 7, and this icy reads"):
        Database(tmp_path / "x.sqlite")


def test_settings_of_the_game_cannot_change_after_people_took_part(tmp_path: Path) -> None:
    of = study(tmp_path)
    started(of)
    study(tmp_path, conditions={"grammar": ["rot"]})  # a pilot's settings may change
    opened = study(tmp_path, state="open", conditions={"grammar": ["rot"]})
    started(opened)
    study(tmp_path, state="closed", conditions={"grammar": ["rot"], "quota": 50})
    with pytest.raises(Exception, match="1 person has taken part in 'pilot', and settings"):
        study(tmp_path, state="open", conditions={"grammar": ["perm"]})
