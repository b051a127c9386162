"""A cache of languages, so that each process makes a language only once."""

from icy.core.registry import Entry
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

from .languages import make_language, resolve

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
    _make_room()
    return language


def forget_user_languages() -> None:
    """Forget the languages of grammars of users, since code that they refer to may have changed."""
    for key, (entries, _) in [*_cache.items()]:
        if any(entry.is_users for entry in entries):
            del _cache[key]


def _make_room() -> None:
    sizes = {key: language.messages.nbytes + BYTES_OF_ONE for key, (_, language) in _cache.items()}
    excess = sum(sizes.values()) - CACHE_BYTES
    for key, size in sizes.items():
        if excess <= 0:
            return
        del _cache[key]
        excess -= size
