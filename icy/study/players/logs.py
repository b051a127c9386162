"""Logs of games, their files, and the evidence in them: items shown and answers."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from icy.core.errors import InvalidSettingError
from icy.languages.storage import reading
from icy.study.game import Event, StudyGame, Trial

from .player import Item
from .sitting import PlayedGame


@dataclass(frozen=True)
class Exposure:
    """An item that the player saw with its code."""

    item: Item
    code: str


def evidence(game: StudyGame, events: Iterable[Event]) -> Iterator[Exposure | Trial]:
    """Yield, in order, each answered item, and each item whose code Train or the feedback showed.

    Example:
        >>> from icy.study.game import StudyGameSettings, instances
        >>> settings = StudyGameSettings()
        >>> game = StudyGame(settings, instances(settings, 1)[0], seed=1)
        >>> events = [Event("start"), Event("train_view"), Event("answer", "abcd")]
        >>> [type(step).__name__ for step in evidence(game, events)]
        ['Exposure', 'Trial', 'Exposure']
    """
    state, values = game.new(), game.settings.content.values
    for event in events:
        before, state = state, game.apply(state, event)
        if state.train is not None and state.views > before.views:
            yield Exposure(divmod(state.train.meaning, values), state.train.code)
        if event.kind == "answer" and state is not before:
            yield state.trial
            if state.exposures != before.exposures:
                yield Exposure(divmod(state.trial.meaning, values), state.trial.code)


@dataclass(frozen=True)
class Log:
    """The log of one person's game, as in the export.

    Attributes:
        person: opaque name of the person.
        game: the rules of the game.
        events: actions of the player.
    """

    person: str
    game: StudyGame
    events: tuple[Event, ...]

    def played(self) -> PlayedGame:
        """Return the game with its state at the end."""
        return PlayedGame(self.game, self.game.replay(self.events), self.events)


def logs_text(logs: Iterable[Log]) -> str:
    """Format logs as JSON lines: person, game and events of one game per line."""
    lines = [
        json.dumps({"person": log.person, "game": log.game.to_json(), "events": [e.to_json() for e in log.events]})
        for log in logs
    ]
    return "\n".join(lines) + "\n"


def read_logs(path: str | Path) -> list[Log]:
    """Read logs of games from a file of JSON lines.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: a line is not a game.
    """
    with reading(f"The games in '{path}' cannot be read"):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [_log(line, f"Line {number} of '{path}'") for number, line in enumerate(lines, 1) if line.strip()]


def _log(line: str, where: str) -> Log:
    try:
        found = json.loads(line)
        events = tuple(Event.of_json(event) for event in found["events"])
        return Log(str(found["person"]), StudyGame.of_json(found["game"]), events)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidSettingError(f"{where} is not a game: {error}.") from error


def digest_of(path: str | Path) -> str:
    """Return a hash of the content of a file of games.

    Raises:
        StoreError: the file cannot be read.
    """
    with reading(f"The games in '{path}' cannot be read"):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
