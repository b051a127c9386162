"""The interface of simulated players, their games from start to end, and logs of games with their files."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from icy.core.errors import InvalidSettingError, quoted
from icy.core.streams import stream
from icy.languages.storage import reading
from icy.study.game import MOST_LETTERS, Event, GameState, StudyGame, Trial, fault_of
from icy.study.game.settings import Dataset

# -- the interface of simulated players --------------------------------------------------------------------------------


Item = tuple[int, int]
"""The content of a picture: the value of the color, and the value of the shape."""


@dataclass(frozen=True)
class StudySeat:
    """Information for a player before the game.

    Attributes:
        content: the dataset, with the numbers of colors and shapes and the letters of codes.
        seed: seed of the player's random numbers.
    """

    content: Dataset
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """The player's random number generator."""
        return stream(self.seed, "player")

    def letters(self, count: int) -> str:
        """Draw random letters."""
        return "".join(self.content.alphabet[int(n)] for n in self.rng.integers(self.content.vocab_size, size=count))


class StudyPlayer(ABC):
    """Base class of simulated players, which recognize every color and shape.

    A subclass implements `answer`. A subclass that learns also implements `learn`.

    Attributes:
        adds: whether the player adds all cards as soon as possible.
    """

    adds = False

    def begin(self, seat: StudySeat) -> None:
        """Prepare for a game; called once, before the first item."""
        self.seat = seat

    def learn(self, item: Item, code: str) -> None:  # noqa: B027  (players that do not learn leave it as it is)
        """Learn from an item with its code: a card of Train, or the feedback on an answer."""

    @abstractmethod
    def answer(self, item: Item) -> str:
        """Return the code that the player types for an item."""

    def looks(self, cards: int, seen: int) -> bool:
        """Return whether to view another card in Train.

        Args:
            cards: number of available cards.
            seen: number of different cards that Train has shown so far.
        """
        return seen < cards


# -- a simulated player's game from start to end, and logs of games with their files -----------------------------------


MOST_VIEWS = 8  # largest number of consecutive views per card; drawing with replacement may take long to show all cards


@dataclass(frozen=True)
class PlayedGame:
    """A finished game.

    Attributes:
        game: the rules of the game.
        state: the final state.
        events: the log of the game.
    """

    game: StudyGame
    state: GameState
    events: Sequence[Event]


def play(game: StudyGame, player: StudyPlayer, seed: int) -> PlayedGame:
    """Let a simulated player play a whole game.

    Args:
        game: the rules of the game.
        player: the player.
        seed: seed of the player's random numbers.

    Raises:
        InvalidSettingError: a text of the player is not a valid answer.

    Example:
        >>> from icy.study.game import StudyGameSettings, instances
        >>> from icy.study.players.simulated import Composer
        >>> settings = StudyGameSettings()
        >>> game = StudyGame(settings, instances(settings, 1)[0], seed=1)
        >>> play(game, Composer(), seed=1).state.score
        170
    """
    player.begin(StudySeat(game.settings.content, seed))
    state, values = game.new(), game.settings.content.values
    events: list[Event] = []
    seen: set[int] = set()  # meanings of the cards that Train has shown

    def do(event: Event) -> None:
        """Apply an event to the game, and log it."""
        nonlocal state
        events.append(event)
        state = game.apply(state, event)

    do(Event("start"))
    while state.phase == "open":
        while player.adds and game.shown(state).may_add:
            do(Event("add", at=state.cards))
        for _ in range(MOST_VIEWS * state.cards):
            if not player.looks(state.cards, len(seen)):
                break
            do(Event("train_view", at=state.views))
            if (view := state.train) is not None:
                seen.add(view.meaning)
                player.learn(divmod(view.meaning, values), view.code)
        example, item = state.trial.example, divmod(state.trial.meaning, values)
        text = player.answer(item)
        if not isinstance(text, str) or fault_of(text):
            raise InvalidSettingError(
                f"A simulated player answered {quoted(text)}; an answer is 1 to {MOST_LETTERS} letters from a to z."
            )
        do(Event("answer", text, at=example))
        feedback = game.feedback(state.trial)
        code = feedback.answer if feedback.correct else feedback.code
        if code is not None:
            player.learn(item, code)
        do(Event("next", at=example))
    return PlayedGame(game, state, tuple(events))


# -- logs --------------------------------------------------------------------------------------------------------------


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
