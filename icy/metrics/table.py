"""The table that every metric scores: rows of a meaning and a message, checked once, in one form."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.languages.language import Language

from .entropy import Codes, number

PAD = -1  # what stands after the end of a message that is shorter than the longest
Names = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """Meanings and their messages, row by row; make one with `Table.of`.

    Attributes:
        meanings: attribute values, [N, A]: whole numbers (named values are numbered in sorted order), or real numbers
            where the meanings are continuous.
        messages: tokens, whole numbers from 0, [N, S]; PAD after the end of a shorter message.
        value_names: of every attribute the names of its values, where they are not whole numbers.
        token_names: of the tokens, where they are not whole numbers.
        vocab_size: how many different tokens there may be, V.
        drawn_from: for rows drawn with replacement, of which row each is a copy, [N].
        name: what the table is called, for reports.
    """

    meanings: NDArray[Any]
    messages: NDArray[np.int64]
    value_names: tuple[Names | None, ...] = ()
    token_names: Names | None = None
    vocab_size: int = 0
    drawn_from: Codes | None = None
    name: str = ""

    @classmethod
    def of(cls, meanings: Any, messages: Any = None, *, eos: int | None = None, vocab_size: int | None = None) -> Table:
        """A table of whatever holds meanings and messages.

        Args:
            meanings: a Language, a Table, a pair (meanings, messages); or meanings alone: [N, A], of whole or real
                numbers or of names.
            messages: [N, S] tokens; or N sequences of tokens, of any lengths; or N strings, of which every letter is a
                token. Tokens are whole numbers from 0, or names.
            eos: the token that ends a message: it and what follows it are no part of the message.
            vocab_size: by default that of the Language, or as many as the largest token needs.

        Raises:
            InvalidSettingError: no rows, rows of meanings of unequal length, not as many meanings as messages,
                negative tokens, or other things than tokens.
        """
        if messages is None:
            table = _of_one(meanings)
        else:
            values, value_names = _read_meanings(meanings)
            tokens, token_names = _read_messages(messages)
            table = cls(values, tokens, value_names, token_names)
        if len(table.meanings) != len(table.messages):
            raise InvalidSettingError(
                f"Every meaning has one message; {len(table.meanings)} meanings and {len(table.messages)} messages "
                "were given."
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
        """Columns of the meanings, A."""
        return int(self.meanings.shape[1])

    @property
    def length(self) -> int:
        """Tokens of the longest message, S."""
        return int(self.messages.shape[1])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each message, [N]."""
        found: NDArray[np.int64] = (self.messages != PAD).sum(1)
        return found

    @property
    def continuous(self) -> bool:
        """Whether meanings are real numbers."""
        return self.meanings.dtype.kind == "f"

    @cached_property
    def factors(self) -> list[Codes]:
        """Every attribute as a discrete variable, [N] each."""
        return [number(column) for column in self.meanings.T]

    @cached_property
    def positions(self) -> list[Codes]:
        """The token at every position as a discrete variable, [N] each; after the end, one more token."""
        return [number(column) for column in self.messages.T]

    def require_discrete(self, metric: str) -> None:
        """Refuse continuous meanings.

        Raises:
            InvalidSettingError: the meanings are real numbers.
        """
        if self.continuous:
            raise InvalidSettingError(
                f"{metric} is about discrete attributes, and these meanings are real numbers; put them into classes."
            )

    def rows(self, which: NDArray[Any]) -> Table:
        """The table of some rows; those that are given twice count as copies of one."""
        source = np.arange(len(self)) if self.drawn_from is None else self.drawn_from
        part = {"meanings": self.meanings[which], "messages": self.messages[which]}
        return replace(self, **part, drawn_from=source[which])  # type: ignore[arg-type]

    def token_name(self, token: int) -> Hashable:
        """What a token is called."""
        return int(token) if self.token_names is None else self.token_names[token]

    def value_name(self, attribute: int, value: int) -> Hashable:
        """What a value of an attribute is called."""
        names = self.value_names[attribute] if self.value_names else None
        return self.meanings.dtype.type(value).item() if names is None else names[value]

    def _ended_by(self, eos: int) -> Table:
        if self.token_names is not None:
            if eos not in self.token_names:
                return self
            eos = self.token_names.index(eos)
        whole_number("end-of-sequence token", eos, least=0)
        over = np.logical_or.accumulate(self.messages == eos, axis=1)
        messages = np.where(over, PAD, self.messages)
        used = int((messages != PAD).any(0).sum())
        return replace(self, messages=messages[:, :used])


def _of_one(given: Any) -> Table:
    """A table of one thing that holds both meanings and messages."""
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
    """Values as numbers, [N, A], and the names of those that were not."""
    try:
        table = np.asarray(given)
        if table.dtype.kind in "US":  # numbers beside names would have become names
            table = np.asarray(given, dtype=object)
    except ValueError:  # rows of unequal length
        table = np.empty(len(given), dtype=object)
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidSettingError(
            "Meanings are a table, one row per meaning and one column per attribute, all rows equally long; "
            f"what was given has the shape {table.shape}."
        )
    if table.dtype.kind in "iub":
        return table.astype(np.int64), ()
    if table.dtype.kind == "f":
        if not np.isfinite(table).all():
            raise InvalidSettingError("Some meanings are not numbers (NaN) or infinite; leave those rows out.")
        whole = table.astype(np.int64)
        return (whole, ()) if (whole == table).all() else (table.astype(np.float64), ())
    columns, names = zip(*(_number_names(column) for column in table.T), strict=True)
    return np.stack(columns, 1), names


def _number_names(column: NDArray[Any]) -> tuple[Codes, Names | None]:
    """One attribute's values as whole numbers: as they are, or numbered in sorted order if any is a name."""
    values = column.tolist()
    if all(isinstance(v, int) for v in values):
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
    """Tokens as whole numbers with PAD after the end, [N, S], and their names if they had any."""
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "iu":
        return _not_negative(given.astype(np.int64)), None
    if isinstance(given, str):
        raise InvalidSettingError("Messages are a sequence of messages, and one string was given.")
    try:
        rows = [_tokens(message) for message in given]
    except TypeError as error:
        raise InvalidSettingError("Messages are sequences of tokens, one for every meaning.") from error
    flat = [token for row in rows for token in row]
    names: Names | None = None
    if not all(isinstance(token, int) for token in flat):
        names = tuple(sorted(set(flat), key=lambda t: (str(type(t)), t)))
        place = {name: i for i, name in enumerate(names)}
        rows = [[place[token] for token in row] for row in rows]
    table = np.full((len(rows), max(map(len, rows), default=0)), PAD, dtype=np.int64)
    for place_of, row in enumerate(rows):
        _not_negative(np.asarray(row, dtype=np.int64))
        table[place_of, : len(row)] = row
    return table, names


def _tokens(message: Any) -> list[Any]:
    """The tokens of one message."""
    tokens = message.tolist() if hasattr(message, "tolist") else list(message)
    if not isinstance(tokens, list):
        raise TypeError
    whole = [int(t) if isinstance(t, float) and t.is_integer() else t for t in tokens]
    if any(isinstance(t, (float, list, dict, set)) for t in whole):
        raise InvalidSettingError(f"Tokens are whole numbers from 0, or names; {message!r} has others.")
    return whole


def _not_negative(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    if tokens.size and tokens.min() < 0:
        raise InvalidSettingError(
            f"Tokens are whole numbers from 0; found {tokens.min()}. If it stands after the end of shorter messages, "
            "leave it out: messages may differ in length."
        )
    return tokens


def names_of_attributes(table: Table, given: Sequence[str] | None = None) -> list[str]:
    """The attributes' names, by default their numbers."""
    names = [str(a) for a in range(table.attributes)] if given is None else list(given)
    if len(names) != table.attributes:
        raise InvalidSettingError(f"{table.attributes} attributes need as many names; {len(names)} were given.")
    return names
