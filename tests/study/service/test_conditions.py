"""Permuted blocks, quotas, and places that become free again."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from icy.study.service.persons import enter, free_slot, slots, withdraw
from icy.study.service.plan import Conditions
from tests.study.service.helpers import Clock, arrival, at_once, finish, person, plan, rows, started, study

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
    at_once([partial(enter, of, arrival(f"id{n}")) for n in range(15)])
    assert sorted(row["slot"] for row in rows(of, "SELECT slot FROM game")) == list(range(12))
    games = Counter((row["grammar"], row["instance"]) for row in rows(of, "SELECT * FROM game"))
    assert games == {(grammar, n): 1 for grammar in ("concat", "perm") for n in range(6)}


def test_the_place_of_an_inactive_person_becomes_free(tmp_path: Path) -> None:
    clock = Clock()
    of = study(tmp_path, clock)
    slow, gone, done, last = (started(of, name) for name in "abcd")
    assert enter(of, arrival("e")) == "full"
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
    assert enter(study(tmp_path), arrival("e")) == "full"
    opened = study(tmp_path, state="open")
    assert person(opened, "e").pilot is False
    assert plan(tmp_path).state == "pilot"
