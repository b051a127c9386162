"""People: conditions in balanced blocks, recognized by their id, and deleted on request."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.study.service import Study
from icy.study.service.export import audit
from icy.study.service.persons import (
    Person,
    come_again,
    delete_old_ids,
    enter,
    forget,
    free_slot,
    person_of_token,
    slots,
    withdraw,
)
from icy.study.service.plan import Conditions
from icy.study.service.platforms import Visit
from icy.study.service.review import APPROVE, decide, export_payments
from tests.study.service.helpers import (
    Clock,
    answer,
    arrival,
    at_once,
    finish,
    person,
    plan,
    rows,
    started,
    study,
    write,
)

# -- conditions --------------------------------------------------------------------------------------------------------

CELLS = Conditions().cells


@given(st.integers(0, 2**31), st.integers(1, 60))
def test_counts_of_conditions_differ_by_at_most_one(seed: int, count: int) -> None:
    found = Counter(slot.cell for slot in islice(slots(Conditions(quota=0, list_seed=seed)), count))
    assert max(found.values()) - min(found.get(name, 0) for name, _ in CELLS) <= 1


def test_every_block_has_every_condition_and_its_own_instance() -> None:
    found = list(slots(Conditions(quota=3)))
    blocks = [found[place : place + 10] for place in range(0, 30, 10)]
    assert [slot.number for slot in found] == list(range(30))
    for number, block in enumerate(blocks):
        assert {slot.cell for slot in block} == {name for name, _ in CELLS}
        assert {slot.instance for slot in block} == {number}
    assert len({tuple(slot.cell for slot in block) for block in blocks}) == 3  # in different orders


def test_single_conditions_can_have_other_quotas() -> None:
    found = Counter(slot.cell for slot in slots(Conditions(quota=3, quotas={"eng/rot": 1, "synth/rot": 5})))
    assert (found["eng/rot"], found["synth/rot"], found["eng/perm"]) == (1, 5, 3)


def test_people_who_enter_at_once_get_different_places(tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"quota": 6})
    at_once([partial(enter, of, *arrival(f"id{n}")) for n in range(15)])
    assert sorted(row["slot"] for row in rows(of, "SELECT slot FROM game")) == list(range(12))
    games = Counter((row["grammar"], row["instance"]) for row in rows(of, "SELECT * FROM game"))
    assert games == {(grammar, n): 1 for grammar in ("concat", "perm") for n in range(6)}


def test_the_place_of_an_inactive_person_becomes_free(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock)
    slow, gone, done, last = (started(of, name) for name in "abcd")
    assert enter(of, *arrival("e")) == "full"
    withdraw(of, gone, delete=False)
    finish(of, done)
    assert rows(of, "SELECT slot FROM game WHERE person = ?", person(of, "e").id) == [{"slot": 1}]
    clock.wait(minutes=80)
    finish(of, last)
    clock.wait(minutes=11)  # "a" was inactive for longer than drop_after
    with of.database.reading() as connection:
        slot = free_slot(connection, of)
        assert slot is not None
        assert slot.number == 0
    finish(of, slow)  # an inactive person may still come back and finish
    with of.database.reading() as connection:
        slot = free_slot(connection, of)
        assert slot is not None
        assert slot.number == 1


def test_the_pilot_does_not_take_places_of_the_study(tmp_path: Path) -> None:
    for name in "abcd":
        finish(study(tmp_path), started(study(tmp_path), name))
    assert enter(study(tmp_path), *arrival("e")) == "full"
    assert person(study(tmp_path, state="open"), "e").stage == "demographics"
    assert plan(tmp_path).state == "pilot"


# -- people ------------------------------------------------------------------------------------------------------------

WORKER = "WORKER-5F1C-9A7E"


def bytes_on_file(of: Study) -> bytes:
    """The bytes of the database and its log."""
    of.database.scrub()
    files = of.database.path.parent.glob(f"{of.database.path.name}*")
    return b"".join(file.read_bytes() for file in files)


def test_an_id_identifies_a_person_with_one_game(tmp_path: Path) -> None:
    of = study(tmp_path)
    first, again, other = person(of, WORKER), person(of, WORKER), person(of, "another")
    assert first == again
    assert other.id != first.id
    assert len(rows(of, "SELECT 1 FROM game")) == 2


@pytest.mark.parametrize(
    ("platform", "people"), [("prolific", 1), ("mturk", 1), ("link", 2), ("sona", 2)], ids=lambda one: str(one)
)
def test_ids_are_compared_without_case_on_platforms_without_case(platform: str, people: int, tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": platform})
    person(of, "60A1C9D5E8F70B2A3C4D5E6F")
    person(of, "60a1c9d5e8f70b2a3c4d5e6f")
    assert len(rows(of, "SELECT 1 FROM person")) == people
    assert forget(of, "60A1C9d5e8f70b2a3c4d5e6F" if people == 1 else "60A1C9D5E8F70B2A3C4D5E6F", True)


def came(of: Study, assignment: str, **more: str) -> Person:
    """A worker of MTurk who comes with an assignment."""
    parameters = {"assignment": assignment, "hit": f"hit of {assignment}", **more} if assignment else more
    visit = Visit("A1", parameters)
    known = come_again(of, visit)
    found = known or enter(of, visit, "computer", "2026-11-23T08:59:00.000Z")
    assert isinstance(found, Person)
    return found


@pytest.mark.parametrize(
    ("visits", "last", "earlier"),
    [
        (["A"], "A", None),
        (["A", "A", "A"], "A", None),
        (["A", "B"], "B", ["A"]),
        (["A", "B", "B", "C"], "C", ["A", "B"]),
        (["A", "B", "A"], "A", ["B"]),
        (["A", ""], "A", None),
        (["", "A"], "A", None),
    ],
    ids=str,
)
def test_the_assignment_of_the_last_visit_counts(
    visits: list[str], last: str, earlier: list[str] | None, tmp_path: Path
) -> None:
    of = study(tmp_path, platform={"name": "mturk"})
    assert len({came(of, assignment).id for assignment in visits}) == 1
    (row,) = rows(of, "SELECT kept_json FROM external_id")
    parameters = json.loads(row["kept_json"])
    assert (parameters["assignment"], parameters["hit"], parameters.get("earlier")) == (last, f"hit of {last}", earlier)


def test_agreeing_again_replaces_the_assignment(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "mturk"})
    for assignment in ("A", "B"):
        enter(of, Visit("A1", {"assignment": assignment}), "computer", "2026-11-23T08:59:00.000Z")
    (row,) = rows(of, "SELECT kept_json FROM external_id")
    assert json.loads(row["kept_json"]) == {"assignment": "B", "earlier": ["A"]}


def test_no_parameters_are_saved_after_ids_were_erased(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "mturk"})
    who = came(of, "A")
    write(of, "DELETE FROM external_id")
    assert came(of, "B").id == who.id
    assert rows(of, "SELECT * FROM external_id") == []


def test_ids_are_stored_separately_and_hashed_with_the_key(tmp_path: Path) -> None:
    of = study(tmp_path)
    person(of, WORKER)
    for table in ("person", "game", "trial", "event", "survey"):
        assert WORKER not in str(rows(of, f"SELECT * FROM {table}"))
    (row,) = rows(of, "SELECT id_hash FROM person")
    assert row["id_hash"] == of.key.mark("external id", "link", WORKER)


def test_an_earlier_study_can_be_excluded(tmp_path: Path) -> None:
    person(study(tmp_path, name="first"), WORKER)
    assert enter(study(tmp_path, name="second", exclude=["first"]), *arrival(WORKER)) == "excluded"
    assert person(study(tmp_path, name="second", exclude=["first"]), "another").stage == "demographics"
    assert person(study(tmp_path, name="third"), WORKER).stage == "demographics"


def test_a_closed_study_refuses_new_people(tmp_path: Path) -> None:
    known = person(study(tmp_path, state="open"), WORKER)
    closed = study(tmp_path, state="closed")
    assert enter(closed, *arrival("another")) == "closed"
    assert person(closed, WORKER).id == known.id


def test_paying_platforms_need_an_id_in_an_open_study(tmp_path: Path) -> None:
    platform = {"name": "prolific"}
    assert person(study(tmp_path, platform=platform)).stage == "demographics"
    for fault in ("placeholder", "malformed"):  # also in a pilot
        visit = Visit(fault=fault)  # type: ignore[arg-type]
        assert enter(study(tmp_path, platform=platform), visit, "computer", "") == fault
    assert enter(study(tmp_path, platform=platform, state="open"), *arrival()) == "no_id"
    assert enter(study(tmp_path, state="open"), *arrival()) != "no_id"


def test_a_link_belongs_to_one_study(tmp_path: Path) -> None:
    found = person(study(tmp_path))
    other = study(tmp_path, name="other")
    with other.database.reading() as connection:
        assert person_of_token(connection, other, found.token) is None


def test_withdrawal_can_keep_or_delete_the_data(tmp_path: Path) -> None:
    of = study(tmp_path)
    keeps, deletes = started(of, "first-worker"), started(of, WORKER)
    for who in (keeps, deletes):
        answer(of, who, "redcir")
    withdraw(of, keeps, delete=False)
    withdraw(of, deletes, delete=True)
    (game,) = rows(of, "SELECT * FROM game")
    assert (game["person"], game["state"]) == (keeps.id, "dropped")
    found = {row["id"]: row for row in rows(of, "SELECT * FROM person")}
    assert {row["stage"] for row in found.values()} == {"withdrawn"}
    assert (found[keeps.id]["id_hash"] is None, found[deletes.id]["id_hash"] is None) == (False, True)
    assert len(rows(of, "SELECT * FROM trial")) == 1
    assert len(rows(of, "SELECT * FROM external_id")) == 1
    assert audit(of).faults == ()


@pytest.mark.parametrize("data", [False, True])
def test_forgotten_people_leave_no_bytes_in_the_file(data: bool, tmp_path: Path) -> None:
    of = study(tmp_path)
    who = started(of, WORKER)
    answer(of, who, "unforgettable")
    mark = of.key.mark("external id", "link", WORKER).encode()
    assert WORKER.encode() in bytes_on_file(of)
    assert mark in bytes_on_file(of)
    assert forget(of, WORKER, data) == who.id
    left = bytes_on_file(of)
    assert WORKER.encode() not in left
    assert mark not in left
    assert (b"unforgettable" in left) is not data


def test_people_are_named_by_their_first_letters(tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"quota": 20})
    people = [person(of) for _ in range(17)]  # two of them begin with the same letter
    assert forget(of, people[3].id[:12].lower(), False) == people[3].id
    letters = [one.id[0] for one in people]
    common = next(letter for letter in letters if letters.count(letter) > 1)
    with pytest.raises(InvalidSettingError, match="type more letters"):
        forget(of, common, False)
    for nobody in ("", "nobody", "%"):
        with pytest.raises(UnknownNameError, match="No person is called"):
            forget(of, nobody, False)


def test_ids_are_deleted_some_days_after_payment(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock, people={"ids_days": 30})
    paid, waits = started(of, WORKER), started(of, "another")
    for who in (paid, waits):
        finish(of, who)
    decide(of, paid.id, APPROVE)
    export_payments(of, tmp_path / "pay")
    clock.wait(days=29)
    assert delete_old_ids(of) == 0
    clock.wait(days=2)
    assert delete_old_ids(of) == 1
    assert [row["external"] for row in rows(of, "SELECT external FROM external_id")] == ["another"]
    assert WORKER.encode() not in bytes_on_file(of)
    assert person(of, WORKER).id == paid.id  # the hash still identifies them


def test_ids_are_never_deleted_with_ids_days_0(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock, people={"ids_days": 0})
    finish(of, started(of, WORKER))
    clock.wait(days=1000)
    assert delete_old_ids(of) == 0
