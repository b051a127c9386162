"""Languages that users give in place of grammars: Language objects, files, and names of languages in results."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from icy.config.protocols import BASELINE
from icy.config.specs import ChainSpec, EndToEndSpec, ProbeSpec
from icy.config.types import Grammars, Meanings
from icy.core.errors import InvalidSettingError, StoreError, quoted
from icy.core.scratch import scratch_folder
from icy.core.text import counted, words
from icy.grammars import is_grammar
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.names import content_name, grammar_name, is_language, language_file, short_name
from icy.records.pack import file_in

LEAST_VOCABULARY = 2  # of grammars


@dataclass(frozen=True)
class GivenGrammars:
    """Grammars that a user asked for.

    Attributes:
        names: of grammars, patterns and languages, in the order given.
        languages: the languages among them, by name.
    """

    names: list[str]
    languages: Mapping[str, Language] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Grammars, spec: ProbeSpec | EndToEndSpec | ChainSpec) -> GivenGrammars:
        """Read the languages among the grammars that a user asked for. Equal content under two names is one language.

        Args:
            asked: names, files and languages.
            spec: with one value along each axis, and with the results folder and the packs, which may hold a language
                that is asked for by name.

        Raises:
            StoreError: a file cannot be read, or a language is not in the results.
            InvalidSettingError: a file does not hold one message for every meaning, or something of another type.
        """
        names: list[str] = []
        languages: dict[str, Language] = {}
        for one in _each(asked):
            language = _language(one, spec)
            if language is None:
                names.append(str(one))
                continue
            name = grammar_name(language.name, language.digest())
            if content_name(name) not in map(content_name, names):
                names.append(name)
                languages[name] = language
        return cls(names, languages)

    def sizes(
        self, spec: ProbeSpec | EndToEndSpec | ChainSpec, with_concat: bool = True
    ) -> tuple[MeaningSpace, int, int]:
        """Return the meanings, the vocabulary size and the word length of a run.

        Given languages decide them. They may use fewer tokens than the vocabulary that the user asks for, or than
        another language has.

        Args:
            spec: with one value along each axis.
            with_concat: whether concat is trained too, so that the vocabulary must be large enough for it.

        Raises:
            InvalidSettingError: languages that do not fit together, sizes that were asked for and do not fit them, or a
                vocabulary that is too small for concat.
        """
        space = MeaningSpace.of(cast(Meanings, spec.meanings))
        vocab_size, word_length = cast(int, spec.vocab_size), cast(int, spec.word_length)
        if not self.languages:
            return space, vocab_size, word_length
        shapes = {name: (one.space, _word_length(name, one)) for name, one in self.languages.items()}
        first = next(iter(shapes))
        for name, shape in shapes.items():
            if shape != shapes[first]:
                raise InvalidSettingError(
                    f"The languages {_sized(first, self.languages[first])} and {_sized(name, self.languages[name])} "
                    "need runs of their own: all grammars of a run have the same meanings and message length."
                )
        own_space, own_length = shapes[first]
        most = max(self.languages, key=lambda name: self.languages[name].vocab_size)
        least = max(self.languages[most].vocab_size, LEAST_VOCABULARY)
        if "meanings" in spec.given and space != own_space:
            raise _conflict("meanings", space, first, self.languages[first], own_space)
        if "word_length" in spec.given and word_length != own_length:
            raise _conflict("word_length", word_length, first, self.languages[first], own_length)
        if "vocab_size" not in spec.given:
            vocab_size = least
        elif vocab_size < least:
            raise _conflict("vocab_size", vocab_size, most, self.languages[most], f"at least {least}")
        words = own_space.attributes * own_space.values
        if with_concat and vocab_size**own_length < words:
            enough = next(size for size in range(vocab_size, words + 1) if size**own_length >= words)
            raise InvalidSettingError(
                f"{BASELINE}, which languages are compared with, needs {words} words of "
                f"{counted(own_length, 'token')}, more than a vocabulary of {vocab_size} has: give vocab_size "
                f"(--vocab-size) {enough} or more; '{first}' then uses a part of it."
            )
        return own_space, vocab_size, own_length


def _each(asked: Any) -> list[Any]:
    """Return the grammars that were asked for one by one; text with commas is several, unless it is a file."""
    if isinstance(asked, str):
        return [asked] if Path(asked).is_file() else words(asked) or [asked]
    one = isinstance(asked, (Path, Language)) or not isinstance(asked, Iterable)
    return [asked] if one else [each for each_of in asked for each in _each(each_of)]


def read_language(path: Path) -> Language:
    """Read the language in a file, and call it by the name of the file.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: it does not give one message for every meaning.
    """
    if not path.exists():
        raise StoreError(f"No grammar is called '{path}', and no file has this name.")
    if path.is_dir():
        return _read.__wrapped__(path, b"")
    content = b""
    with suppress(OSError):  # which reading it as a language reports
        content = path.read_bytes()
    return _read(path, hashlib.sha256(content).digest())


@lru_cache(maxsize=8)
def _read(path: Path, content_hash: bytes) -> Language:
    """Read a file once for all rows of a sweep, unless its content has changed."""
    return replace(Language.read(path), name=path.stem)


def _language(one: Any, spec: ProbeSpec | EndToEndSpec | ChainSpec) -> Language | None:
    """Return the language that a user means by something; None if it is the name or pattern of grammars."""
    if isinstance(one, Language):
        return one
    if isinstance(one, Path):
        return read_language(one)
    if not isinstance(one, str):
        raise InvalidSettingError(f"A grammar is a name, a file or a Language, not {quoted(one)}.")
    if is_language(one):
        return _language_in_results(one, (spec.out, *spec.start_files))
    path = Path(one)
    if not (path.suffix or len(path.parts) > 1 or (one.strip() and path.is_file())) or is_grammar(one):
        return None
    return read_language(path)


def _language_in_results(name: str, places: Iterable[str | Path]) -> Language:
    """Return a language that a record of some results was trained on.

    Raises:
        StoreError: none of the results holds it.
    """
    for place in places:
        with suppress(StoreError):
            content = file_in(place, language_file(name))
            break
    else:
        raise StoreError(f"No results here were trained on '{name}': give the file of this language instead.")
    folder = scratch_folder("language")
    try:
        copy = folder / language_file(name).rpartition("/")[2]  # results may be in a pack
        copy.write_bytes(content)
        return replace(Language.load(copy), name=short_name(name))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _word_length(name: str, language: Language) -> int:
    """Return the tokens per attribute of a language, which models and concat need.

    Raises:
        InvalidSettingError: the message length is not a multiple of the number of attributes.
    """
    if language.word_length is None:
        length, attributes = language.message_length, language.space.attributes
        raise InvalidSettingError(
            f"Messages of '{name}' have {counted(length, 'token')}, which is not a multiple of its {attributes} "
            f"attributes: add a token for padding, up to a length of {-(-length // attributes) * attributes}."
        )
    return language.word_length


def _sized(name: str, language: Language) -> str:
    return f"'{name}' ({language.space}, messages of {counted(language.message_length, 'token')})"


def _conflict(option: str, asked: object, name: str, language: Language, right: object) -> InvalidSettingError:
    return InvalidSettingError(
        f"{option} is {asked}, but the language {_sized(name, language)} needs {right}: leave {option} "
        f"(--{option.replace('_', '-')}) out."
    )
