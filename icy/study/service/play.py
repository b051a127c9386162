"""Saved games: one transaction applies, logs and saves an event, or nothing changes."""

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

MOST_REACTION = 3_600_000  # longest reaction time that a page may report, in milliseconds
REFUSED = "refused"  # kind of event for invalid answers; replays skip it
DISPLAY = "display"  # kind of event for changes of colors or sound; replays skip it
CODE_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without similar-looking characters
CODE_LENGTH = 12


@dataclass(frozen=True)
class SavedGame:
    """A game in the database.

    Attributes:
        row: the game's row in the database.
        game: the rules of the game.
        state: state of the game.
        trial: token of the item on screen; "" before the game starts.
    """

    row: Mapping[str, Any]
    game: StudyGame
    state: GameState
    trial: str

    @property
    def is_closed(self) -> bool:
        """Whether the game is finished."""
        return self.state.phase == "closed"


@dataclass(frozen=True)
class EventResult:
    """The result of a player's action.

    Attributes:
        saved: the game after the action.
        notice: notice for the player: "", "stale" (outdated page), or the fault of the answer.
    """

    saved: SavedGame
    notice: str = ""


@lru_cache(maxsize=4096)
def game_of(rules: str) -> StudyGame:
    """Create a game from its JSON. Games are cached, because codes and card orders take time to compute."""
    return StudyGame.of_json(json.loads(rules))


def load(connection: sqlite3.Connection, person: str) -> SavedGame:
    """Load the game of a person.

    Raises:
        LookupError: the game was deleted.
    """
    row = connection.execute(
        "SELECT game.*, trial.token AS trial_token FROM game "
        "LEFT JOIN trial ON trial.game = game.id AND trial.example = game.example WHERE person = ?",
        (person,),
    ).fetchone()
    if row is None:
        raise LookupError("The game was deleted.")
    return _saved_game(row)


def _saved_game(row: Row) -> SavedGame:
    state = GameState.of_json(json.loads(row["position_json"]))
    return SavedGame(dict(row), game_of(row["rules_json"]), state, row["trial_token"] or "")


# -- events ------------------------------------------------------------------------------------------------------------


def act(study: Study, person: str, event: Event, trial: str = "", reaction: int | None = None) -> EventResult:
    """Apply a player's action to the saved game.

    Args:
        study: the study.
        person: opaque name of the person.
        event: the action.
        trial: token of the item on the page, for "answer" and "next"; other events do not need it.
        reaction: time of the answer in milliseconds, as reported by the page.

    Returns:
        The game after the event. A repeated event has no effect.
    """
    with study.database.writing() as connection:
        saved = load(connection, person)
        if saved.row["state"] in ("closed", "dropped") or not _may(saved, event):
            return EventResult(saved)
        if event.kind in ("answer", "next") and trial != saved.trial:
            return EventResult(saved, "stale" if event.kind == "answer" else "")
        fault = fault_of(event.text) if event.kind == "answer" and not saved.state.trial.graded else ""
        if fault:
            log(connection, saved, REFUSED, {"text": event.text[:256]}, study.time)
            return EventResult(saved, fault)
        after = saved.game.apply(saved.state, event)
        if after is not saved.state:
            saved = _save(connection, saved, event, after, study.time, reaction)
        return EventResult(saved)


def _may(saved: SavedGame, event: Event) -> bool:
    """Return whether an event is possible now: "start" only in a new game, other events only after it."""
    return (saved.state.phase == "new") == (event.kind == "start")


def _save(
    connection: sqlite3.Connection, saved: SavedGame, event: Event, after: GameState, time: str, reaction: int | None
) -> SavedGame:
    """Save an event, the item that it created or graded, and the game."""
    log(connection, saved, event.kind, event.to_json(), time)
    token = saved.trial
    if len(after.trials) > len(saved.state.trials):
        token = new_token()
        columns = {**trial_columns(after.trial), "token": token, "game": saved.row["id"]}
        columns |= {"created": time, "state": "open"}
        names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
        connection.execute(f"INSERT INTO trial ({names}) VALUES ({values})", columns)
    elif event.kind == "answer":
        _save_grade(connection, saved, after.trial, time, reaction)
    _save_game(connection, saved, after, time)
    return replace(saved, state=after, trial=token)


def log(connection: sqlite3.Connection, saved: SavedGame, kind: str, payload: Mapping[str, object], time: str) -> None:
    """Add an event to the log of a game. Times never decrease, even if the clock is set back."""
    game = saved.row["id"]
    details = {name: value for name, value in payload.items() if name != "kind"}
    connection.execute(
        "INSERT INTO event SELECT id, events, ?, ?, max(?, touched) FROM game WHERE id = ?",
        (kind, json.dumps(details), time, game),
    )
    connection.execute("UPDATE game SET events = events + 1, touched = max(?, touched) WHERE id = ?", (time, game))


def trial_columns(trial: Trial) -> dict[str, object]:
    """Return the columns of an item, except those of the answer."""
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


def _save_grade(
    connection: sqlite3.Connection, saved: SavedGame, trial: Trial, time: str, reaction: int | None
) -> None:
    changed = connection.execute(
        "UPDATE trial SET state = 'graded', answered = ?, reaction_ms = ?, raw = ?, answer = ?, correct = ?, "
        "points = ? WHERE game = ? AND example = ? AND state = 'open'",
        (
            *(time, checked_reaction(reaction), trial.raw, trial.text, trial.correct, trial.points),
            *(saved.row["id"], trial.example),
        ),
    ).rowcount
    if changed != 1:
        raise RuntimeError("The item is graded in the database, but open in the saved state of the game.")


def checked_reaction(milliseconds: int | None) -> int | None:
    """Check a reaction time that a page reports, in milliseconds; return None if it is out of range."""
    return milliseconds if milliseconds is not None and 0 <= milliseconds <= MOST_REACTION else None


def _save_game(connection: sqlite3.Connection, saved: SavedGame, after: GameState, time: str) -> None:
    closed, started = after.phase == "closed", saved.row["started"] or time
    connection.execute(
        "UPDATE game SET position_json = ?, cards = ?, score = ?, example = ?, state = ?, started = ?, finished = ?, "
        "completion_code = ? WHERE id = ? AND state <> 'closed'",
        (
            *(json.dumps(after.to_json()), after.cards, after.score, len(after.trials) - 1),
            *("closed" if closed else "open", started, time if closed else None),
            *(completion_code() if closed else None, saved.row["id"]),
        ),
    )


def completion_code() -> str:
    """Draw a completion code, which is easy to copy and impossible to guess."""
    return "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))


# -- display -----------------------------------------------------------------------------------------------------------


def set_display(study: Study, person: str, changes: Mapping[str, object]) -> None:
    """Change palette, patterns or sound of an unfinished game, and log the change."""
    with study.database.writing() as connection:
        saved = load(connection, person)
        new = {name: value for name, value in changes.items() if saved.row[name] != value}
        if not new or saved.row["state"] in ("closed", "dropped"):
            return
        log(connection, saved, DISPLAY, new, study.time)
        for name, value in new.items():  # palette, patterns or sound: the caller chooses the names
            connection.execute(f"UPDATE game SET {name} = ? WHERE id = ?", (value, saved.row["id"]))
