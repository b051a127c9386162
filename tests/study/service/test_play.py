"""Saved games: events are atomic, repeats change nothing, and a crash loses nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from icy.study.game import Event, GameState
from icy.study.service import Database, Study
from icy.study.service.export import audit
from icy.study.service.play import MOST_REACTION, EventResult, SavedGame, act, checked_reaction, set_display
from tests.study.service.helpers import answer, at_once, finish, loaded, on, person, rows, started, study, token


def all_rows(of: Study) -> list[Any]:
    return [rows(of, f"SELECT * FROM {table}") for table in ("game", "trial", "event")]


# -- one event after the other -----------------------------------------------------------------------------------------


def test_a_game_is_saved_as_it_is_played(of: Study) -> None:
    who = started(of)
    first = loaded(of, who.id)
    code = first.state.trial.code
    answer(of, who, f"  {code.upper()} ")
    (game,) = rows(of, "SELECT * FROM game")
    (trial,) = rows(of, "SELECT * FROM trial")
    assert (game["state"], game["score"], game["example"], game["events"]) == ("open", 1, 0, 2)
    assert (trial["state"], trial["correct"], trial["points"]) == ("graded", 1, 1)
    assert (trial["raw"], trial["answer"], trial["code"]) == (f"  {code.upper()} ", code, code)
    on(of, who)
    assert [row["state"] for row in rows(of, "SELECT state FROM trial ORDER BY example")] == ["graded", "open"]
    finish(of, who)
    (game,) = rows(of, "SELECT * FROM game")
    assert (game["state"], game["example"], len(game["completion_code"])) == ("closed", 5, 12)
    assert game["started"] < game["finished"]
    assert audit(of).faults == ()


def test_a_second_answer_keeps_the_first_verdict(of: Study) -> None:
    who = started(of)
    trial = token(of, who)
    first = answer(of, who, "abc", trial)
    before = all_rows(of)
    again = answer(of, who, first.saved.state.trial.code, trial)
    assert (again.notice, again.saved.state) == ("", first.saved.state)
    assert all_rows(of) == before


def test_an_answer_to_an_earlier_item_is_stale_and_changes_nothing(of: Study) -> None:
    who = started(of)
    old = token(of, who)
    answer(of, who, "abc")
    on(of, who)
    before = all_rows(of)
    for trial in (old, "", "0" * 32):
        assert act(of, who.id, Event("answer", "abc"), trial).notice == "stale"
        assert act(of, who.id, Event("next"), trial).notice == ""
    assert all_rows(of) == before


def test_an_answer_to_another_persons_item_is_stale(of: Study) -> None:
    one, other = started(of), started(of)
    assert answer(of, one, "abc", token(of, other)).notice == "stale"
    assert {row["state"] for row in rows(of, "SELECT state FROM trial")} == {"open"}


@pytest.mark.parametrize(
    ("text", "notice"), [("", "empty"), ("  ", "empty"), ("red cir", "letters"), ("a" * 65, "long")]
)
def test_invalid_answers_cost_nothing_and_are_logged(text: str, notice: str, of: Study) -> None:
    who = started(of)
    before = loaded(of, who.id)
    assert answer(of, who, text).notice == notice
    after = loaded(of, who.id)
    assert (after.state, after.trial) == (before.state, before.trial)
    assert rows(of, "SELECT payload_json FROM event WHERE kind = 'refused'") == [
        {"payload_json": f'{{"text": "{text}"}}'}
    ]
    assert audit(of).faults == ()


def test_events_before_the_start_change_nothing(of: Study) -> None:
    who = person(of)
    for event in (Event("answer", "abc"), Event("next"), Event("add"), Event("tab", "train"), Event("blur")):
        assert act(of, who.id, event).saved.state.phase == "new"
    assert rows(of, "SELECT * FROM event") == []


def test_a_finished_game_never_changes(of: Study) -> None:
    who = started(of)
    finish(of, who)
    before = all_rows(of)
    for kind in ("start", "answer", "next", "add", "remove", "tab", "train_view", "blur", "paste", "finish"):
        act(of, who.id, Event(kind, "train"), token(of, who))
    set_display(of, who.id, {"palette": "safe", "sound": 0})
    assert all_rows(of) == before


def test_display_changes_are_logged_but_are_not_part_of_the_game(of: Study) -> None:
    who = started(of)
    before = loaded(of, who.id).state
    set_display(of, who.id, {"palette": "safe", "patterns": 1, "sound": 1})
    assert loaded(of, who.id).state == before
    (row,) = rows(of, "SELECT * FROM event WHERE kind = 'display'")
    assert row["payload_json"] == '{"palette": "safe", "patterns": 1}'
    assert audit(of).faults == ()


@pytest.mark.parametrize(("given", "kept"), [(0, 0), (1500, 1500), (-1, None), (MOST_REACTION + 1, None), (None, None)])
def test_reaction_times_out_of_range_are_ignored(given: int | None, kept: int | None, of: Study) -> None:
    assert checked_reaction(given) == kept
    who = started(of)
    act(of, who.id, Event("answer", "abc"), token(of, who), given)
    assert rows(of, "SELECT reaction_ms FROM trial") == [{"reaction_ms": kept}]


# -- at once -----------------------------------------------------------------------------------------------------------


def test_fifty_answers_at_once_are_graded_once(of: Study) -> None:
    who = started(of)
    trial, together, found = token(of, who), Barrier(50), list[EventResult]()

    def submit(text: str) -> None:
        together.wait()
        found.append(answer(of, who, text, trial))

    at_once([partial(submit, "abc" + "x" * n) for n in range(50)])
    assert len(found) == 50
    assert len({outcome.saved.state.trial.text for outcome in found}) == 1  # all get the same verdict
    assert len(rows(of, "SELECT * FROM event WHERE kind = 'answer'")) == 1
    assert len(rows(of, "SELECT * FROM trial")) == 1
    assert audit(of).faults == ()


def test_twenty_clicks_at_once_open_one_item(of: Study) -> None:
    who = started(of)
    answer(of, who, "abc")
    trial = token(of, who)
    goes_on, adds = partial(act, of, who.id, Event("next"), trial), partial(act, of, who.id, Event("add", at=2))
    at_once([goes_on] * 10 + [adds] * 10)
    state = loaded(of, who.id).state
    assert (len(state.trials), state.added) == (2, 1)
    assert audit(of).faults == ()


# -- random events -----------------------------------------------------------------------------------------------------


class AnyGame(RuleBasedStateMachine):
    """Random events from several windows; the saved state always equals the state of the pure core."""

    @initialize()
    def begin(self) -> None:
        """Start a game in the database and in memory."""
        self.folder = TemporaryDirectory()
        self.of = study(Path(self.folder.name))
        self.who = started(self.of)
        self.tokens = [token(self.of, self.who)]
        self.model: GameState = self.saved.state
        self.closed: list[Any] | None = None

    @property
    def saved(self) -> SavedGame:
        """The saved game."""
        return loaded(self.of, self.who.id)

    def do(self, event: Event, trial: str = "") -> None:
        """Apply an event to both games."""
        current = trial == self.tokens[-1] or event.kind not in ("answer", "next")
        self.model = self.saved.game.apply(self.model, event) if current else self.model
        act(self.of, self.who.id, event, trial)
        if (now := token(self.of, self.who)) != self.tokens[-1]:
            self.tokens.append(now)

    @rule(text=st.sampled_from(["redcir", "abc", "", "?", "maghex"]), window=st.integers(0, 2))
    def answers(self, text: str, window: int) -> None:
        """Answer in this window, or in a window with an older item."""
        self.do(Event("answer", text), self.tokens[max(0, len(self.tokens) - 1 - window)])

    @rule(window=st.integers(0, 1))
    def opens_next_item(self, window: int) -> None:
        """Press next in this window, or in a window with an older item."""
        self.do(Event("next"), self.tokens[max(0, len(self.tokens) - 1 - window)])

    @rule(kind=st.sampled_from(["add", "remove", "train_view"]), at=st.integers(0, 6))
    def presses(self, kind: Any, at: int) -> None:
        """Press a button of a page that may be outdated."""
        self.do(Event(kind, at=at))

    @rule(
        kind=st.sampled_from(["tab", "blur", "paste", "start", "finish"]), text=st.sampled_from(["test", "train", "x"])
    )
    def does(self, kind: Any, text: str) -> None:
        """Send another event."""
        self.do(Event(kind, text if kind == "tab" else ""))

    @rule()
    def restarts(self) -> None:
        """Restart the server."""
        self.of.database.close()
        self.of = study(Path(self.folder.name))

    @invariant()
    def agrees(self) -> None:
        """The saved state equals the state of the core."""
        assert self.saved.state == self.model

    @precondition(lambda self: self.model.phase == "closed")
    @invariant()
    def closed_never_changes(self) -> None:
        """A finished game never changes."""
        found = all_rows(self.of)
        self.closed = self.closed or found
        assert found == self.closed

    def teardown(self) -> None:
        """Audit the game."""
        assert audit(self.of).faults == ()
        self.of.database.close()
        self.folder.cleanup()


TestAnyGame = AnyGame.TestCase
TestAnyGame.settings = settings(max_examples=10, stateful_step_count=30, deadline=None, derandomize=True)


# -- killed ------------------------------------------------------------------------------------------------------------


def play_until_killed(folder: Path, who: Any, statement: int, replies: int) -> None:
    """Play in a process that kills itself before its nth statement, and report every reply to the player."""
    connect, count = Database._connect, 0

    def kill(_: str) -> None:
        nonlocal count
        count += 1
        if count == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(self: Database) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(kill)
        return connection

    Database._connect = traced  # type: ignore[method-assign]
    of = study(folder)
    while not answer(of, who, "abc").saved.is_closed:
        os.write(replies, b"a")
        on(of, who)
        os.write(replies, b"n")
    os.write(replies, b"!")


def killed_at(folder: Path, who: Any, statement: int) -> bytes:
    """The replies to a player before the server was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # the child must not run pytest's cleanup
        try:
            play_until_killed(folder, who, statement, write)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        replies = file.read()
    os.waitpid(child, 0)
    return replies


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_kill_between_any_two_writes_loses_nothing(tmp_path: Path) -> None:
    """All answers with a reply before the kill are saved completely, and the game can continue."""
    of = study(tmp_path)
    who = started(of)
    of.database.close()
    replied, kills = 0, 0
    for statement in (*range(12, 64, 3), 10**9):
        replies = killed_at(tmp_path, who, statement)
        kills += b"!" not in replies
        replied += replies.count(b"n")
        of = study(tmp_path)
        found = loaded(of, who.id)
        graded = sum(trial.graded for trial in found.state.trials)
        assert graded >= replied  # greater if it was killed between the write and the reply
        replied = len(found.state.trials) - 1
        assert found.trial == rows(of, "SELECT token FROM trial WHERE example = ?", replied)[0]["token"]
        assert loaded(study(tmp_path), who.id).game.picture(found.state) == found.game.picture(found.state)
        assert audit(of).faults == ()
        of.database.close()
    assert kills > 8
    assert found.is_closed
