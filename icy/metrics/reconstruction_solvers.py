"""The reconstruction problem of TRE, with its exact solutions for distance l1; none of this needs torch."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.core.progress import track
from icy.languages.table import Table, Weights, mean_of_rows, number, together
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


# -- exact solutions of TRE for the additive and the permutation composition, with distance l1 -------------------------


NO_ERROR = 1e-9  # smaller errors of an output are floating-point noise
MANY_ROWS = 3000  # from this number of rows, the interior-point solver is faster


def solve_additive(target: Target) -> ReconstructionErrors:
    """Solve the additive composition: fit each output (a symbol at a position) by a sum of numbers per value, in l1."""
    from scipy.sparse import csr_array

    rows, attributes = target.atoms.shape
    where = np.arange(rows).repeat(attributes), target.atoms.ravel()
    design = csr_array((np.ones(rows * attributes), where), shape=(rows, target.count))
    flat, dense = target.one_hot.reshape(rows, -1), design.toarray()
    fitted = dense @ np.linalg.lstsq(dense, flat, rcond=None)[0]
    left = np.flatnonzero(np.abs(fitted - flat).max(0) > NO_ERROR)  # the others are sums of columns, without an error
    residuals = np.zeros(flat.shape)
    solved: dict[bytes, Matrix] = {}
    for j in track(left.tolist(), "outputs of tre"):
        output = flat[:, j]
        key = output.tobytes()  # outputs may be equal, and with two symbols one output is the complement of the other
        other = solved.get((1 - output).tobytes(), solved.get(key))
        solved[key] = _least_absolute(design, output, target.weights) if other is None else other
        residuals[:, j] = solved[key]
    shares = target.mean(residuals).reshape(target.one_hot.shape[1:]).sum(1)
    return ReconstructionErrors(residuals.sum(1), {"positions": shares.tolist()})


def solve_permutation(target: Target) -> ReconstructionErrors:
    """Solve the permutation composition: assign up to S / A (rounded up) positions to each attribute."""
    from scipy.optimize import linear_sum_assignment

    attributes, length = target.atoms.shape[1], target.tokens.shape[1]
    left = np.stack([_single_attribute_errors(target, a) for a in range(attributes)])  # [A, N, S]
    word = -(-length // attributes)
    total = left.sum(1) if target.weights is None else np.tensordot(left, target.weights, (1, 0))
    costs = total.T.repeat(word, axis=1)  # [S, A * word]
    positions, places = linear_sum_assignment(costs)
    owners = places // word
    errors = left[owners, :, positions].T
    return ReconstructionErrors(
        errors.sum(1), {"positions": target.mean(errors).tolist(), "attributes": owners.tolist()}
    )


def _least_absolute(design: Any, output: Matrix, weights: Weights | None) -> Matrix:
    """Fit an output by a sum of columns, at the least l1 error; return the error of each row, [N].

    This solves the dual program, with one bounded variable per row and one equation per column. Here it is far smaller
    than the primal program.
    """
    from scipy.optimize import linprog

    solver: Literal["highs-ds", "highs-ipm"] = "highs-ds" if len(output) < MANY_ROWS else "highs-ipm"
    bounds: Any = (-1, 1) if weights is None else np.outer(weights / weights.max(), (-1, 1))
    found = linprog(-output, A_eq=design.T, b_eq=np.zeros(design.shape[1]), bounds=bounds, method=solver)
    if found.status != 0:
        raise InvalidSettingError(f"The linear program of an additive composition was not solved: {found.message}")
    left: Matrix = np.abs(output + design @ found.eqlin.marginals)
    return np.where(left < NO_ERROR, 0.0, left)


def _single_attribute_errors(target: Target, attribute: int) -> Matrix:
    """Return the error of every row and position if the symbol there depends only on one attribute: [N, S].

    The number closest in l1 to zeros and ones is the more frequent of the two. So if more than half of the rows with a
    value have the same symbol, this symbol is predicted, with error 0 for these rows and 2 for the others. Otherwise no
    symbol is predicted, and the error is 1.
    """
    values, weights = number(target.atoms[:, attribute]), target.weights
    rows = np.bincount(values, weights)
    left = np.ones(target.tokens.shape)
    for j, symbols in enumerate(target.tokens.T):
        both = together(values, symbols)
        alike = np.bincount(both, weights)[both]  # rows with this value and this symbol
        predicted = np.zeros(len(rows), dtype=bool)
        predicted[values[2 * alike > rows[values]]] = True
        left[:, j] = np.where(predicted[values], np.where(2 * alike > rows[values], 0, 2), 1)
    return left
