"""Settings of a game of Secret Spy Codes, and those that the authors' service chooses differently."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

from icy.config.presets import Departure
from icy.core.checks import real_number, whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError, quoted, unknown
from icy.grammars import canonical_name

from .datasets import Dataset, dataset

HeldOut = Literal["apart", "next"]
CardOrder = Literal["designed", "random", "by-colour"]
Draws = Literal["bags", "replacement"]
HeldOutFeedback = Literal["full", "verdict", "none"]
Languages = Literal["icy", "legacy"]
Degenerate = Literal["reject", "keep"]
Preset = Literal["clean", "published"]

LEAST_CARDS = 2  # which the player can always choose between
LEAST_DESIGNED = 3  # values of an attribute that show each value of a held-out item in two other cards
MOST_EXAMPLES = 1000

# What the authors' service chooses differently (spycodes-facts 2, 4, 5 and 8).
PUBLISHED: Mapping[str, Departure] = {
    "card order": Departure(
        {"card_order": "by-colour"},
        "all players get the cards colour by colour, so that whole colours come late or never",
    ),
    "held-out items": Departure(
        {"held_out": "next"},
        "a held-out item is the next card but none, one or two of the player's own course, whose colour was often "
        "never shown; it may be learned before or after",
    ),
    "first card": Departure({"ahead": 1}, "a card is added after 7 examples, and then after every 8"),
    "draws": Departure({"draws": "replacement"}, "items of Test and Train are drawn with replacement"),
    "feedback": Departure({"held_out_feedback": "full"}, "the right code of a held-out item is shown after an error"),
    "languages": Departure(
        {"languages": "legacy", "degenerate": "keep"},
        "words, and for English words the grammar's draws, are those of NumPy's legacy generator; no draw is rejected",
    ),
}
PRESETS: Mapping[str, Mapping[str, Departure]] = {"clean": {}, "published": PUBLISHED}


@dataclass(frozen=True, kw_only=True)
class StudyGameSettings:
    """Settings of a game; the defaults are the preset "clean".

    Attributes:
        dataset: "synth", three colours and shapes with random words; or "eng", five with English words.
        grammar: the grammar or chain that makes codes of the words.
        values: number of colours, and of shapes, K; by default that of the dataset.
        word_length: letters per word, w; likewise.
        vocab_size: number of letters, V; likewise.
        examples: number of test items.
        held_out_at: examples that ask for a held-out item, counted from 0; as many items are held out.
        start: cards at the start.
        interval: examples between two cards that are added by themselves.
        ahead: examples by which these come earlier.
        held_out: "apart": items that are never shown otherwise; or "next": the next cards of the player's own course.
        card_order: "designed": cards that show every value of the held-out items twice come first, the others in random
            order; "random"; or "by-colour", the order of meanings.
        draws: items come from shuffled "bags", or are drawn with "replacement".
        held_out_feedback: what follows the answer to a held-out item: "full", the right code after an error, as for
            other items; "verdict", right or wrong; or "none".
        languages: languages of "icy", or of NumPy's "legacy" generator.
        degenerate: "reject" languages in which the codes of held-out values happen to be two words side by side, or
            "keep" them.
        cents_per_ten: what ten points add to a person's pay; by default that of the dataset.

    Raises:
        UnknownNameError, InvalidSettingError, IncompatibleError: settings that are not accepted, or do not go together.

    Example:
        >>> StudyGameSettings().cap, StudyGameSettings(dataset="eng").most_points
        (6, 1030)
        >>> StudyGameSettings.of("published").held_out_feedback
        'full'
    """

    dataset: str = "synth"
    grammar: str = "concat"
    values: int | None = None
    word_length: int | None = None
    vocab_size: int | None = None
    examples: int = 50
    held_out_at: tuple[int, ...] = (29, 39, 49)
    start: int = 2
    interval: int = 8
    ahead: int = 0
    held_out: HeldOut = "apart"
    card_order: CardOrder = "designed"
    draws: Draws = "bags"
    held_out_feedback: HeldOutFeedback = "verdict"
    languages: Languages = "icy"
    degenerate: Degenerate = "reject"
    cents_per_ten: float | None = None

    def __post_init__(self) -> None:
        for name, accepted in CHOICES.items():
            if getattr(self, name) not in accepted:
                raise unknown(f"choice of {name}", str(getattr(self, name)), accepted)
        object.__setattr__(self, "grammar", canonical_name(self.grammar))
        whole_number("number of examples", self.examples, 1, MOST_EXAMPLES)
        whole_number("number of examples between two cards (interval)", self.interval)
        whole_number("number of examples by which cards come earlier (ahead)", self.ahead, least=0)
        object.__setattr__(self, "held_out_at", _positions(self.held_out_at, self.examples))
        if self.cents_per_ten is not None:
            real_number("pay of ten points, in cents,", self.cents_per_ten)
        self._check_cards()

    def _check_cards(self) -> None:
        """Require enough cards to hold some out and to start with.

        Raises:
            InvalidSettingError, IncompatibleError: there are too few, or they cannot be ordered so.
        """
        values, count = self.content.values, len(self.held_out_at)
        if self.held_out == "apart" and count > values:
            raise InvalidSettingError(
                f"Held-out items have colours and shapes of their own, so {values} values allow for {values} of them, "
                f"not {count}."
            )
        whole_number("number of cards at the start", self.start, LEAST_CARDS, max(self.cap, LEAST_CARDS))
        if self.cap < LEAST_CARDS:
            raise InvalidSettingError(f"{count} held-out items leave {self.cap} of {self.content.space.size} cards.")
        if self.card_order == "designed" and (self.held_out == "next" or values < LEAST_DESIGNED):
            raise IncompatibleError(
                "The card order 'designed' is for held-out items that stay apart, of at least "
                f"{LEAST_DESIGNED} values; take 'random' or 'by-colour'."
            )

    @classmethod
    def of(cls, preset: str = "clean", **given: Any) -> "StudyGameSettings":
        """Return the settings of a preset, with some given by name; these may come from JSON.

        Raises:
            UnknownNameError: no such preset or setting.
            InvalidSettingError, IncompatibleError: settings that are not accepted, or do not go together.
        """
        if preset not in PRESETS:
            raise unknown("preset", str(preset), list(PRESETS))
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise unknown("setting of the game", str(name), known)
        usual = {name: value for departure in PRESETS[preset].values() for name, value in departure.settings.items()}
        return cls(**{**usual, **given})

    def to_json(self) -> dict[str, object]:
        """Return all settings as plain JSON, which `of` reads."""
        return {**asdict(self), "held_out_at": list(self.held_out_at)}

    # -- what follows from them ----------------------------------------------------------------------------------------

    @cached_property
    def content(self) -> Dataset:
        """The dataset, in the sizes that were set."""
        return dataset(self.dataset).changed(self.values, self.word_length, self.vocab_size)

    @cached_property
    def cap(self) -> int:
        """Number of cards that a player can have: all but the held-out ones."""
        return int(self.content.space.size) - len(self.held_out_at)

    @property
    def most_points(self) -> int:
        """The highest score: the first item has the cards of the start, all others may have all cards."""
        return self.start - 1 + (self.examples - 1) * (self.cap - 1)

    def due(self, example: int) -> int:
        """Return the cards that an example brings a player to, at the least; 0 where none is added.

        Example:
            >>> [example for example in range(50) if StudyGameSettings.of("published", dataset="eng").due(example)]
            [7, 15, 23, 31, 39, 47]
        """
        steps, rest = divmod(example + self.ahead, self.interval)
        return 0 if rest or not steps else min(self.cap, self.start + steps)

    def bonus_cents(self, score: int) -> float:
        """Return what a score adds to a person's pay."""
        rate = self.content.cents_per_ten if self.cents_per_ten is None else self.cents_per_ten
        return rate * score / 10


CHOICES = {
    name: get_args(kind) for name, kind in get_type_hints(StudyGameSettings).items() if get_origin(kind) is Literal
}
"""The accepted values of settings that are one of several words."""


def _positions(given: Iterable[object], examples: int) -> tuple[int, ...]:
    """Return the examples of held-out items, in order.

    Raises:
        InvalidSettingError: they are none, out of order, or not among the examples.
    """
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise InvalidSettingError(
            f"The examples of held-out items are a list, as in [29, 39, 49], not {quoted(given)}."
        )
    found = tuple(whole_number("example of a held-out item", one, 0, examples - 1) for one in given)
    if not found or list(found) != sorted(set(found)):
        raise InvalidSettingError(f"The examples of held-out items are numbers in rising order, not {quoted(given)}.")
    return found
