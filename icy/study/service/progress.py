"""The progress of a study, by condition."""

from __future__ import annotations

from dataclasses import dataclass

from .links import LinkFaults, link_faults
from .studies import Study, before, minutes_between


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
