"""The state of a game: plain values that can be written as JSON and read back."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import msgspec

from icy.core.errors import InvalidSettingError, unknown

Phase = Literal["new", "open", "closed"]
Tab = Literal["test", "train"]
EventKind = Literal["start", "train_view", "answer", "next", "add", "remove", "tab", "blur", "paste", "finish"]
EVENT_KINDS: tuple[str, ...] = get_args(EventKind)
PHASES: tuple[str, ...] = get_args(Phase)
TABS: tuple[str, ...] = get_args(Tab)

Pair = tuple[int, int]
"""A number for the colour and one for the shape."""


@dataclass(frozen=True)
class Event:
    """What a player does.

    Attributes:
        kind: one of EVENT_KINDS.
        text: of "answer", what was typed; of "tab", "test" or "train".
        at: what the player's page showed: of "answer" and "next" the number of the example, of "add" and "remove" the
            number of cards, of "train_view" the number of the view. An event of an older page changes nothing, so that
            a double click and a second window do no harm. None for whatever is shown.

    Raises:
        UnknownNameError: another kind.
    """

    kind: EventKind
    text: str = ""
    at: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in EVENT_KINDS:
            raise unknown("event", str(self.kind), EVENT_KINDS)

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON, without what is not set."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> "Event":
        """Return the event that JSON holds; further entries, such as times, are left out."""
        return cls(found["kind"], str(found.get("text", "")), found.get("at"))


@dataclass(frozen=True)
class Trial:
    """One test item. All of it but the answer is secret until it is graded.

    Attributes:
        example: its number, from 0.
        meaning: number of the meaning.
        code: the right answer.
        cards: number of cards when it was made; a right answer gives one point less.
        image: seed of its picture.
        held_out: which of the held-out items it is, from 0; None for the others.
        among_cards: other cards of its colour, and of its shape, when it was made.
        shown: other items of its colour, and of its shape, that had been shown with their codes.
        exposures: how often they had.
        own_exposures: how often its own code had been shown.
        raw: what was typed; None before.
        text: that, normalised.
        correct: whether it was right.
        points: what it gave.
    """

    example: int
    meaning: int
    code: str
    cards: int
    image: int
    held_out: int | None
    among_cards: Pair
    shown: Pair
    exposures: Pair
    own_exposures: int
    raw: str | None = None
    text: str = ""
    correct: bool = False
    points: int = 0

    @property
    def graded(self) -> bool:
        """Whether it has been answered."""
        return self.raw is not None

    def answerable(self, k: int = 1) -> bool:
        """Return whether its colour and its shape had each been shown with a code in k other items, or more."""
        return min(self.shown) >= k


@dataclass(frozen=True)
class TrainView:
    """A card that Train shows with its code.

    Attributes:
        number: of the view, from 1.
        meaning: number of the meaning.
        code: its code.
        image: seed of its picture.
    """

    number: int
    meaning: int
    code: str
    image: int


@dataclass(frozen=True)
class Bag:
    """Cards in shuffled order, from which items are taken.

    Attributes:
        number: of the bag, from 1; 0 before the first.
        cards: number of cards that it was filled with.
        left: meanings still in it, the next first.
    """

    number: int = 0
    cards: int = 0
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class GameState:
    """All that a game has come to. It holds codes and meanings, so it never leaves the server.

    Attributes:
        phase: "new", "open", or "closed", when nothing changes it any more.
        cards: number of cards available.
        trials: test items so far; the last is on screen.
        tab: what is open, "test" or "train".
        train: the card that Train shows; None before it was first opened.
        exposures: how often the code of every meaning has been shown, or typed and called right.
        test_bag: of test items.
        train_bag: of Train.
        added: how often the player added a card.
        removed: how often the player removed one.
        blurs: how often the player left the window.
        pastes: how often the player pasted into the field.
    """

    phase: Phase
    cards: int
    exposures: tuple[int, ...]
    trials: tuple[Trial, ...] = ()
    tab: Tab = "test"
    train: TrainView | None = None
    test_bag: Bag = Bag()
    train_bag: Bag = Bag()
    added: int = 0
    removed: int = 0
    blurs: int = 0
    pastes: int = 0

    @property
    def trial(self) -> Trial:
        """The item on screen; there is one once the game has started."""
        return self.trials[-1]

    @property
    def views(self) -> int:
        """Number of cards that Train has shown."""
        return 0 if self.train is None else self.train.number

    @property
    def score(self) -> int:
        """Points of all answers."""
        return sum(trial.points for trial in self.trials)

    def with_trial(self, trial: Trial) -> "GameState":
        """Return the state with another version of the item on screen."""
        return replace(self, trials=(*self.trials[:-1], trial))

    def to_json(self) -> dict[str, object]:
        """Return the state as plain JSON, which `of_json` reads; lists are tuples there, which JSON writes alike."""
        return asdict(self)

    @classmethod
    def of_json(cls, found: dict[str, object]) -> "GameState":
        """Return the state that JSON holds.

        Raises:
            InvalidSettingError: it is none.
        """
        try:
            return msgspec.convert(found, cls)
        except msgspec.ValidationError as error:
            raise InvalidSettingError(f"This is not the state of a game: {error}.") from error
