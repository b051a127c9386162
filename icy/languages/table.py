"""The table of meanings and messages that every metric scores, checked once and stored in one form."""

import numbers
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int64, Real, Shaped
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.machine import require_memory
from icy.core.text import counted, listed

from .language import Language
from .rule import Array, Container, Entries, Names, Rule, sorted_names, unpacked, without_missing
from .tokens import PAD, cut, read_messages
from .values import read_meanings, values_of

# -- discrete variables: values numbered from 0 without gaps -----------------------------------------------------------


Codes = Int64[NDArray[np.int64], " batch"]  # values of a discrete variable, numbered from 0 without gaps, [N]
Weights = Real[Array, " batch"]  # number of times each row counts, [N] positive numbers: integers if all are whole


def number(values: Shaped[Array, " batch"]) -> Codes:
    """Number values from 0 in sorted order, without gaps: [N] -> [N]."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()


def count_varying(variables: Iterable[Codes]) -> int:
    """Count the variables that have more than one value."""
    return sum(int(codes.max()) > 0 for codes in variables)


def together(*variables: Codes) -> Codes:
    """Combine variables into one variable that numbers the combinations of their values.

    Args:
        *variables: at least one, [N] each.

    Returns:
        The joint variable, [N].
    """
    joint = variables[0]
    for other in variables[1:]:
        joint = number(joint * (int(other.max()) + 1) + other)
    return joint


def mean_of_rows(values: Shaped[Array, "batch ..."], weights: Weights | None) -> Shaped[Array, "..."]:
    """Return the mean of values over the rows, [N, ...] -> [...]."""
    return np.asarray(values.mean(0) if weights is None else np.average(values, 0, weights))


MOST_WEIGHT = 2**53  # sums of whole weights below this limit are exact, as floats too


@dataclass(frozen=True, eq=False)
class Table:
    """Meanings and their messages, row by row; build one with `Table.of`.

    Attributes:
        meanings: attribute values, [N, A]: integers (named values are numbered in sorted order), or floats if the
            meanings are continuous.
        messages: tokens, integers from 0, [N, S]; PAD after the end of a shorter message.
        value_names: for each attribute the names of its values, or None if they are numbers; empty if all values are
            numbers.
        token_names: names of the tokens, or None if they are numbers.
        attribute_names: names of the attributes, if there are any.
        vocab_size: number of tokens in the vocabulary, V.
        weights: number of times each row counts, [N] positive numbers, as integers if all are whole; None if every row
            counts once. With integer weights, metrics return the score of `repeated()`.
        drawn_from: for rows drawn with replacement, the original row of each copy, [N].
        name: name of the table in reports.
        read_as: how the data was read, in words, with the rows that `missing="drop"` left out.
        removed: the removed tokens that ended, began or padded messages; they are not part of the vocabulary.
        phrases: whether meanings are phrases: a concept means the same at any place.
    """

    meanings: Real[Array, "meaning attr"]  # as many as messages, which `of` checks
    messages: Int64[NDArray[np.int64], "message length"]
    value_names: tuple[Names | None, ...] = ()
    token_names: Names | None = None
    vocab_size: int = 0
    weights: Real[Array, " batch"] | None = None
    drawn_from: Codes | None = None
    name: str = ""
    read_as: str = ""
    phrases: bool = False
    removed: tuple[int, ...] = ()
    attribute_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        meanings: Container,
        messages: Container = None,
        *,
        eos: object = None,
        vocab_size: int | None = None,
        weights: Container = None,
        **reading: Any,
    ) -> "Table":
        """Build a table from meanings and messages in any container.

        Args:
            meanings: a Language, a Table or a pair (meanings, messages); or the meanings alone: [N, A] whole numbers,
                real numbers or names. None if there are only messages, which few metrics can score.
            messages: N messages, each a sequence of tokens of any length or a text. Tokens are whole numbers from 0, or
                names. In a text every letter is a token, or every word if any text has spaces.
            eos: the token that ends a message, a number or a name: this token and all that follow are dropped.
            vocab_size: V, including dropped tokens; by default the Language's, or the largest token plus
                one.
            weights: number of times each row counts, [N] numbers of at least 0, such as counts or frequencies; rows
                with weight 0 are dropped. By default the weights of the Table, or 1 for each row.
            **reading: further options of the reading rule: `tokens`, `start`, `pad`, `lengths`, `one_hot`, `argmax`,
                `missing` and `phrases`; see `icy.languages.rule.Rule`.

        Raises:
            InvalidSettingError: no rows, meanings of unequal length, different numbers of meanings and messages,
                missing values, tokens that are negative or real numbers, an end token that does not
                occur, data that can be read in two ways, a vocabulary that lacks some tokens, or
                weights that are negative, not finite, all 0, too large, or not one per row.
            UnknownNameError: an unknown option.
        """
        known = [field.name for field in fields(Rule)]
        for option in reading:
            require_known("option of reading", option, known)
        rule = Rule(eos=eos, **reading)
        if messages is None and not (isinstance(meanings, tuple) and len(meanings) == 2):
            table = _of_one(meanings, rule, reading)
            table = table if weights is None else table._weighted_by(weights, rule)
        else:
            one, other = meanings if messages is None else (meanings, messages)
            table = _of_two(one, other, weights, rule)
        if not len(table.messages):
            raise InvalidSettingError("The table has no rows.")
        needed = max(int(table.messages.max(initial=-1)) + 1, 1)
        if vocab_size is None and table.vocab_size:
            return table
        size = needed if vocab_size is None else whole_number("vocabulary size", vocab_size)
        if size < needed:
            raise InvalidSettingError(f"A vocabulary of {size} has no token {needed - 1}, which is in the messages.")
        return replace(table, vocab_size=size - sum(0 <= token < size for token in table.removed))

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
        return np.asarray((self.messages != PAD).sum(1))

    @property
    def continuous(self) -> bool:
        """Whether the meanings are real numbers."""
        return self.meanings.dtype.kind == "f"

    @cached_property
    def factors(self) -> list[Codes]:
        """Each attribute as a discrete variable numbered from 0, [N] each."""
        return [number(column) for column in self.meanings.T]

    @cached_property
    def concepts(self) -> list[list[Hashable]]:
        """The concepts (values) of each meaning; phrases may differ in their number of concepts."""
        named = ([self.value_name(a, v) for a, v in enumerate(row)] for row in self.meanings.tolist())
        return [[name for name in row if name is not None] for row in named]

    @cached_property
    def compared(self) -> list[Codes]:
        """The discrete variables by which distances compare meanings: attributes, or the concepts of phrases."""
        if not self.phrases:
            return self.factors
        concepts = sorted_names([concept for row in self.concepts for concept in row])
        return [np.array([concept in row for row in self.concepts], dtype=np.int64) for concept in concepts]

    @cached_property
    def positions(self) -> list[Codes]:
        """The token at each position as a discrete variable numbered from 0, [N] each; PAD counts as a token."""
        return [number(column) for column in self.messages.T]

    def require_meanings(self, metric: str) -> None:
        """Raise an error if the table has messages without meanings.

        Args:
            metric: name for the error message.

        Raises:
            InvalidSettingError: a table without attributes.
        """
        if not self.attributes:
            raise InvalidSettingError(
                f"{metric} compares messages with meanings, but this table has no meanings; message_entropy and "
                "unique_messages need none."
            )

    def require_discrete(self, metric: str, phrases: bool = False) -> "Table":
        """Return the table if it has discrete meanings with a value of every attribute.

        Args:
            metric: name for the error message.
            phrases: whether the metric takes phrases of several lengths.

        Raises:
            InvalidSettingError: no attributes, meanings that are real numbers, or phrases that differ in length.
        """
        self.require_meanings(metric)
        if self.phrases and not phrases and any(names is not None and None in names for names in self.value_names):
            raise InvalidSettingError(
                f"{metric} needs a value of every attribute in each meaning, but these are phrases of several "
                'lengths; cbm with concepts="items" and topsim measure them.'
            )
        if self.continuous:
            raise InvalidSettingError(
                f"{metric} needs discrete attributes, but these meanings are real numbers; put them into classes."
            )
        return self

    def rows(self, which: Shaped[Array, " batch"]) -> "Table":
        """Return a table with the rows `which`; `drawn_from` holds their original rows."""
        source = np.arange(len(self)) if self.drawn_from is None else self.drawn_from
        part = {"meanings": self.meanings[which], "messages": self.messages[which]}
        weights = None if self.weights is None else self.weights[which]
        return replace(self, **part, weights=weights, drawn_from=source[which])  # type: ignore[arg-type]

    @property
    def total_weight(self) -> float:
        """The sum of the weights: N if every row counts once."""
        return len(self) if self.weights is None else self.weights.sum().item()  # type: ignore[no-any-return]

    @property
    def has_whole_weights(self) -> bool:
        """Whether all weights are whole numbers."""
        return self.weights is None or self.weights.dtype.kind == "i"

    def require_whole_weights(self, metric: str, instead: str = "give counts of rows") -> None:
        """Raise an error unless all weights are whole numbers.

        Args:
            metric: name for the error message.
            instead: advice at the end of the message.

        Raises:
            InvalidSettingError: some weights have fractions.
        """
        if self.weights is not None and not self.has_whole_weights:
            example = self.weights[self.weights != np.floor(self.weights)][0].item()
            raise InvalidSettingError(
                f"{metric} counts rows, so weights must be whole numbers, but one is {example}; {instead}."
            )

    def repeated(self, metric: str = "A table of repeated rows") -> "Table":
        """Return the table without weights, with each row repeated by its weight.

        Args:
            metric: name for the error message.

        Raises:
            InvalidSettingError: weights with fractions, or more rows than fit in memory.
        """
        if self.weights is None:
            return self
        self.require_whole_weights(metric)
        size = 8 * int(self.total_weight) * (self.attributes + self.length)
        require_memory(size, f"A table of {int(self.total_weight)} repeated rows")
        which = np.arange(len(self)).repeat(self.weights)
        drawn_from = None
        if self.drawn_from is not None:  # the k-th copy of a row is a copy of the original's k-th copy only
            place = np.arange(len(which)) - (self.weights.cumsum() - self.weights)[which]
            drawn_from = together(number(self.drawn_from[which]), place)
        return replace(self.rows(which), weights=None, drawn_from=drawn_from)

    def token_name(self, token: int) -> Hashable:
        """Return the name of a token."""
        return int(token) if self.token_names is None else self.token_names[token]

    def has_token(self, name: Hashable) -> bool:
        """Return whether a token of the vocabulary has this name."""
        if self.token_names is not None:
            return name in self.token_names and self.token_names.index(name) not in self.removed
        if not isinstance(name, numbers.Real) or name != int(name) or name in self.removed:
            return False
        size = self.vocab_size
        for token in self.removed:  # in order
            size += 0 <= token <= size
        return bool(0 <= name < size)

    def value_name(self, attribute: int, value: int) -> Hashable:
        """Return the name of an attribute's value."""
        names = self.value_names[attribute] if self.value_names else None
        return self.meanings.dtype.type(value).item() if names is None else names[value]

    def language(self, *, vocab_size: int | None = None, name: str | None = None) -> Language:
        """Return the table as a language, in which every meaning has one message.

        Values are numbered from 0 in order. Tokens that are numbers stay unchanged, the letters a to z are 0 to 25,
        and other tokens are numbered from 0 in order. If messages differ in length, V is the end token of the language.

        Args:
            vocab_size: V, without an end token; by default one more than the largest token.
            name: by default the table's name.

        Raises:
            InvalidSettingError: all messages are empty, or not every meaning occurs exactly once.
        """
        self.require_discrete("A language")
        if not self.lengths.any():
            raise InvalidSettingError("All messages are empty; a language needs a message with a token.")
        values = [np.unique(column).tolist() for column in self.meanings.T]
        names = tuple(tuple(str(self.value_name(a, v)) for v in of_one) for a, of_one in enumerate(values))
        tokens = self.messages
        if self.token_names is not None:
            used = [token for token in range(len(self.token_names)) if token not in self.removed]
            tokens, letters = np.searchsorted(used, tokens), [str(self.token_names[token]) for token in used]
            if all(re.fullmatch("[a-z]", letter) for letter in letters):
                tokens = np.array([ord(letter) - ord("a") for letter in letters])[tokens]
        absent, eos = self.messages == PAD, None
        if absent.any():
            eos = int(tokens[~absent].max()) + 1 if vocab_size is None else vocab_size
            tokens, vocab_size = np.where(absent, eos, tokens), eos + 1
        return Language.from_table(
            np.stack(self.factors, 1),
            tokens,
            vocab_size=vocab_size,
            eos=eos,
            name=self.name if name is None else name,
            value_names=None if all(of_one == tuple(map(str, range(len(of_one)))) for of_one in names) else names,
        )

    def _weighted_by(self, given: Container, rule: Rule) -> "Table":
        """Return the table with weights, without rows of weight 0, and without tokens that only occur in these rows."""
        held = unpacked(given, "Weights")
        if len(held) != len(self):
            numbers = f"{counted(len(self), 'row')} and {counted(len(held), 'weight')}"
            raise InvalidSettingError(f"Each row needs one weight, but there are {numbers}.")
        weights = _read_weights(held, rule)
        some = np.flatnonzero(weights)
        table = replace(self.rows(some), drawn_from=None if self.drawn_from is None else self.drawn_from[some])
        if len(some) < len(self):
            present = table.messages != PAD
            messages = table.messages[:, present.any(0)]
            names, removed = table.token_names, self.removed
            if names is not None:
                used = np.union1d(table.messages[present], np.array(self.removed, dtype=np.int64))
                names = tuple(names[token] for token in used) or None
                messages = np.where(messages == PAD, PAD, np.searchsorted(used, messages))
                removed = tuple(np.searchsorted(used, removed).tolist())
            size = self.vocab_size if self.token_names is None else 0
            table = replace(table, messages=messages, token_names=names, vocab_size=size, removed=removed)
        return replace(table, weights=None if (weights[some] == 1).all() else weights[some])

    def without(self, rule: Rule) -> "Table":
        """Return the table without the tokens that `rule` names as start, end and padding of messages."""
        if rule.start is rule.eos is rule.pad is None:
            return self
        found = cut(self.messages, self.lengths, self.token_names, rule, known=self.removed)
        size = self.vocab_size
        size -= sum(0 <= token < size for token in found.removed if token not in self.removed)
        return replace(self, messages=found.tokens, removed=found.removed, vocab_size=size)


def _of_one(given: object, rule: Rule, reading: Iterable[str]) -> Table:
    """Build a table from one object that holds both meanings and messages."""
    if not isinstance(given, (Table, Language)):
        raise InvalidSettingError("Give meanings and messages, or one Language that has both.")
    for name in reading:
        if name not in ("start", "pad"):
            raise InvalidSettingError(f"'{name}' is an option for reading data, but this table has been read already.")
    if isinstance(given, Table):
        return given.without(rule)
    names: tuple[Names | None, ...] = () if given.value_names is None else tuple(map(tuple, given.value_names))
    messages = given.messages.astype(np.int64)
    table = Table(given.space.all(), messages, names, vocab_size=given.vocab_size, name=given.name)
    if given.eos is not None and given.eos in given.messages:
        table = table.without(Rule(eos=given.eos))
    elif given.eos is not None:
        table = replace(table, vocab_size=given.token_count, removed=(given.eos,))
    return table.without(rule)


def _of_two(meanings: Container, messages: Container, weights: Container, rule: Rule) -> Table:
    """Build a table from a container of meanings, or None, and a container of messages."""
    if hasattr(messages, "iloc") and getattr(messages, "ndim", 1) == 2 and messages.shape[1] == 1:
        messages = messages.iloc[:, 0]  # a frame of one column
    sides = {"meaning": meanings, "message": messages, "weight": weights, "length": rule.lengths}
    held = {
        what: unpacked(side, f"{what.title()}s")
        for what, side in sides.items()
        if what == "message" or side is not None
    }
    if len({len(held[what]) for what in held if what != "length"}) > 1:
        numbers = listed([counted(len(side), what) for what, side in held.items() if what != "length"])
        raise InvalidSettingError(f"Every row has one of each, but {numbers} were given.")
    rule = replace(rule, lengths=held.get("length"))
    (meaning_rows, message_rows, counts), rule, dropped = without_missing(
        (held.get("meaning"), held["message"], held.get("weight")), rule
    )
    no_meanings = np.zeros((len(message_rows), 0), dtype=np.int64), ()
    values, value_names = no_meanings if meaning_rows is None else read_meanings(meaning_rows, rule)
    read = read_messages(message_rows, rule)
    spelling, *notes = read.spelling.split("; ")
    spelling = "a token each" if len(rule.columns[1]) > 1 else spelling
    read_as = "; ".join(filter(None, (spelling, *notes, dropped)))
    table = Table(
        values, read.tokens, value_names, read.names, read_as=read_as, phrases=rule.phrases, removed=read.removed
    )
    return table if counts is None else table._weighted_by(counts, rule)


def _read_weights(given: Entries, rule: Rule) -> Array:
    """Return weights of rows, [N]; integers if all are whole."""
    values = values_of(given.tolist() if isinstance(given, np.ndarray) else given)
    if not all(isinstance(value, numbers.Real) for value in values):  # then the first text is the wrong weight
        values = [number for value in values for number in values_of([value])]
    for row, value in enumerate(values):
        if not isinstance(value, numbers.Real) or not 0 <= value < np.inf:  # type: ignore[operator]
            raise InvalidSettingError(
                f"Weights of rows must be numbers of at least 0, but {rule.place(row)} has {quoted(value)}."
            )
    if not 0 < (total := sum(values)) < MOST_WEIGHT:
        raise InvalidSettingError(f"The sum of weights must be in (0, 2^53), not {quoted(total)}; scale them.")
    return np.array(values, dtype=np.int64 if all(value == int(value) for value in values) else np.float64)


def names_of_attributes(table: Table, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the attributes: `given`, else the table's names, else their numbers.

    Raises:
        InvalidSettingError: the number of names differs from the number of attributes.
    """
    own = table.attribute_names or [str(a) for a in range(table.attributes)]
    names = list(own if given is None else given)
    if len(names) != table.attributes:
        raise InvalidSettingError(
            f"{counted(table.attributes, 'attribute', 'need')} as many names; {counted(len(names), 'name', 'were')} "
            "given."
        )
    return names
