"""The export of a study, and its audit, which replays every game from its log."""

from __future__ import annotations

import io
import json
import math
import sqlite3
import statistics
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import require_known
from icy.core.files import write_atomically
from icy.core.text import csv_table, markdown_table
from icy.study.game import EVENT_KINDS, Event
from icy.study.players.player import Log, logs_text
from icy.study.rows import (
    DECLARED,
    HUMAN,
    IDS,
    MEASURES,
    exported_columns,
    frame_of,
    language_measures,
    rows_of_game,
    strange_answers,
)

from .play import DISPLAY, REFUSED, game_of, state_of, trial_columns
from .review import bonus_cents
from .studies import Row, Study, minutes_between

if TYPE_CHECKING:
    import pandas as pd


# -- the audit of a study, which replays every game from its log and compares the result with the database -------------


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
        damage = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
        orphans = [table for table, *_ in connection.execute("PRAGMA foreign_key_check")]
        faults = [Fault("", f"The file is damaged: {text}.") for text in damage]
        faults += [Fault("", f"A row of the table {one} refers to a row that does not exist.") for one in orphans]
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


def events_of(connection: sqlite3.Connection, game: int) -> list[Row]:
    """Return the events of a game, in order."""
    return connection.execute("SELECT * FROM event WHERE game = ? ORDER BY number", (game,)).fetchall()


def played_events(log: list[Row]) -> list[Event]:
    """Return the events of a log without refused answers and changes of the display."""
    known = (row for row in log if row["kind"] in EVENT_KINDS)
    return [Event.of_json({"kind": row["kind"], **json.loads(row["payload_json"])}) for row in known]


def _faults_of_game(row: Row, trials: list[Row], log: list[Row]) -> Iterator[str]:
    """Yield the inconsistencies between a game, its items and its log, which is replayed."""
    rules = game_of(row["rules_json"])
    state = rules.replay(played_events(log))
    if state != state_of(row["position_json"]):
        yield "The log leads to another state than the saved state."
    if [one["number"] for one in log] != list(range(row["events"])):
        yield "The log has gaps."
    if any(one["kind"] not in KNOWN_KINDS for one in log):
        yield "The log has events of an unknown kind."
    if [one["time"] for one in log] != sorted(one["time"] for one in log):
        yield "The times of the log are not in order."
    yield from _differences("The column", row, {
        "dataset": rules.settings.dataset,
        "grammar": rules.settings.grammar,
        "instance": rules.instance.number,
        "language_seed": rules.instance.language_seed,
        "person_seed": rules.seed,
        "cards": state.cards,
        "score": state.score,
        "example": max(0, len(state.trials) - 1),
    })  # fmt: skip
    phases = {"new": ("assigned", "dropped"), "open": ("open", "dropped"), "closed": ("closed",)}
    if row["state"] not in phases[state.phase]:
        yield f"The saved state of the game is '{row['state']}', but by its log the game is {state.phase}."
    if (state.phase == "closed") != (row["finished"] is not None and row["completion_code"] is not None):
        yield "A game has an end time and a completion code only if it is finished, and then it has both."
    if len(trials) != len(state.trials):
        yield f"The game has {len(trials)} saved items, but the log gives {len(state.trials)}."
    for saved, trial in zip(trials, state.trials, strict=False):
        times = {"state": "graded"} if trial.graded else {"state": "open", "answered": None}
        yield from _differences(f"Item {trial.example + 1}: the column", saved, trial_columns(trial) | times)


def _differences(what: str, saved: Row, right: Mapping[str, object]) -> Iterator[str]:
    for name, value in right.items():
        if saved[name] != value:
            yield f"{what} {name} has {saved[name]}, but the log gives {value}."


# -- the export of a study: tables and their codebook, by default without people's ids ---------------------------------


FORMATS = ("csv", "parquet", "json")
PEOPLE = "people"  # name of the agent

PERSONS = """
    SELECT person.id AS person, person.*, external_id.external AS external_id, review.decision, game.id AS game,
        (SELECT count(*) FROM event WHERE event.game = game.id AND kind = ?) AS refused, game.*
    FROM person LEFT JOIN game ON game.person = person.id LEFT JOIN review ON review.game = game.id
    LEFT JOIN external_id ON external_id.person = person.id
    WHERE person.study = ? AND person.pilot = ? ORDER BY person.consented, person.id
"""  # of columns with the same name, a Row returns the first
OF_GAMES = """
    SELECT {table}.*, game.person, game.dataset, game.grammar, game.rules_json
    FROM {table} JOIN game ON game.id = {table}.game JOIN person ON person.id = game.person
    WHERE person.study = ? AND person.pilot = ? ORDER BY game.id, {table}.{order}
"""
OF_PERSONS = """
    SELECT {table}.* FROM {table} JOIN person ON person.id = {table}.person
    WHERE person.study = ? AND person.pilot = ? ORDER BY person.consented, person.id
"""


def tables(study: Study, pilot: bool | None = None, with_ids: bool = False) -> dict[str, pd.DataFrame]:
    """Return the tables of an export by name.

    Args:
        study: the study.
        pilot: whether to export the pilot; by default, whether the study is a pilot now.
        with_ids: whether to include people's ids and completion codes.
    """
    import pandas as pd

    which = (study.number, study.is_pilot if pilot is None else pilot)
    with study.database.reading() as connection:
        persons = connection.execute(PERSONS, (REFUSED, *which)).fetchall()
        trials = connection.execute(OF_GAMES.format(table="trial", order="example"), which).fetchall()
        events = connection.execute(OF_GAMES.format(table="event", order="number"), which).fetchall()
        survey = connection.execute(OF_PERSONS.format(table="survey"), which).fetchall()
        remarks = connection.execute(OF_PERSONS.format(table="feedback"), which).fetchall()
    found = {
        "games": [_game(study, row) for row in persons],
        "trials": [_trial(row) for row in trials],
        "events": [{**dict(row), "payload": row["payload_json"]} for row in events],
        "survey": [dict(row) for row in survey],
        "remarks": [dict(row) for row in remarks],
    }
    left_out = () if with_ids else IDS
    frames = {}
    for name, some in found.items():
        columns = [column for column in exported_columns(name) if column not in left_out]
        content = {column: _column([row.get(column) for row in some]) for column in columns}
        frames[name] = pd.DataFrame(content, columns=columns)
    return {**frames, "rows": _rows(study, persons, trials)}


def _column(values: list[Any]) -> pd.Series | pd.api.extensions.ExtensionArray:
    """Return a column of a table. Whole numbers stay whole, even with missing values."""
    import pandas as pd

    is_whole = any(isinstance(value, int) for value in values) and not any(isinstance(v, (str, float)) for v in values)
    return pd.array(values, dtype="Int64") if is_whole else pd.Series(values, dtype=object if not values else None)


def _game(study: Study, row: Row) -> dict[str, object]:
    """Return a person's row. If all data are deleted, it has no columns of a game."""
    if row["game"] is None:
        return dict(row)
    game, state = game_of(row["rules_json"]), state_of(row["position_json"])
    closed, language = row["state"] == "closed", language_measures(game)
    return dict(row) | {
        "degenerate": int(language["degenerate"]),
        "distinct_codes": int(language["distinct"]),
        "items": sum(trial.graded for trial in state.trials),
        **{name: getattr(state, name) for name in ("views", "added", "removed", "blurs", "pastes")},
        "minutes": minutes_between(row["first_seen"], row["finished"]) if closed else None,
        "bonus_cents": bonus_cents(study, row) if closed else None,
    }


def _trial(row: Row) -> dict[str, object]:
    colour, shape = game_of(row["rules_json"]).settings.content.named(row["meaning"])
    least = min(row["shown_colour"], row["shown_shape"])
    answerable = {f"answerable_{k}": int(least >= k) for k in (1, 2)}
    return {**dict(row), "colour": colour, "shape": shape, **answerable}


def _rows(study: Study, persons: Iterable[Row], trials: Iterable[Row]) -> pd.DataFrame:
    """Return the measures of the finished games of people who did not withdraw, as rows of the study table."""
    times: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial["reaction_ms"] is not None:
            times[trial["person"]].append(trial["reaction_ms"])
    rows = []
    for row in _finished(persons):
        game, state = game_of(row["rules_json"]), state_of(row["position_json"])
        preset = study.plan.conditions.preset
        about = {"agent_kind": HUMAN, "agent": PEOPLE, "person": row["id"], "preset": preset, "pilot": row["pilot"]}
        answers = [trial.text for trial in state.trials if trial.graded]
        measures = {
            "minutes": minutes_between(row["first_seen"], row["finished"]),
            "reaction_ms": statistics.median(times[row["id"]]) if times[row["id"]] else math.nan,
            "strange": strange_answers(game.codes, answers) / len(answers),
        }
        rows += rows_of_game(game, state, about, **measures)
    return frame_of(rows)


def _finished(persons: Iterable[Row]) -> list[Row]:
    return [row for row in persons if row["state"] == "closed" and row["withdrawn"] is None]


def logs(study: Study, pilot: bool | None = None) -> list[Log]:
    """Return the logs of the finished games of people who did not withdraw."""
    which = (study.number, study.is_pilot if pilot is None else pilot)
    with study.database.reading() as connection:
        persons = _finished(connection.execute(PERSONS, (REFUSED, *which)))
        found = [(row, events_of(connection, row["game"])) for row in persons]
    return [Log(row["id"], game_of(row["rules_json"]), tuple(played_events(log))) for row, log in found]


def about(study: Study, with_ids: bool = False) -> dict[str, object]:
    """Return facts about a study: its settings, the version of icy, and the texts that people agreed to.

    Args:
        study: the study.
        with_ids: whether to include completion codes; otherwise they are empty.
    """
    with study.database.reading() as connection:
        row = connection.execute("SELECT * FROM study WHERE id = ?", (study.number,)).fetchone()
        consents = connection.execute(
            "SELECT DISTINCT version, text FROM consent JOIN person ON consent_version = version WHERE study = ?",
            (study.number,),
        ).fetchall()
    settings = json.loads(row["settings_json"])
    if not with_ids:
        settings["platform"]["codes"] = dict.fromkeys(settings["platform"]["codes"], "")
    return {
        "study": row["name"],
        "settings": settings,
        "settings_hash": row["settings_hash"],
        "software": row["software"],
        "revision": row["revision"],
        "created": row["created"],
        "consents": {consent["version"]: consent["text"] for consent in consents},
    }


def codebook() -> str:
    """Return the codebook, which describes every column of an export, as Markdown."""
    parts = ["# Codebook", "Truth values are 0 and 1. Times are UTC with milliseconds. Missing values are empty."]
    for name, part in DECLARED["export"].items():
        parts += [f"## {name}", part["about"]]
        if columns := exported_columns(name):
            parts.append(markdown_table(["column", "meaning"], [*columns.items()]))
        elif name == "metrics":
            metrics = [(measure.metric, measure.split, measure.meaning) for measure in MEASURES.values()]
            parts.append(markdown_table(["metric", "split", "meaning"], metrics))
    return "\n\n".join(parts) + "\n"


# -- files -------------------------------------------------------------------------------------------------------------


def export(
    study: Study, target: Path, format_: str = "csv", pilot: bool | None = None, with_ids: bool = False
) -> list[str]:
    """Write the tables of a study with their codebook, into a folder or a zip file.

    Args:
        study: the study.
        target: a folder, which is created if necessary, or a file that ends in .zip.
        format_: format of the tables: one of FORMATS.
        pilot: whether to export the pilot; by default, whether the study is a pilot now.
        with_ids: whether to include ids and completion codes, for payment.

    Returns:
        The names of the files written.

    Raises:
        StoreError: a file cannot be written.
    """
    require_known("format of an export", format_, FORMATS)
    files = {f"{name}.{format_}": _content(frame, format_) for name, frame in tables(study, pilot, with_ids).items()}
    files["codebook.md"] = codebook().encode()
    files["study.json"] = json.dumps(about(study, with_ids), indent=1, ensure_ascii=False).encode()
    files["games.jsonl"] = logs_text(logs(study, pilot)).encode()
    if target.suffix == ".zip":
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            for name, content in files.items():
                opened.writestr(name, content)
        write_atomically(target, archive.getvalue(), private=with_ids)
    else:
        for name, content in files.items():
            write_atomically(target / name, content, private=with_ids)
    return [*files]


def _content(frame: pd.DataFrame, format_: str) -> bytes:
    """Return a table as the content of a file."""
    if format_ == "csv":
        return bytes(csv_table(frame).to_csv(index=False).encode())
    if format_ == "json":
        return (frame.to_json(orient="records", indent=1, force_ascii=False) or "").encode()
    file = io.BytesIO()
    frame.to_parquet(file, index=False)
    return file.getvalue()
