"""The rules of a game: the order and the draws of cards, and the next state for a state and an event."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from icy.core.checks import whole_number
from icy.core.streams import stream, stream_key

from .languages import Codes, Instance, codes_of
from .settings import LEAST_CARDS, LEAST_DESIGNED, StudyGameSettings
from .state import TABS, AnswerFeedback, Bag, Event, GameState, Shown, TrainCard, TrainView, Trial, fault_of, normalised

# -- cards -------------------------------------------------------------------------------------------------------------


def card_order(settings: StudyGameSettings, instance: Instance, seed: int) -> tuple[int, ...]:
    """Return the meanings of all cards, in the order in which they are added.

    Held-out meanings are left out, unless they are the next cards of the order (`held_out="next"`).

    Args:
        settings: settings of the game.
        instance: instance with the held-out items.
        seed: seed of the person.
    """
    cards = [m for m in range(settings.content.space.size) if m not in instance.held_out]
    if settings.card_order == "by-colour":
        return tuple(cards)
    first = designed_cards(settings, instance, seed) if settings.card_order == "designed" else ()
    rest = [m for m in cards if m not in first]
    return (*first, *_shuffled(rest, seed, "cards"))


def designed_cards(settings: StudyGameSettings, instance: Instance, seed: int) -> tuple[int, ...]:
    """Return cards that show every color and every shape of the held-out items twice.

    Colors and shapes are renumbered so that held-out item i has color i and shape i. If fewer than three items are
    held out, other values fill the numbers up to 2. The cards (color, shape) are all pairs of different numbers:
    (0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1).
    """
    values = settings.content.values
    colours = _first(values, [m // values for m in instance.held_out], seed, "colours")
    shapes = _first(values, [m % values for m in instance.held_out], seed, "shapes")
    pairs = combinations(range(max(len(instance.held_out), LEAST_DESIGNED)), 2)
    return tuple(colours[a] * values + shapes[b] for pair in pairs for a, b in (pair, pair[::-1]))


def _first(values: int, first: list[int], seed: int, name: str) -> list[int]:
    """Return the values in `first`, then all other values in random order."""
    return [*first, *_shuffled([v for v in range(values) if v not in first], seed, name)]


def _shuffled(of: Sequence[int], seed: int, *names: str | int) -> list[int]:
    return [of[int(place)] for place in stream(seed, *names).permutation(len(of))]


def draw(bag: Bag, cards: Sequence[int], last: int | None, seed: int, purpose: str) -> tuple[int, Bag]:
    """Draw a card from a bag. The bag is refilled when it is empty or when the number of cards has changed.

    Args:
        bag: the bag after the previous draw.
        cards: meanings of the available cards.
        last: the previous card, which is not the first of a refilled bag; None if there is none.
        seed: seed of the person.
        purpose: "test" or "train".

    Returns:
        The meaning of the card, and the bag after the draw.
    """
    if not bag.left or bag.cards != len(cards):
        number = bag.number + 1
        left = _shuffled(cards, seed, purpose, number)
        if left[0] == last and len(left) > 1:
            left = [*left[1:], left[0]]
        bag = Bag(number, len(cards), tuple(left))
    return bag.left[0], replace(bag, left=bag.left[1:])


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picture:
    """The description of a picture. It is secret, because it includes the meaning.

    Attributes:
        colour: value of the colour.
        shape: value of the shape.
        seed: seed of the figure's size, place, rotation and shade.
    """

    colour: int
    shape: int
    seed: int


@dataclass(frozen=True)
class StudyGame:
    """The rules of one person's game. `apply` computes the next state from a state and an event.

    Attributes:
        settings: settings of the game.
        instance: the language and the held-out items.
        seed: seed of the person; all draws come from streams of this seed.

    Raises:
        InvalidSettingError: the instance does not match the settings.

    Example:
        >>> settings = StudyGameSettings.of("published", dataset="eng", grammar="perm")
        >>> game = StudyGame(settings, Instance(0, language_seed=0), seed=1)
        >>> state = game.apply(game.new(), Event("start"))
        >>> game.shown(state).cards, game.shown(state).points, game.shown(state).feedback
        (2, 1, None)
        >>> state = game.apply(state, Event("answer", "rdecri", at=0))
        >>> game.shown(state).feedback.correct is not None
        True
        >>> game.apply(state, Event("answer", "rdecri", at=0)) is state
        True
    """

    settings: StudyGameSettings
    instance: Instance
    seed: int

    def __post_init__(self) -> None:
        whole_number("seed of a person", self.seed, 0, 2**63 - 1)
        self.instance.check(self.settings)

    def to_json(self) -> dict[str, object]:
        """Return settings, instance and seed as a dictionary for JSON."""
        return {"settings": self.settings.to_json(), "instance": self.instance.to_json(), "seed": self.seed}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "StudyGame":
        """Create a game from the dictionary that `to_json` returns."""
        settings, instance = StudyGameSettings(**found["settings"]), Instance.of_json(found["instance"])
        return cls(settings, instance, int(found["seed"]))

    @cached_property
    def codes(self) -> Codes:
        """The codes of all meanings; secret."""
        return codes_of(self.settings, self.instance.language_seed)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The meanings of all cards, in the order in which they are added; secret."""
        return card_order(self.settings, self.instance, self.seed)

    # -- state and event -> state --------------------------------------------------------------------------------------

    def new(self) -> GameState:
        """Return the state before the game starts."""
        return GameState("new", self.settings.start, exposures=(0,) * self.settings.content.space.size)

    def apply(self, state: GameState, event: Event) -> GameState:
        """Return the state after an event; the same object if the event is not possible now."""
        if (event.kind == "start") != (state.phase == "new") or state.phase == "closed":
            return state
        step: Callable[[GameState, Event], GameState] = getattr(self, f"_{event.kind}")
        return step(state, event)

    def replay(self, events: Iterable[Event]) -> GameState:
        """Return the state after all events of a game."""
        state = self.new()
        for event in events:
            state = self.apply(state, event)
        return state

    def _start(self, state: GameState, event: Event) -> GameState:
        return self._with_item(replace(state, phase="open"))

    def _answer(self, state: GameState, event: Event) -> GameState:
        trial = state.trial
        if trial.graded or event.at not in (None, trial.example) or fault_of(event.text):
            return state
        text = normalised(event.text)
        correct = text == trial.code
        graded = replace(trial, raw=event.text, text=text, correct=correct, points=(trial.cards - 1) if correct else 0)
        state = state.with_trial(graded)
        return self._with_exposure(state, trial.meaning) if correct or self._discloses(trial) else state

    def _next(self, state: GameState, event: Event) -> GameState:
        trial = state.trial
        if not trial.graded or event.at not in (None, trial.example):
            return state
        if self._is_last(trial):
            return replace(state, phase="closed")
        if self.settings.due(trial.example + 1) > state.cards:  # one card, even if the player has removed several
            state = replace(state, cards=state.cards + 1)
        return self._with_item(state)

    def _finish(self, state: GameState, event: Event) -> GameState:
        done = state.trial.graded and self._is_last(state.trial)
        return replace(state, phase="closed") if done else state

    def _train_view(self, state: GameState, event: Event) -> GameState:
        if event.at not in (None, state.views):
            return state
        last = None if state.train is None else state.train.meaning
        meaning, bag = self._draw(state.train_bag, state.cards, last, "train")
        number = state.views + 1
        view = TrainView(number, meaning, self.codes[meaning], self._image("train", number))
        return self._with_exposure(replace(state, train=view, train_bag=bag, tab="train"), meaning)

    def _tab(self, state: GameState, event: Event) -> GameState:
        if event.text not in TABS or event.text == state.tab:
            return state
        return self._train_view(state, Event("train_view")) if event.text == "train" else replace(state, tab="test")

    def _add(self, state: GameState, event: Event) -> GameState:
        if state.cards >= self.settings.cap or event.at not in (None, state.cards):
            return state
        return replace(state, cards=state.cards + 1, added=state.added + 1)

    def _remove(self, state: GameState, event: Event) -> GameState:
        if state.cards <= LEAST_CARDS or event.at not in (None, state.cards):
            return state
        return replace(state, cards=state.cards - 1, removed=state.removed + 1)

    def _blur(self, state: GameState, event: Event) -> GameState:
        return replace(state, blurs=state.blurs + 1)

    def _paste(self, state: GameState, event: Event) -> GameState:
        return replace(state, pastes=state.pastes + 1)

    # -- items ---------------------------------------------------------------------------------------------------------

    def _with_item(self, state: GameState) -> GameState:
        """Add the next test item."""
        example = len(state.trials)
        positions, bag = self.settings.held_out_at, state.test_bag
        held_out = positions.index(example) if example in positions else None
        if held_out is None:
            last = state.trial.meaning if state.trials else None
            meaning, bag = self._draw(bag, state.cards, last, "test")
        elif self.settings.held_out == "apart":
            meaning = self.instance.held_out[held_out]
        else:
            meaning = self.order[state.cards + held_out]
        trial = self.item(state, example, meaning, held_out)
        return replace(state, trials=(*state.trials, trial), test_bag=bag, tab="test")

    def item(self, state: GameState, example: int, meaning: int, held_out: int | None) -> Trial:
        """Create the test item of an example. It is secret."""
        available = Counter(self.order[: state.cards])
        exposures = Counter(dict(enumerate(state.exposures)))
        return Trial(
            example=example,
            meaning=meaning,
            code=self.codes[meaning],
            cards=state.cards,
            image=self._image("test", example),
            held_out=held_out,
            among_cards=self._of_values(meaning, available),
            shown=self._of_values(meaning, dict.fromkeys(+exposures, 1)),
            exposures=self._of_values(meaning, exposures),
            own_exposures=state.exposures[meaning],
        )

    def _of_values(self, meaning: int, counts: Mapping[int, int]) -> tuple[int, int]:
        """Sum the counts of other meanings with the same color, and of those with the same shape."""
        values = self.settings.content.values
        colour, shape = divmod(meaning, values)
        others = {m: n for m, n in counts.items() if m != meaning}
        of_colour = sum(n for m, n in others.items() if m // values == colour)
        return of_colour, sum(n for m, n in others.items() if m % values == shape)

    def _is_last(self, trial: Trial) -> bool:
        return trial.example == self.settings.examples - 1

    def _draw(self, bag: Bag, cards: int, last: int | None, purpose: str) -> tuple[int, Bag]:
        available = self.order[:cards]
        if self.settings.draws == "replacement":
            number = bag.number + 1  # the bag only counts the draws
            return available[int(stream(self.seed, purpose, number).integers(cards))], Bag(number, cards)
        return draw(bag, available, last, self.seed, purpose)

    def _image(self, *of: str | int) -> int:
        return stream_key(self.seed, "image", *of)

    def _with_exposure(self, state: GameState, meaning: int) -> GameState:
        counts = (n + (m == meaning) for m, n in enumerate(state.exposures))
        return replace(state, exposures=tuple(counts))

    def _discloses(self, trial: Trial) -> bool:
        """Return whether the right code of an item is shown after an error."""
        return trial.held_out is None or self.settings.held_out_feedback == "full"

    def _shows_verdict(self, trial: Trial) -> bool:
        """Return whether the player sees if the answer was right."""
        return trial.held_out is None or self.settings.held_out_feedback != "none"

    # -- the page ------------------------------------------------------------------------------------------------------

    def shown(self, state: GameState) -> Shown:
        """Return the content of the player's page, which includes no secrets."""
        settings, trial = self.settings, state.trial if state.trials else None
        may_change = state.phase == "open"
        counted = [one for one in state.trials if state.phase == "closed" or self._shows_verdict(one)]
        return Shown(
            phase=state.phase,
            example=0 if trial is None else trial.example,
            examples=settings.examples,
            score=sum(one.points for one in counted),
            cards=state.cards,
            points=state.cards - 1 if trial is None else trial.cards - 1,
            may_add=may_change and state.cards < settings.cap,
            may_remove=may_change and state.cards > LEAST_CARDS,
            tab=state.tab,
            feedback=None if trial is None or not trial.graded else self.feedback(trial),
            card=None if state.train is None else TrainCard(state.train.number, state.train.code),
            last=trial is not None and self._is_last(trial),
        )

    def feedback(self, trial: Trial) -> AnswerFeedback:
        """Return the feedback on a graded answer."""
        if not self._shows_verdict(trial):
            return AnswerFeedback(None, None, None, trial.text)
        code = trial.code if not trial.correct and self._discloses(trial) else None
        return AnswerFeedback(trial.correct, trial.points, code, trial.text)

    def picture(self, state: GameState) -> Picture:
        """Return the picture of the item on screen."""
        return self._picture(state.trial)

    def train_picture(self, state: GameState) -> Picture | None:
        """Return the picture that Train shows; None if Train has not been opened."""
        return None if state.train is None else self._picture(state.train)

    def _picture(self, of: Trial | TrainView) -> Picture:
        colour, shape = divmod(of.meaning, self.settings.content.values)
        return Picture(colour, shape, of.image)
