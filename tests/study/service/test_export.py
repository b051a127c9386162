"""The export: every column is described, ids are left out, and the report reads the rows."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from icy.analysis.tables.study import report_table, study_report
from icy.core.errors import UnknownNameError
from icy.study.game import Event
from icy.study.players.player import read_logs
from icy.study.rows import IDS, exported_columns, read_rows
from icy.study.service import Study
from icy.study.service.export import FORMATS, about, codebook, export, tables
from icy.study.service.persons import withdraw
from icy.study.service.play import act, leave_remarks, load
from tests.study.service.helpers import INFORMATION, answer, finish, person, rows, started, study

WORKER = "WORKER-5F1C-9A7E"


@pytest.fixture
def of(tmp_path: Path) -> Study:
    """A study with four people: finished, playing, withdrawn after the end, and withdrawn with all data."""
    found = study(tmp_path)
    done, plays, regrets, gone = (started(found, name) for name in (WORKER, "b", "c", "d"))
    act(found, done.id, Event("tab", "train"))
    answer(found, done, "?")
    for who in (done, regrets):
        finish(found, who, "redcir")
    answer(found, plays, "abc")
    withdraw(found, regrets, delete=False)
    withdraw(found, gone, delete=True)
    with found.database.writing() as connection:
        connection.execute("UPDATE person SET stage = 'feedback' WHERE id = ?", (done.id,))
    leave_remarks(found, person(found, WORKER), "=1+1 good game")
    return found


def test_every_column_exists_and_is_described(of: Study) -> None:
    found = tables(of)
    for name, frame in found.items():
        assert list(frame.columns) == [column for column in exported_columns(name) if column not in IDS]
        assert all(f"| {column} |" in codebook() for column in frame.columns)
        assert len(frame) > 0 or name == "survey"


def test_rows_are_of_people(of: Study) -> None:
    found = tables(of)
    games = found["games"]
    assert list(games["state"].fillna("-")) == ["closed", "open", "closed", "-"]
    assert list(games["withdrawn"].notna()) == [False, False, True, True]
    assert games["items"].tolist()[:3] == [6, 1, 6]
    assert (games["views"][0], games["refused"][0], games["platform"][0]) == (1, 1, "link")
    assert len(found["trials"]) == 6 + 1 + 6
    assert found["trials"]["answerable_1"].isin([0, 1]).all()
    assert set(found["rows"]["person"]) == {games["person"][0]}  # finished and not withdrawn
    score = found["rows"].query("metric == 'score'")["value"].item()
    assert score == rows(of, "SELECT score FROM game WHERE id = 1")[0]["score"]


@pytest.mark.parametrize("format_", FORMATS)
def test_ids_are_exported_only_on_request(format_: str, of: Study, tmp_path: Path) -> None:
    (code,) = {row["completion_code"] for row in rows(of, "SELECT * FROM game WHERE id = 1")}
    (link,) = {row["token"] for row in rows(of, "SELECT * FROM person WHERE id_hash IS NOT NULL LIMIT 1")}
    tokens = [row["token"] for row in rows(of, "SELECT token FROM trial")]
    hashes = [row["id_hash"] for row in rows(of, "SELECT id_hash FROM person WHERE id_hash IS NOT NULL")]
    export(of, tmp_path / "without", format_)
    without = b"".join(path.read_bytes() for path in (tmp_path / "without").iterdir())
    for secret in (WORKER, code, link, of.key.secret.hex(), *tokens, *hashes):
        assert secret.encode() not in without
    export(of, tmp_path / "with", format_, with_ids=True)
    games = (tmp_path / "with" / f"games.{format_}").read_bytes()
    assert WORKER.encode() in games
    assert code.encode() in games
    assert list(tables(of, with_ids=True)["games"].columns)[-2:] == list(IDS)


@pytest.mark.parametrize("format_", FORMATS)
def test_files_have_the_values_of_the_tables(format_: str, of: Study, tmp_path: Path) -> None:
    names = export(of, tmp_path / "out", format_)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    path = tmp_path / "out" / f"trials.{format_}"
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[format_]
    found = read(path)  # type: ignore[operator]
    wanted = tables(of)["trials"]
    for column in ("person", "code", "answer", "meaning", "image", "points"):
        assert found[column].dropna().tolist() == wanted[column].dropna().tolist()


def test_formulas_in_remarks_are_escaped(of: Study, tmp_path: Path) -> None:
    export(of, tmp_path / "out")
    assert "'=1+1 good game" in (tmp_path / "out" / "remarks.csv").read_text()


def test_reports_and_simulated_players_read_the_export(of: Study, tmp_path: Path) -> None:
    export(of, tmp_path / "out")
    read = read_rows(tmp_path / "out" / "rows.csv")
    assert read["value"].tolist() == pytest.approx(tables(of)["rows"]["value"].tolist())
    (log,) = read_logs(tmp_path / "out" / "games.jsonl")
    with of.database.reading() as connection:
        assert log.game.replay(log.events) == load(connection, log.person).state


def test_a_zip_holds_the_whole_study(of: Study, tmp_path: Path) -> None:
    names = export(of, tmp_path / "study.zip", "parquet")
    with zipfile.ZipFile(tmp_path / "study.zip") as archive:
        assert sorted(archive.namelist()) == sorted(names)
        saved = json.loads(archive.read("study.json"))
    assert saved == about(of)
    assert list(saved["consents"].values()) == [INFORMATION]
    assert saved["settings"]["conditions"]["grammar"] == ["concat", "perm"]


def test_rows_have_the_pilot_and_changed_settings(of: Study, tmp_path: Path) -> None:
    found = tables(of)["rows"]
    assert set(found["pilot"]) == {1}
    changed = "examples=6, held_out_at=[2, 3, 5], interval=2"
    assert set(found["settings"]) == {changed}
    assert set(found["agent"]) == {f"people (pilot) {changed}"}


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_pilots_are_reported_apart_and_with_a_warning(format_: str, of: Study, tmp_path: Path) -> None:
    export(of, tmp_path / "out", format_)
    pilot = read_rows(tmp_path / "out" / f"rows.{format_}")
    both = pd.concat([pilot, pilot.assign(pilot=0, agent="people", person="z")], ignore_index=True)
    report = study_report(both)
    assert sorted(report["games"]) == [1, 1]
    assert report.set_index("agent")["pilot"].to_dict() == {pilot["agent"].iloc[0]: True, "people": False}
    for value in ("accuracy", "score"):
        note = f"{pilot['agent'].iloc[0]}: games of a pilot, which are not data of the study"
        assert note in report_table(report, value).notes
    older = pilot.drop(columns=["pilot", "settings"]).assign(agent="people")  # of an older version
    older.to_csv(tmp_path / "older.csv", index=False)
    assert not report_table(study_report(read_rows(tmp_path / "older.csv"))).notes[0].startswith("people")


def test_pilot_and_study_are_separate(of: Study, tmp_path: Path) -> None:
    opened = study(tmp_path, state="open")
    assert [len(tables(opened, pilot)["games"]) for pilot in (None, False, True)] == [0, 0, 4]
    assert export(opened, tmp_path / "empty")


@pytest.mark.parametrize("target", ["out", "out.zip"])
@pytest.mark.parametrize("with_ids", [False, True])
def test_completion_codes_are_exported_only_on_request(target: str, with_ids: bool, tmp_path: Path) -> None:
    codes = {"complete": "SECRET-C1", "declined": "SECRET-C2"}
    of = study(tmp_path, platform={"name": "prolific", "codes": codes})
    names = export(of, tmp_path / target, with_ids=with_ids)
    if target == "out":
        texts = [(tmp_path / target / name).read_text() for name in names]
    else:
        with zipfile.ZipFile(tmp_path / target) as archive:
            texts = [archive.read(name).decode() for name in names]
    assert any("SECRET" in text for text in texts) is with_ids
    assert about(of)["settings"]["platform"]["codes"] == {"complete": "", "declined": ""}


@pytest.mark.parametrize("format_", FORMATS)
def test_only_the_owner_can_read_files_with_ids(format_: str, of: Study, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for folder, with_ids in (("open", False), ("private", True)):
            export(of, tmp_path / folder, format_, with_ids=with_ids)
            export(of, tmp_path / f"{folder}.zip", format_, with_ids=with_ids)
        of.database.backup(tmp_path / "private" / "copy.sqlite")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "private").iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert stat.S_IMODE((tmp_path / "private.zip").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open.zip").stat().st_mode) & 0o044 == 0o044
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (tmp_path / "open").iterdir())


def test_an_unknown_format_is_refused(of: Study, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean csv"):
        export(of, tmp_path / "out", "cvs")
