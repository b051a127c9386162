"""The audit finds changes by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.study.game import Event
from icy.study.service import Study
from icy.study.service.export import audit
from icy.study.service.play import act, set_display
from tests.study.service.helpers import answer, finish, on, started, study, token, write


@pytest.fixture
def of(tmp_path: Path) -> Study:
    """A study with a finished game and a game in progress."""
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


def test_unchanged_games_have_no_faults(of: Study) -> None:
    found = audit(of)
    assert (found.games, found.trials, found.faults) == (2, 8, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE game SET score = score + 1 WHERE id = 1", "The column score has"),
        ("UPDATE game SET cards = 9 WHERE id = 1", "The column cards has 9"),
        ("UPDATE game SET dataset = 'synth' WHERE id = 1", "The column dataset has synth"),
        ("UPDATE game SET person_seed = 5 WHERE id = 1", "The column person_seed has 5"),
        ("UPDATE game SET example = 0 WHERE id = 1", "The column example has 0"),
        ("UPDATE game SET state = 'open' WHERE id = 1", "game is 'open', but by its log the game is closed."),
        ("UPDATE game SET completion_code = NULL WHERE id = 1", "has an end time and a completion code only if"),
        ("UPDATE game SET position_json = replace(position_json, '\"blurs\": 1', '\"blurs\": 0')", "another state"),
        ("UPDATE trial SET points = 9, correct = 1 WHERE id = 1", "Item 1: the column points has 9, but"),
        ("UPDATE trial SET code = answer WHERE id = 2", "Item 2: the column code has"),
        ("UPDATE trial SET meaning = 24 - meaning WHERE id = 1", "Item 1: the column meaning has"),
        ("UPDATE trial SET raw = 'other' WHERE id = 1", "Item 1: the column raw has other"),
        ("UPDATE trial SET answer = 'x' WHERE state = 'open'", "Item 2: the column answer has x, but"),
        ("DELETE FROM trial WHERE id = 3", "saved items, but the log gives"),
        ("DELETE FROM event WHERE number = 3", "The log has gaps."),
        ("DELETE FROM event WHERE game = 1 AND number > 6", "The log leads to another state"),
        ("UPDATE event SET kind = 'wink' WHERE number = 3", "The log has events of an unknown kind."),
        ("UPDATE event SET time = 'A' WHERE number = 0", "The times of the log are not in order."),
        (
            "UPDATE event SET payload_json = '{\"text\": \"redcir\"}' WHERE game = 2 AND kind = 'answer'",
            "another state",
        ),
    ],
)
def test_a_change_is_found(change: str, message: str, of: Study) -> None:
    write(of, change)
    assert any(message.lower() in fault.what.lower() for fault in audit(of).faults), audit(of).faults
    assert all(len(fault.person) == 32 for fault in audit(of).faults)
