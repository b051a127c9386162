"""One player's game from start to end: what it looks at, what it answers, and the log of both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from icy.core.errors import InvalidSettingError, quoted
from icy.study.game import MOST_LETTERS, Event, GameState, StudyGame, fault_of

from .player import Item, StudyPlayer, StudySeat

Learn = Callable[[Item, str], None]
Looks = Callable[[int, int], bool]
MOST_VIEWS = 8  # per card, in a row: where cards are drawn with replacement, the last may take long to come


@dataclass
class Sitting:
    """A game in progress, played by something that learns and answers.

    Attributes:
        game: the rules.
        learn: told of every item that is shown with its code.
        looks: decides whether to look at one more card; see `StudyPlayer.looks`.
        adds: whether all cards are added at once.
        state: what the game has come to.
        events: what was done so far.
    """

    game: StudyGame
    learn: Learn
    looks: Looks
    adds: bool = False
    state: GameState = field(init=False)
    events: list[Event] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.game.new()
        self._seen: set[int] = set()  # cards that Train has shown
        self.do(Event("start"))

    def do(self, event: Event) -> None:
        """Do something, and log it."""
        self.events.append(event)
        self.state = self.game.apply(self.state, event)

    @property
    def open(self) -> bool:
        """Whether there is an item to answer."""
        return self.state.phase == "open"

    @property
    def item(self) -> Item:
        """What the picture of the item on screen shows."""
        return self._values(self.state.trial.meaning)

    def study(self) -> None:
        """Add cards, and look at those in Train, as the player is used to."""
        while self.adds and self.game.shown(self.state).may_add:
            self.do(Event("add", at=self.state.cards))
        for _ in range(MOST_VIEWS * self.state.cards):
            if not self.looks(self.state.cards, len(self._seen)):
                return
            self.do(Event("train_view", at=self.state.views))
            if (view := self.state.train) is not None:
                self._seen.add(view.meaning)
                self.learn(self._values(view.meaning), view.code)

    def answer(self, text: str) -> None:
        """Answer the item on screen, learn from the feedback, and go on.

        Raises:
            InvalidSettingError: this is no answer, so that the item would stay for ever.
        """
        example, item = self.state.trial.example, self.item
        if not isinstance(text, str) or fault_of(text):
            raise InvalidSettingError(
                f"A simulated player answered {quoted(text)}; an answer is 1 to {MOST_LETTERS} letters from a to z."
            )
        self.do(Event("answer", text, at=example))
        told = self.game.feedback(self.state.trial)
        code = told.answer if told.correct else told.code
        if code is not None:
            self.learn(item, code)
        self.do(Event("next", at=example))

    def _values(self, meaning: int) -> Item:
        return divmod(meaning, self.game.settings.content.values)


@dataclass(frozen=True)
class PlayedGame:
    """A game that was played.

    Attributes:
        game: the rules.
        state: at the end.
        events: the log.
    """

    game: StudyGame
    state: GameState
    events: Sequence[Event]


def play(game: StudyGame, player: StudyPlayer, seed: int) -> PlayedGame:
    """Let a simulated player play a game.

    Args:
        game: the rules.
        player: who plays.
        seed: of the player's own random numbers.

    Example:
        >>> from icy.study.game import StudyGameSettings, instances
        >>> from icy.study.players.simulated import Composer
        >>> settings = StudyGameSettings()
        >>> game = StudyGame(settings, instances(settings, 1)[0], seed=1)
        >>> play(game, Composer(), seed=1).state.score
        170
    """
    player.begin(StudySeat(game.settings.content, seed))
    sitting = Sitting(game, player.learn, player.looks, player.adds)
    while sitting.open:
        sitting.study()
        sitting.answer(player.answer(sitting.item))
    return PlayedGame(game, sitting.state, tuple(sitting.events))
