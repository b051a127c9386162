"""Progress by condition."""

from __future__ import annotations

from pathlib import Path

from icy.study.service.links import progress
from icy.study.service.persons import withdraw
from icy.study.service.play import ATTEMPTS, answer_page, answer_questions, read_instructions
from tests.study.service.helpers import Clock, finish, person, rows, started, study


def test_every_person_counts_once(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock, conditions={"grammar": ["concat"], "quota": 9})
    finish(of, started(of))
    started(of)
    clock.wait(minutes=100)
    last = started(of)
    withdraw(of, started(of), delete=False)
    failed = person(of)
    answer_page(of, failed, "demographics", {})
    (cell,) = progress(of).cells
    assert (cell.name, cell.quota, cell.finished, cell.active, cell.dropped) == ("eng/concat", 9, 1, 2, 2)
    assert cell.score == rows(of, "SELECT score FROM game WHERE state = 'closed'")[0]["score"]
    assert cell.minutes is not None
    assert 1 < cell.minutes < 1.01  # from first contact, a minute before consent
    found = progress(of)
    assert (found.consented, found.finished, found.screened, found.withdrawn) == (5, 1, 0, 1)
    assert found.last is not None
    assert found.last > rows(of, "SELECT started FROM game WHERE person = ?", last.id)[0]["started"]


def test_the_pilot_is_counted_separately(tmp_path: Path) -> None:
    started(study(tmp_path))
    opened = study(tmp_path, state="open")
    assert (progress(opened).consented, progress(opened, pilot=True).consented) == (0, 1)


def test_people_who_fail_the_questions_free_their_place(tmp_path: Path) -> None:
    of = study(tmp_path)
    who = person(of)
    answer_page(of, who, "demographics", {})
    for attempt in range(ATTEMPTS):
        with of.database.reading() as connection:
            row = connection.execute("SELECT * FROM person").fetchone()
        who = type(who).of(row)
        if attempt == 0:
            read_instructions(of, who, {}, "1x1")
            who = type(who).of(rows(of, "SELECT * FROM person")[0])  # type: ignore[arg-type]
        assert not answer_questions(of, who, ["1", "1", "1"], ["0", "1", "2"])
    assert progress(of).screened == 1
    assert [row["state"] for row in rows(of, "SELECT state FROM game")] == ["dropped"]
    assert len(rows(of, "SELECT * FROM survey")) == 6
