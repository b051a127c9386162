"""Meanings: tuples of attribute values, in lexicographic order with the last attribute fastest."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.machine import available_memory, require_memory, too_large
from icy.core.text import counted, listed

from .rule import Array

IntArray = NDArray[np.int64]
MAX_LOG2_SIZE = 62  # meanings are numbered by 64-bit integers
BYTES_PER_TOKEN = 24  # memory per token: three 64-bit arrays, for the table, its corrupted copy and a temporary


@dataclass(frozen=True)
class MeaningSpace:
    """The set of all tuples of attribute values.

    In a *grid*, such as 5x10, all attributes have the same number of values. In other spaces, such as 10,4,2, each
    attribute has its own number. Meanings are numbered in lexicographic order, the last attribute fastest, as in
    Perkins21 and Icy22: the number of meaning m is the sum of m[a] * strides[a].

    Attributes:
        attributes: number of attributes, A.
        values: number of values of an attribute, K; if the attributes differ, the largest number.
        sizes: number of values of each attribute; by default K for all.

    Raises:
        InvalidSettingError: A, K or a size is not a positive whole number, or the sizes do not fit A and K.

    Example:
        >>> from icy.languages.meanings import MeaningSpace
        >>> space = MeaningSpace.parse("3x10")
        >>> space.size, space.index([[0, 1, 2], [9, 9, 9]]).tolist()
        (1000, [12, 999])
        >>> space.meanings([12, 999]).tolist()
        [[0, 1, 2], [9, 9, 9]]
        >>> MeaningSpace.parse("10,4,2").meanings([8, 79]).tolist()
        [[1, 0, 0], [9, 3, 1]]
    """

    attributes: int
    values: int
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for what in ("attributes", "values"):
            whole = whole_number(f"number of {what} of a meaning space", getattr(self, what))
            object.__setattr__(self, what, whole)
        sizes = tuple(whole_number("number of values of an attribute", size) for size in self.sizes)
        if sizes and (len(sizes), max(sizes)) != (self.attributes, self.values):
            raise InvalidSettingError(
                f"The sizes {sizes} are not of {counted(self.attributes, 'attribute')} with at most "
                f"{counted(self.values, 'value')}; write MeaningSpace.of_sizes({', '.join(map(str, sizes))})."
            )
        # A grid of very many attributes has no list of sizes: it cannot be used, but its error counts its meanings.
        object.__setattr__(self, "sizes", sizes if len(set(sizes)) > 1 else ())

    @classmethod
    def of_sizes(cls, *sizes: int | Sequence[int]) -> MeaningSpace:
        """Return the space of attributes with these numbers of values.

        Args:
            *sizes: number of values of each attribute, as arguments or as one list.

        Raises:
            InvalidSettingError: no size is given, or one is not a positive whole number.

        Example:
            >>> from icy.languages.meanings import MeaningSpace
            >>> print(MeaningSpace.of_sizes(10, 4, 2), MeaningSpace.of_sizes(4, 4))
            10,4,2 2x4
        """
        given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
        whole = tuple(whole_number("number of values of an attribute", size) for size in given)
        return cls(len(whole), max(whole, default=1), whole)

    @classmethod
    def parse(cls, text: str) -> MeaningSpace:
        """Parse a space: "5x10" has 5 attributes of 10 values each, and "10,4,2" has 3 attributes of 10, 4 and 2.

        Args:
            text: attributes and values, joined by an x; or the number of values of each attribute, joined by commas.

        Raises:
            InvalidSettingError: the text has another form, or a number is not positive.
        """
        if found := re.fullmatch(r"\s*([0-9]{1,9})\s*[xX×]\s*([0-9]{1,9})\s*", text):
            return cls(int(found[1]), int(found[2]))
        if re.fullmatch(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})+\s*", text):
            return cls.of_sizes(*map(int, text.split(",")))
        raise InvalidSettingError(f"'{text}' is not a meaning space; {_HOW_TO_WRITE}{_guess(text)}")

    @classmethod
    def of(cls, given: MeaningSpace | str | tuple[int, ...]) -> MeaningSpace:
        """Convert a text such as "5x10", a pair (attributes, values), or three or more sizes to a space.

        Args:
            given: a MeaningSpace, which is returned unchanged, text, or numbers. Two numbers are attributes and values.

        Raises:
            InvalidSettingError: `given` has another type or form.
        """
        if isinstance(given, MeaningSpace):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, (tuple, list)) and len(given) == 2:
            return cls(*given)
        if isinstance(given, (tuple, list)) and len(given) > 2:
            return cls.of_sizes(*given)
        raise InvalidSettingError(f"{given!r} is not a meaning space; {_HOW_TO_WRITE}")

    def __repr__(self) -> str:
        if self.sizes:
            return f"MeaningSpace.of_sizes({', '.join(map(str, self.sizes))})"
        return f"MeaningSpace(attributes={self.attributes}, values={self.values})"

    def __str__(self) -> str:
        return ",".join(map(str, self.sizes)) if self.sizes else f"{self.attributes}x{self.values}"

    @property
    def is_grid(self) -> bool:
        """Whether all attributes have the same number of values."""
        return not self.sizes

    @property
    def size_of_each(self) -> tuple[int, ...]:
        """Number of values of each attribute, also in a grid."""
        return self.sizes or (self.values,) * self.attributes

    @property
    def size(self) -> int:
        """Number of meanings, N: the product of the numbers of values."""
        return math.prod(self.sizes) if self.sizes else int(self.values**self.attributes)

    @property
    def chance(self) -> float:
        """Expected share of attribute values that are right by chance: the mean of 1 / K over the attributes."""
        return sum(1 / size for size in self.size_of_each) / self.attributes

    @property
    def strides(self) -> IntArray:
        """Distance between the numbers of two meanings that differ by one in an attribute, shape [A].

        Raises:
            InvalidSettingError: there are more meanings than can be numbered.
        """
        if self._log10_size > MAX_LOG2_SIZE * math.log10(2):
            raise InvalidSettingError(
                f"{self} has {self._count()} meanings, more than can be numbered (2^{MAX_LOG2_SIZE}); "
                "take fewer attributes or values."
            )
        from_last = [*accumulate(reversed(self.size_of_each[1:]), mul, initial=1)]
        return np.array(from_last[::-1], dtype=np.int64)

    @property
    def existing(self) -> NDArray[np.bool_]:
        """Whether each attribute has each value 0..K-1, shape [A, K]; all True in a grid."""
        return np.arange(self.values) < np.array(self.size_of_each)[:, None]

    def index(self, meanings: ArrayLike) -> IntArray:
        """Return the numbers of meanings.

        Args:
            meanings: attribute values, shape [..., A].

        Returns:
            Shape [...], each in 0..N-1.

        Raises:
            InvalidSettingError: the last axis is not A long, or an attribute does not have a value.
        """
        given = _whole(meanings, "meanings")
        if given.ndim == 0 or given.shape[-1] != self.attributes:
            raise InvalidSettingError(
                f"A meaning of {self} has {counted(self.attributes, 'attribute value')}; the given array has shape "
                f"{given.shape}."
            )
        if given.size and (given.min() < 0 or given.max() >= self.values):
            raise InvalidSettingError(
                f"Attribute values of {self} run from 0 to {self.values - 1}; found {given.min()} to {given.max()}."
            )
        above = (given >= np.array(self.sizes)).reshape(-1, self.attributes).any(0) if self.sizes else np.zeros(1)
        if above.any():
            attribute = int(above.argmax())
            raise InvalidSettingError(
                f"Attribute {attribute} of {self} (counted from 0) has the values 0 to {self.sizes[attribute] - 1}; "
                f"found {given[..., attribute].max()}."
            )
        return np.asarray(given.astype(np.int64) @ self.strides, dtype=np.int64)

    def meanings(self, index: ArrayLike) -> IntArray:
        """Return the meanings with the given numbers.

        Args:
            index: numbers of meanings, in 0..N-1, shape [...].

        Returns:
            Attribute values, shape [..., A].

        Raises:
            InvalidSettingError: a number is outside 0..N-1.
        """
        given = _whole(index, "numbers of meanings")
        strides = self.strides
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise InvalidSettingError(
                f"Meanings of {self} are numbered 0 to {self.size - 1}; found {given.min()} to {given.max()}."
            )
        return np.asarray(given.astype(np.int64)[..., None] // strides % self.size_of_each, dtype=np.int64)

    def all(self) -> IntArray:
        """Return every meaning in order, shape [N, A].

        Raises:
            InvalidSettingError: the meanings do not fit in memory.
        """
        self.check_fits(self.attributes)
        return self.meanings(np.arange(self.size))

    def check_fits(self, message_length: int) -> None:
        """Raise an error if a table of this space does not fit in memory, before anything is allocated.

        Args:
            message_length: tokens per message, L.

        Raises:
            InvalidSettingError: N * L tokens need more memory than is available; the message states both.
        """
        what = f"A table of {self} ({self._count()} meanings, {counted(message_length, 'token')} each)"
        if self._log10_size > MAX_LOG2_SIZE * math.log10(2):
            needed = self._log10_size + math.log10(max(message_length, 1) * BYTES_PER_TOKEN)
            raise too_large(what, f"10^{needed:.0f} bytes", available_memory())
        require_memory(self.size * message_length * BYTES_PER_TOKEN, what)

    @property
    def _log10_size(self) -> float:
        return sum(map(math.log10, self.sizes)) if self.sizes else self.attributes * math.log10(self.values)

    def _count(self) -> str:
        return f"{self.size:,}" if self._log10_size < 15 else f"10^{self._log10_size:.0f}"


def spaces_in(given: object) -> list[Any]:
    """Return the spaces in an argument with one or several spaces, each in a form that `MeaningSpace.of` takes.

    The name of a file that exists is left as it is. In other text, spaces are separated by commas or semicolons, and
    numbers between commas are one space. Numbers in a tuple are one space too.

    Raises:
        InvalidSettingError: a data frame is given.

    Example:
        >>> from icy.languages.meanings import spaces_in
        >>> spaces_in("3x4, 10,4,2; 2,3"), spaces_in((3, 4)), spaces_in(["3x4", "10,4,2"])
        (['3x4', '10,4,2', '2,3'], [(3, 4)], ['3x4', '10,4,2'])
    """
    if isinstance(given, str) and os.path.isfile(given):  # a Path refuses a text that is too long for a name
        return [given]
    if isinstance(given, str):
        spaces: list[Any] = []
        for text in given.split(";"):
            for numbers, parts in groupby(filter(None, map(str.strip, text.split(","))), str.isdecimal):
                names = list(parts)
                spaces += [",".join(names)] if numbers else names
        return spaces
    if isinstance(given, tuple) and given and all(isinstance(n, int) for n in given):
        return [given]
    if hasattr(given, "to_csv"):
        raise InvalidSettingError("A table of meanings must be a file: save it with to_csv, and give the file's name.")
    if not isinstance(given, Iterable):
        return [given]
    return [space for one in given for space in spaces_in(one)]


TABLES = (
    *(".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".json", ".jsonl"),
    *(".gz", ".bz2", ".xz", ".zst", ".zip"),
)  # files of meanings
_HOW_TO_WRITE = (
    "write attributes x values, as in 5x10 for 5 attributes of 10 values each, or the number of values of each "
    "attribute, as in 10,4,2."
)


def _guess(text: str) -> str:
    """Suggest a spelling for 10^5 (Perkins21 writes values^attributes), 5*10 and the like."""
    if found := re.fullmatch(r"\s*(\d+)\s*(?:\^|\*\*)\s*(\d+)\s*", text):
        return f" Did you mean {found[2]}x{found[1]}?"
    if found := re.fullmatch(r"\W*(\d+)\W+(\d+)\W*", text):
        return f" Did you mean {found[1]}x{found[2]}?"
    if text.lower().endswith(TABLES):
        return " Only `icy probe`, `icy sweep`, `icy search` and `icy e2e` take a table of meanings."
    if Path(text).is_file():
        return f" The name of a table of meanings ends in {listed(TABLES, 'or')}."
    return ""


def _whole(given: ArrayLike, what: str) -> Array:
    array = np.asarray(given)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidSettingError(f"The {what} must be whole numbers, not {array.dtype}.")
    return array
