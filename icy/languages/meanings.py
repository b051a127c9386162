"""Meanings: tuples of attribute values, in lexicographic order with the last attribute fastest."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.memory import available_memory, require_memory, too_large
from icy.core.text import counted

from .containers import Array

IntArray = NDArray[np.int64]
MAX_LOG2_SIZE = 62  # meanings are numbered by 64-bit integers
BYTES_PER_TOKEN = 24  # memory per token: three 64-bit arrays, for the table, its corrupted copy and a temporary


@dataclass(frozen=True)
class MeaningSpace:
    """The set of all tuples of `attributes` attribute values, with `values` values each.

    Meanings are numbered in lexicographic order, the last attribute fastest, as in Perkins21 and Icy22: the number of
    meaning m is the sum of m[a] * values ** (attributes - 1 - a).

    Attributes:
        attributes: number of attributes, A.
        values: number of values of every attribute, K.

    Raises:
        InvalidSettingError: A or K is not a positive whole number.

    Example:
        >>> from icy.languages.meanings import MeaningSpace
        >>> space = MeaningSpace.parse("3x10")
        >>> space.size, space.index([[0, 1, 2], [9, 9, 9]]).tolist()
        (1000, [12, 999])
        >>> space.meanings([12, 999]).tolist()
        [[0, 1, 2], [9, 9, 9]]
    """

    attributes: int
    values: int

    def __post_init__(self) -> None:
        for what in ("attributes", "values"):
            whole = whole_number(f"number of {what} of a meaning space", getattr(self, what))
            object.__setattr__(self, what, whole)

    @classmethod
    def parse(cls, text: str) -> MeaningSpace:
        """Parse a space such as "5x10": 5 attributes of 10 values each.

        Args:
            text: attributes and values, joined by an x.

        Raises:
            InvalidSettingError: the text is not two positive whole numbers joined by an x.
        """
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*[xX×]\s*([0-9]{1,9})\s*", text)
        if found is None:
            raise InvalidSettingError(f"'{text}' is not a meaning space; {_HOW_TO_WRITE}{_guess(text)}")
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def of(cls, given: MeaningSpace | str | tuple[int, int]) -> MeaningSpace:
        """Convert a text such as "5x10", or a pair (attributes, values), to a space; return a space unchanged.

        Args:
            given: a MeaningSpace, text, or a pair of numbers.

        Raises:
            InvalidSettingError: `given` has another type or form.
        """
        if isinstance(given, MeaningSpace):
            return given
        if isinstance(given, str):
            return cls.parse(given)
        if isinstance(given, (tuple, list)) and len(given) == 2:
            return cls(*given)
        raise InvalidSettingError(f"{given!r} is not a meaning space; {_HOW_TO_WRITE}")

    def __str__(self) -> str:
        return f"{self.attributes}x{self.values}"

    @property
    def size(self) -> int:
        """Number of meanings, N = K ** A."""
        return int(self.values**self.attributes)

    def index(self, meanings: ArrayLike) -> IntArray:
        """Return the numbers of meanings.

        Args:
            meanings: attribute values, shape [..., A].

        Returns:
            Shape [...], each in 0..N-1.

        Raises:
            InvalidSettingError: the last axis is not A long, or a value is not in 0..K-1.
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
        return np.asarray(given.astype(np.int64) @ self._strides(), dtype=np.int64)

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
        strides = self._strides()
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise InvalidSettingError(
                f"Meanings of {self} are numbered 0 to {self.size - 1}; found {given.min()} to {given.max()}."
            )
        return (given.astype(np.int64)[..., None] // strides) % self.values

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
        return self.attributes * math.log10(self.values)

    def _count(self) -> str:
        return f"{self.size:,}" if self._log10_size < 15 else f"10^{self._log10_size:.0f}"

    def _strides(self) -> IntArray:
        if self._log10_size > MAX_LOG2_SIZE * math.log10(2):
            raise InvalidSettingError(
                f"{self} has {self._count()} meanings, more than can be numbered (2^{MAX_LOG2_SIZE}); "
                "take fewer attributes or values."
            )
        return np.array([self.values**a for a in reversed(range(self.attributes))], dtype=np.int64)


_HOW_TO_WRITE = "write attributes x values, as in 5x10 for 5 attributes of 10 values each."


def _guess(text: str) -> str:
    """Suggest a spelling for 10^5 (Perkins21 writes values^attributes), 5*10, 5,10 and the like."""
    if found := re.fullmatch(r"\s*(\d+)\s*(?:\^|\*\*)\s*(\d+)\s*", text):
        return f" Did you mean {found[2]}x{found[1]}?"
    if found := re.fullmatch(r"\W*(\d+)\W+(\d+)\W*", text):
        return f" Did you mean {found[1]}x{found[2]}?"
    return ""


def _whole(given: ArrayLike, what: str) -> Array:
    array = np.asarray(given)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidSettingError(f"The {what} must be whole numbers, not {array.dtype}.")
    return array
