"""The reconstruction problem of TRE, shared by its solvers: the target, training settings, and the result."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.languages.codes import Weights, mean_of_rows, number
from icy.languages.table import Table
from icy.languages.tokens import PAD

if TYPE_CHECKING:
    from torch import Tensor

MOST_TOKENS = 2**16  # largest vocabulary that has a number for each token
Matrix = NDArray[np.float64]
Composition = str | Callable[..., "Tensor"]  # a name, a function, a module or a class of modules; see `tre`
TensorDistance = str | Callable[["Tensor", "Tensor"], "Tensor"]  # a name, or a function ([N, D], [N, D]) -> [N]


@dataclass(frozen=True)
class Target:
    """The messages to reconstruct, and the atoms of their meanings: the values of attributes.

    Attributes:
        atoms: the atom of every row and attribute, numbered over all attributes, [N, A].
        count: number of atoms.
        tokens: messages as numbers of symbols, [N, S]; the end of a shorter message is a symbol too.
        symbols: number of symbols.
        weights: number of times each row counts, [N]; None for once.
    """

    atoms: Int64[NDArray[np.int64], "batch attr"]
    count: int
    tokens: Int64[NDArray[np.int64], "batch length"]
    symbols: int
    weights: Weights | None = None

    def mean(self, errors: Float64[Matrix, "batch ..."]) -> Float64[Matrix, "..."]:
        """Return the mean of errors over the rows, [N, ...] -> [...]."""
        return mean_of_rows(errors, self.weights)

    @cached_property
    def one_hot(self) -> Float64[Matrix, "batch length symbol={self.symbols}"]:
        """The messages as one-hot vectors, [N, S, symbols]."""
        return np.eye(self.symbols)[self.tokens]


def make_target(table: Table, published: bool = False) -> Target:
    """Number the atoms and symbols of a table.

    Args:
        table: a table with discrete meanings and at least one position.
        published: use the whole vocabulary and two symbols more, one of them the end of a message, instead of the
            symbols that occur. An unused symbol adds nothing to the least error, unless maps are not trained.

    Raises:
        InvalidSettingError: the whole vocabulary is too large.
    """
    sizes = [int(factor.max()) + 1 for factor in table.factors]
    first = np.cumsum([0, *sizes])
    atoms = np.stack(table.factors, 1) + first[:-1]
    if published:
        if table.vocab_size > MOST_TOKENS:
            raise InvalidSettingError(
                f"The published program has a number for every token of the vocabulary, used or not, but "
                f"{table.vocab_size} are more than {MOST_TOKENS}; number the tokens from 0 without gaps."
            )
        tokens = np.where(table.messages == PAD, table.vocab_size, table.messages)
        return Target(atoms, int(first[-1]), tokens, table.vocab_size + 2, table.weights)
    tokens = number(table.messages.ravel()).reshape(table.messages.shape)
    return Target(atoms, int(first[-1]), tokens, int(tokens.max()) + 1, table.weights)


@dataclass(frozen=True)
class FitSettings:
    """Settings for reconstructions that are trained.

    Attributes:
        restarts: number of fits; the best one counts.
        steps: updates per fit.
        learning_rate: initial learning rate; it decays to 0 along a half cosine.
        optimizer: "adam" or "rmsprop".
        seed: seed of the initial values.
        device: where to train.
    """

    restarts: int = 4
    steps: int = 1000
    learning_rate: float = 0.05
    optimizer: str = "adam"
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class ReconstructionErrors:
    """The result of a solver.

    Attributes:
        errors: distance between each message and its reconstruction, [N].
        details: further findings, for the details of the score.
    """

    errors: Float64[Matrix, " batch"]
    details: dict[str, object]
