"""Languages exactly as the authors' program draws them, with the legacy generators of NumPy and PyTorch."""

from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.machine import require_memory

from .grammar import LARGEST_DRAW, IntArray, digits

if TYPE_CHECKING:
    import torch

LARGEST_SEED = 2**32 - 1  # of NumPy's legacy generator


def authors_generator(seed: int, service: bool = False) -> np.random.Generator:
    """Return an AuthorsGenerator under the type of NumPy's generators, as grammars expect it."""
    return cast(np.random.Generator, AuthorsGenerator(seed, service))


class AuthorsGenerator:
    """The random generators of the authors' program, with the methods that grammars use.

    The program draws a whole language from NumPy's global generator: first the words, then the numbers of the
    grammar. Only the matrix of `proj` comes from PyTorch, except in the service of the human study, which has its own
    English words. This class has generators of its own, so the global ones do not change.

    Args:
        seed: seed of both generators.
        service: whether to draw the matrix of `proj` from NumPy too, as in the service.

    Raises:
        InvalidSettingError: the legacy generators do not accept the seed.

    Example:
        >>> from icy.grammars.authors import AuthorsGenerator
        >>> AuthorsGenerator(0).permutation(6).tolist()
        [5, 2, 1, 3, 0, 4]
    """

    def __init__(self, seed: int, service: bool = False) -> None:
        self._state = np.random.RandomState(whole_number("seed of the authors' draws", seed, 0, LARGEST_SEED))
        self._seed, self._service = seed, service
        self._torch: torch.Generator | None = None

    def choice(self, possible: int, size: int, replace: bool) -> Int64[IntArray, "size={size}"]:
        """Draw numbers below `possible`; without replacement, NumPy makes a list of all of them."""
        if not replace:
            require_memory(
                8 * possible, f"The list of all {possible} words or messages, which the authors' draws need,"
            )
        return np.asarray(self._state.choice(possible, size=size, replace=replace), dtype=np.int64)

    def integers(self, base: int, size: tuple[int, int]) -> Int64[IntArray, "count={size[0]} length={size[1]}"]:
        """Draw a number below base ** length for each row, and return its digits, least significant first.

        Raises:
            InvalidSettingError: the numbers are too large.
        """
        count, length = size
        if base**length > LARGEST_DRAW:
            raise InvalidSettingError(
                f"The authors' program draws whole messages as numbers, and {length} tokens of a vocabulary of {base} "
                "exceed its 64 bits: give a smaller vocabulary or shorter words, or leave out draws."
            )
        return digits(self.choice(base**length, count, replace=True), base, length)

    def permutation(self, count: int) -> Int64[IntArray, "count={count}"]:
        """Draw a permutation of the numbers from 0 to count - 1."""
        return np.asarray(self._state.permutation(count), dtype=np.int64)

    def permuted(self, rows: Int64[IntArray, "row place"], axis: int) -> Int64[IntArray, "row place"]:
        """Draw a permutation of every row, one row after the other."""
        return np.stack([row[self._state.permutation(len(row))] for row in rows])

    def random(self, shape: tuple[int, int]) -> Float[NDArray[np.floating], "{shape[0]} {shape[1]}"]:
        """Draw uniform numbers from 0 to 1: 64-bit floats from NumPy, or 32-bit floats from PyTorch."""
        if self._service:
            return np.asarray(self._state.random_sample(shape))
        import torch

        if self._torch is None:
            self._torch = torch.Generator("cpu").manual_seed(self._seed)
        return np.asarray(torch.rand(*shape, generator=self._torch, dtype=torch.float32, device="cpu"))
