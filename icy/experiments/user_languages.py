"""Languages that users pass in place of grammars: Language objects, files, and names of languages in results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from icy.config.protocols import BASELINE
from icy.config.settings import Grammars, Meanings
from icy.core.errors import InvalidSettingError, StoreError, quoted
from icy.core.text import counted, words
from icy.grammars import is_grammar
from icy.languages.frequencies import EQUAL, Frequencies, is_meanings_file, read_meanings
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.names import bounds_of, content_name, grammar_name, is_language, language_file, short_name
from icy.records.pack import file_in
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

LEAST_VOCABULARY = 2  # of grammars


@dataclass(frozen=True)
class UserGrammars:
    """Grammars that a user passes.

    Attributes:
        names: names of grammars, patterns and languages, in the given order.
        languages: the languages among them, by name.
    """

    names: list[str]
    languages: Mapping[str, Language] = field(default_factory=dict)

    @classmethod
    def of(cls, grammars: Grammars, request: Any) -> UserGrammars:
        """Read the languages among the grammars of a user. If two names have equal languages, keep one language.

        Args:
            grammars: names, files and languages.
            request: a request with one value along each axis. Languages are found by name in its folder and packs.

        Raises:
            StoreError: a file cannot be read, or a language is not in the results.
            InvalidSettingError: a file does not hold one message for every meaning, or an argument has another type.
        """
        names: list[str] = []
        languages: dict[str, Language] = {}
        for item in _each(grammars):
            language = _language(item, request)
            if language is None:
                names.append(str(item))
                continue
            name = grammar_name(language.name, language.digest())
            if content_name(name) not in map(content_name, names):
                names.append(name)
                languages[name] = language
        return cls(names, languages)

    def sizes(self, request: Any, with_concat: bool = True) -> tuple[MeaningSpace, int, int]:
        """Return the meanings, the vocabulary size and the word length of a run; of different lengths, the largest.

        Languages of the user determine these sizes. A language may use fewer tokens than the vocabulary size of the
        request or of another language.

        Args:
            request: a request with one value along each axis.
            with_concat: whether concat is trained too. Then the vocabulary must be large enough for concat.

        Raises:
            InvalidSettingError: the languages have different sizes, the sizes of the request differ from theirs, or the
                vocabulary is too small for concat.
        """
        space = MeaningSpace.of(cast(Meanings, request.meanings))
        vocab_size, word_length = cast(int, request.vocab_size), cast(int | str, request.word_length)
        if self.word_lengths(request) and not isinstance(request, ProbeRequest):
            way_out = " For a sender that may end its messages, give max_length."
            raise InvalidSettingError(
                f"{request.function} needs words of one length, not of {self.word_lengths(request)} tokens; only "
                "probes, sweeps and searches take words of different lengths."
                + (way_out if isinstance(request, EndToEndRequest) and not self.languages else "")
            )
        if not self.languages:
            return space, vocab_size, bounds_of(word_length)[1]
        shapes = {name: (one.space, _word_length(name, one)) for name, one in self.languages.items()}
        first = next(iter(shapes))
        for name, shape in shapes.items():
            if shape != shapes[first]:
                raise InvalidSettingError(
                    f"The languages {_sized(first, self.languages[first])} and {_sized(name, self.languages[name])} "
                    "need separate runs: all grammars of a run have the same meanings and message length."
                )
        own_space, own_length = shapes[first]
        most = max(self.languages, key=lambda name: self.languages[name].token_count)
        least = max(self.languages[most].token_count, LEAST_VOCABULARY)
        if "meanings" in request.given and space != own_space:
            raise _conflict("meanings", space, first, self.languages[first], own_space)
        if "word_length" in request.given and word_length != own_length:
            raise _conflict("word_length", word_length, first, self.languages[first], own_length)
        if "vocab_size" not in request.given:
            vocab_size = least
        elif vocab_size < least:
            raise _conflict("vocab_size", vocab_size, most, self.languages[most], f"at least {least}")
        words, longest = sum(own_space.size_of_each), bounds_of(own_length)[1]
        if with_concat and vocab_size**longest < words:
            enough = next(size for size in range(vocab_size, words + 1) if size**longest >= words)
            raise InvalidSettingError(
                f"{BASELINE}, which languages are compared with, needs {words} words of "
                f"{counted(longest, 'token')}, more than a vocabulary of {vocab_size} has: give vocab_size "
                f"(--vocab-size) {enough} or more. '{first}' then uses a part of the vocabulary."
            )
        return own_space, vocab_size, longest

    def word_lengths(self, request: Any) -> str:
        """Return the bounds of the lengths of words, such as "1-4"; "" if all words have one length."""
        given = [_word_length(name, one) for name, one in self.languages.items()] or [
            cast(int | str, request.word_length)
        ]
        return given[0] if isinstance(given[0], str) else ""


def _each(grammars: Any) -> list[Any]:
    """Return the list of grammars of a user. Text is split at commas, unless it is the name of a file."""
    if isinstance(grammars, str):
        return [grammars] if Path(grammars).is_file() else words(grammars) or [grammars]
    single = isinstance(grammars, (Path, Language)) or not isinstance(grammars, Iterable)
    return [grammars] if single else [each for each_of in grammars for each in _each(each_of)]


def read_language(path: Path) -> Language:
    """Read the language in a file, and name it after the file.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the file does not give one message for every meaning.
    """
    if not path.exists():
        raise StoreError(f"No grammar is called '{path}', and no file has this name.")
    if path.is_dir():
        return _read.__wrapped__(path, b"")
    content = b""
    with suppress(OSError):  # reported when it is read as a language
        content = path.read_bytes()
    return _read(path, hashlib.sha256(content).digest())


@lru_cache(maxsize=8)
def _read(path: Path, content_hash: bytes) -> Language:
    """Read a file once for all rows of a sweep, unless its content has changed."""
    return replace(Language.read(path), name=path.stem)


def _language(item: Any, request: Any) -> Language | None:
    """Return the language that an argument refers to; None if the argument is the name or pattern of grammars."""
    if isinstance(item, Language):
        return item
    if isinstance(item, Path):
        return read_language(item)
    if not isinstance(item, str):
        raise InvalidSettingError(f"A grammar is a name, a file or a Language, not {quoted(item)}.")
    if is_language(item):
        return _language_in_results(item, (request.out, *request.start_files))
    path = Path(item)
    if not (path.suffix or len(path.parts) > 1 or (item.strip() and path.is_file())) or is_grammar(item):
        return None
    return read_language(path)


def _language_in_results(name: str, places: Iterable[str | Path]) -> Language:
    """Return a language that models in some results were trained on, by its name.

    Raises:
        StoreError: none of the results holds the language.
    """
    for place in places:
        with suppress(StoreError):
            content = file_in(place, language_file(name))
            break
    else:
        raise StoreError(f"No results here were trained on '{name}': give the file of this language instead.")
    return replace(Language.from_bytes(content), name=short_name(name))


def _word_length(name: str, language: Language) -> int | str:
    """Return the number of tokens per attribute of a language, which models and concat need.

    Messages with an end token are compared with words of 1 to w tokens, where w is enough for the longest message.

    Raises:
        InvalidSettingError: the message length is not a multiple of the number of attributes.
    """
    if language.eos is not None:
        return f"1-{max(-(-language.message_length // language.space.attributes), 2)}"
    if language.word_length is None:
        length, attributes = language.message_length, language.space.attributes
        raise InvalidSettingError(
            f"Messages of '{name}' have {counted(length, 'token')}, which is not a multiple of its {attributes} "
            f"attributes: add a token for padding, up to a length of {-(-length // attributes) * attributes}."
        )
    return language.word_length


def _sized(name: str, language: Language) -> str:
    return f"'{name}' ({language.space}, messages of {counted(language.message_length, 'token')})"


def _conflict(option: str, value: object, name: str, language: Language, required: object) -> InvalidSettingError:
    return InvalidSettingError(
        f"{option} is {value}, but the language {_sized(name, language)} needs {required}: leave {option} "
        f"(--{option.replace('_', '-')}) out."
    )


# -- meanings ----------------------------------------------------------------------------------------------------------


def with_space(request: Any) -> tuple[Any, Frequencies | None]:
    """Return a request with the space of its table of meanings, if it has one, and the frequencies of the meanings.

    Args:
        request: a request with one value along each axis.

    Returns:
        The request, and the frequencies; None if all meanings exist and are drawn equally often.

    Raises:
        StoreError: the table cannot be read.
        InvalidSettingError: the table has no meanings, or the law of frequencies is not known.
    """
    law, found = request.frequencies, Frequencies()
    if is_meanings_file(request.meanings):
        space, found = read_meanings(cast(str | Path, request.meanings))
        request = replace(request, meanings=space).with_given(request.given)
    if law is not None:
        found = found.with_law(str(law))
    return request, None if found in (Frequencies(), Frequencies(EQUAL)) else found
