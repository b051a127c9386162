"""The link from a platform to the study, and the progress of a study by condition."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from typing import Literal

from icy.core.text import counted, listed

from .studies import Study, before, minutes_between, readable

# -- the link from a platform to the study: its test, and visits that fail because of it -------------------------------


Reason = Literal["placeholder", "malformed", "no_id"]
REASONS: dict[Reason, str] = {
    "placeholder": "had a placeholder instead of an id",
    "malformed": "had an id that does not match the platform",
    "no_id": "had no id",
}
TEST = "icy_test"  # parameter of the test link


@dataclass(frozen=True)
class LinkFaults:
    """Faults of a study's link.

    Attributes:
        untested: whether the link must be tested before people can take part.
        visits: number of refused visits, by reason.
        last: time of the last refused visit, or None.
    """

    untested: bool
    visits: dict[str, int]
    last: str | None

    @property
    def warnings(self) -> list[str]:
        """Warnings for the researcher."""
        found = []
        if self.untested:
            found.append(
                "Nobody can take part yet: test the link of the platform first. `icy study serve` prints the test link."
            )
        if self.visits and self.last:
            other = "" if "malformed" not in self.visits else " id_pattern in [platform] accepts other ids."
            total = counted(sum(self.visits.values()), "visit", "were")
            why = listed([f"{self.visits[reason]} {text}" for reason, text in REASONS.items() if reason in self.visits])
            found.append(
                f"{total} turned away because of the link: {why}; the last was at {readable(self.last)}. "
                f"Check the link on the platform.{other}"
            )
        return found


def link_mark(study: Study) -> str:
    """Return the secret parameter of the test link."""
    return study.key.mark("link test", study.name)


def link_to_test(study: Study, address: str) -> str:
    """Return the test link, which the researcher enters on the platform.

    Args:
        study: the study.
        address: public address of the study.
    """
    parameters = [study.plan.platform.link, f"{TEST}={link_mark(study)}"]
    return f"{address}?{'&'.join(filter(None, parameters))}"


def is_untested(connection: sqlite3.Connection, study: Study) -> bool:
    """Return whether the link must be tested before new people can take part.

    Only open studies that require ids need a test. It also counts as passed if a person from the platform took part.
    """
    recruiting = study.plan.platform
    if study.plan.state != "open" or not recruiting.needs_id_now("open"):
        return False
    found = connection.execute(
        "SELECT 1 FROM link_test WHERE study = ? AND platform_hash = ? UNION ALL "
        "SELECT 1 FROM person WHERE study = ? AND NOT pilot AND platform = ? AND id_hash IS NOT NULL LIMIT 1",
        (study.number, _platform_hash(study), study.number, recruiting.name),
    ).fetchone()
    return found is None


def needs_test(study: Study) -> bool:
    """Return whether a study's link must be tested; see `is_untested`."""
    with study.database.reading() as connection:
        return is_untested(connection, study)


def pass_test(study: Study) -> None:
    """Record that the link works."""
    with study.database.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO link_test VALUES (?, ?, ?)", (study.number, _platform_hash(study), study.time)
        )


def _platform_hash(study: Study) -> str:
    """Return a hash of the settings that determine the link."""
    recruiting = study.plan.platform
    settings = [recruiting.name, recruiting.id_parameter, recruiting.id_pattern]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]


def count_refusal(study: Study, reason: str) -> None:
    """Count a refused visit, if the reason is a fault of the link."""
    if reason in REASONS:
        with study.database.writing() as connection:
            connection.execute(
                "INSERT INTO refused_visit VALUES (?, ?, ?, 1, ?) ON CONFLICT (study, pilot, reason) DO UPDATE SET "
                "visits = visits + 1, last = excluded.last",
                (study.number, study.is_pilot, reason, study.time),
            )


def link_faults(connection: sqlite3.Connection, study: Study, pilot: bool) -> LinkFaults:
    """Return the faults of a study's link."""
    rows = connection.execute(
        "SELECT reason, visits, last FROM refused_visit WHERE study = ? AND pilot = ?", (study.number, pilot)
    ).fetchall()
    visits = {row["reason"]: row["visits"] for row in rows}
    return LinkFaults(
        not pilot and is_untested(connection, study), visits, max((row["last"] for row in rows), default=None)
    )


# -- the progress of a study, by condition -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ConditionProgress:
    """The progress of a condition.

    Attributes:
        name: name of the condition: dataset and grammar.
        quota: number of persons needed; 0 for no limit.
        finished: number of finished games.
        active: number of active games: assigned or in progress.
        dropped: number of games dropped by withdrawal, failed questions or inactivity.
        score: mean score of the finished games; None without finished games.
        minutes: median minutes from the first contact to the end of the game; None without finished games.
    """

    name: str
    quota: int
    finished: int
    active: int
    dropped: int
    score: float | None
    minutes: float | None


@dataclass(frozen=True)
class Progress:
    """The progress of a study.

    Attributes:
        cells: progress of each condition.
        consented: number of persons who agreed to take part.
        screened: number of persons who failed the questions about the instructions twice.
        withdrawn: number of persons who withdrew.
        last: time of the last action; None before any action.
        link: faults of the link from the platform.
    """

    cells: tuple[ConditionProgress, ...]
    consented: int
    screened: int
    withdrawn: int
    last: str | None
    link: LinkFaults

    @property
    def finished(self) -> int:
        """Number of finished games."""
        return sum(cell.finished for cell in self.cells)


GAMES = """
    SELECT game.dataset || '/' || game.grammar AS cell, game.state, game.score, game.touched, game.finished,
        person.first_seen, person.stage, person.withdrawn
    FROM person LEFT JOIN game ON game.person = person.id WHERE person.study = ? AND person.pilot = ?
"""


def progress(study: Study, pilot: bool | None = None) -> Progress:
    """Return the progress of a study.

    Args:
        study: the study.
        pilot: whether to count the pilot; by default, whether the study is a pilot now.
    """
    pilot = study.is_pilot if pilot is None else pilot
    with study.database.reading() as connection:
        rows = [dict(row) for row in connection.execute(GAMES, (study.number, pilot))]
        link = link_faults(connection, study, pilot)
    limit = before(study.now(), minutes=study.plan.conditions.drop_after)
    cells = study.plan.conditions.cells
    return Progress(
        tuple(_cell(study, name, [row for row in rows if row["cell"] == name], limit) for name, _ in cells),
        len(rows),
        sum(row["stage"] == "screened" for row in rows),
        sum(row["withdrawn"] is not None for row in rows),
        max((row["touched"] for row in rows if row["touched"]), default=None),
        link,
    )


def _cell(study: Study, name: str, rows: list[dict[str, str | int]], limit: str) -> ConditionProgress:
    finished = [row for row in rows if row["state"] == "closed"]
    active = [row for row in rows if row["state"] in ("assigned", "open") and str(row["touched"]) > limit]
    scores = [int(row["score"]) for row in finished]
    times = [minutes_between(str(row["first_seen"]), str(row["finished"])) for row in finished]
    return ConditionProgress(
        name,
        study.plan.conditions.quota_of(name),
        len(finished),
        len(active),
        len(rows) - len(finished) - len(active),
        sum(scores) / len(scores) if scores else None,
        sorted(times)[len(times) // 2] if times else None,
    )
