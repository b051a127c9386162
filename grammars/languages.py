"""Make languages by the names of grammars and chains."""

import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np

from icy.core.checks import LARGEST_SEED, whole_number
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, UnknownNameError, require_known
from icy.core.registry import SIDES, Entry, registry
from icy.core.streams import DrawsName, Seed, stream
from icy.core.text import counted, words
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.names import bounds_of, is_language, word_length_of

from .authors import authors_generator
from .grammar import ABSENT, Corruption, IntArray, WordTable, base_messages, check_settings, given_words
from .word_lengths import joined, words_of_lengths

WILDCARDS = "*?["
LANGUAGE_VERSION = "1"  # version of languages used as grammars, which never change: their names contain a hash


def make_language(
    name: str,
    space: MeaningSpace | str | tuple[int, int],
    vocab_size: int = 4,
    word_length: int | str = 4,
    seed: int = 0,
    *,
    words: object = None,
    frequencies: Frequencies | str | None = None,
    draws: str = "icy",
) -> Language:
    """Make the language of a grammar.

    The base words come from one stream of the seed, and every corruption draws from its own stream. So all
    grammars of a seed share their words, and `perm` is the same permutation alone and in `rot+perm`.

    Args:
        name: a grammar (`rot`), an alias (`comp`), or a chain of corruptions applied left to right (`rot+perm`).
        space: the meanings, such as "5x10".
        vocab_size: number of tokens, V.
        word_length: tokens per attribute word, w; messages have length A * w. Or the smallest and the largest number,
            "1-4": words have different lengths, and V is the token `Language.eos`, which ends the messages.
        seed: whole number.
        words: base words to use instead of the seed's: tokens, shape [A, K, w].
        frequencies: how often each meaning occurs, such as "zipf:1". Of words of different lengths, frequent values get
            the short ones.
        draws: "icy", streams of the seed; or "authors", the generators of the authors' program in its order, which
            gives the languages of Perkins21 and Icy22. With given words, icy draws as their human study did.

    Returns:
        The language, under its canonical name.

    Raises:
        UnknownNameError: unknown grammar; the message suggests similar names.
        IncompatibleError: the chain holds a grammar that is not a corruption, the space does not suit the grammar, or
            a plug-in's grammar does not accept words, or words of different lengths; or the authors' program does
            not have the grammar or the space.
        InvalidSettingError: the sizes do not fit together, or the table does not fit in memory.

    Example:
        >>> from icy.grammars import make_language
        >>> language = make_language("rot+perm", "3x10", seed=1)
        >>> language
        Language('rot+perm', 3x10, 1000 messages of 12 tokens, vocabulary 4, seed 1)
        >>> language == make_language("rot+perm", "3x10", seed=1)
        True
        >>> make_language("concat", "2x2", word_length="1-3", seed=2).examples()["message"].tolist()
        ['dbdad', 'dbdac', 'caad']
    """
    whole_space = MeaningSpace.of(space)
    whole_seed = whole_number("seed", seed, -LARGEST_SEED - 1, LARGEST_SEED)
    entries = resolve(name)
    word_length = word_length_of(word_length)
    shortest, longest = bounds_of(word_length)
    check_settings(whole_space, vocab_size, longest)
    vocab_size = int(vocab_size)  # NumPy's integers would overflow in V ** L
    shorter = shortest < longest
    if frequencies is not None and not shorter:
        raise InvalidSettingError("frequencies need words of different lengths, such as a word length of 1-4.")
    table = None if words is None else given_words(words, whole_space, vocab_size, longest)
    require_known("generator of languages (draws)", draws, get_args(DrawsName))
    drawn: Seed = whole_seed
    if draws == "authors":
        own = next((entry.name for entry in entries if entry.is_users), None)
        for refused, has in (
            (own is not None, f"the grammar '{own}'"),
            (len(set(whole_space.size_of_each)) > 1, f"attributes with different numbers of values ({whole_space})"),
            (shorter, "words of different lengths"),
        ):
            if refused:
                raise IncompatibleError(
                    f"The authors' program does not have {has}: change this, or use the draws 'icy'."
                )
        drawn = authors_generator(whole_seed, service=table is not None)
    if shorter:
        if fixed := [entry.name for entry in entries if not takes_lengths(entry)]:
            raise IncompatibleError(
                f"The grammar '{fixed[0]}' does not accept words of different lengths ({word_length}): leave it out, "
                "or give a single word length."
            )
        if table is not None:
            raise InvalidSettingError(f"Given words have one length, not {word_length}: leave the words out.")
        law = Frequencies(frequencies) if isinstance(frequencies, str) else frequencies
        table = words_of_lengths(whole_space, vocab_size, word_length, whole_seed, law)
    sizes = whole_space, vocab_size, longest
    made: Any
    if _is_corruption(entries[0]):
        made, uses = base_messages(*sizes, drawn, table), Counter[str]()
        for entry in entries:
            uses[entry.name] += 1
            # A second use in one chain draws from another stream; the first draws the same as the corruption alone.
            again = () if uses[entry.name] == 1 else (uses[entry.name],)
            words_of_one = WordTable(*sizes, stream(drawn, entry.name, *again), shorter)
            made = np.asarray(entry.create().apply(made, words_of_one))
    else:
        made = entries[0].create(*sizes, drawn, **_words_for(entries[0], table, shorter, whole_space))
    if shorter and not isinstance(made, Language):
        made = Language(whole_space, joined(np.asarray(made), fill=vocab_size), vocab_size + 1, eos=vocab_size)
    canonical = "+".join(entry.name for entry in entries)
    return _check_result(made, canonical, whole_space, vocab_size + shorter, longest, whole_seed)


def takes_lengths(entry: Entry) -> bool:
    """Return whether a grammar accepts words of different lengths."""
    factory = entry.load()
    if _is_corruption(entry):
        return bool(factory.shorter_words)
    return {"words", "lengths"} <= inspect.signature(factory).parameters.keys()


def canonical_name(name: str) -> str:
    """Return the name of a grammar or chain with aliases resolved, without making the language.

    Returns:
        The name that results use, without spaces.

    Raises:
        UnknownNameError: unknown grammar.
        IncompatibleError: the chain holds a grammar that is not a corruption.

    Example:
        >>> from icy.grammars import canonical_name
        >>> canonical_name("comp"), canonical_name("rot + perm")
        ('concat', 'rot+perm')
    """
    return "+".join(entry.name for entry in resolve(name))


def grammar_version(name: str) -> str:
    """Return the version of a grammar or chain ("1+1"). A grammar's version increases when its languages change.

    Returns:
        The version, which is part of the key of results, so results of different versions are never mixed.

    Raises:
        UnknownNameError, IncompatibleError: as for `canonical_name`.
    """
    if is_language(name):
        return LANGUAGE_VERSION
    return "+".join(entry.full_version for entry in resolve(name))


def grammar_sides(name: str) -> tuple[str, ...]:
    """Return the sides that can learn a grammar; for a chain, the sides that can learn all of its parts.

    Returns:
        "sender", "receiver" or both, in this order; empty if the parts of a chain have no side in common.

    Raises:
        UnknownNameError, IncompatibleError: as for `canonical_name`.

    Example:
        >>> from icy.grammars import grammar_sides
        >>> grammar_sides("rot"), grammar_sides("rot+shuf")
        (('sender', 'receiver'), ('receiver',))
    """
    parts = [getattr(entry.load(), "sides", SIDES) for entry in resolve(name)]
    return tuple(side for side in SIDES if all(side in part for part in parts))


def check_side(name: str, side: str) -> None:
    """Raise an error for a grammar that a side cannot learn, such as shuf for a sender.

    Raises:
        IncompatibleError: only the other side can learn the grammar.
        InvalidSettingError: `side` is not "sender" or "receiver".
    """
    if side not in SIDES:
        raise InvalidSettingError(f"'{side}' is not a side; use {' or '.join(SIDES)}.")
    sides = grammar_sides(name)
    if side not in sides:
        learners = f"is for {sides[0]}s only, not for a {side}" if sides else "cannot be learned by any side"
        raise IncompatibleError(
            f"The grammar '{canonical_name(name)}' {learners}; "
            f"leave it out, or write 'all' for every grammar that a {side} can learn."
        )


def expand_grammars(patterns: str | Iterable[str], side: str) -> list[str]:
    """Return the canonical names of the grammars that match patterns, each once, in the order of the patterns.

    Args:
        patterns: "all", shell patterns (`shuf*`), names, aliases and chains, and names of languages
            (`emerged@1a2b3c4d5e6f7081`), in a list or between commas. "all" and shell patterns leave out grammars that
            are for the other side. A name is used for both sides.
        side: "sender" or "receiver".

    Returns:
        The names, as `make_language` takes them.

    Raises:
        UnknownNameError: a pattern matches nothing.
        IncompatibleError: all grammars that a pattern matches are for the other side.
        InvalidSettingError: `side` is not "sender" or "receiver".

    Example:
        >>> from icy.grammars import expand_grammars
        >>> expand_grammars(["shuf*", "comp", "rot+perm"], "sender")
        ['shufdet', 'concat', 'rot+perm']
    """
    listed = words(patterns) or ([patterns] if isinstance(patterns, str) else [])
    names = [name for pattern in listed for name in _expand_one(pattern, side)]
    return list(dict.fromkeys(names))


def is_grammar(name: str) -> bool:
    """Return whether a name, chain or shell pattern refers to known grammars, even if the chain is invalid.

    Returns:
        True if some registered grammar matches, also if its parts cannot be combined.
    """
    try:
        _ = registry.match(name, "grammar") if _is_pattern(name) else resolve(name)
    except UnknownNameError:
        return False
    except IcyError:
        return True
    return True


def _is_pattern(name: str) -> bool:
    return name == "all" or any(c in name for c in WILDCARDS)


def _expand_one(pattern: str, side: str) -> list[str]:
    if is_language(pattern):
        return [pattern]
    if not _is_pattern(pattern):
        return [canonical_name(pattern)]
    matched = [entry.name for entry in registry.match(pattern, "grammar")]
    usable = [name for name in matched if side in grammar_sides(name)]
    if not usable:
        check_side(matched[0], side)
    return usable


def resolve(name: str) -> list[Entry]:
    """Return the registry entries of a grammar or of the parts of a chain. Raises the errors of `canonical_name`."""
    parts = [part.strip() for part in name.split("+")]
    if len(parts) > 1 and not all(parts):
        raise InvalidSettingError(f"'{name}' is not a chain of grammars; join names by '+', as in rot+perm.")
    entries = [registry.get(part, "grammar") for part in parts]
    unchained = [entry.name for entry in entries if not _is_corruption(entry)]
    if len(entries) > 1 and unchained:
        raise IncompatibleError(
            f"'{unchained[0]}' cannot be part of the chain '{name}': a chain is made of corruptions, applied left to "
            "right to the language of concat, as in rot+perm."
        )
    return entries


def _is_corruption(entry: Entry) -> bool:
    factory = entry.load()
    return isinstance(factory, type) and issubclass(factory, Corruption)


def _words_for(entry: Entry, words: IntArray | None, shorter: bool, space: MeaningSpace) -> dict[str, IntArray]:
    """Return the keyword arguments that pass words, and lengths of messages, to a grammar function.

    Raises:
        IncompatibleError: the function does not have this argument.
    """
    if words is None:
        return {}
    if "words" not in inspect.signature(entry.load()).parameters:
        raise IncompatibleError(
            f"The grammar '{entry.name}' makes its own words and does not accept others; add an "
            "argument `words=None` to its function."
        )
    if not shorter:
        return {"words": words}
    counts = (words != ABSENT).sum(2)
    return {"words": words, "lengths": counts[np.arange(space.attributes), space.all()].sum(1)}


def _check_result(made: Any, name: str, space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Language:
    """Check the result of a grammar, and return it as a language with its canonical name."""
    if not isinstance(made, Language):
        try:
            made = Language(space, made, vocab_size)
        except InvalidSettingError as error:
            raise InvalidSettingError(
                f"The grammar '{name}' returned something other than a language: {error}"
            ) from error
    given = (made.space, made.vocab_size, made.message_length)
    if given != (space, vocab_size, space.attributes * word_length):
        raise InvalidSettingError(
            f"The grammar '{name}' should return {space}, a vocabulary of {vocab_size} and messages of "
            f"{counted(space.attributes * word_length, 'token')}; it returned {given[0]}, {given[1]} and {given[2]}."
        )
    finished: Language = dataclasses.replace(made, name=name, seed=seed)
    return finished


# -- a cache of languages, so that each process makes a language only once ---------------------------------------------


CACHE_BYTES = 128 * 2**20  # 64 languages of 5x10; the least recently used are removed
BYTES_OF_ONE = 1024  # a language without its messages

Key = tuple[str, MeaningSpace, int, int | str, Frequencies | None, str, int]
_cache: dict[Key, tuple[list[Entry], Language]] = {}  # in the order of the last use


def cached_language(
    name: str,
    space: MeaningSpace,
    vocab_size: int,
    word_length: int | str,
    seed: int,
    frequencies: Frequencies | None = None,
    draws: str = "icy",
) -> Language:
    """Return the language of a grammar, from the cache of this process if possible.

    A language is read-only, so callers may share it. Arguments and errors are those of `make_language`.

    Returns:
        The language, with messages [N, L] in the order of the space's meanings.
    """
    entries = resolve(name)
    key = "+".join(entry.name for entry in entries), space, vocab_size, word_length, frequencies, draws, seed
    made_by, language = _cache.pop(key, (None, None))
    if language is None or made_by != entries:  # the grammar may have been registered again, for example in a notebook
        language = make_language(name, space, vocab_size, word_length, seed, frequencies=frequencies, draws=draws)
    _cache[key] = entries, language
    sizes = {key: language.messages.nbytes + BYTES_OF_ONE for key, (_, language) in _cache.items()}
    excess = sum(sizes.values()) - CACHE_BYTES
    for oldest, size in sizes.items():
        if excess > 0:
            del _cache[oldest]
            excess -= size
    return language


def forget_user_languages() -> None:
    """Forget the languages of grammars of users, since code that they refer to may have changed."""
    for key, (entries, _) in [*_cache.items()]:
        if any(entry.is_users for entry in entries):
            del _cache[key]
