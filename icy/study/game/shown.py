"""The content of a player's page. Nothing in it is secret."""

from dataclasses import asdict, dataclass

from .state import Phase, Tab


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
