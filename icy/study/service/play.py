"""Saved games and pages: one transaction applies, logs and saves an action of a person, or nothing changes."""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from icy.study.game import Event, GameState, StudyGame, Trial, fault_of

from .persons import Person, person_of_token
from .studies import Study, insert, new_token, update

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


def state_of(position: str) -> GameState:
    """Create the state of a game from its JSON."""
    return GameState.of_json(json.loads(position))


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
    state = state_of(row["position_json"])
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
        is_possible = (saved.state.phase == "new") == (event.kind == "start")
        if saved.row["state"] in ("closed", "dropped") or not is_possible:
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


def _save(
    connection: sqlite3.Connection, saved: SavedGame, event: Event, after: GameState, time: str, reaction: int | None
) -> SavedGame:
    """Save an event, the item that it created or graded, and the game."""
    log(connection, saved, event.kind, event.to_json(), time)
    token = saved.trial
    if len(after.trials) > len(saved.state.trials):
        token = new_token()
        row = {"token": token, "game": saved.row["id"], "created": time, "state": "open"}
        insert(connection, "trial", **row, **trial_columns(after.trial))
    elif event.kind == "answer":
        where, values = "game = ? AND example = ? AND state = 'open'", (saved.row["id"], after.trial.example)
        times = {"answered": time, "reaction_ms": checked_reaction(reaction)}
        if not update(connection, "trial", where, *values, state="graded", **times, **trial_columns(after.trial)):
            raise RuntimeError("The item is graded in the database, but open in the saved state of the game.")
    closed = after.phase == "closed"
    update(
        connection,
        "game",
        "id = ? AND state <> 'closed'",
        saved.row["id"],
        position_json=json.dumps(after.to_json()),
        cards=after.cards,
        score=after.score,
        example=len(after.trials) - 1,
        state="closed" if closed else "open",
        started=saved.row["started"] or time,
        finished=time if closed else None,
        completion_code=completion_code() if closed else None,
    )
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
    """Return the columns of an item that follow from the log, so without its token and times."""
    pairs = {"among": trial.among_cards, "shown": trial.shown, "exposures": trial.exposures}
    return {
        **{name: getattr(trial, name) for name in ("example", "meaning", "code", "cards", "held_out")},
        **{f"{name}_colour": pair[0] for name, pair in pairs.items()},
        **{f"{name}_shape": pair[1] for name, pair in pairs.items()},
        **{name: getattr(trial, name) for name in ("own_exposures", "image", "raw")},
        "answer": trial.text if trial.graded else None,
        "correct": trial.correct if trial.graded else None,
        "points": trial.points if trial.graded else None,
    }


def checked_reaction(milliseconds: int | None) -> int | None:
    """Check a reaction time that a page reports, in milliseconds; return None if it is out of range."""
    return milliseconds if milliseconds is not None and 0 <= milliseconds <= MOST_REACTION else None


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
        update(connection, "game", "id = ?", saved.row["id"], **new)  # palette, patterns or sound


# -- pages -------------------------------------------------------------------------------------------------------------

ORDER = ("demographics", "instructions", "comprehension", "colours", "game", "feedback", "done")
ENDS = ("done", "screened", "withdrawn")
ATTEMPTS = 2  # attempts at the questions about the instructions
MOST_REMARKS = 2000  # maximum length of remarks
MOST_ANSWER = 100  # maximum length of an answer on the other pages
VIEWPORT = re.compile(r"[0-9]{2,5}x[0-9]{2,5}")


def stages_of(study: Study) -> tuple[str, ...]:
    """Return the stages of a study, in order."""
    pages = study.plan.pages
    left_out = {
        "demographics": not pages.demographics,
        "comprehension": not pages.comprehension,
        "colours": not pages.colour_check,
        "feedback": not pages.feedback,
    }
    return tuple(stage for stage in ORDER if not left_out.get(stage, False))


def stage_of(study: Study, person: Person) -> str:
    """Return the current page of a person: the stored page, or the next one if the study does not have it."""
    stages = stages_of(study)
    if person.stage in ENDS or person.stage in stages:
        return person.stage
    return next(stage for stage in stages if ORDER.index(stage) > ORDER.index(person.stage))


def advance(connection: sqlite3.Connection, study: Study, person: Person, stage: str) -> bool:
    """Move a person from a page to the next. Return False if the person is at another page (a double click)."""
    current = stage_of(study, person)
    if current != stage or stage in ENDS:
        return False
    stages = stages_of(study)
    following = stages[stages.index(stage) + 1]
    return update(connection, "person", "id = ? AND stage = ?", person.id, person.stage, stage=following)


def save_answers(connection: sqlite3.Connection, study: Study, person: Person, answers: Mapping[str, str]) -> None:
    """Save the answers of a page, except skipped answers."""
    rows = [(person.id, key, value[:MOST_ANSWER], study.time) for key, value in answers.items() if value]
    connection.executemany("INSERT OR REPLACE INTO survey VALUES (?, ?, ?, ?)", rows)


# -- the pages ---------------------------------------------------------------------------------------------------------


def answer_page(study: Study, person: Person, stage: str, answers: Mapping[str, str]) -> None:
    """Save the answers of a page, and move the person to the next."""
    with study.database.writing() as connection:
        if advance(connection, study, person, stage):
            save_answers(connection, study, person, answers)


def read_instructions(study: Study, person: Person, display: Mapping[str, object], viewport: str) -> None:
    """Save the display settings, and move the person from the instructions to the next page."""
    set_display(study, person.id, display)
    with study.database.writing() as connection:
        advance(connection, study, person, "instructions")
        if VIEWPORT.fullmatch(viewport):
            update(connection, "game", "person = ?", person.id, viewport=viewport)


def answer_questions(study: Study, person: Person, answers: Sequence[str], right: Sequence[str]) -> bool:
    """Grade the questions about the instructions. The last failed attempt ends the study for the person.

    Returns:
        Whether all answers were right.
    """
    if stage_of(study, person) != "comprehension":
        return True
    passed, attempt = list(answers) == list(right), person.attempts + 1
    with study.database.writing() as connection:
        if not update(connection, "person", "id = ? AND attempts = ?", person.id, person.attempts, attempts=attempt):
            return True  # a double click
        by_key = {f"question {n}, attempt {attempt}": text for n, text in enumerate(answers, 1)}
        save_answers(connection, study, person, by_key)
        if passed:
            advance(connection, study, person, "comprehension")
        elif attempt >= ATTEMPTS:
            update(connection, "person", "id = ? AND stage = ?", person.id, person.stage, stage="screened")
            update(connection, "game", "person = ?", person.id, state="dropped")
    return passed


def end_game(study: Study, person: Person) -> Person:
    """Move a person from a finished game to the next page, and return the updated person."""
    with study.database.writing() as connection:
        if load(connection, person.id).is_closed:
            advance(connection, study, person, "game")
        return person_of_token(connection, study, person.token) or person


def leave_remarks(study: Study, person: Person, text: str) -> None:
    """Save remarks, and move the person to the next page."""
    with study.database.writing() as connection:
        if advance(connection, study, person, "feedback") and text.strip():
            row = (person.id, text.strip()[:MOST_REMARKS], study.time)
            connection.execute("INSERT OR REPLACE INTO feedback VALUES (?, ?, ?)", row)
