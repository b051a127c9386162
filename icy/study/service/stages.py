"""The order of a person's pages (stages) after consent, and the answers on pages other than the game."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence

from .persons import Person, person_of_token
from .play import load, set_display
from .studies import Study

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
    return _move(connection, person, stages[stages.index(stage) + 1])


def _move(connection: sqlite3.Connection, person: Person, stage: str) -> bool:
    changed = connection.execute(
        "UPDATE person SET stage = ? WHERE id = ? AND stage = ?", (stage, person.id, person.stage)
    ).rowcount
    return changed == 1


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
            connection.execute("UPDATE game SET viewport = ? WHERE person = ?", (viewport, person.id))


def answer_questions(study: Study, person: Person, answers: Sequence[str], right: Sequence[str]) -> bool:
    """Grade the questions about the instructions. The last failed attempt ends the study for the person.

    Returns:
        Whether all answers were right.
    """
    if stage_of(study, person) != "comprehension":
        return True
    passed, attempt = list(answers) == list(right), person.attempts + 1
    with study.database.writing() as connection:
        counted = connection.execute(
            "UPDATE person SET attempts = ? WHERE id = ? AND attempts = ?", (attempt, person.id, person.attempts)
        ).rowcount
        if not counted:  # a double click
            return True
        by_key = {f"question {n}, attempt {attempt}": text for n, text in enumerate(answers, 1)}
        save_answers(connection, study, person, by_key)
        if passed:
            advance(connection, study, person, "comprehension")
        elif attempt >= ATTEMPTS:
            _move(connection, person, "screened")
            connection.execute("UPDATE game SET state = 'dropped' WHERE person = ?", (person.id,))
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
