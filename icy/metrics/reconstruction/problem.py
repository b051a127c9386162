"""TRE: the reconstruction problem, shared by all its solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icy.metrics.entropy import number
from icy.metrics.table import PAD, Table

if TYPE_CHECKING:
    from torch import Tensor

Matrix = NDArray[np.float64]
Composition = str | Callable[..., "Tensor"]
Gap = str | Callable[["Tensor", "Tensor"], "Tensor"]


@dataclass(frozen=True)
class Target:
    """What is reconstructed.

    Attributes:
        atoms: for every row and attribute the number of its value, counted over all attributes, [N, A].
        count: of atoms.
        said: the messages as numbers of symbols, [N, S]; the end of a shorter one is a symbol too.
        symbols: how many there are.
    """

    atoms: NDArray[np.int64]
    count: int
    said: NDArray[np.int64]
    symbols: int

    @cached_property
    def one_hot(self) -> Matrix:
        """The messages, [N, S, symbols]."""
        return np.eye(self.symbols)[self.said]


@dataclass(frozen=True)
class Fit:
    """How training is done.

    Attributes:
        restarts: how many fits are made, the best of which counts.
        steps: updates of each.
        learning_rate: at the start; it falls to 0 along a half cosine.
        optimiser: "adam" or "rmsprop".
        seed: of the first values.
        device: where to.
    """

    restarts: int = 4
    steps: int = 1000
    learning_rate: float = 0.05
    optimiser: str = "adam"
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Found:
    """A reconstruction: the error of every row, [N], and what else there is to say."""

    errors: Matrix
    details: dict[str, Any]


def make_target(table: Table, published: bool = False) -> Target:
    """Atoms, and messages in the symbols that occur; or as published in the whole vocabulary and two symbols more.

    Of those two the end of a message is one. A symbol that never occurs adds nothing to a least error, but it does
    where maps are not trained.
    """
    sizes = [int(factor.max()) + 1 for factor in table.factors]
    first = np.cumsum([0, *sizes])
    atoms = np.stack(table.factors, 1) + first[:-1]
    if published:
        said = np.where(table.messages == PAD, table.vocab_size, table.messages)
        return Target(atoms, int(first[-1]), said, table.vocab_size + 2)
    said = number(table.messages.ravel()).reshape(table.messages.shape)
    return Target(atoms, int(first[-1]), said, int(said.max()) + 1)
