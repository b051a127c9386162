"""How far a study is, by condition."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import before, minutes_between
from .links import LinkFaults, link_faults
from .studies import Study


@dataclass(frozen=True)
class ConditionProgress:
    """How far a condition is.

    Attributes:
        name: dataset and grammar.
        quota: persons wanted; 0 for as many as come.
        finished: games that are finished.
        active: games that are being played, or about to be.
        dropped: games that were given up: by withdrawal, failed questions, or no action for long.
        score: mean of the finished games; None without any.
        minutes: median from first contact to the end; likewise.
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
    """How far a study is.

    Attributes:
        cells: by condition.
        consented: persons who agreed to take part.
        screened: persons who failed the questions on the instructions twice.
        withdrawn: persons who withdrew.
        last: time of the last thing that anyone did; None without any.
        link: faults of the link of the platform.
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
    """Return how far a study is.

    Args:
        study: the study.
        pilot: whether to look at the pilot; by default if it is in that state.
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
