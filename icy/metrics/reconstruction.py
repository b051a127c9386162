"""Tree reconstruction error: how far messages are from a composition of the parts of their meanings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from icy.devices import resolve_device
from icy.errors import InvalidSettingError, unknown
from icy.meanings import whole_number
from icy.streams import stream

from .score import Score, undefined
from .table import PAD, Table

if TYPE_CHECKING:
    from torch import Tensor

COMPOSITIONS = ("additive", "permutation", "linear")
DISTANCES = ("l1", "l2", "cosine", "cross_entropy")
DERIVATIONS = ("flat", "left")
PRESETS = ("default", "published")
USUAL_ROWS = 1000  # of a larger table, for what is solved or trained
PUBLISHED_ROWS = 300
Matrix = NDArray[np.float64]
Composition = str | Callable[..., "Tensor"]
Gap = str | Callable[["Tensor", "Tensor"], "Tensor"]


@dataclass(frozen=True)
class Target:
    """What is reconstructed.

    Attributes:
        atoms: for every row and attribute the number of its value, counted over all attributes, [N, A].
        count: of atoms.
        one_hot: the messages, [N, S, symbols]; the end of a shorter one is a symbol too.
    """

    atoms: NDArray[np.int64]
    count: int
    one_hot: Matrix


@dataclass(frozen=True)
class Fit:
    """How training is done.

    Attributes:
        restarts: how many fits are made, the best of which counts.
        steps: updates of each.
        learning_rate: of Adam at the start; it falls to 0 along a half cosine.
        seed: of the first values.
        device: where to.
    """

    restarts: int = 4
    steps: int = 1000
    learning_rate: float = 0.05
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Found:
    """A reconstruction: the error of every row, [N], and what else there is to say."""

    errors: Matrix
    details: dict[str, Any]


def tre(
    meanings: Any,
    messages: Any = None,
    *,
    composition: Composition = "additive",
    distance: Gap = "l1",
    derivations: str = "flat",
    rows: int | None = None,
    eos: int | None = None,
    preset: str = "default",
    restarts: int = Fit.restarts,
    steps: int = Fit.steps,
    learning_rate: float = Fit.learning_rate,
    seed: int = 0,
    device: str = "cpu",
) -> Score:
    """Tree reconstruction error: the mean distance between a message and a composition of vectors for its values.

    Each value of each attribute, an atom, has a vector of the shape of a message (tokens as one-hot vectors, the end of
    a shorter message as one more). These, and what the composition has to learn, are chosen so that the error is least
    (Andreas 2019). 0 is compositional; there is no greatest value.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        composition: "additive", the sum of the vectors, solved exactly by linear programming. "permutation", every
            attribute gets a word of S / A positions (rounded up), words are joined and their positions permuted,
            solved exactly by assignment. "linear", the sum of a learned map over positions of each (Andreas 2019
            section 7), trained; since a map may be the identity its least error is that of "additive", below which no
            training can come. Or a function of tensors, or a torch module, which is trained with the vectors: of all
            vectors of a row, [N, A, D] -> [N, D] with D = S * symbols, position by position; or of two at a time.
        distance: "l1", the sum of absolute differences; "l2", the length of the difference; "cosine"; "cross_entropy",
            summed over positions, the vectors being scores; or a function of tensors ([N, D], [N, D]) -> [N]. All but
            "l1" are trained.
        derivations: a composition that is a function gets all vectors at once ("flat"), or two at a time from the left
            ("left": the binary tree ((a b) c)).
        rows: so many, drawn without replacement; by default all, or 1000 of a larger table unless the composition is a
            permutation.
        eos: the token that ends a message; see Table.of.
        preset: "published" is the program behind Perkins21 and Icy22: "linear" on 300 rows and two more symbols, with
            maps that stay at their random first values, vectors from zero, and 1000 steps of Adam at 0.01, without
            decay, the error of the last of which is reported before it is made.
        restarts: fits that are made when something is trained, the best of which counts.
        steps: updates of each.
        learning_rate: of Adam, at the start.
        seed: of the rows drawn and of first values.
        device: where to train.

    Returns:
        The score; over drawn rows with the standard error of their mean. The details have the rows used, the share of
        each position, for a permutation the attribute of every position, and for a fit the error of every restart and
        whether the last tenth of the steps changed the best by less than a hundredth.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, a combination that there is not.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import tre
        >>> meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> tre(meanings, ["ac", "ad", "bc", "bd"]).value, tre(meanings, ["ac", "ad", "bd", "bc"]).value
        (0.0, 1.0)
    """
    _check(composition, distance, derivations, preset)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Tree reconstruction error")
    whole = len(table)
    restarts, steps = whole_number("number of restarts", restarts), whole_number("number of steps", steps)
    conventions = {
        "composition": _name(composition if preset == "default" else "linear"),
        "distance": _name(distance),
        "derivations": derivations if callable(composition) else None,
        "eos": eos,
        "preset": None if preset == "default" else preset,
    }
    if not table.length:
        return undefined("tre", "all messages are empty", whole, conventions)
    table = _some_rows(table, rows, composition, preset, seed)
    target = make_target(table, spare=2 if preset == "published" else 0)
    found = _reconstruct(
        target, composition, distance, derivations, preset, Fit(restarts, steps, learning_rate, seed, device)
    )
    error = float(found.errors.std(ddof=1)) / math.sqrt(len(table)) if 1 < len(table) < whole else None
    details = {"rows": len(table), **found.details}
    value = max(0.0, float(found.errors.mean()))
    drawn = f"{len(table)} drawn rows" if error is not None else ""
    return Score("tre", value, whole, conventions, details, error=error, error_of=drawn)


def _check(composition: Composition, distance: Gap, derivations: str, preset: str) -> None:
    """Refuse what there is not."""
    if isinstance(composition, str) and composition not in COMPOSITIONS:
        raise unknown("composition", composition, COMPOSITIONS)
    if isinstance(distance, str) and distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    if derivations not in DERIVATIONS:
        raise unknown("kind of derivations", derivations, DERIVATIONS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if composition == "permutation" and distance != "l1":
        raise InvalidSettingError("The best permutation is found for the distance l1 only.")
    if preset == "published" and (composition not in ("additive", "linear") or distance != "l1"):
        raise InvalidSettingError("The published program has the composition linear and the distance l1.")


def _name(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)


def _some_rows(table: Table, rows: int | None, composition: Composition, preset: str, seed: int) -> Table:
    """The rows to work on."""
    if rows is not None:
        most = whole_number("number of rows", rows)
    elif preset == "published":
        most = PUBLISHED_ROWS
    else:
        most = len(table) if composition == "permutation" else USUAL_ROWS
    if most >= len(table):
        return table
    return table.rows(np.sort(stream(seed, "tre", "rows").choice(len(table), most, replace=False)))


def make_target(table: Table, spare: int = 0) -> Target:
    """Atoms and one-hot messages; with some symbols that never occur."""
    sizes = [int(factor.max()) + 1 for factor in table.factors]
    first = np.cumsum([0, *sizes])
    atoms = np.stack(table.factors, 1) + first[:-1]
    symbols = np.unique(table.messages)
    at = np.searchsorted(symbols, table.messages)
    if PAD not in symbols and spare:  # the published vocabulary, used or not
        symbols, at = np.arange(table.vocab_size), table.messages
    return Target(atoms, int(first[-1]), np.eye(len(symbols) + spare)[at])


def _reconstruct(
    target: Target, composition: Composition, distance: Gap, derivations: str, preset: str, fit: Fit
) -> Found:
    """The reconstruction of least error, in the way that the composition allows."""
    if composition == "permutation":
        return _permuted(target)
    if composition == "additive" and distance == "l1" and preset != "published":
        return _additive(target)
    from .reconstruction_training import fit_function, fit_linear, fit_published

    fit = replace(fit, device=resolve_device(fit.device))
    if preset == "published":
        return fit_published(target, fit.seed, fit.device)
    if composition == "linear":
        return fit_linear(target, distance, fit)
    return fit_function(target, composition, distance, derivations, fit)


# -- exact forms -------------------------------------------------------------------------------------------------------


def _additive(target: Target) -> Found:
    """Every output, a symbol at a position, by itself: the sum of numbers for the values that is nearest in l1."""
    design = _design(target)
    flat = target.one_hot.reshape(len(target.atoms), -1)
    residuals = np.zeros(flat.shape)
    solved: dict[bytes, Matrix] = {}
    for j, output in enumerate(flat.T):
        if output.min() < output.max():
            key = output.tobytes()  # of two symbols the one is what the other is not, and outputs may be equal
            other = solved.get((1 - output).tobytes())
            solved[key] = _least_absolute(design, output) if other is None else other
            residuals[:, j] = solved[key]
    shares = residuals.mean(0).reshape(target.one_hot.shape[1:]).sum(1)
    return Found(residuals.sum(1), {"positions": shares.tolist()})


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

    found = linprog(-output, A_eq=design.T, b_eq=np.zeros(design.shape[1]), bounds=(-1, 1), method="highs-ds")
    if found.status != 0:
        raise InvalidSettingError(f"The linear programme of an additive composition was not solved: {found.message}")
    left: Matrix = np.abs(output + design @ found.eqlin.marginals)
    return np.where(left < 1e-9, 0.0, left)


def _permuted(target: Target) -> Found:
    """Every position to an attribute, each of which has room for its word."""
    from scipy.optimize import linear_sum_assignment

    attributes, length = target.atoms.shape[1], target.one_hot.shape[1]
    left = np.stack([_alone(target, a) for a in range(attributes)])  # [A, N, S]
    word = -(-length // attributes)
    costs = left.sum(1).T.repeat(word, axis=1)  # [S, A * word]
    positions, places = linear_sum_assignment(costs)
    owners = places // word
    errors = left[owners, :, positions].T
    return Found(errors.sum(1), {"positions": errors.mean(0).tolist(), "attributes": owners.tolist()})


def _alone(target: Target, attribute: int) -> Matrix:
    """What is left of every position of every row if one attribute alone speaks there: [N, S].

    The number nearest to zeros and ones is the one that there are more of.
    """
    atoms = target.atoms[:, attribute]
    left = np.zeros(target.one_hot.shape[:2])
    for atom in np.unique(atoms):
        rows = atoms == atom
        said = target.one_hot[rows]
        left[rows] = np.abs(said - (said.mean(0) > 0.5)).sum(-1)
    return left
