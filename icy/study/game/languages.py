"""Instances: languages with held-out items, the same for people and machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.streams import stream, stream_key
from icy.grammars import grammar_version, make_language
from icy.grammars.authors import authors_generator
from icy.grammars.grammar import base_words
from icy.languages.language import LETTERS, Language

from .settings import Dataset, StudyGameSettings

LANGUAGE_SEEDS = 1_000_000  # number of possible seeds, as in the authors' service
MOST_ATTEMPTS = 1000
TEST_LANGUAGES = 16  # number of languages in the test whether a grammar always writes two words side by side

Codes = tuple[str, ...]


@dataclass(frozen=True)
class Instance:
    """A language and its held-out items.

    Attributes:
        number: position in the list of the condition, from 0.
        language_seed: seed of the language.
        held_out: held-out meanings, in the order of their test items; empty if they are the next cards of the
            player's order.
    """

    number: int
    language_seed: int
    held_out: tuple[int, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the instance as a dictionary for JSON."""
        return {**asdict(self), "held_out": list(self.held_out)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "Instance":
        """Create an instance from the dictionary that `to_json` returns."""
        return cls(int(found["number"]), int(found["language_seed"]), tuple(map(int, found["held_out"])))

    def check(self, settings: StudyGameSettings) -> None:
        """Check that the held-out items match the settings of a game.

        Raises:
            InvalidSettingError: the held-out items do not match.
        """
        apart, values = settings.held_out == "apart", settings.content.values
        count = len(settings.held_out_at) if apart else 0
        needed = (
            f"{count} held-out items of different colors and shapes, out of {values} each"
            if apart
            else "no held-out items, because these are the player's next cards (held_out='next')"
        )
        colours, shapes = {m // values for m in self.held_out}, {m % values for m in self.held_out}
        if {len(self.held_out), len(colours), len(shapes)} != {count} or not colours <= set(range(values)):
            raise InvalidSettingError(f"With these settings, an instance needs {needed}; this one has {self.held_out}.")


def instances(settings: StudyGameSettings, count: int, seed: int = 0) -> list[Instance]:
    """Return the first `count` instances in the list of a condition (dataset and grammar).

    All grammars of a dataset have the same held-out items. They also have the same language seeds, unless a language is
    rejected.

    Args:
        settings: settings of the condition.
        count: number of instances.
        seed: seed of the list.

    Example:
        >>> first = instances(StudyGameSettings(grammar="perm"), 2)
        >>> [one.held_out for one in first] == [one.held_out for one in instances(StudyGameSettings(), 2)]
        True
    """
    whole_number("number of instances", count)
    return [instance_of(settings, number, seed) for number in range(count)]


def instance_of(settings: StudyGameSettings, number: int, seed: int = 0) -> Instance:
    """Return an instance in the list of a condition.

    Args:
        settings: settings of the condition.
        number: position in the list, from 0.
        seed: seed of the list.

    Raises:
        InvalidSettingError: every language of the condition is rejected as degenerate.
    """
    held_out = held_out_set(settings, stream(seed, "held-out", settings.dataset, number))
    for attempt in range(MOST_ATTEMPTS):
        language_seed = stream_key(seed, "language", settings.dataset, number, attempt) % LANGUAGE_SEEDS
        instance = Instance(number, language_seed, held_out)
        if settings.degenerate == "keep" or not is_degenerate(settings, instance):
            return instance
    raise InvalidSettingError(
        f"All {MOST_ATTEMPTS} languages of '{settings.grammar}' write the held-out values as two words side by side; "
        "set degenerate to 'keep'."
    )


def person_seed(dataset: str, number: int, seed: int = 0) -> int:
    """Return the person's seed of a simulated game. It is the same for all grammars and players."""
    return stream_key(seed, "person", dataset, number)


def held_out_set(settings: StudyGameSettings, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw the held-out meanings, of different colors and shapes, in the order of their test items."""
    if settings.held_out == "next":
        return ()
    values, count = settings.content.values, len(settings.held_out_at)
    colours, shapes = rng.permutation(values)[:count], rng.permutation(values)[:count]
    return tuple(int(c * values + s) for c, s in zip(colours, shapes, strict=True))


# -- languages ---------------------------------------------------------------------------------------------------------


def language_of(settings: StudyGameSettings, seed: int) -> Language:
    """Create the language of a condition with a seed.

    Raises:
        IncompatibleError, InvalidSettingError: the grammar does not fit the dataset.

    Example:
        >>> eng = StudyGameSettings.of("published", dataset="eng", grammar="perm")
        >>> codes_of(eng, 0)[0], codes_of(eng, 123)[24]
        ('rdecri', 'ahemgx')
    """
    return _language(settings, seed, grammar_version(settings.grammar))  # a notebook may register it again


@lru_cache(maxsize=4096)
def _language(settings: StudyGameSettings, seed: int, version: str) -> Language:
    content, legacy = settings.content, settings.languages == "legacy"
    sizes = (content.space, content.vocab_size, content.word_length)
    if content.words is None and legacy:  # the service draws random words from the seed, and the rest without a seed
        return make_language(settings.grammar, *sizes, seed, words=base_words(*sizes, authors_generator(seed)))
    return make_language(settings.grammar, *sizes, seed, words=content.words, draws="authors" if legacy else "icy")


def codes_of(settings: StudyGameSettings, seed: int) -> Codes:
    """Return the codes of all meanings in the language with a seed."""
    return tuple("".join(LETTERS[token] for token in message) for message in language_of(settings, seed).messages)


def is_degenerate(settings: StudyGameSettings, instance: Instance) -> bool:
    """Return whether a language of another grammar writes the held-out values as in concat: two words side by side.

    One in three languages of perm over synth is degenerate, because its permutation swaps letters within words only. A
    language of shufdet is degenerate if all held-out shapes share one order. With `held_out="next"`, all values are
    tested.
    """
    if _always_two_words(settings):
        return False
    return two_words(codes_of(settings, instance.language_seed), settings.content, instance.held_out)


@lru_cache
def _always_two_words(settings: StudyGameSettings) -> bool:
    """Return whether all languages of the condition write two words side by side, as in concat."""
    return all(two_words(codes_of(settings, seed), settings.content) for seed in range(TEST_LANGUAGES))


def two_words(codes: Codes, content: Dataset, of: Sequence[int] = ()) -> bool:
    """Return whether every code is a word for the color and a word for the shape, always in the same order.

    Args:
        codes: codes of all meanings.
        content: the dataset.
        of: meanings whose colors and shapes are tested; by default all.
    """
    meanings = of or range(content.space.size)
    colours, shapes = {m // content.values for m in meanings}, {m % content.values for m in meanings}
    block = [(c, s, codes[c * content.values + s]) for c in colours for s in shapes]
    half = content.word_length
    parts = [[(c, s, code[place]) for c, s, code in block] for place in (slice(half), slice(half, None))]
    return any(_depends_on(0, first) and _depends_on(1, second) for first, second in (parts, parts[::-1]))


def _depends_on(place: int, part: list[tuple[int, int, str]]) -> bool:
    """Return whether a part of the codes depends only on the color (`place` 0) or only on the shape (1)."""
    return len({(row[place], row[2]) for row in part}) == len({row[place] for row in part})


def distinct_codes(settings: StudyGameSettings, instance: Instance) -> int:
    """Count the different codes of a language. Languages of proj may have fewer codes than meanings."""
    return len(set(codes_of(settings, instance.language_seed)))
