"""Games on file: an event is applied, logged and filed in one transaction, or not at all (spycodes-facts 14)."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from icy.study.game import Event, GameState, StudyGame, Trial, fault_of

from .database import Row
from .keys import new_token
from .studies import Study

MOST_REACTION = 3_600_000  # milliseconds that a page may claim
REFUSED = "refused"  # kind of a logged answer that was none; replays leave it out
DISPLAY = "display"  # kind of a logged change of colours or sound; likewise
CODE_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # none that look alike
CODE_LENGTH = 12


@dataclass(frozen=True)
class OnFile:
    """A game as it stands on file.

    Attributes:
        row: of the database.
        game: the rules.
        state: what it has come to.
        trial: token of the item on screen; "" before the game starts.
    """

    row: Mapping[str, Any]
    game: StudyGame
    state: GameState
    trial: str

    @property
    def is_closed(self) -> bool:
        """Whether it is finished."""
        return self.state.phase == "closed"


@dataclass(frozen=True)
class EventResult:
    """What became of something a player did.

    Attributes:
        found: the game afterwards.
        said: what to tell the player: "", "stale", or a fault of the answer.
    """

    found: OnFile
    said: str = ""


@lru_cache(maxsize=4096)
def game_of(rules: str) -> StudyGame:
    """Return the rules of a game from its JSON; kept, since the codes and the order of cards take a while."""
    return StudyGame.of_json(json.loads(rules))


def load(connection: sqlite3.Connection, person: str) -> OnFile:
    """Return the game of a person.

    Raises:
        LookupError: there is none; it was deleted.
    """
    row = connection.execute(
        "SELECT game.*, trial.token AS trial_token FROM game "
        "LEFT JOIN trial ON trial.game = game.id AND trial.example = game.example WHERE person = ?",
        (person,),
    ).fetchone()
    if row is None:
        raise LookupError("The game was deleted.")
    return _on_file(row)


def _on_file(row: Row) -> OnFile:
    state = GameState.of_json(json.loads(row["position_json"]))
    return OnFile(dict(row), game_of(row["rules_json"]), state, row["trial_token"] or "")


# -- events ------------------------------------------------------------------------------------------------------------


def act(study: Study, person: str, event: Event, trial: str = "", reaction: int | None = None) -> EventResult:
    """Apply what a player did to the game on file.

    Args:
        study: the study.
        person: who.
        event: what.
        trial: of answers and of next: token of the item that the page showed; others need none.
        reaction: milliseconds that the page claims an answer took.

    Returns:
        The game, changed or not; a repeated event leaves it as the first one left it.
    """
    with study.database.writing() as connection:
        found = load(connection, person)
        if found.row["state"] in ("closed", "dropped") or not _may(found, event):
            return EventResult(found)
        if event.kind in ("answer", "next") and trial != found.trial:
            return EventResult(found, "stale" if event.kind == "answer" else "")
        fault = fault_of(event.text) if event.kind == "answer" and not found.state.trial.graded else ""
        if fault:
            log(connection, found, REFUSED, {"text": event.text[:256]}, study.time)
            return EventResult(found, fault)
        after = found.game.apply(found.state, event)
        if after is not found.state:
            found = _file(connection, found, event, after, study.time, reaction)
        return EventResult(found)


def _may(found: OnFile, event: Event) -> bool:
    """Return whether an event is one of a game in this phase; all but the start come after it."""
    return (found.state.phase == "new") == (event.kind == "start")


def _file(
    connection: sqlite3.Connection, found: OnFile, event: Event, after: GameState, time: str, reaction: int | None
) -> OnFile:
    """File an event, the trial that it made or graded, and the game."""
    log(connection, found, event.kind, event.to_json(), time)
    token = found.trial
    if len(after.trials) > len(found.state.trials):
        token = new_token()
        columns = {**trial_columns(after.trial), "token": token, "game": found.row["id"]}
        columns |= {"created": time, "state": "open"}
        names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
        connection.execute(f"INSERT INTO trial ({names}) VALUES ({values})", columns)
    elif event.kind == "answer":
        _file_grade(connection, found, after.trial, time, reaction)
    _file_game(connection, found, after, time)
    return replace(found, state=after, trial=token)


def log(connection: sqlite3.Connection, found: OnFile, kind: str, payload: Mapping[str, object], time: str) -> None:
    """Add a line to the log of a game, whose times never fall, though the clock of a machine may be set back."""
    game = found.row["id"]
    beside = {name: value for name, value in payload.items() if name != "kind"}
    connection.execute(
        "INSERT INTO event SELECT id, events, ?, ?, max(?, touched) FROM game WHERE id = ?",
        (kind, json.dumps(beside), time, game),
    )
    connection.execute("UPDATE game SET events = events + 1, touched = max(?, touched) WHERE id = ?", (time, game))


def trial_columns(trial: Trial) -> dict[str, object]:
    """Return the columns of an item, all but its answer."""
    pairs = {"among": trial.among_cards, "shown": trial.shown, "exposures": trial.exposures}
    return {
        "example": trial.example,
        "meaning": trial.meaning,
        "code": trial.code,
        "cards": trial.cards,
        "held_out": trial.held_out,
        **{f"{name}_colour": pair[0] for name, pair in pairs.items()},
        **{f"{name}_shape": pair[1] for name, pair in pairs.items()},
        "own_exposures": trial.own_exposures,
        "image": trial.image,
    }


def _file_grade(connection: sqlite3.Connection, found: OnFile, trial: Trial, time: str, reaction: int | None) -> None:
    changed = connection.execute(
        "UPDATE trial SET state = 'graded', answered = ?, reaction_ms = ?, raw = ?, answer = ?, correct = ?, "
        "points = ? WHERE game = ? AND example = ? AND state = 'open'",
        (
            *(time, checked_reaction(reaction), trial.raw, trial.text, trial.correct, trial.points),
            *(found.row["id"], trial.example),
        ),
    ).rowcount
    if changed != 1:
        raise RuntimeError("The item was graded already, though the game on file does not know.")


def checked_reaction(given: int | None) -> int | None:
    """Return a time that a page claims, in milliseconds; None if it is none."""
    return given if given is not None and 0 <= given <= MOST_REACTION else None


def _file_game(connection: sqlite3.Connection, found: OnFile, after: GameState, time: str) -> None:
    closed, started = after.phase == "closed", found.row["started"] or time
    connection.execute(
        "UPDATE game SET position_json = ?, cards = ?, score = ?, example = ?, state = ?, started = ?, finished = ?, "
        "completion_code = ? WHERE id = ? AND state <> 'closed'",
        (
            *(json.dumps(after.to_json()), after.cards, after.score, len(after.trials) - 1),
            *("closed" if closed else "open", started, time if closed else None),
            *(completion_code() if closed else None, found.row["id"]),
        ),
    )


def completion_code() -> str:
    """Return a code that a person hands in, easy to copy and impossible to guess."""
    return "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))


# -- how it looks ------------------------------------------------------------------------------------------------------


def set_display(study: Study, person: str, changes: Mapping[str, object]) -> None:
    """Change palette, patterns or sound of a game that is not finished, and log it."""
    with study.database.writing() as connection:
        found = load(connection, person)
        new = {name: value for name, value in changes.items() if found.row[name] != value}
        if not new or found.row["state"] in ("closed", "dropped"):
            return
        log(connection, found, DISPLAY, new, study.time)
        for name, value in new.items():  # palette, patterns or sound, as the caller chose them
            connection.execute(f"UPDATE game SET {name} = ? WHERE id = ?", (value, found.row["id"]))
