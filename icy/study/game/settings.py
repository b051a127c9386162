"""Datasets and settings of a game of Secret Spy Codes, and the settings of the authors' service."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

from icy.config.settings import Departure
from icy.core.checks import whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError, quoted, require_known
from icy.core.fields import check_fields, setting
from icy.grammars import canonical_name
from icy.languages.language import LETTERS
from icy.languages.meanings import MeaningSpace

# -- datasets ----------------------------------------------------------------------------------------------------------

ATTRIBUTES = ("colour", "shape")  # in the order of the message
COLOURS = ("red", "green", "blue", "yellow", "magenta")
SHAPES = ("circle", "triangle", "square", "pentagon", "hexagon")

WordTable = tuple[tuple[tuple[int, ...], ...], ...]
"""Tokens of the words, by attribute and value."""


@dataclass(frozen=True)
class Dataset:
    """Colored shapes, and the letters of their codes.

    Meanings are numbered in row-major order (color, shape): the shape varies fastest.

    Attributes:
        name: name of the dataset in options.
        values: number of colors and number of shapes, K.
        word_length: number of letters per word, w.
        vocab_size: number of letters, V.
        cents_per_ten: pay for ten points, in hundredths of the currency.
        words: English words of the values; None if every language draws random words.
    """

    name: str
    values: int
    word_length: int
    vocab_size: int
    cents_per_ten: float
    words: WordTable | None = None

    @property
    def space(self) -> MeaningSpace:
        """The meanings: a color, then a shape."""
        return MeaningSpace(len(ATTRIBUTES), self.values)

    @property
    def length(self) -> int:
        """Number of letters per code, L."""
        return len(ATTRIBUTES) * self.word_length

    @property
    def alphabet(self) -> str:
        """The letters that codes use."""
        return LETTERS[: self.vocab_size]

    def changed(
        self, values: int | None = None, word_length: int | None = None, vocab_size: int | None = None
    ) -> "Dataset":
        """Return the dataset with other sizes; None keeps a size.

        Raises:
            InvalidSettingError: a size would change the English words.
        """
        given = {"values": values, "word_length": word_length, "vocab_size": vocab_size}
        sizes: dict[str, Any] = {n: size for n, size in given.items() if size not in (None, getattr(self, n))}
        if self.words is not None:
            if set(sizes) - {"values"}:
                raise InvalidSettingError(
                    f"The dataset '{self.name}' has fixed words, so word_length and vocab_size cannot change; use the "
                    "dataset 'synth'."
                )
            sizes["words"] = tuple(of_values[: sizes.get("values", self.values)] for of_values in self.words)
        return replace(self, **sizes)

    def named(self, meaning: int) -> tuple[str, str]:
        """Return the names of the color and the shape of a meaning, as in ("red", "circle").

        Example:
            >>> dataset("eng").named(24)
            ('magenta', 'hexagon')
        """
        return COLOURS[meaning // self.values], SHAPES[meaning % self.values]


def _tokens(words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(LETTERS.index, word)) for word in words)


ENGLISH: WordTable = _tokens(("red", "grn", "blu", "yel", "mag")), _tokens(("cir", "tri", "box", "pnt", "hex"))
DATASETS = {
    one.name: one
    for one in (
        Dataset("synth", values=3, word_length=2, vocab_size=4, cents_per_ten=4),
        Dataset("eng", values=5, word_length=3, vocab_size=26, cents_per_ten=1, words=ENGLISH),
    )
}


def dataset(name: str) -> Dataset:
    """Find a dataset by name.

    Raises:
        UnknownNameError: no dataset has this name.
    """
    require_known("dataset", name, DATASETS)
    return DATASETS[name]


# -- settings ----------------------------------------------------------------------------------------------------------

LEAST_CARDS = 2  # a player always has at least two cards
LEAST_DESIGNED = 3  # the card order "designed" needs at least three values, to show each held-out value on two cards
MOST_EXAMPLES = 1000

# Settings of the authors' service that differ from the defaults.
PUBLISHED: Mapping[str, Departure] = {
    "card order": Departure(
        {"card_order": "by-colour"}, "all players get the cards colour by colour, so some colours come late or never"
    ),
    "held-out items": Departure(
        {"held_out": "next"},
        "a held-out item is one of the player's next three cards, often of a colour that was never shown; the player "
        "may learn it before or after",
    ),
    "first card": Departure({"ahead": 1}, "a card is added after 7 examples, and then after every 8"),
    "draws": Departure({"draws": "replacement"}, "items of Test and Train are drawn with replacement"),
    "feedback": Departure({"held_out_feedback": "full"}, "the right code of a held-out item is shown after an error"),
    "languages": Departure(
        {"languages": "legacy", "degenerate": "keep"},
        "random words, and the grammar's draws for English words, come from NumPy's legacy generator; no language is "
        "rejected",
    ),
}
PRESETS: Mapping[str, Mapping[str, Departure]] = {"clean": {}, "published": PUBLISHED}


@dataclass(frozen=True, kw_only=True)
class StudyGameSettings:
    """Settings of a game; the defaults are the preset "clean".

    Attributes:
        dataset: "synth", three colors and shapes with random words; or "eng", five with English words.
        grammar: the grammar, or chain of grammars, that turns words into codes.
        values: number of colors and of shapes, K; the default depends on the dataset.
        word_length: number of letters per word, w; the default depends on the dataset.
        vocab_size: number of letters, V; the default depends on the dataset.
        examples: number of test items.
        held_out_at: numbers of the test items that ask for a held-out item, counted from 0; one for each held-out
            item.
        start: number of cards at the start.
        interval: number of test items between two cards that are added automatically.
        ahead: number of test items by which these cards are added earlier.
        held_out: "apart": held-out items are never shown as cards; or "next": they are the next cards of the player's
            order.
        card_order: "designed": first the cards that show every value of the held-out items twice, then the others in
            random order; "random"; or "by-colour", the order of meanings.
        draws: method of drawing items: from shuffled "bags", or with "replacement".
        held_out_feedback: feedback on the answer to a held-out item: "full", the right code after an error, as for
            other items; "verdict", right or wrong; or "none".
        languages: random generator of languages: that of "icy", or NumPy's "legacy" generator.
        degenerate: "reject" or "keep" languages in which the codes of held-out values happen to be two words side by
            side.
        cents_per_ten: pay for ten points, in hundredths of the currency; the default depends on the dataset.

    Raises:
        UnknownNameError, InvalidSettingError, IncompatibleError: settings that are not accepted, or cannot be combined.

    Example:
        >>> StudyGameSettings().cap, StudyGameSettings(dataset="eng").most_points
        (6, 1030)
        >>> StudyGameSettings.of("published").held_out_feedback
        'full'
    """

    dataset: str = "synth"
    grammar: str = "concat"
    values: int | None = setting(None, "number of values", least=2, most=len(COLOURS))
    word_length: int | None = setting(None, "word length", least=1, most=16)
    vocab_size: int | None = setting(None, "vocabulary", least=2, most=len(LETTERS))
    examples: int = setting(50, "number of examples", least=1, most=MOST_EXAMPLES)
    held_out_at: tuple[int, ...] = (29, 39, 49)
    start: int = 2
    interval: int = setting(8, "number of examples between two cards (interval)", least=1)
    ahead: int = setting(0, "number of examples by which cards come earlier (ahead)", least=0)
    held_out: Literal["apart", "next"] = setting("apart", "choice of held_out")
    card_order: Literal["designed", "random", "by-colour"] = setting("designed", "choice of card_order")
    draws: Literal["bags", "replacement"] = setting("bags", "choice of draws")
    held_out_feedback: Literal["full", "verdict", "none"] = setting("verdict", "choice of held_out_feedback")
    languages: Literal["icy", "legacy"] = setting("icy", "choice of languages")
    degenerate: Literal["reject", "keep"] = setting("reject", "choice of degenerate")
    cents_per_ten: float | None = setting(None, "pay of ten points, in cents,", least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "grammar", canonical_name(self.grammar))
        object.__setattr__(self, "held_out_at", _positions(self.held_out_at, self.examples))
        self._check_cards()

    def _check_cards(self) -> None:
        """Check that there are enough cards.

        Raises:
            InvalidSettingError, IncompatibleError: there are too few cards, or the card order is not possible.
        """
        values, count = self.content.values, len(self.held_out_at)
        if self.held_out == "apart" and count > values:
            raise InvalidSettingError(
                f"No two held-out items may have the same color or the same shape, so {values} values allow at most "
                f"{values} held-out items, not {count}."
            )
        whole_number("number of cards at the start", self.start, LEAST_CARDS, max(self.cap, LEAST_CARDS))
        if self.cap < LEAST_CARDS:
            raise InvalidSettingError(
                f"{count} held-out items leave {self.cap} of {self.content.space.size} cards, and a game needs at "
                f"least {LEAST_CARDS}; hold out fewer items."
            )
        if self.card_order == "designed" and (self.held_out == "next" or values < LEAST_DESIGNED):
            raise IncompatibleError(
                f"The card order 'designed' needs held_out='apart' and at least {LEAST_DESIGNED} values; use 'random' "
                "or 'by-colour'."
            )

    @classmethod
    def of(cls, preset: str = "clean", **changes: Any) -> "StudyGameSettings":
        """Create the settings of a preset, with changes. Values may come from JSON.

        Raises:
            UnknownNameError: the preset or a setting is unknown.
            InvalidSettingError, IncompatibleError: settings that are not accepted, or cannot be combined.
        """
        require_known("preset", preset, PRESETS)
        known = [one.name for one in fields(cls)]
        for name in changes:
            require_known("setting of the game", name, known)
        usual = {name: value for departure in PRESETS[preset].values() for name, value in departure.settings.items()}
        return cls(**{**usual, **changes})

    def to_json(self) -> dict[str, object]:
        """Return all settings as a dictionary for JSON, which `of` accepts."""
        return {**asdict(self), "held_out_at": list(self.held_out_at)}

    def departures(self, preset: str) -> dict[str, object]:
        """Return the settings that differ from a preset for this dataset, except the grammar."""
        usual = StudyGameSettings.of(preset, dataset=self.dataset).to_json()
        return {name: value for name, value in self.to_json().items() if name != "grammar" and usual[name] != value}

    # -- derived values ------------------------------------------------------------------------------------------------

    @cached_property
    def content(self) -> Dataset:
        """The dataset, with the sizes in these settings."""
        return dataset(self.dataset).changed(self.values, self.word_length, self.vocab_size)

    @cached_property
    def cap(self) -> int:
        """Number of cards that a player can have: all except the held-out items."""
        return int(self.content.space.size) - len(self.held_out_at)

    @property
    def most_points(self) -> int:
        """The highest possible score: a right answer to the first item with the starting cards, to others with all."""
        return self.start - 1 + (self.examples - 1) * (self.cap - 1)

    def due(self, example: int) -> int:
        """Return the smallest number of cards from this example on; 0 if no card is due at this example.

        Example:
            >>> [example for example in range(50) if StudyGameSettings.of("published", dataset="eng").due(example)]
            [7, 15, 23, 31, 39, 47]
        """
        steps, rest = divmod(example + self.ahead, self.interval)
        return 0 if rest or not steps else min(self.cap, self.start + steps)

    def bonus_cents(self, score: int) -> float:
        """Return the bonus for a score, in hundredths of the currency."""
        rate = self.content.cents_per_ten if self.cents_per_ten is None else self.cents_per_ten
        return rate * score / 10


def _positions(value: Iterable[object], examples: int) -> tuple[int, ...]:
    """Check the positions of held-out items.

    Raises:
        InvalidSettingError: the list is empty, not in rising order, or has a number that is not a position of a test
            item.
    """
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise InvalidSettingError(f"held_out_at must be a list of numbers, as in [29, 39, 49], not {quoted(value)}.")
    positions = tuple(whole_number("example of a held-out item", one, 0, examples - 1) for one in value)
    if not positions or list(positions) != sorted(set(positions)):
        raise InvalidSettingError(f"held_out_at must be numbers in rising order, not {quoted(value)}.")
    return positions
