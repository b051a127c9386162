"""The audit finds whatever was changed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.study.game import Event
from icy.study.service import Study
from icy.study.service.audit import audit
from icy.study.service.play import act, set_display
from tests.study.service.helpers import answer, finish, on, started, study, token, write


@pytest.fixture
def of(tmp_path: Path) -> Study:
    """A study with a finished game and one that is being played."""
    found = study(tmp_path)
    for text in ("redcir", "abc"):
        who = started(found)
        for event in (Event("tab", "train"), Event("add", at=2), Event("blur")):
            act(found, who.id, event, token(found, who))
        answer(found, who, "?")
        set_display(found, who.id, {"sound": 0})
        if text == "redcir":
            finish(found, who, text)
        else:
            answer(found, who, text)
            on(found, who)
    return found


def test_games_as_they_were_played_are_sound(of: Study) -> None:
    found = audit(of)
    assert (found.games, found.trials, found.faults) == (2, 8, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE game SET score = score + 1 WHERE id = 1", "The points add up to"),
        ("UPDATE game SET cards = 9 WHERE id = 1", "The column cards says 9"),
        ("UPDATE game SET dataset = 'synth' WHERE id = 1", "The column dataset says synth"),
        ("UPDATE game SET person_seed = 5 WHERE id = 1", "The column person_seed says 5"),
        ("UPDATE game SET example = 0 WHERE id = 1", "The column example says 0"),
        ("UPDATE game SET state = 'open' WHERE id = 1", "The game is 'open' on file, and by its log closed."),
        ("UPDATE game SET completion_code = NULL WHERE id = 1", "A game has a time and a code"),
        ("UPDATE game SET position_json = replace(position_json, '\"blurs\": 1', '\"blurs\": 0')", "another position"),
        ("UPDATE trial SET points = 9, correct = 1 WHERE id = 1", "Item 1 is graded 1, 9, and should be 0, 0"),
        ("UPDATE trial SET code = answer WHERE id = 2", "Item 2 is graded 0, 0, and should be 1"),
        ("UPDATE trial SET meaning = 24 - meaning WHERE id = 1", "The items on file are not those of the log."),
        ("UPDATE trial SET raw = 'other' WHERE id = 1", "Item 1 is graded"),
        ("UPDATE trial SET answer = 'x' WHERE state = 'open'", "Item 2 waits for an answer, and has one."),
        ("DELETE FROM trial WHERE id = 3", "The items on file are not those of the log."),
        ("DELETE FROM event WHERE number = 3", "The log has gaps."),
        ("DELETE FROM event WHERE game = 1 AND number > 6", "The log leads to another position"),
        ("UPDATE event SET kind = 'wink' WHERE number = 3", "The log holds events that no game has."),
        ("UPDATE event SET time = 'A' WHERE number = 0", "The times of the log do not rise."),
        (
            "UPDATE event SET payload_json = '{\"text\": \"redcir\"}' WHERE game = 2 AND kind = 'answer'",
            "another position",
        ),
    ],
)
def test_a_change_is_found(change: str, said: str, of: Study) -> None:
    write(of, change)
    assert any(said.lower() in fault.what.lower() for fault in audit(of).faults), audit(of).faults
    assert all(len(fault.person) == 32 for fault in audit(of).faults)
