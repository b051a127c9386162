"""What a player may see of a game; nothing here is secret."""

from dataclasses import asdict, dataclass

from .state import Phase, Tab


@dataclass(frozen=True)
class AnswerFeedback:
    """What an answer is told.

    Attributes:
        correct: whether it was right; None if that is not told.
        points: what it gave; None if that is not told.
        code: the right code after an error; None if there was none or it is not told.
        answer: what was typed, as it was compared.
    """

    correct: bool | None
    points: int | None
    code: str | None
    answer: str


@dataclass(frozen=True)
class TrainCard:
    """What Train shows beside its picture.

    Attributes:
        number: of the view, from 1.
        code: of the picture.
    """

    number: int
    code: str


@dataclass(frozen=True)
class Shown:
    """What a page shows, without the pictures.

    Attributes:
        phase: "new", "open" or "closed".
        example: number of the item on screen, from 0.
        examples: number of items of the game.
        score: points so far, of the answers whose result is told.
        cards: number of cards.
        points: what a right answer to the item on screen gives.
        may_add: whether a card can be added.
        may_remove: whether one can be removed.
        tab: "test" or "train".
        feedback: on the answer to the item on screen; None while it waits for one.
        card: what Train shows; None before it was first opened.
        last: whether the item on screen is the last.
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
        """Return it as plain JSON."""
        return asdict(self)
