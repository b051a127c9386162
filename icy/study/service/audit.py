"""The audit of a study, which replays every game from its log and compares the result with the database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from icy.study.game import EVENT_KINDS, Event, GameState, StudyGame, normalised

from .database import Row
from .play import DISPLAY, REFUSED, trial_columns
from .studies import Study

KNOWN_KINDS = (*EVENT_KINDS, REFUSED, DISPLAY)


@dataclass(frozen=True)
class Fault:
    """An inconsistency in the database.

    Attributes:
        person: opaque name of the person; "" for the whole database.
        what: description, one sentence.
    """

    person: str
    what: str


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        games: number of games that were replayed.
        trials: number of items that were graded again.
        faults: inconsistencies.
    """

    games: int
    trials: int
    faults: tuple[Fault, ...]


def audit(study: Study) -> Audit:
    """Audit a study: grade every answer again, and replay every game from its log."""
    with study.database.reading() as connection:
        faults = list(_faults_of_file(connection))
        games = connection.execute(
            "SELECT game.* FROM game JOIN person ON person.id = game.person WHERE study = ? ORDER BY game.id",
            (study.number,),
        ).fetchall()
        trials = 0
        for game in games:
            rows = connection.execute("SELECT * FROM trial WHERE game = ? ORDER BY example", (game["id"],)).fetchall()
            trials += len(rows)
            log = events_of(connection, game["id"])
            faults += [Fault(game["person"], what) for what in _faults_of_game(game, rows, log)]
    return Audit(len(games), trials, tuple(faults))


def _faults_of_file(connection: sqlite3.Connection) -> Iterator[Fault]:
    for (found,) in connection.execute("PRAGMA integrity_check"):
        if found != "ok":
            yield Fault("", f"The file is damaged: {found}.")
    for table, *_ in connection.execute("PRAGMA foreign_key_check"):
        yield Fault("", f"A row of the table {table} refers to a row that does not exist.")


def events_of(connection: sqlite3.Connection, game: int) -> list[Row]:
    """Return the events of a game, in order."""
    return connection.execute("SELECT * FROM event WHERE game = ? ORDER BY number", (game,)).fetchall()


def played_events(log: list[Row]) -> list[Event]:
    """Return the events of a log without refused answers and changes of the display."""
    known = (row for row in log if row["kind"] in EVENT_KINDS)
    return [Event.of_json({"kind": row["kind"], **json.loads(row["payload_json"])}) for row in known]


def _faults_of_game(row: Row, trials: list[Row], log: list[Row]) -> Iterator[str]:
    """Yield the inconsistencies of a game."""
    rules = StudyGame.of_json(json.loads(row["rules_json"]))
    state = rules.replay(played_events(log))
    if state != GameState.of_json(json.loads(row["position_json"])):
        yield "The log leads to another state than the saved state."
    yield from _faults_of_log(row, log)
    yield from _faults_of_columns(row, rules, state)
    for trial in trials:
        yield from _faults_of_grade(trial)
    replayed = [trial_columns(trial) for trial in state.trials]
    pairs = zip(trials, replayed, strict=False)
    if len(trials) != len(replayed) or any(saved[name] != right[name] for saved, right in pairs for name in right):
        yield "The saved items differ from the items of the log."
    if row["score"] != (points := sum(trial["points"] or 0 for trial in trials)):
        yield f"The saved score is {row['score']}, but the points of the items add up to {points}."


def _faults_of_log(row: Row, log: list[Row]) -> Iterator[str]:
    if [one["number"] for one in log] != list(range(row["events"])):
        yield "The log has gaps."
    if any(one["kind"] not in KNOWN_KINDS for one in log):
        yield "The log has events of an unknown kind."
    if [one["time"] for one in log] != sorted(one["time"] for one in log):
        yield "The times of the log are not in order."


def _faults_of_columns(row: Row, rules: StudyGame, state: GameState) -> Iterator[str]:
    """Yield the inconsistencies between the columns of a game and its rules and state."""
    instance, settings = rules.instance, rules.settings
    phases = {"new": ("assigned", "dropped"), "open": ("open", "dropped"), "closed": ("closed",)}
    expected = {
        "dataset": settings.dataset,
        "grammar": settings.grammar,
        "instance": instance.number,
        "language_seed": instance.language_seed,
        "person_seed": rules.seed,
        "cards": state.cards,
        "score": state.score,
        "example": max(0, len(state.trials) - 1),
    }
    for name, value in expected.items():
        if row[name] != value:
            yield f"The column {name} has {row[name]}, but the log gives {value}."
    if row["state"] not in phases[state.phase]:
        yield f"The saved state of the game is '{row['state']}', but by its log the game is {state.phase}."
    if (state.phase == "closed") != (row["finished"] is not None and row["completion_code"] is not None):
        yield "A game has an end time and a completion code only if it is finished, and then it has both."


def _faults_of_grade(trial: Row) -> Iterator[str]:
    """Yield the errors in the grade of an item, computed from its code and answer."""
    if trial["state"] == "open":
        if any(trial[name] is not None for name in ("answered", "raw", "answer", "correct", "points")):
            yield f"Item {trial['example'] + 1} is open, but has an answer."
        return
    answer = normalised(trial["raw"] or "")
    correct = answer == trial["code"]
    grade = (answer, int(correct), trial["cards"] - 1 if correct else 0)
    if (trial["answer"], trial["correct"], trial["points"]) != grade:
        saved = f"correct={trial['correct']}, points={trial['points']}"
        right = f"correct={grade[1]}, points={grade[2]}"
        yield f"Item {trial['example'] + 1} is graded {saved}, but should be {right}."
