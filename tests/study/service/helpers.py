"""A small study for tests: a plan, a clock that tests can set, and people who play."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

from icy.study.game import Event
from icy.study.service import Study, StudyPlan, open_study
from icy.study.service.persons import Person, enter
from icy.study.service.plan import plan_of
from icy.study.service.platforms import Visit
from icy.study.service.play import EventResult, SavedGame, act, load

GAME = {"examples": 6, "held_out_at": [2, 3, 5], "interval": 2}
PEOPLE = {"purpose": "to test", "controller": "Nobody", "contact": "nobody@example.org", "retention": "a minute"}
INFORMATION = "# Information\n\nWhat this is about.\n"


class Clock:
    """A clock that tests set; every call moves it by a millisecond."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def wait(self, **duration: float) -> None:
        """Move the clock, as in minutes=5."""
        self.time += timedelta(**duration)


def plan(folder: Path, name: str = "pilot", **given: Any) -> StudyPlan:
    """A plan with its texts in a folder; keyword arguments replace the default settings of each table."""
    for text in ("information", "debriefing"):
        (folder / f"{name}-{text}.md").write_text(INFORMATION)
    usual: dict[str, Any] = {
        "conditions": {"dataset": ["eng"], "grammar": ["concat", "perm"], "quota": 2, "game": GAME},
        "people": PEOPLE,
        "pages": {"least_seconds": 0},
    }
    tables = {name: {**usual.get(name, {}), **value} for name, value in given.items() if isinstance(value, dict)}
    return plan_of({**usual, **given, **tables}, folder / f"{name}.toml")


def study(folder: Path, clock: Callable[[], datetime] | None = None, name: str = "pilot", **given: Any) -> Study:
    """A study in a folder."""
    return open_study(plan(folder, name, **given), clock or Clock())


def pid(number: int) -> str:
    """An id of Prolific."""
    return f"5f{number:022x}"


def arrival(external: str = "", device: str = "computer") -> tuple[Visit, str, str]:
    """A person who wants to take part."""
    return Visit(external), device, "2026-11-23T08:59:00.000Z"


def person(of: Study, external: str = "") -> Person:
    """A person who has agreed to take part."""
    found = enter(of, *arrival(external))
    assert isinstance(found, Person), found
    return found


def started(of: Study, external: str = "") -> Person:
    """A person with a started game."""
    found = person(of, external)
    with of.database.writing() as connection:
        connection.execute("UPDATE person SET stage = 'game' WHERE id = ?", (found.id,))
    act(of, found.id, Event("start"))
    return found


def loaded(of: Study, who: str = "") -> SavedGame:
    """The saved game of a person, by default of the only person."""
    with of.database.reading() as connection:
        return load(connection, who or connection.execute("SELECT id FROM person").fetchone()["id"])


def at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Call functions at the same time, each in a thread."""
    threads = [Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def token(of: Study, who: Person) -> str:
    """The token of the item on screen."""
    return loaded(of, who.id).trial


def answer(of: Study, who: Person, text: str, trial: str = "") -> EventResult:
    """Answer the item on screen, or another."""
    return act(of, who.id, Event("answer", text), trial or token(of, who))


def on(of: Study, who: Person) -> EventResult:
    """Go to the next item."""
    return act(of, who.id, Event("next"), token(of, who))


def finish(of: Study, who: Person, text: str = "abc") -> None:
    """Answer all items of a game that has started."""
    while not answer(of, who, text).saved.is_closed:
        on(of, who)


def rows(of: Study, query: str, *values: object) -> list[dict[str, Any]]:
    """Rows of the database."""
    with of.database.reading() as connection:
        return [dict(row) for row in connection.execute(query, values)]


def write(of: Study, query: str, *values: object) -> None:
    """Change the database directly."""
    with of.database.writing() as connection:
        connection.execute(query, values)


def secrets_of(of: Study, who: str = "") -> Sequence[str]:
    """Values that no page may contain before an answer is graded: codes of the game, and seeds."""
    found = loaded(of, who)
    return [*found.game.codes, str(found.game.seed), str(found.game.instance.language_seed)]
