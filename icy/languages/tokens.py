"""The rule for reading tokens and messages from every container and file: docs/your-languages.md."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import listed

from .rule import LARGEST, Array, Entries, Names, Rule, Values, plain, sorted_names
from .texts import DECIMAL, split

log = logging.getLogger(__name__)
PAD = -1  # pads messages to the length of the longest
Tokens = Int64[NDArray[np.int64], "batch length"]


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages as an array of token numbers.

    Attributes:
        tokens: numbers of the tokens, [N, S], PAD after the end of a message.
        names: names of the tokens, or None if they are the numbers.
        spelling: how tokens were written, in words.
        removed: the dropped tokens that ended, began or padded messages.
    """

    tokens: Tokens
    names: Names | None = None
    spelling: str = ""
    removed: tuple[int, ...] = ()


def read_messages(given: Entries, rule: Rule) -> Messages:
    """Read messages by the rule.

    Args:
        given: result of `icy.languages.rule.unpacked`: one entry per row, none missing.
        rule: options.

    Raises:
        InvalidSettingError: messages are not sequences of tokens, may be read in two ways, or lack the start token.
    """
    if isinstance(given, np.ndarray):
        tokens, lengths, spelling = _of_array(given, rule)
        if _fits(tokens):
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
    tokens: Tokens,
    lengths: NDArray[np.int64],
    names: Names | None,
    rule: Rule,
    spelling: str = "",
    known: Sequence[int] = (),
) -> Messages:
    """Remove the tokens that `rule` names as start, end and padding of messages.

    Args:
        tokens: numbers of tokens, [N, S]; entries from `lengths` on are ignored.
        lengths: number of tokens of each message, [N].
        names: names of the tokens, if any.
        rule: rule with the options `start`, `eos` and `pad`.
        spelling: see Messages.
        known: tokens that were removed earlier, and may be absent.

    Raises:
        InvalidSettingError: the start token does not occur, one of these tokens is in a wrong place or not of the kind
            of the tokens, or a token is negative.
    """
    columns = np.arange(tokens.shape[1])
    removed, notes = list(known), [spelling]
    if rule.lengths is not None:
        lengths = np.minimum(lengths, _whole_lengths(rule.lengths, tokens))

    def numbered(token: object, what: str) -> int | None:
        number = _number_of(token, names)
        if number is not None and number in (*known, *removed):  # the end token may also pad messages
            return None
        if number is None or not ((tokens == number) & (columns < lengths[:, None])).any():
            some = np.unique(tokens[columns < lengths[:, None]])[:8].tolist()
            shown = listed([quoted(t if names is None else names[t]) for t in some]) or "none"
            if what == "start" or (number is None and names is None):
                raise InvalidSettingError(
                    f"The {what} token {quoted(token)} is in no message; the first tokens are {shown}."
                )
            log.warning(  # one of several runs may lack it
                "The %s token %s is in no message, and has no effect; the first tokens are %s.",
                what,
                quoted(token),
                shown,
            )
            notes.append(f"no message has the {what} token {token}")
            if number is None:
                return None
        removed.append(number)
        return number

    pad = None
    pads = rule.pad is not None and not rule.pads_missing
    if pads and (rule.eos is None or _number_of(rule.pad, names) != _number_of(rule.eos, names)):
        pad = numbered(rule.pad, "padding")
    if pad is not None:  # an end token may come before it
        tokens, lengths = _without_padding(tokens, lengths, pad)
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
    return Messages(shown, names, "; ".join(notes), tuple(sorted(set(removed))))


def _whole_lengths(given: Entries, tokens: Tokens) -> NDArray[np.int64]:
    """Return lengths of messages, rounded down as EGG does: they may be sums of probabilities, such as 2.999999."""
    try:
        lengths = np.floor(np.asarray(given, dtype=float) + 1e-3)
    except (TypeError, ValueError):
        lengths = np.full(len(tokens), np.nan)
    if lengths.shape != (len(tokens),) or not np.all((lengths >= 0) & (lengths <= tokens.shape[1])):
        raise InvalidSettingError(
            f"message_length, of shape {lengths.shape}, does not give the length of each of the {len(tokens)} messages "
            f"of up to {tokens.shape[1]} tokens; correct it, or leave it out."
        )
    return lengths.astype(np.int64)


def _without_padding(tokens: Tokens, lengths: NDArray[np.int64], pad: int) -> tuple[Tokens, NDArray[np.int64]]:
    """Return the tokens of each row and their number, without the padding before and after the message."""
    columns = np.arange(tokens.shape[1])
    said = (tokens != pad) & (columns < lengths[:, None])
    first = np.where(said.any(1), said.argmax(1), 0)
    last = np.where(said.any(1), tokens.shape[1] - said[:, ::-1].argmax(1), 0)
    source = np.minimum(columns + first[:, None], max(tokens.shape[1] - 1, 0))
    return np.take_along_axis(tokens, source, 1), last - first


# -- one entry per message -------------------------------------------------------------------------------------------


def _of_array(given: Array, rule: Rule) -> tuple[Array, NDArray[np.int64], str]:
    """Convert an array of numbers to tokens, [N, S]; also return the lengths, [N], and how tokens were written."""
    if given.ndim in (2, 3) and given.shape[-1] and (rule.argmax or (given.ndim == 3 and _one_hot_or_empty(given))):
        vectors = given if given.ndim == 3 else given[:, None]
        present = (vectors != 0).any(-1)  # vectors of zeros are after the end of a message
        if (np.diff(present.astype(np.int8), axis=1) > 0).any():
            raise InvalidSettingError("A vector of zeros, which is not a token, is before other vectors of a message.")
        return vectors.argmax(-1), present.sum(1), "the largest of each vector" if rule.argmax else "one-hot vectors"
    tokens, spelling = (given[:, None], "a single token") if given.ndim == 1 else (given, "a token each")
    if tokens.ndim != 2:
        raise InvalidSettingError(
            f"Messages must be a table with one row per message and one column per token, not of shape {given.shape}. "
            "argmax=True (--argmax) uses the largest entry of each vector as a token."
        )
    if rule.argmax is None and looks_one_hot(tokens):
        raise InvalidSettingError(
            f"Messages of {tokens.shape[1]} numbers with a single {tokens.max():g} can be read in two ways: as "
            "one-hot vectors of a symbol each (argmax=True, or --argmax), or as "
            f"{tokens.shape[1]} tokens each (argmax=False, or --no-argmax)."
        )
    if tokens.dtype.kind == "f":
        tokens = _whole(tokens, rule)
    return tokens, np.full(len(tokens), tokens.shape[1]), spelling


def _whole(given: Array, rule: Rule) -> Array:
    """Convert whole floats to integers; raise an error for other floats."""
    if not np.isfinite(given).all():
        raise InvalidSettingError("Some tokens are infinite; tokens must be whole numbers from 0, or names.")
    odd = np.argwhere(given != np.round(given))
    if len(odd):
        raise _real_token_error(float(given[tuple(odd[0])]), rule.place(int(odd[0][0])))
    if not given.size or np.abs(given).max() < LARGEST:
        return given.astype(np.int64)
    return np.array([[int(v) for v in row] for row in given.tolist()], dtype=object)


def _real_token_error(token: object, where: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"Tokens must be whole numbers from 0, or names, not {quoted(token)} in {where}. If messages are vectors of "
        "scores, argmax=True (--argmax) uses the largest entry of each as a token."
    )


def is_one_hot(vectors: Array) -> bool:
    """Return whether every vector has a single 1 and otherwise 0, or other numbers in their place: -1 and 1, 0 and 255.

    The smaller number is not above 0, because other pairs are usually tokens.
    """
    low, high = vectors.min(initial=0), vectors.max() if vectors.size else 1
    return bool(((vectors == low) | (vectors == high)).all() and ((vectors == high).sum(-1) == 1).all())


def _one_hot_or_empty(vectors: Array) -> bool:
    """Return whether vectors [N, S, V] have a single 1, or are zero after the end of a message."""
    present = (vectors != 0).any(-1)
    return bool(present[:, :1].all()) and is_one_hot(vectors[present])


def looks_one_hot(messages: Array) -> bool:
    """Return whether messages [N, S] look like one-hot vectors: several symbols, each as a vector with a single 1."""
    if len(messages) < 3 or messages.shape[1] < 3 or not is_one_hot(messages):
        return False
    return len(np.unique(messages, axis=0)) > 2


def _rows(given: Values, rule: Rule) -> tuple[list[Values] | Array, str]:
    """Return the tokens of each message, and how they were written, in words."""
    if all(isinstance(entry, str) for entry in given):
        return split(given, rule)
    if any(isinstance(entry, list) for entry in given):
        mixed = next((row for row, entry in enumerate(given) if not isinstance(entry, list)), None)
        if mixed is not None:
            if not isinstance(given[mixed], str):
                raise InvalidSettingError(
                    f"Messages must be sequences of tokens; {rule.place(mixed)} is a single value."
                )
            given = [split([e], rule)[0][0] if isinstance(e, str) else e for e in given]
    else:
        given = [[entry] for entry in given]
    if any(isinstance(token, list) for row in given for token in row):
        try:
            return np.array(given, dtype=float), ""
        except (TypeError, ValueError):
            raise InvalidSettingError("A token must be a single value, but some messages hold lists.") from None
    if rule.pads_missing:
        given = [_without_missing(row) for row in given]
    found = _discrete(given, rule)
    if isinstance(found, np.ndarray):
        return found, ""
    return found, "a single token" if all(len(row) == 1 for row in found) else "lists of tokens"


def _discrete(rows: list[Values], rule: Rule) -> list[Values] | Array:
    """Convert whole floats among the tokens to integers; return scores as an array, for argmax.

    Raises:
        InvalidSettingError: tokens are real numbers, or may be one-hot vectors.
    """
    even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    numbers = all(isinstance(token, (int, float)) for row in rows for token in row)
    if even and numbers and (rule.argmax or (rule.argmax is None and len({t for row in rows for t in row}) == 2)):
        scores = np.array(rows, dtype=float)
        if rule.argmax or looks_one_hot(scores):
            return scores
    for row, tokens in enumerate(rows):
        for token in tokens:
            if isinstance(token, float) and not token.is_integer():
                raise _real_token_error(token, rule.place(row))
    return [[int(token) if isinstance(token, float) else token for token in row] for row in rows]


def _without_missing(row: Values) -> Values:
    present = [place for place, token in enumerate(row) if token not in (None, "", "NA", "NaN", "nan")]
    return row[present[0] : present[-1] + 1] if present else []


def _as_numbers(tokens: Values) -> dict[object, int | float] | None:
    """Return the number of each token if all are numbers and each is always written in the same way; else None."""
    distinct = set(tokens)
    texts = [str(token) for token in distinct]
    if not all(re.fullmatch(r"-?[0-9]+", text) or DECIMAL.fullmatch(text) for text in texts):
        return None
    try:
        numbers = {token: int(token) if "." not in str(token) else float(token) for token in distinct}
    except ValueError:  # such as "1e5", or thousands of digits
        return None
    return numbers if len(set(numbers.values())) == len(set(texts)) else None


def _number_of(token: object, names: Names | None) -> int | None:
    """Return the number of a token that is a number, a name, or the text of either; None if it is unknown."""
    token = plain(token)
    if isinstance(token, list):
        raise InvalidSettingError(f"Only one token can end, begin or pad messages, not {quoted(token)}.")
    token = int(token) if isinstance(token, float) and token.is_integer() else token
    if names is None:
        text = str(token)
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else None
    if token in names:
        return names.index(token)
    return next((i for i, name in enumerate(names) if str(name) == str(token)), None)


def _fits(whole: Array | list[int]) -> bool:
    """Return whether all whole numbers, and their differences, fit in 64 bits."""
    if isinstance(whole, list):
        return min(whole, default=0) > -LARGEST and max(whole, default=0) < LARGEST
    return not whole.size or (int(whole.min()) > -LARGEST and int(whole.max()) < LARGEST)


def _require_not_negative(least: int) -> None:
    if least < 0:
        raise InvalidSettingError(
            f"Tokens must be whole numbers from 0, not {quoted(least)}. If it pads shorter messages, "
            f"give it as pad={quoted(least)} (--pad), or leave it out: messages may differ in length."
        )
