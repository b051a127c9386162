"""Languages: tables with one message for every meaning of a meaning space."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import LARGEST_NUMBER, whole_number
from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.importing import load_object
from icy.core.text import counted, listed

from . import storage
from .meanings import IntArray, MeaningSpace
from .storage import Card, IntegerArray

if TYPE_CHECKING:
    import pandas as pd


LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False, repr=False)
class Language:
    """A table with one message for every meaning.

    Two languages are equal if all of their attributes are. To compare messages and ignore name and seed, compare
    `digest()`.

    Attributes:
        space: the meanings; may be given as "5x10" or (5, 10).
        messages: tokens, shape [N, L], read-only, in the smallest unsigned type that holds 0..V-1; row i is the
            message of meaning number i.
        vocab_size: number of tokens, V.
        name: name of the grammar of the language, or any other name.
        seed: seed of the language, if any.
        value_names: names of the values of every attribute, if any.
        eos: the token that ends a message, if messages have different lengths. It also fills the rest of the message.
            It is one of the V tokens. A message of L tokens needs no end.

    Raises:
        InvalidSettingError: shapes do not fit, a token is not in 0..V-1, or another token follows `eos`.

    Example:
        >>> from icy.languages.language import Language
        >>> language = Language("2x2", [[0, 0], [0, 1], [1, 0], [1, 1]], vocab_size=2, name="mine")
        >>> language
        Language('mine', 2x2, 4 messages of 2 tokens, vocabulary 2)
        >>> language.messages[language.space.index([1, 0])].tolist()
        [1, 0]
        >>> print(language.examples().to_string(index=False))
        meaning message
         (0, 0)     a a
         (0, 1)     a b
         (1, 0)     b a
    """

    space: MeaningSpace
    messages: IntegerArray = field(repr=False)
    vocab_size: int
    name: str = ""
    seed: int | None = None
    value_names: tuple[tuple[str, ...], ...] | None = None
    eos: int | None = None

    def __post_init__(self) -> None:
        space = MeaningSpace.of(self.space)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "vocab_size", whole_number("vocabulary size", self.vocab_size))
        object.__setattr__(self, "seed", None if self.seed is None else int(self.seed))
        object.__setattr__(self, "messages", _checked_messages(self.messages, space, self.vocab_size))
        if self.value_names is not None:
            object.__setattr__(self, "value_names", _checked_names(self.value_names, space))
        if self.eos is not None:
            object.__setattr__(self, "eos", _checked_eos(self.eos, self.messages, self.vocab_size))

    # -- from senders, tables and files -------------------------------------------------------------------------

    @classmethod
    def spoken(
        cls,
        space: MeaningSpace,
        messages: IntegerArray,
        vocab_size: int,
        *,
        name: str,
        seed: int,
        ends: bool = False,
    ) -> Language:
        """Make a language from a sender's messages.

        Args:
            space: the meanings.
            messages: messages of every meaning in order, shape [N, L]; a sender may use the start symbol, which then
                counts as one more token.
            vocab_size: V of the sender; if it is larger than a language allows, tokens are renumbered in order.
            name: see Language.
            seed: see Language.
            ends: whether messages end at the start symbol. Later tokens are replaced by the start symbol.
        """
        if ends:
            ended = np.logical_or.accumulate(messages == vocab_size, axis=1)
            messages = np.where(ended, vocab_size, messages)
            return cls(space, messages, vocab_size + 1, name=name, seed=seed, eos=vocab_size)
        if vocab_size > LARGEST_NUMBER:
            used, numbers = np.unique(messages, return_inverse=True)
            messages, vocab_size = numbers.reshape(messages.shape), len(used)  # 1-dimensional before numpy 2
        return cls(space, messages, max(vocab_size, int(messages.max()) + 1), name=name, seed=seed)

    @classmethod
    def from_table(
        cls,
        meanings: ArrayLike,
        messages: ArrayLike,
        *,
        space: MeaningSpace | str | tuple[int, int] | None = None,
        vocab_size: int | None = None,
        name: str = "",
        seed: int | None = None,
        value_names: Sequence[Sequence[str]] | None = None,
        eos: int | None = None,
    ) -> Language:
        """Make a language from rows in any order.

        Args:
            meanings: attribute values, whole numbers from 0, shape [N, A].
            messages: tokens, whole numbers from 0, shape [N, L].
            space: by default the smallest space with these values.
            vocab_size: by default one more than the largest token.
            name: see Language.
            seed: see Language.
            value_names: see Language.
            eos: see Language.

        Raises:
            InvalidSettingError: the rows do not have every meaning exactly once; the message counts these meanings.
        """
        rows, tokens = _whole_table(meanings, "meanings"), _whole_table(messages, "messages")
        whole_space = MeaningSpace.of_sizes(*(rows.max(axis=0) + 1)) if space is None else MeaningSpace.of(space)
        order = _rows_in_order(rows, tokens, whole_space)
        return cls(
            whole_space,
            tokens[order],
            int(tokens.max()) + 1 if vocab_size is None else vocab_size,
            name=name,
            seed=seed,
            value_names=None if value_names is None else tuple(map(tuple, value_names)),
            eos=eos,
        )

    @classmethod
    def read(
        cls, path: str | Path, *, vocab_size: int | None = None, name: str | None = None, **options: Any
    ) -> Language:
        """Read a language from your own file, which has one row per meaning in any order.

        Attribute values may be numbers or words; the values of each attribute are numbered from 0 in order, and stored
        in `value_names`. Tokens that are numbers are kept, the letters a to z are 0 to 25, and other tokens are
        numbered from 0 in order. A file that `save` wrote is read by `load`.

        Args:
            path: file in any format that icy reads; see `icy.languages.readers.read_table`.
            vocab_size: by default one more than the largest token.
            name: by default the name of the file.
            **options: options of `icy.languages.readers.read_table`, such as `meaning_columns`, `tokens` or `eos`.

        Raises:
            StoreError: the file cannot be read.
            InvalidSettingError: the file is not a valid table (see `read_table`), the messages differ in length, or a
                meaning is missing or repeated.
        """
        read = load_object("icy.languages.readers:read_language")  # readers make languages
        found: Language = read(Path(path), vocab_size, name, options)
        return found

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        meaning_columns: Sequence[str] | None = None,
        message_columns: Sequence[str] | str | None = None,
        **options: Any,
    ) -> Language:
        """Read a language from a table of text; see `read`, which also reads other formats.

        Args:
            path: path of the file.
            meaning_columns: names of the columns with attribute values; by default chosen by the header.
            message_columns: name of the column with messages, or names of several columns with one token each; by
                default chosen by the header.
            **options: as for `read`.
        """
        return cls.read(path, meaning_columns=meaning_columns, message_columns=message_columns, **options)

    def ending(self, vocab_size: int, message_length: int) -> Language:
        """Return the language with the end token V, after `vocab_size` tokens, and longer padding.

        Args:
            vocab_size: number of tokens except the end token, V.
            message_length: tokens of a message with its padding.

        Raises:
            InvalidSettingError: the messages have one length, or the language has more tokens.

        Example:
            >>> from icy.languages.language import Language
            >>> Language("1x2", [[0, 0], [2, 0]], vocab_size=3, eos=0).ending(4, 3).messages.tolist()
            [[4, 4, 4], [1, 4, 4]]
        """
        if self.eos is None:
            raise InvalidSettingError(f"The messages of {self!r} have one length, and no end token.")
        tokens = self.messages.astype(np.int64)
        numbered = np.where(tokens == self.eos, vocab_size, tokens - (tokens > self.eos))
        padded = np.pad(numbered, ((0, 0), (0, message_length - self.message_length)), constant_values=vocab_size)
        return replace(self, messages=padded, vocab_size=vocab_size + 1, eos=vocab_size)

    # -- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the language to a parquet, csv or npz file, by the suffix of `path`; `load` restores it without loss.

        Csv and parquet have one row per meaning, with its attribute values in the columns m0, m1 and so on. In csv
        the column `message` holds the message, as letters up to a vocabulary of 26 and as numbers separated by spaces
        above, and a first line `# icy language {...}` holds the rest; in parquet the tokens are in the columns t0, t1
        and so on. The file is written under a temporary name and then renamed.

        Args:
            path: path of the file, with the suffix .parquet, .csv or .npz.

        Returns:
            The path.

        Raises:
            StoreError: the suffix is unknown, or the file cannot be written.
        """
        file = Path(path)
        write_atomically(file, storage.to_bytes(file, self.space, self.messages, self._card()))
        return file

    def to_bytes(self, suffix: str = ".npz") -> bytes:
        """Return the content of the file that `save` writes with this suffix: ".parquet", ".csv" or ".npz".

        Args:
            suffix: ".parquet", ".csv" or ".npz".
        """
        return storage.to_bytes(Path("language").with_suffix(suffix), self.space, self.messages, self._card())

    @classmethod
    def load(cls, path: str | Path) -> Language:
        """Read a language that `save` wrote.

        Args:
            path: path of the file.

        Raises:
            StoreError: the file cannot be read, or does not hold a language of icy.
        """
        return cls._of(*storage.read(Path(path)), f"'{path}'")

    @classmethod
    def from_bytes(cls, content: bytes) -> Language:
        """Return the language of the content of an .npz file.

        Args:
            content: bytes of the file, as `to_bytes` returns them.

        Raises:
            StoreError: it is not such a file.

        Example:
            >>> from icy.languages.language import Language
            >>> language = Language("1x2", [[0], [1]], vocab_size=2)
            >>> Language.from_bytes(language.to_bytes()) == language
            True
        """
        return cls._of(*storage.from_bytes(content), "This content")

    @classmethod
    def _of(cls, messages: IntegerArray, card: Card, label: str) -> Language:
        """Return the language of messages and a card. Errors begin with `label`."""
        try:
            names = card["value_names"]
            return cls(
                MeaningSpace.parse(card["space"]),
                messages,
                card["vocab_size"],
                name=card["name"],
                seed=card["seed"],
                value_names=None if names is None else tuple(map(tuple, names)),
                eos=card.get("eos"),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise StoreError(f"{label} is not an icy language, or is damaged: {error}") from error

    def _card(self) -> Card:
        return {
            "space": str(self.space),
            "vocab_size": self.vocab_size,
            "name": self.name,
            "seed": self.seed,
            "value_names": self.value_names,
            **({} if self.eos is None else {"eos": self.eos}),
        }

    # -- properties ----------------------------------------------------------------------------------------------

    @property
    def meanings(self) -> IntArray:
        """Attribute values of every meaning, shape [N, A]; row i is the meaning of message i.

        Example:
            >>> from icy.languages.language import Language
            >>> Language("2x2", [[0, 0], [0, 1], [1, 0], [1, 1]], vocab_size=2).meanings.tolist()
            [[0, 0], [0, 1], [1, 0], [1, 1]]
        """
        return self.space.all()

    @property
    def message_length(self) -> int:
        """Tokens per message, L."""
        return int(self.messages.shape[1])

    @property
    def word_length(self) -> int | None:
        """Tokens per word, L / A; None if L is not a multiple of A, or messages end at `eos`."""
        length, rest = divmod(self.message_length, self.space.attributes)
        return None if rest or self.eos is not None else length

    @property
    def token_count(self) -> int:
        """Number of tokens in the vocabulary, without the end token."""
        return self.vocab_size - (self.eos is not None)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each message before its end, shape [N].

        Example:
            >>> from icy.languages.language import Language
            >>> Language("1x3", [[0, 2], [2, 2], [1, 1]], vocab_size=3, eos=2).lengths.tolist()
            [1, 0, 2]
        """
        if self.eos is None:
            return np.full(self.space.size, self.message_length)
        return np.asarray((self.messages != self.eos).sum(1))

    @property
    def distinct_messages(self) -> int:
        """Number of different messages, less than N if meanings share a message."""
        packed = np.ascontiguousarray(self.messages)
        row = np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))
        return int(np.unique(packed.view(row)).size)

    @property
    def best_receiver_accuracy(self) -> float:
        """Fraction of attribute values that the best receiver gets right; below 1 if meanings share a message.

        The best receiver answers with the most frequent value of each attribute among the meanings of the message.

        Example:
            >>> from icy.languages.language import Language
            >>> Language("1x4", [[0], [0], [0], [1]], vocab_size=2).best_receiver_accuracy
            0.5
        """
        return self.ambiguity()[1]

    def ambiguity(
        self, numbers: IntArray | None = None, weights: NDArray[np.float64] | None = None
    ) -> tuple[int, float]:
        """Return the number of different messages of some meanings, and the accuracy of their best receiver.

        Args:
            numbers: numbers of the meanings, [n]; by default all.
            weights: how often each of these meanings occurs, [n]; by default equally often.
        """
        which = np.arange(self.space.size) if numbers is None else numbers
        distinct, message = np.unique(self.messages[which], axis=0, return_inverse=True)
        # message and value, by attribute
        meant = message.reshape(-1, 1) * self.space.values + self.space.meanings(which)
        counts = [np.bincount(of_one, weights, len(distinct) * self.space.values) for of_one in meant.T]
        total = self.space.attributes * (len(which) if weights is None else weights.sum())
        best = sum(count.reshape(-1, self.space.values).max(axis=1).sum() for count in counts) / total
        return len(distinct), float(best)

    def facts(self) -> dict[str, Any]:
        """Return sizes, seed, and the number and share of distinct messages."""
        distinct = self.distinct_messages
        return {
            "name": self.name,
            "space": str(self.space),
            "meanings": self.space.size,
            "message_length": self.message_length,
            "vocab_size": self.vocab_size,
            "distinct_messages": distinct,
            "fraction_distinct": distinct / self.space.size,
            "seed": self.seed,
        }

    def examples(self, meanings: ArrayLike | None = None) -> pd.DataFrame:
        """Return a few meanings and their messages, as in Table 1 of Icy22.

        Args:
            meanings: the meanings to return, shape [n, A]; by default the first meaning, and meanings that differ from
                it in one attribute, the last attribute first.

        Returns:
            Columns `meaning` and `message`; words are separated by spaces if L is a multiple of A.

        Raises:
            InvalidSettingError: a meaning is not of this space.
        """
        import pandas as pd

        if meanings is None:
            one_changed = np.eye(self.space.attributes, dtype=np.int64)[np.array(self.space.size_of_each) > 1][::-1]
            meanings = np.concatenate([np.zeros((1, self.space.attributes), dtype=np.int64), one_changed])
        shown = np.atleast_2d(np.asarray(meanings))
        tokens = self.messages[self.space.index(shown)]
        texts = [list(map(str, row)) for row in shown.tolist()]
        if self.value_names is not None:
            names = self.value_names
            texts = [[of_one[v] for of_one, v in zip(names, row, strict=True)] for row in shown.tolist()]
        return pd.DataFrame(
            {
                "meaning": [f"({', '.join(text)})" for text in texts],
                "message": [
                    to_letters(row if self.eos is None else row[row != self.eos], self.vocab_size, self.word_length)
                    for row in tokens
                ],
            }
        )

    def digest(self) -> str:
        """Return a hash of space, vocabulary and messages, without name and seed: 16 hexadecimal digits."""
        head = f"icy language {self.space} {self.vocab_size} {self.message_length}\n".encode()
        head += b"" if self.eos is None else f"ends at {self.eos}\n".encode()
        little_endian = self.messages.astype(self.messages.dtype.newbyteorder("<"))
        return hashlib.sha256(head + little_endian.tobytes()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Language):
            return NotImplemented
        return self._card() == other._card() and np.array_equal(self.messages, other.messages)

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed {self.seed}"
        most = "" if self.eos is None else "at most "
        return (
            f"Language({self.name!r}, {self.space}, {self.space.size} messages of "
            f"{most}{counted(self.message_length, 'token')}, "
            f"vocabulary {self.vocab_size}{seed})"
        )


def to_letters(tokens: ArrayLike, vocab_size: int, word_length: int | None = None) -> str:
    """Return a message as text: letters up to a vocabulary of 26, numbers joined by dots above.

    Args:
        tokens: shape [L].
        vocab_size: V.
        word_length: tokens per word, to separate words by spaces.

    Example:
        >>> from icy.languages.language import to_letters
        >>> to_letters([0, 1, 1, 0], 4, word_length=2), to_letters([0, 30, 7], 31)
        ('ab ba', '0.30.7')
    """
    row: list[int] = np.asarray(tokens).tolist()
    symbols = [LETTERS[t] for t in row] if vocab_size <= len(LETTERS) else [str(t) for t in row]
    step = word_length or len(row) or 1
    glue = "" if vocab_size <= len(LETTERS) else "."
    return " ".join(glue.join(symbols[i : i + step]) for i in range(0, len(row), step))


def _checked_messages(messages: ArrayLike, space: MeaningSpace, vocab_size: int) -> IntegerArray:
    """Return a read-only copy of messages, in the smallest type that holds every token."""
    tokens = _whole_table(messages, "messages")
    if tokens.shape[0] != space.size:
        raise InvalidSettingError(
            f"A language over {space} has {space.size} messages, one per meaning; "
            f"{counted(tokens.shape[0], 'row', 'are')} given."
        )
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise InvalidSettingError(
            f"Tokens of a vocabulary of {vocab_size} run from 0 to {vocab_size - 1}; "
            f"found {tokens.min()} to {tokens.max()}."
        )
    stored = np.array(tokens, dtype=np.min_scalar_type(vocab_size - 1), order="C")
    stored.setflags(write=False)
    return stored


def _checked_eos(eos: object, messages: IntegerArray, vocab_size: int) -> int:
    token = whole_number("end token", eos, least=0, most=vocab_size - 1)
    ended = messages == token
    if (ended[:, :-1] & ~ended[:, 1:]).any():
        raise InvalidSettingError(f"After the end token {token} a message may have only this token.")
    return token


def _checked_names(value_names: Sequence[Sequence[str]], space: MeaningSpace) -> tuple[tuple[str, ...], ...]:
    names = tuple(tuple(map(str, of_one)) for of_one in value_names)
    if tuple(map(len, names)) != space.size_of_each:
        count = listed([*map(str, space.sizes)]) if space.sizes else str(space.values)
        raise InvalidSettingError(
            f"value_names of {space} must hold a list of names for each attribute, with {count} names."
        )
    return names


def _whole_table(given: ArrayLike, what: str) -> IntegerArray:
    table = np.asarray(given)
    if table.ndim != 2 or table.size == 0:
        raise InvalidSettingError(f"The {what} must be a table with rows and columns; their shape is {table.shape}.")
    if table.dtype.kind not in "iu":
        raise InvalidSettingError(f"The {what} must be whole numbers, not {table.dtype}.")
    return table


def _rows_in_order(rows: IntegerArray, tokens: IntegerArray, space: MeaningSpace) -> NDArray[np.int64]:
    """Return the row of each meaning of `space`, and raise an error unless each has exactly one."""
    if len(rows) != len(tokens):
        raise InvalidSettingError(
            f"The table has {counted(len(rows), 'meaning')} and {counted(len(tokens), 'message')}; give one for each."
        )
    given = np.unique(space.index(rows), return_index=True)
    missing, repeated = space.size - len(given[0]), len(rows) - len(given[0])
    if missing or repeated:
        raise InvalidSettingError(
            f"The table must give each of the {space.size} meanings of {space} exactly once; "
            f"{counted(missing, 'meaning', 'are')} missing and {counted(repeated, 'row', 'repeat')} a meaning."
        )
    return given[1]
