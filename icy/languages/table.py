"""The table of meanings and messages that every metric scores, checked once and stored in one form."""

import numbers
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int64, Real, Shaped
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted

from .codes import Codes, number
from .language import Language

PAD = -1  # fills messages up to the length of the longest
LARGEST = 2**62  # numbers from here on are taken as names: differences of smaller ones fit in 64 bits
Names = tuple[Hashable, ...]
Numbers = TypeVar("Numbers", NDArray[Any], list[int])


@dataclass(frozen=True, eq=False)
class Table:
    """Meanings and their messages, row by row; build one with `Table.of`.

    Attributes:
        meanings: attribute values, [N, A]: integers (named values are numbered in sorted order), or floats if the
            meanings are continuous.
        messages: tokens, integers from 0, [N, S]; PAD after the end of a shorter message.
        value_names: for each attribute the names of its values, or None if they are numbers; empty if all are.
        token_names: names of the tokens, or None if they are numbers.
        vocab_size: number of tokens in the vocabulary, V.
        weights: how often each row counts, [N] positive numbers; None if every row counts once.
        drawn_from: for rows drawn with replacement, the original row that each is a copy of, [N].
        name: name of the table in reports.
        read_as: of a file, which of its columns were taken for what, in words.
        phrases: whether meanings are phrases, whose concepts mean the same at any place.
    """

    meanings: Real[NDArray[Any], "meaning attr"]  # as many as messages, which `of` checks
    messages: Int64[NDArray[np.int64], "message length"]
    value_names: tuple[Names | None, ...] = ()
    token_names: Names | None = None
    vocab_size: int = 0
    weights: Real[NDArray[Any], " batch"] | None = None
    drawn_from: Codes | None = None
    name: str = ""
    read_as: str = ""
    phrases: bool = False

    @classmethod
    def of(
        cls, meanings: Any, messages: Any = None, *, eos: int | None = None, vocab_size: int | None = None
    ) -> "Table":
        """Build a table from meanings and messages in any supported form.

        Args:
            meanings: a Language, a Table or a pair (meanings, messages); or the meanings alone: [N, A] whole numbers,
                real numbers or names.
            messages: [N, S] tokens; N sequences of tokens, of any lengths; or N strings, in which every letter is a
                token. Tokens are whole numbers from 0, or names.
            eos: the token that ends a message: this token and all that follow are dropped.
            vocab_size: V; by default that of the Language, or the largest token plus one.

        Raises:
            InvalidSettingError: no rows, meanings of unequal length, different numbers of meanings and messages,
                tokens that are negative or neither whole numbers nor names, or a vocabulary that lacks some of them.
        """
        if messages is None:
            table = _of_one(meanings)
        else:
            values, value_names = _read_meanings(meanings)
            tokens, token_names = _read_messages(messages)
            table = cls(values, tokens, value_names, token_names)
        if len(table.meanings) != len(table.messages):
            raise InvalidSettingError(
                f"Every meaning has one message; {counted(len(table.meanings), 'meaning')} and "
                f"{counted(len(table.messages), 'message')} were given."
            )
        if not len(table.meanings):
            raise InvalidSettingError("There is nothing to measure: the table has no rows.")
        if eos is not None:
            table = table._ended_by(eos)
        needed = max(int(table.messages.max(initial=-1)) + 1, 1)
        size = table.vocab_size or needed if vocab_size is None else whole_number("vocabulary size", vocab_size)
        if size < needed:
            raise InvalidSettingError(f"A vocabulary of {size} has no token {needed - 1}, which is in the messages.")
        return replace(table, vocab_size=size)

    def __len__(self) -> int:
        return len(self.meanings)

    @property
    def attributes(self) -> int:
        """Number of attributes, A."""
        return int(self.meanings.shape[1])

    @property
    def length(self) -> int:
        """Length of the longest message, S."""
        return int(self.messages.shape[1])

    @cached_property
    def lengths(self) -> Codes:
        """Length of each message, [N]."""
        found: Codes = (self.messages != PAD).sum(1)
        return found

    @property
    def continuous(self) -> bool:
        """Whether the meanings are real numbers."""
        return self.meanings.dtype.kind == "f"

    @cached_property
    def factors(self) -> list[Codes]:
        """Each attribute as a discrete variable numbered from 0, [N] each."""
        return [number(column) for column in self.meanings.T]

    @cached_property
    def compared(self) -> list[Codes]:
        """The discrete variables in which two meanings agree or differ: attributes, or of phrases the concepts."""
        if not self.phrases:
            return self.factors
        rows = [[self.value_name(a, v) for a, v in enumerate(row)] for row in self.meanings.tolist()]
        concepts = sorted({name for row in rows for name in row}, key=lambda name: (str(type(name)), name))
        return [np.array([concept in row for row in rows], dtype=np.int64) for concept in concepts]

    @cached_property
    def positions(self) -> list[Codes]:
        """The token at each position as a discrete variable numbered from 0, PAD being one more token, [N] each."""
        return [number(column) for column in self.messages.T]

    def require_meanings(self, metric: str) -> None:
        """Raise if the table holds messages alone, without an attribute.

        Args:
            metric: name for the error message.

        Raises:
            InvalidSettingError: a table without attributes.
        """
        if not self.attributes:
            raise InvalidSettingError(
                f"{metric} compares messages with meanings, and this table has no meanings; message_entropy and "
                "unique_messages need none."
            )

    def require_discrete(self, metric: str) -> None:
        """Raise unless there are meanings, and they are discrete.

        Args:
            metric: name for the error message.

        Raises:
            InvalidSettingError: a table without attributes, or meanings that are real numbers.
        """
        self.require_meanings(metric)
        if self.continuous:
            raise InvalidSettingError(
                f"{metric} is about discrete attributes, and these meanings are real numbers; put them into classes."
            )

    def rows(self, which: Shaped[NDArray[Any], " batch"]) -> "Table":
        """Return the table of the given rows, each of which remembers the original row that it is a copy of."""
        source = np.arange(len(self)) if self.drawn_from is None else self.drawn_from
        part = {"meanings": self.meanings[which], "messages": self.messages[which]}
        return replace(self, **part, drawn_from=source[which])  # type: ignore[arg-type]

    def token_name(self, token: int) -> Hashable:
        """Return the name of a token."""
        return int(token) if self.token_names is None else self.token_names[token]

    def has_token(self, name: Hashable) -> bool:
        """Return whether a token of the vocabulary is so called."""
        if self.token_names is not None:
            return name in self.token_names
        return isinstance(name, numbers.Real) and 0 <= name < self.vocab_size and name == int(name)

    def value_name(self, attribute: int, value: int) -> Hashable:
        """Return the name of an attribute's value."""
        names = self.value_names[attribute] if self.value_names else None
        return self.meanings.dtype.type(value).item() if names is None else names[value]

    def _ended_by(self, eos: int) -> "Table":
        if self.token_names is not None:
            if eos not in self.token_names:
                return self
            eos = self.token_names.index(eos)
        whole_number("end-of-sequence token", eos, least=0, most=LARGEST)
        over = np.logical_or.accumulate(self.messages == eos, axis=1)
        messages = np.where(over, PAD, self.messages)
        used = int((messages != PAD).any(0).sum())
        return replace(self, messages=messages[:, :used])


def _of_one(given: Any) -> Table:
    """Build a table from one object that holds both meanings and messages."""
    if isinstance(given, Table):
        return given
    if isinstance(given, Language):
        names: tuple[Names | None, ...] = () if given.value_names is None else tuple(map(tuple, given.value_names))
        messages = given.messages.astype(np.int64)
        return Table(given.space.all(), messages, names, vocab_size=given.vocab_size, name=given.name)
    if isinstance(given, tuple) and len(given) == 2:
        return Table.of(*given)
    raise InvalidSettingError("Give meanings and messages, or one Language that has both.")


def _read_meanings(given: Any) -> tuple[NDArray[Any], tuple[Names | None, ...]]:
    """Return the values as numbers, [N, A], and for each attribute the names of values that were not numbers."""
    try:
        table = np.asarray(given)
        if table.dtype.kind in "US" or _rounded(table, given):  # numpy turns numbers beside names into text
            table = np.asarray(given, dtype=object)
    except ValueError:  # rows of unequal length
        table = np.empty(len(given), dtype=object)
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidSettingError(
            "Meanings are a table, one row per meaning and one column per attribute, all rows equally long; "
            f"what was given has the shape {table.shape}."
        )
    if table.dtype.kind in "iub" and _fits(table):
        return table.astype(np.int64), ()
    if table.dtype.kind == "f":
        if not np.isfinite(table).all():
            raise InvalidSettingError("Some meanings are not numbers (NaN) or infinite; leave those rows out.")
        whole = np.where(np.abs(table) < LARGEST, table, 0).astype(np.int64)
        return (whole, ()) if (whole == table).all() else (table.astype(np.float64), ())
    columns, names = zip(*(_number_names(column) for column in table.T), strict=True)
    return np.stack(columns, 1), names


def _rounded(table: NDArray[Any], given: Any) -> bool:
    """Return whether numpy has made floats of whole numbers, which it does where they do not fit in 64 bits."""
    if table.dtype.kind != "f" or hasattr(given, "dtype") or np.abs(table).max(initial=0) < LARGEST:
        return False
    return all(isinstance(value, int) for value in np.asarray(given, dtype=object).flat)


def _number_names(column: NDArray[Any]) -> tuple[Codes, Names | None]:
    """Return one attribute's values as integers: unchanged, or numbered in sorted order with their names.

    Numbers that do not fit are names of their own.
    """
    values = column.tolist()
    if all(isinstance(v, int) for v in values) and _fits(values):
        return np.array(values, dtype=np.int64), None
    try:
        names = sorted(set(values), key=lambda v: (str(type(v)), v))
    except TypeError as error:
        raise InvalidSettingError(
            "Values of meanings are numbers or names, and a column holds lists; say which columns are meanings."
        ) from error
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[v] for v in values], dtype=np.int64), tuple(names)


def _read_messages(given: Any) -> tuple[NDArray[np.int64], Names | None]:
    """Return the tokens as integers with PAD after the end, [N, S], and their names if they have any."""
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "iu" and _fits(given):
        return _not_negative(given).astype(np.int64), None
    if isinstance(given, str):
        raise InvalidSettingError("Messages are a sequence of messages, and one string was given.")
    try:
        rows = [_tokens(message) for message in given]
    except TypeError as error:
        raise InvalidSettingError("Messages are sequences of tokens, one for every meaning.") from error
    flat = [token for row in rows for token in row]
    names: Names | None = None
    whole = all(isinstance(token, int) for token in flat)
    if not (whole and _fits(_not_negative(flat))):  # numbers that do not fit are names of their own
        names = tuple(sorted(set(flat), key=lambda t: (str(type(t)), t)))
        place = {name: i for i, name in enumerate(names)}
        rows = [[place[token] for token in row] for row in rows]
    table = np.full((len(rows), max(map(len, rows), default=0)), PAD, dtype=np.int64)
    for place_of, row in enumerate(rows):
        table[place_of, : len(row)] = row
    return table, names


def _tokens(message: Any) -> list[Any]:
    """Return the tokens of one message as a list."""
    tokens = message.tolist() if hasattr(message, "tolist") else list(message)
    if not isinstance(tokens, list):
        raise TypeError
    whole = [int(t) if isinstance(t, float) and t.is_integer() else t for t in tokens]
    if any(isinstance(t, (float, list, dict, set)) for t in whole):
        raise InvalidSettingError(f"Tokens are whole numbers from 0, or names; {message!r} has others.")
    return whole


def _fits(whole: NDArray[Any] | list[int]) -> bool:
    """Return whether all whole numbers, and their differences, fit in 64 bits."""
    least, most = _ends(whole)
    return least > -LARGEST and most < LARGEST


def _ends(whole: NDArray[Any] | list[int]) -> tuple[int, int]:
    """Return the smallest and the largest of some whole numbers; 0 if there are none."""
    if isinstance(whole, list):
        return min(whole, default=0), max(whole, default=0)
    return (int(whole.min()), int(whole.max())) if whole.size else (0, 0)


def _not_negative(tokens: Numbers) -> Numbers:
    """Return tokens; raise if one is negative."""
    if (least := _ends(tokens)[0]) < 0:
        raise InvalidSettingError(
            f"Tokens are whole numbers from 0; found {quoted(least)}. If it stands after the end of shorter messages, "
            "leave it out: messages may differ in length."
        )
    return tokens


def names_of_attributes(table: Table, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the attributes, by default their numbers.

    Raises:
        InvalidSettingError: not one name per attribute.
    """
    names = [str(a) for a in range(table.attributes)] if given is None else list(given)
    if len(names) != table.attributes:
        raise InvalidSettingError(
            f"{counted(table.attributes, 'attribute', 'need')} as many names; {counted(len(names), 'name', 'were')} "
            "given."
        )
    return names
