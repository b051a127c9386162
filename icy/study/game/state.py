"""The state of a game, its events and answers, and the page that a player sees, as values for JSON."""

import unicodedata
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import msgspec

from icy.core.errors import InvalidSettingError, require_known
from icy.languages.language import LETTERS

# -- answers -----------------------------------------------------------------------------------------------------------

MOST_LETTERS = 64  # maximum length of an answer


def normalised(raw: str) -> str:
    """Normalize an answer for comparison with the code: Unicode NFKC, without surrounding space, lower case.

    Example:
        >>> normalised("  RedCir ")
        'redcir'
    """
    return unicodedata.normalize("NFKC", raw).strip().casefold()


def fault_of(raw: str) -> str:
    """Return the fault of an answer: "empty", "long" or "letters" (other than a to z); "" if the answer is valid.

    An invalid answer has no effect on the game: the item stays open.

    Example:
        >>> fault_of("redcir"), fault_of(" "), fault_of("red cir"), fault_of("a" * 65)
        ('', 'empty', 'letters', 'long')
    """
    if len(raw) > MOST_LETTERS:
        return "long"
    text = normalised(raw)
    if not text:
        return "empty"
    return "" if set(text) <= set(LETTERS) else "letters"


# -- states and events -------------------------------------------------------------------------------------------------

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
    """An action of a player.

    Attributes:
        kind: one of EVENT_KINDS.
        text: the typed text of "answer"; "test" or "train" for "tab".
        at: the number on the player's page: the example for "answer" and "next", the number of cards for "add" and
            "remove", the view for "train_view". An event from an outdated page has no effect, so a double click or a
            second window does no harm. None skips this check.

    Raises:
        UnknownNameError: the kind is unknown.
    """

    kind: EventKind
    text: str = ""
    at: int | None = None

    def __post_init__(self) -> None:
        require_known("event", self.kind, EVENT_KINDS)

    def to_json(self) -> dict[str, object]:
        """Return the event as a dictionary for JSON, without empty entries."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> "Event":
        """Create an event from a dictionary. Other entries, such as times, are ignored."""
        return cls(found["kind"], str(found.get("text", "")), found.get("at"))


@dataclass(frozen=True)
class Trial:
    """One test item. Everything except the answer is secret until the item is graded.

    Pairs have a number for the color and a number for the shape, counted before the item.

    Attributes:
        example: number of the item, from 0.
        meaning: number of the meaning.
        code: the right answer.
        cards: number of cards; a right answer gives `cards - 1` points.
        image: seed of the picture.
        held_out: index of the held-out item, from 0; None for other items.
        among_cards: number of other cards with the same color, and with the same shape.
        shown: number of other meanings with the same color or shape whose codes had been shown.
        exposures: number of times that the codes of these meanings had been shown.
        own_exposures: number of times that the item's own code had been shown.
        raw: the typed answer; None before the answer.
        text: the normalized answer.
        correct: whether the answer was right.
        points: points for the answer.
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
        """Whether the item has been answered."""
        return self.raw is not None

    def answerable(self, k: int = 1) -> bool:
        """Return whether the codes of at least k other items with its color, and k with its shape, had been shown."""
        return min(self.shown) >= k


@dataclass(frozen=True)
class TrainView:
    """A card that Train shows with its code.

    Attributes:
        number: number of the view, from 1.
        meaning: number of the meaning.
        code: code of the meaning.
        image: seed of the picture.
    """

    number: int
    meaning: int
    code: str
    image: int


@dataclass(frozen=True)
class Bag:
    """Cards in shuffled order, from which items are drawn.

    Attributes:
        number: number of the bag, from 1; 0 before the first bag.
        cards: number of cards when the bag was filled.
        left: remaining meanings, in the order of the draws.
    """

    number: int = 0
    cards: int = 0
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class GameState:
    """The full state of a game. It includes codes and meanings, so it must not leave the server.

    Attributes:
        phase: "new", "open" or "closed". A closed game no longer changes.
        cards: number of available cards.
        trials: test items so far; the last is on screen.
        tab: the open tab, "test" or "train".
        train: the card that Train shows; None if Train has not been opened.
        exposures: for each meaning, the number of times that its code was shown or typed correctly.
        test_bag: bag of test items.
        train_bag: bag of cards for Train.
        added: number of times that the player added a card.
        removed: number of times that the player removed a card.
        blurs: number of times that the player switched to another window.
        pastes: number of times that the player pasted into the field.
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
        """The item on screen, in a game that has started."""
        return self.trials[-1]

    @property
    def views(self) -> int:
        """Number of cards that Train has shown."""
        return 0 if self.train is None else self.train.number

    @property
    def score(self) -> int:
        """Sum of the points of all answers."""
        return sum(trial.points for trial in self.trials)

    def with_trial(self, trial: Trial) -> "GameState":
        """Return the state with the item on screen replaced."""
        return replace(self, trials=(*self.trials[:-1], trial))

    def to_json(self) -> dict[str, object]:
        """Return the state as a dictionary for JSON. It has tuples, which JSON writes as lists."""
        return asdict(self)

    @classmethod
    def of_json(cls, found: dict[str, object]) -> "GameState":
        """Create a state from JSON.

        Raises:
            InvalidSettingError: the JSON is not the state of a game.
        """
        try:
            return msgspec.convert(found, cls)
        except msgspec.ValidationError as error:
            raise InvalidSettingError(f"This is not the state of a game: {error}.") from error


# -- the page, which has no secrets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerFeedback:
    """Feedback on an answer.

    Attributes:
        correct: whether the answer was right; None if the player does not see this.
        points: points for the answer; None if the player does not see them.
        code: the right code after an error; None if the answer was right or the player does not see the code.
        answer: the normalized answer.
    """

    correct: bool | None
    points: int | None
    code: str | None
    answer: str


@dataclass(frozen=True)
class TrainCard:
    """The card that Train shows, without the picture.

    Attributes:
        number: number of the view, from 1.
        code: code of the picture.
    """

    number: int
    code: str


@dataclass(frozen=True)
class Shown:
    """The content of a page, without the pictures.

    Attributes:
        phase: "new", "open" or "closed".
        example: number of the item on screen, from 0.
        examples: number of items of the game.
        score: points so far, from the answers with visible results.
        cards: number of cards.
        points: points for a right answer to the item on screen.
        may_add: whether a card can be added.
        may_remove: whether a card can be removed.
        tab: "test" or "train".
        feedback: feedback on the answer to the item on screen; None before the answer.
        card: the card that Train shows; None if Train has not been opened.
        last: whether the item on screen is the last of the game.
    """

    phase: Phase
    example: int
    examples: int
    score: int
    cards: int
    points: int
    may_add: bool
    may_remove: bool
    tab: Tab
    feedback: AnswerFeedback | None
    card: TrainCard | None
    last: bool

    def to_json(self) -> dict[str, object]:
        """Return the content as a dictionary for JSON."""
        return asdict(self)
