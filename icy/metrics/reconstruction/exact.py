"""TRE: exact solutions of the additive composition."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError
from icy.metrics.entropy import number, together

from .problem import Found, Matrix, Target

NO_ERROR = 1e-9  # of an output; less is the noise of floating point
MANY_ROWS = 3000  # from which on the interior-point solver is the faster one


# -- exact forms -------------------------------------------------------------------------------------------------------


def _additive(target: Target) -> Found:
    """Every output, a symbol at a position, by itself: the sum of numbers for the values that is nearest in l1."""
    design = _design(target)
    flat = target.one_hot.reshape(len(target.atoms), -1)
    residuals = np.zeros(flat.shape)
    solved: dict[bytes, Matrix] = {}
    for j in np.flatnonzero(_not_sums(design, flat)):
        output = flat[:, j]
        key = output.tobytes()  # of two symbols the one is what the other is not, and outputs may be equal
        other = solved.get((1 - output).tobytes(), solved.get(key))
        solved[key] = _least_absolute(design, output) if other is None else other
        residuals[:, j] = solved[key]
    shares = residuals.mean(0).reshape(target.one_hot.shape[1:]).sum(1)
    return Found(residuals.sum(1), {"positions": shares.tolist()})


def _not_sums(design: Any, outputs: Matrix) -> NDArray[np.bool_]:
    """Which outputs are no sum of columns, as least squares tell: for the others there is nothing to solve."""
    dense = design.toarray()
    fitted = dense @ np.linalg.lstsq(dense, outputs)[0]
    found: NDArray[np.bool_] = np.abs(fitted - outputs).max(0) > NO_ERROR
    return found


def _design(target: Target) -> Any:
    """The indicators of atoms as a sparse matrix [N, atoms]."""
    from scipy.sparse import csr_array

    rows, attributes = target.atoms.shape
    where = np.arange(rows).repeat(attributes), target.atoms.ravel()
    return csr_array((np.ones(rows * attributes), where), shape=(rows, target.count))


def _least_absolute(design: Any, output: Matrix) -> Matrix:
    """The distances that the best sum of columns leaves, [N].

    By the dual programme, which has one bounded variable per row and one equation per column: of what is solved here
    the smaller form by far.
    """
    from scipy.optimize import linprog

    solver: Literal["highs-ds", "highs-ipm"] = "highs-ds" if len(output) < MANY_ROWS else "highs-ipm"
    found = linprog(-output, A_eq=design.T, b_eq=np.zeros(design.shape[1]), bounds=(-1, 1), method=solver)
    if found.status != 0:
        raise InvalidSettingError(f"The linear programme of an additive composition was not solved: {found.message}")
    left: Matrix = np.abs(output + design @ found.eqlin.marginals)
    return np.where(left < NO_ERROR, 0.0, left)


def _permuted(target: Target) -> Found:
    """Every position to an attribute, each of which has room for its word."""
    from scipy.optimize import linear_sum_assignment

    attributes, length = target.atoms.shape[1], target.said.shape[1]
    left = np.stack([_alone(target, a) for a in range(attributes)])  # [A, N, S]
    word = -(-length // attributes)
    costs = left.sum(1).T.repeat(word, axis=1)  # [S, A * word]
    positions, places = linear_sum_assignment(costs)
    owners = places // word
    errors = left[owners, :, positions].T
    return Found(errors.sum(1), {"positions": errors.mean(0).tolist(), "attributes": owners.tolist()})


def _alone(target: Target, attribute: int) -> Matrix:
    """What is left of every position of every row if one attribute alone speaks there: [N, S].

    The number nearest to zeros and ones is the one that there are more of. So if more than half of the rows of a value
    have the same symbol, it is foretold: nothing is left of these, and 2 of others. Else no symbol is, and 1 is left.
    """
    values = number(target.atoms[:, attribute])
    rows = np.bincount(values)
    left = np.ones(target.said.shape)
    for j, symbols in enumerate(target.said.T):
        both = together(values, symbols)
        alike = np.bincount(both)[both]  # rows with this value and this symbol
        foretold = np.zeros(len(rows), dtype=bool)
        foretold[values[2 * alike > rows[values]]] = True
        left[:, j] = np.where(foretold[values], np.where(2 * alike > rows[values], 0, 2), 1)
    return left
