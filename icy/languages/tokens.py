"""The rule by which tokens and messages are read from every container and file: docs/your-languages.md."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.text import listed

from .containers import is_missing, plain

log = logging.getLogger(__name__)
PAD = -1  # fills messages up to the length of the longest
LARGEST = 2**62  # numbers from here on are taken as names: differences of smaller ones fit in 64 bits
WAYS = ("auto", "letters", "spaces", "whole")
MISSING = ("refuse", "drop")
SEPARATORS = ",;|/-_.:"  # one of them may separate the tokens of a message
PLAIN_SEPARATORS = ",;|"  # which are never tokens
BRACKETED = re.compile(r"(?:\w+\()?\s*c?[\[(](.*?)[\])]\s*(?:,[^\[\]()]*)?\)?", re.DOTALL)
WRAPPED = re.compile(r"\b[a-zA-Z][\w.]*\(([^(),]*)(?:,[^()]*)?\)")  # a scalar of a library: np.int64(3), tensor(3)
ENTRY = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,;'\"]+)")  # of a list in text: in quotes, or without
DECIMAL = re.compile(r"-?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][+-]?\d+)")
Names = tuple[Hashable, ...]
Tokens = Int64[NDArray[np.int64], "batch length"]


def row_number(row: int) -> str:
    """Return the place of a row of a container, in words."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True)
class Rule:
    """How to read meanings and messages where that is not plain from the data.

    Attributes:
        tokens: how texts are divided into tokens: into letters ("letters"), at spaces ("spaces"), not at all ("whole"),
            or at a separator, such as "-"; "auto" determines it from all texts, and
            refuses texts that can be read in two ways.
        eos: the token that ends a message: it and all that follow are dropped.
        start: the token that begins every message and is dropped.
        pad: the token that fills messages up before or after their tokens; NaN for missing values.
        one_hot: number of values of each attribute, if meanings are one-hot vectors side by side; one number if all
            attributes have as many; "no" if columns of 0 and 1 are attributes of their own.
        argmax: take the number of the largest entry for a token, if messages are vectors of real numbers; False if
            floats with a single 1 per message are tokens.
        missing: "refuse" rows with missing values, or "drop" them.
        phrases: whether meanings are phrases: concepts that mean the same at any place, of any number.
        place: words for the place of a row.
        columns: names of the columns of meanings and of messages, for errors.
    """

    tokens: str = "auto"
    eos: Any = None
    start: Any = None
    pad: Any = None
    one_hot: int | str | Sequence[int] | None = None
    argmax: bool | None = None
    missing: str = "refuse"
    phrases: bool = False
    place: Callable[[int], str] = field(default=row_number)
    columns: tuple[Sequence[str], Sequence[str]] = ((), ())

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str) or self.missing not in MISSING:
            raise unknown("treatment of missing values", str(self.missing), MISSING)
        if not isinstance(self.tokens, str) or not self.tokens:
            raise InvalidSettingError(f"tokens are {listed(WAYS, 'or')}, or a separator, not {quoted(self.tokens)}.")

    @property
    def pads_missing(self) -> bool:
        """Whether missing values fill messages up."""
        return self.pad is not None and (is_missing(self.pad) or (isinstance(self.pad, str) and self.pad == ""))


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages in one form.

    Attributes:
        tokens: numbers of the tokens, [N, S], PAD after the end of a message.
        names: names of the tokens, or None if they are the numbers.
        spelling: how tokens were written, in words.
        removed: the tokens that ended, began or filled messages, which were dropped.
    """

    tokens: Tokens
    names: Names | None = None
    spelling: str = ""
    removed: tuple[int, ...] = ()


def read_messages(given: NDArray[Any] | list[Any], rule: Rule) -> Messages:
    """Read messages by the rule.

    Args:
        given: what `icy.languages.containers.unpacked` returned: an entry per row, none of them missing.
        rule: options.

    Raises:
        InvalidSettingError: messages are not sequences of tokens, may be read in two ways, or lack the end token.
    """
    if isinstance(given, np.ndarray):
        tokens, spelling = _of_array(given, rule)
        if _fits(tokens):
            ended = (tokens == PAD).sum(1) if "vector" in spelling else 0
            lengths = np.full(len(tokens), tokens.shape[1]) - ended
            return cut(tokens.astype(np.int64), lengths, None, rule, spelling)
        given = tokens.tolist()
    rows, spelling = _rows(list(given), rule)
    if isinstance(rows, np.ndarray):
        return read_messages(rows, rule)
    flat = [token for row in rows for token in row]
    if not all(isinstance(token, int) for token in flat):
        numbers = _as_numbers(flat)
        if numbers is not None:
            found = _discrete([[numbers[token] for token in row] for row in rows], rule)
            if isinstance(found, np.ndarray):
                return read_messages(found, rule)
            rows = found
        flat = [token for row in rows for token in row]
    names: Names | None = None
    if not (all(isinstance(token, int) for token in flat) and _fits(flat)):
        negative = [token for token in flat if isinstance(token, int) and token < 0 and token != rule.pad]
        _require_not_negative(min(negative, default=0))
        names = sorted_names(flat)
        place = {name: i for i, name in enumerate(names)}
        rows = [[place[token] for token in row] for row in rows]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    table = np.full((len(rows), int(lengths.max(initial=0))), PAD, dtype=np.int64)
    for row, own in zip(table, rows, strict=True):
        row[: len(own)] = own
    return cut(table, lengths, names, rule, spelling)


def cut(
    tokens: Tokens, lengths: NDArray[np.int64], names: Names | None, rule: Rule, spelling: str = "", known: Any = ()
) -> Messages:
    """Remove the tokens that begin, end and fill messages, which `rule` names.

    Args:
        tokens: [N, S]; the first `lengths` of each row count.
        lengths: [N].
        names: names of the tokens, if they have any.
        rule: names the tokens.
        spelling: see Messages.
        known: tokens that have been removed before, which need not occur.

    Raises:
        InvalidSettingError: one of these tokens does not occur or is in a wrong place, or a token is negative.
    """
    columns = np.arange(tokens.shape[1])
    removed = list(known)

    def numbered(token: Any, what: str) -> int | None:
        number = _number_of(token, names)
        if number is not None and number in (*known, *removed):  # as the token that ends messages also fills them
            return None
        if number is None or not ((tokens == number) & (columns < lengths[:, None])).any():
            some = np.unique(tokens[columns < lengths[:, None]])[:8].tolist()
            shown = listed([quoted(t if names is None else names[t]) for t in some]) or "none"
            raise InvalidSettingError(
                f"The {what} token {quoted(token)} is in no message; the first tokens are {shown}."
            )
        removed.append(number)
        return number

    pad = None
    if rule.pad is not None and not rule.pads_missing and _number_of(rule.pad, names) != _number_of(rule.eos, names):
        pad = numbered(rule.pad, "padding")
    if pad is not None:  # before and after the message, where a token that ends it may come first
        said = (tokens != pad) & (columns < lengths[:, None])
        first = np.where(said.any(1), said.argmax(1), 0)
        last = np.where(said.any(1), tokens.shape[1] - said[:, ::-1].argmax(1), 0)
        source = np.minimum(columns + first[:, None], max(tokens.shape[1] - 1, 0))
        tokens, lengths = np.take_along_axis(tokens, source, 1), last - first
    if rule.start is not None and (start := numbered(rule.start, "start")) is not None:
        begins = (tokens[:, :1] == start).ravel() & (lengths > 0)
        if not begins.all():
            row = int(np.argmin(begins))
            raise InvalidSettingError(f"The message in {rule.place(row)} does not begin with {quoted(rule.start)}.")
        tokens, lengths, columns = tokens[:, 1:], lengths - 1, columns[1:] - 1
    if rule.eos is not None and (eos := numbered(rule.eos, "end")) is not None:
        ends = (tokens == eos) & (columns < lengths[:, None])
        lengths = np.where(ends.any(1), ends.argmax(1), lengths) if tokens.shape[1] else lengths
    if pad is not None and (gaps := ((tokens == pad) & (columns < lengths[:, None])).any(1)).any():
        row = int(np.argmax(gaps))
        raise InvalidSettingError(f"The padding {quoted(rule.pad)} is between tokens in {rule.place(row)}.")
    within = columns < lengths[:, None]
    _require_not_negative(int(tokens.min(where=within, initial=0)))
    shown = np.where(within, tokens, PAD)[:, : int(lengths.max(initial=0))]
    return Messages(shown, names, spelling, tuple(sorted(set(removed))))


# -- one entry per message -------------------------------------------------------------------------------------------


def _of_array(given: NDArray[Any], rule: Rule) -> tuple[NDArray[Any], str]:
    """Return an array of numbers as tokens, [N, S], and how they were written."""
    if given.ndim == 1 and not rule.argmax:
        given, spelling = given[:, None], "a single token"
    else:
        spelling = "a token each"
    vectors = given if given.ndim == 3 else given[:, None]  # [N, S, V], of which empty ones follow the message
    if (rule.argmax or (given.ndim == 3 and _one_hot_or_empty(given))) and given.ndim > 1 and given.shape[-1]:
        said = (vectors != 0).any(-1)
        if (np.diff(said.astype(np.int8), axis=1) > 0).any():
            raise InvalidSettingError("A vector of zeros is before other vectors of a message, and names no token.")
        tokens = np.where(said, vectors.argmax(-1), PAD)
        return tokens, "the largest of each vector" if rule.argmax else "one-hot vectors"
    if given.ndim != 2:
        raise InvalidSettingError(
            f"Messages are a table, a row per message and a column per token; the shape {given.shape} is none. "
            "argmax=True (--argmax) takes the largest entry of each vector for a token."
        )
    if rule.argmax is None and looks_one_hot(given):
        raise InvalidSettingError(
            f"Messages of {given.shape[1]} numbers with a single 1 can be read in two ways: as one-hot vectors of a "
            f"symbol each (argmax=True, or --argmax), or as {given.shape[1]} tokens each (argmax=False, or "
            "--no-argmax)."
        )
    if given.dtype.kind == "f":
        given = _whole(given, rule)
    return given, spelling


def _whole(given: NDArray[Any], rule: Rule) -> NDArray[Any]:
    """Return floats that are whole numbers as such; refuse others."""
    if not np.isfinite(given).all():
        raise InvalidSettingError("Some tokens are infinite, and tokens are whole numbers from 0, or names.")
    odd = np.argwhere(given != np.round(given))
    if len(odd):
        raise _real_tokens(float(given[tuple(odd[0])]), rule.place(int(odd[0][0])))
    if not given.size or np.abs(given).max() < LARGEST:
        return given.astype(np.int64)
    return np.array([[int(v) for v in row] for row in given.tolist()], dtype=object)


def _real_tokens(token: object, where: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"Tokens are whole numbers from 0, or names; {quoted(token)} in {where} is neither. If messages are vectors of "
        "scores, argmax=True (--argmax) takes the largest entry of each for a token."
    )


def is_one_hot(vectors: NDArray[Any]) -> bool:
    """Return whether every vector has a single 1 and otherwise 0."""
    return bool(((vectors == 0) | (vectors == 1)).all() and (vectors.sum(-1) == 1).all())


def _one_hot_or_empty(vectors: NDArray[Any]) -> bool:
    """Return whether vectors [N, S, V] have a single 1, or are zero after the end of a message."""
    said = (vectors != 0).any(-1)
    return bool(said[:, :1].all()) and is_one_hot(vectors[said])


def looks_one_hot(messages: NDArray[Any]) -> bool:
    """Return whether messages [N, S] look like one-hot vectors: several symbols, each as a vector with a single 1."""
    if len(messages) < 3 or messages.shape[1] < 3 or not is_one_hot(messages):
        return False
    return len(np.unique(messages, axis=0)) > 2


def _rows(given: list[Any], rule: Rule) -> tuple[list[list[Any]] | NDArray[Any], str]:
    """Return the tokens of each message, and how they were written, in words."""
    if all(isinstance(entry, str) for entry in given):
        return split(given, rule)
    if any(isinstance(entry, list) for entry in given):
        mixed = next((row for row, entry in enumerate(given) if not isinstance(entry, list)), None)
        if mixed is not None:
            if not isinstance(given[mixed], str):
                raise InvalidSettingError(f"Messages are sequences of tokens; {rule.place(mixed)} has a single value.")
            given = [split([e], rule)[0][0] if isinstance(e, str) else e for e in given]
    else:
        given = [[entry] for entry in given]
    if any(isinstance(token, list) for row in given for token in row):
        try:
            return np.array(given, dtype=float), ""
        except (TypeError, ValueError):
            raise InvalidSettingError("A token is a single value, and some of these messages hold lists.") from None
    if rule.pads_missing:
        given = [_without_missing(row) for row in given]
    found = _discrete(given, rule)
    if isinstance(found, np.ndarray):
        return found, ""
    return found, "a single token" if all(len(row) == 1 for row in found) else "lists of tokens"


def _discrete(rows: list[list[Any]], rule: Rule) -> list[list[Any]] | NDArray[Any]:
    """Return tokens with whole floats as whole numbers, or an array of scores of which the rule takes the largest.

    Raises:
        InvalidSettingError: tokens are real numbers, or may be one-hot vectors.
    """
    even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    numbers = all(isinstance(token, (int, float)) for row in rows for token in row)
    if even and numbers and (rule.argmax or (rule.argmax is None and {t for row in rows for t in row} == {0, 1})):
        scores = np.array(rows, dtype=float)
        if rule.argmax or looks_one_hot(scores):
            return scores
    for row, tokens in enumerate(rows):
        for token in tokens:
            if isinstance(token, float) and not token.is_integer():
                raise _real_tokens(token, rule.place(row))
    return [[int(token) if isinstance(token, float) else token for token in row] for row in rows]


def _without_missing(row: list[Any]) -> list[Any]:
    said = [place for place, token in enumerate(row) if token not in (None, "", "NA", "NaN", "nan")]
    return row[said[0] : said[-1] + 1] if said else []


def _as_numbers(tokens: list[Any]) -> dict[Any, int | float] | None:
    """Return the number of each token if all are numbers, each written in one way; else None."""
    distinct = set(tokens)
    texts = [str(token) for token in distinct]
    if not all(re.fullmatch(r"-?[0-9]+", text) or DECIMAL.fullmatch(text) for text in texts):
        return None
    try:
        numbers = {token: int(token) if "." not in str(token) else float(token) for token in distinct}
    except ValueError:  # such as "1e5", or thousands of digits
        return None
    return numbers if len(set(numbers.values())) == len(set(texts)) else None


def sorted_names(names: Sequence[Any]) -> Names:
    """Return the distinct names, numbers before texts, each kind in order."""
    try:
        return tuple(sorted(set(names), key=lambda name: (str(type(name)), name)))
    except TypeError as error:
        raise InvalidSettingError("Tokens and values are numbers, or names that have an order.") from error


def _number_of(token: Any, names: Names | None) -> int | None:
    """Return the number of a token given as a number, a name, or the text of either; None if there is none."""
    token = plain(token)
    if isinstance(token, list):
        raise InvalidSettingError(f"One token ends, begins or fills messages, and {quoted(token)} are several.")
    token = int(token) if isinstance(token, float) and token.is_integer() else token
    if names is None:
        text = str(token)
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else None
    if token in names:
        return names.index(token)
    return next((i for i, name in enumerate(names) if str(name) == str(token)), None)


def _fits(whole: NDArray[Any] | list[int]) -> bool:
    """Return whether all whole numbers, and their differences, fit in 64 bits."""
    if isinstance(whole, list):
        return min(whole, default=0) > -LARGEST and max(whole, default=0) < LARGEST
    return not whole.size or (int(whole.min()) > -LARGEST and int(whole.max()) < LARGEST)


def _require_not_negative(least: int) -> None:
    if least < 0:
        raise InvalidSettingError(
            f"Tokens are whole numbers from 0; found {quoted(least)}. If it stands after the end of shorter messages, "
            f"name it as pad={quoted(least)} (--pad), or leave it out: messages may differ in length."
        )


# -- texts -----------------------------------------------------------------------------------------------------------


def split(texts: Sequence[str], rule: Rule) -> tuple[list[list[str]], str]:
    """Split texts into tokens; return also how they were written, in words.

    Raises:
        InvalidSettingError: the texts can be read in two ways, or do not suit the way that was asked for.
    """
    texts = [unicodedata.normalize("NFC", text) for text in texts]  # one letter for each é, however it is encoded
    how = rule.tokens.lower() if rule.tokens.lower() in WAYS else rule.tokens
    if how == "letters":
        return [[c for c in text if not c.isspace()] for text in texts], "a letter each"
    if how == "spaces":
        return [text.split() for text in texts], "tokens between spaces"
    if how == "whole":
        return [[text.strip()] for text in texts], "a single token"
    if how != "auto":
        return _at(how, texts, rule), f"tokens between '{how}'"
    if texts and all(re.fullmatch(r"\s*\{.*\}\s*", text) for text in texts):
        raise InvalidSettingError(f"The message {quoted(texts[0])} is a set or dictionary, which has no order.")
    inside = [BRACKETED.fullmatch(text.strip()) for text in texts]
    if texts and all(inside):
        return [parts_of(match[1]) for match in inside if match is not None], "lists of tokens"
    if any(inside):
        at = [match is not None for match in inside]
        one, other = (f"{quoted(texts[row])} in {rule.place(row)}" for row in (at.index(True), at.index(False)))
        raise InvalidSettingError(
            f"The message {one} is in brackets, and {other} is not; write all messages in one way."
        )
    spaced = any(len(text.split()) > 1 for text in texts)
    mark = _separator(texts, spaced)
    if mark:
        return _at(mark, texts, rule), f"tokens between '{mark}'"
    if spaced:
        _require_one_spelling(texts, rule)
        return [text.split() for text in texts], "tokens between spaces"
    _require_letters(texts, rule)
    letters = [[c for c in text if not c.isspace()] for text in texts]
    return letters, "a letter each" if any(len(row) > 1 for row in letters) else "a single token"


def parts_of(text: str) -> list[str]:
    """Return the entries of a list that is written as text between brackets: "10, 1", "10 1" or "'a', 'b'".

    Raises:
        InvalidSettingError: it is a list of lists, is cut off, or holds a missing value.
    """
    text = WRAPPED.sub(r"\1", text).strip()
    quotes = re.search(r"(^|[\s,;])['\"]", text)
    if quotes:
        parts = [first or second or third for first, second, third in ENTRY.findall(text)]
    else:
        parts = (
            [part.strip() for part in re.split("[,;]", text.strip(" ,;"))] if re.search("[,;]", text) else text.split()
        )
        parts = parts if parts != [""] else []
    for part in () if quotes else parts:
        if re.search(r"[\[\](){}]", part):
            raise InvalidSettingError(f"'{text}' is a list of lists, and a message or meaning is one list.")
        if part in ("", "...", "None", "nan", "NaN", "null", "<NA>"):
            raise InvalidSettingError(f"The list '{text}' is cut off or lacks a value; write whole lists.")
    return [whole_text(part) for part in parts]


def whole_text(text: str) -> str:
    """Return a decimal that is a whole number without its point, and any other text unchanged: "1." is "1"."""
    return (
        str(int(float(text)))
        if DECIMAL.fullmatch(text) and abs(float(text)) < 2**53 and float(text).is_integer()
        else text
    )


def _separator(texts: Sequence[str], spaced: bool) -> str:
    """Return the one mark that separates the tokens of all messages; "" if there is none."""
    marks = {c for text in texts for c in text if c in (PLAIN_SEPARATORS if spaced else SEPARATORS)}
    possible = [mark for mark in marks if all(map(str.strip, (part for text in texts for part in text.split(mark))))]
    clear = [mark for mark in marks if mark in PLAIN_SEPARATORS]
    if len(marks) == 1 and possible == ["."] and not spaced and all(DECIMAL.fullmatch(text) for text in texts):
        sides = [{text.partition(".")[side] for text in texts} for side in (0, 2)]
        if min(map(len, sides)) == 1:
            raise InvalidSettingError(
                f"The message {quoted(texts[0])} can be read in two ways: as the tokens before and after the point "
                '(tokens=".", or --tokens .), or as the number (tokens="whole", or --tokens whole).'
            )
    lacking = [text for text in texts if len(text.strip()) > 1 and not any(mark in text for mark in marks)]
    if len(marks) == 1 and possible and not spaced and 2 * len(lacking) > len(texts) and not _numeric(lacking):
        with_mark = next(text for text in texts if possible[0] in text)
        raise InvalidSettingError(
            f"The message {quoted(with_mark)} has the mark {quoted(possible[0])}, and most messages have none: it may "
            f"separate tokens (tokens={quoted(possible[0])}, or --tokens '{possible[0]}'), or be a letter "
            '(tokens="letters", or --tokens letters).'
        )
    if len(marks) == 1 and possible:
        parts = [part.strip() for text in texts for part in text.split(possible[0])]
        if not spaced or all(len(part.split()) == 1 for part in parts):
            return possible[0]
    if clear:
        with_mark = next(text for text in texts if clear[0] in text)
        raise InvalidSettingError(
            f"The message {quoted(with_mark)} can be read in two ways: as the tokens "
            f"{listed([quoted(part.strip()) for part in with_mark.split(clear[0])])} (tokens={quoted(clear[0])}, or "
            f'--tokens \'{clear[0]}\'), or {clear[0]} is a part of tokens (tokens="letters" or "spaces").'
        )
    return ""


def _numeric(texts: Sequence[str]) -> bool:
    return all(re.fullmatch("[0-9]+", text.strip()) for text in texts)


def _at(mark: str, texts: Sequence[str], rule: Rule) -> list[list[str]]:
    if not any(mark in text for text in texts):
        raise InvalidSettingError(
            f"The separator {quoted(mark)} is in no message; tokens is {', '.join(WAYS)}, or a separator of tokens."
        )
    rows = [[part.strip() for part in text.split(mark)] for text in texts]
    for place, row in enumerate(rows):
        if not all(row):
            raise InvalidSettingError(
                f"The message {quoted(texts[place])} in {rule.place(place)} has nothing between two '{mark}' or at its "
                f"end; {quoted(mark)} separates tokens."
            )
    return rows


def _require_one_spelling(texts: Sequence[str], rule: Rule) -> None:
    """Refuse letters between spaces if other messages have several letters without spaces; warn of numbers."""
    plain = [len(text.split()) == 1 < len(text) for text in texts]
    letters = {token for text in texts if len(parts := text.split()) > 1 for token in parts}
    if not any(plain) or any(len(token) > 1 for token in letters):
        return  # tokens of several letters may well be alone in a message
    spaced = [len(text.split()) > 1 for text in texts]
    one, other = (f"{quoted(texts[at])} in {rule.place(at)}" for at in (spaced.index(True), plain.index(True)))
    met = f"The message {one} has spaces between its tokens, and {other} has none"
    alone = texts[plain.index(True)]
    if not all(re.fullmatch("[0-9]+", token) for token in (*letters, alone)):
        raise InvalidSettingError(f"{met}; write all messages in one way.")
    log.warning("%s: it was taken for a single token, the number %s.", met, alone)


def _require_letters(texts: Sequence[str], rule: Rule) -> None:
    """Refuse texts of several letters without spaces that may as well be a single token each."""
    longer = next((text for text in texts if len(text) > 1), None)
    if longer is None:
        return
    lengths, distinct = {len(text) for text in texts}, set(texts)
    if all(re.fullmatch("-?[0-9]+", text) for text in texts):
        unsure = len(lengths) > 1 or not any(text[0] == "0" for text in texts)
    else:
        unsure = len(lengths) > 1 and 2 * len(distinct) <= len(texts)
    if unsure:
        raise InvalidSettingError(
            f"The message {quoted(longer)} can be read in two ways: as the tokens {listed([*map(quoted, longer)])} "
            f'(tokens="letters", or --tokens letters), or as the single token {quoted(longer)} (tokens="whole", or '
            "--tokens whole)."
        )
