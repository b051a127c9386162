"""Instances: a language and its held-out items, which people and machines share (spycodes-facts 12, 18)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.streams import stream, stream_key
from icy.grammars import grammar_version, make_language
from icy.languages.language import LETTERS, Language

from .datasets import Dataset
from .legacy import legacy_generators, legacy_words
from .settings import StudyGameSettings

LANGUAGE_SEEDS = 1_000_000  # as many as the authors drew from
MOST_ATTEMPTS = 1000
TRIED = 16  # languages of a grammar, to see whether all are two words side by side

Codes = tuple[str, ...]


@dataclass(frozen=True)
class Instance:
    """One language, and the items that are held out.

    Attributes:
        number: its place in the list of a condition, from 0.
        language_seed: seed of the language.
        held_out: meanings held out, in the order in which they are asked; none where they are the next cards of the
            player's own course.
    """

    number: int
    language_seed: int
    held_out: tuple[int, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON, which `of_json` reads."""
        return {**asdict(self), "held_out": list(self.held_out)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "Instance":
        """Return the instance that `to_json` gave."""
        return cls(int(found["number"]), int(found["language_seed"]), tuple(map(int, found["held_out"])))

    def check(self, settings: StudyGameSettings) -> None:
        """Require that a game of these settings can be played on it.

        Raises:
            InvalidSettingError: its held-out items do not suit the settings.
        """
        apart, values = settings.held_out == "apart", settings.content.values
        wanted = len(settings.held_out_at) if apart else 0
        why = f"of {values} each" if apart else "as they are the next cards of the player"
        colours, shapes = ({part[m] for m in self.held_out} for part in _values_of(settings.content))
        if len(self.held_out) != wanted or len(colours) != wanted or len(shapes) != wanted:
            raise InvalidSettingError(
                f"An instance of these settings holds out {wanted} items of different colours and shapes, {why}; not "
                f"{self.held_out}."
            )


def _values_of(content: Dataset) -> tuple[dict[int, int], dict[int, int]]:
    """Return the colour and the shape of all meanings, by number."""
    meanings = range(content.space.size)
    return {m: m // content.values for m in meanings}, {m: m % content.values for m in meanings}


def instances(settings: StudyGameSettings, count: int, seed: int = 0) -> list[Instance]:
    """Return the first instances of the list of a condition: dataset and grammar.

    Held-out items are the same for all grammars of a dataset, and so are languages' seeds, unless a language is
    rejected.

    Args:
        settings: of the condition.
        count: how many.
        seed: of the list.

    Example:
        >>> first = instances(StudyGameSettings(grammar="perm"), 2)
        >>> [one.held_out for one in first] == [one.held_out for one in instances(StudyGameSettings(), 2)]
        True
    """
    whole_number("number of instances", count)
    return [instance_of(settings, number, seed) for number in range(count)]


def instance_of(settings: StudyGameSettings, number: int, seed: int = 0) -> Instance:
    """Return one instance of the list of a condition.

    Args:
        settings: of the condition.
        number: its place in the list, from 0.
        seed: of the list.

    Raises:
        InvalidSettingError: no language of the condition is accepted.
    """
    held_out = held_out_set(settings, stream(seed, "held-out", settings.dataset, number))
    for attempt in range(MOST_ATTEMPTS):
        language_seed = stream_key(seed, "language", settings.dataset, number, attempt) % LANGUAGE_SEEDS
        instance = Instance(number, language_seed, held_out)
        if settings.degenerate == "keep" or not is_degenerate(settings, instance):
            return instance
    raise InvalidSettingError(
        f"Of {MOST_ATTEMPTS} languages of '{settings.grammar}', all write the held-out values as two words side by "
        "side; set degenerate to 'keep'."
    )


def person_seed(dataset: str, number: int, seed: int = 0) -> int:
    """Return the seed of the simulated person who plays an instance: the same for all grammars and players."""
    return stream_key(seed, "person", dataset, number)


def held_out_set(settings: StudyGameSettings, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw the meanings to hold out, of different colours and shapes, in the order in which they are asked."""
    if settings.held_out == "next":
        return ()
    values, count = settings.content.values, len(settings.held_out_at)
    colours, shapes = rng.permutation(values)[:count], rng.permutation(values)[:count]
    return tuple(int(c * values + s) for c, s in zip(colours, shapes, strict=True))


# -- languages ---------------------------------------------------------------------------------------------------------


def language_of(settings: StudyGameSettings, seed: int) -> Language:
    """Return the language of a seed in a condition.

    Raises:
        IncompatibleError, InvalidSettingError: the grammar does not suit the dataset.

    Example:
        >>> eng = StudyGameSettings.of("published", dataset="eng", grammar="perm")
        >>> codes_of(eng, 0)[0], codes_of(eng, 123)[24]
        ('rdecri', 'ahemgx')
    """
    return _language(settings, seed, grammar_version(settings.grammar))  # a notebook may register it anew


@lru_cache(maxsize=4096)
def _language(settings: StudyGameSettings, seed: int, version: str) -> Language:
    content, legacy = settings.content, settings.languages == "legacy"
    words = legacy_words(seed, content) if content.words is None and legacy else content.words
    sizes = (content.space, content.vocab_size, content.word_length, seed)
    return make_language(
        settings.grammar, *sizes, words=words, generators=legacy_generators(content) if legacy else stream
    )


def codes_of(settings: StudyGameSettings, seed: int) -> Codes:
    """Return the codes of all meanings in the language of a seed, in letters."""
    return tuple("".join(LETTERS[token] for token in message) for message in language_of(settings, seed).messages)


def is_degenerate(settings: StudyGameSettings, instance: Instance) -> bool:
    """Return whether held-out values happen to be written as two words side by side, though the grammar is another.

    Such are 1 in 3 languages of perm over synth, which swaps letters within words alone, and the languages of shufdet
    in which all held-out shapes share one order. Where no items are held out for good, all values are looked at.
    """
    if _always_two_words(settings):
        return False
    return two_words(codes_of(settings, instance.language_seed), settings.content, instance.held_out)


@lru_cache
def _always_two_words(settings: StudyGameSettings) -> bool:
    """Return whether all languages of the condition are two words side by side, as those of concat."""
    return all(two_words(codes_of(settings, seed), settings.content) for seed in range(TRIED))


def two_words(codes: Codes, content: Dataset, of: Sequence[int] = ()) -> bool:
    """Return whether codes are a word of the colour and one of the shape, side by side in one order.

    Args:
        codes: of all meanings.
        content: the dataset.
        of: meanings whose colours and shapes to look at; by default all are.
    """
    colour, shape = _values_of(content)
    looked_at = of or range(content.space.size)
    colours, shapes = {colour[m] for m in looked_at}, {shape[m] for m in looked_at}
    block = [(c, s, codes[c * content.values + s]) for c in colours for s in shapes]
    half = content.word_length
    parts = [[(c, s, code[place]) for c, s, code in block] for place in (slice(half), slice(half, None))]
    return any(_depends_on(0, first) and _depends_on(1, second) for first, second in (parts, parts[::-1]))


def _depends_on(place: int, part: list[tuple[int, int, str]]) -> bool:
    """Return whether a part of the codes is one and the same for every colour (0) or shape (1)."""
    return len({(row[place], row[2]) for row in part}) == len({row[place] for row in part})


def distinct_codes(settings: StudyGameSettings, instance: Instance) -> int:
    """Return how many different codes the language has; languages of proj may have fewer than meanings."""
    return len(set(codes_of(settings, instance.language_seed)))
