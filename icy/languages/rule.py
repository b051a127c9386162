"""The options of the rule for reading meanings and messages: docs/your-languages.md."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.text import listed

from .containers import Container, Values, is_missing

WAYS = ("auto", "letters", "spaces", "whole")
MISSING = ("refuse", "drop")
LARGEST = 2**62  # larger numbers are read as names: differences of smaller numbers fit in 64 bits
Names = tuple[Hashable, ...]


def row_number(row: int) -> str:
    """Return the position of a row as text, as in "row 3 (counted from 0)"."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True)
class Rule:
    """Options for reading meanings and messages, where the data can be read in several ways.

    Attributes:
        tokens: how texts are divided into tokens: into letters ("letters"), at spaces ("spaces"), not at all ("whole"),
            or at a separator, such as "-"; "auto" determines it from all texts, and
            refuses texts that can be read in two ways.
        eos: the token that ends a message: this token and all that follow are dropped.
        start: the token that begins every message and is dropped.
        pad: the token that pads messages before or after their tokens; NaN for missing values.
        one_hot: number of values of each attribute, if meanings are one-hot vectors side by side; one number if all
            attributes have the same number; "no" if columns of 0 and 1 are separate attributes.
        argmax: use the index of the largest entry as a token, if messages are vectors of real numbers; False if
            floats with a single 1 per message are tokens.
        missing: "refuse" rows with missing values, or "drop" them.
        lengths: number of tokens of each message, [N]; later tokens are dropped. EGG calls it `message_length`.
        phrases: whether meanings are phrases: any number of concepts, which mean the same at any place.
        place: words for the place of a row.
        columns: names of the columns of meanings and of messages, for errors.
    """

    tokens: str = "auto"
    eos: object = None
    start: object = None
    pad: object = None
    one_hot: int | str | Sequence[int] | None = None
    argmax: bool | None = None
    missing: str = "refuse"
    lengths: Container = None
    phrases: bool = False
    place: Callable[[int], str] = field(default=row_number)
    columns: tuple[Sequence[str], Sequence[str]] = ((), ())

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str) or self.missing not in MISSING:
            raise unknown("treatment of missing values", str(self.missing), MISSING)
        if not isinstance(self.tokens, str) or not self.tokens:
            raise InvalidSettingError(f"tokens must be {listed(WAYS, 'or')} or a separator, not {quoted(self.tokens)}.")

    @property
    def pads_missing(self) -> bool:
        """Whether messages are padded with missing values."""
        return self.pad is not None and (is_missing(self.pad) or (isinstance(self.pad, str) and self.pad == ""))


def sorted_names(names: Values) -> Names:
    """Return the distinct names, numbers before texts, each kind in order."""
    try:
        return tuple(sorted(set(names), key=lambda name: (str(type(name)), name)))
    except TypeError as error:
        raise InvalidSettingError("Tokens and values must be numbers, or names that have an order.") from error
