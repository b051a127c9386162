"""The reconstruction problem of TRE, with its exact solutions for distance l1; none of this needs torch."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.conventions import either_spelling
from icy.core.errors import InvalidSettingError, require_known, unknown
from icy.core.machine import resolve_device
from icy.core.progress import track
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.languages.table import Table, Weights, count_varying, mean_of_rows, number, together
from icy.languages.tokens import PAD
from icy.metrics.score import Score, undefined, why_unvaried

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
    design = _design(target)
    flat = target.one_hot.reshape(len(target.atoms), -1)
    residuals = np.zeros(flat.shape)
    solved: dict[bytes, Matrix] = {}
    for j in track(np.flatnonzero(_not_sums(design, flat)).tolist(), "outputs of tre"):
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


def _design(target: Target) -> Any:
    """Return the indicators of atoms as a sparse matrix, [N, atoms]."""
    from scipy.sparse import csr_array

    rows, attributes = target.atoms.shape
    where = np.arange(rows).repeat(attributes), target.atoms.ravel()
    return csr_array((np.ones(rows * attributes), where), shape=(rows, target.count))


def _not_sums(design: Any, outputs: Matrix) -> NDArray[np.bool_]:
    """Return a mask of the outputs that are not a sum of columns, by least squares; the others have no error."""
    dense = design.toarray()
    fitted = dense @ np.linalg.lstsq(dense, outputs, rcond=None)[0]
    found: NDArray[np.bool_] = np.abs(fitted - outputs).max(0) > NO_ERROR
    return found


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


# -- tree reconstruction error (TRE) -----------------------------------------------------------------------------------


COMPOSITIONS = ("additive", "permutation", "linear")
DISTANCES = ("l1", "l2", "cosine", "cross_entropy")
DERIVATIONS = ("flat", "left")
PRESETS = ("default", "published")
OPTIMIZERS = ("adam", "rmsprop")
MOST_ROWS = 1000  # default number of drawn rows of a larger table, for compositions slower than the permutation
PUBLISHED_ROWS = 300  # number of rows that the program of Perkins21 and Icy22 draws


@either_spelling
@standard_state()
def tre(
    meanings: object,
    messages: object = None,
    *,
    composition: Composition = "additive",
    distance: TensorDistance = "l1",
    derivations: str = "flat",
    rows: int | None = None,
    eos: object = None,
    preset: str = "default",
    restarts: int = FitSettings.restarts,
    steps: int = FitSettings.steps,
    learning_rate: float = FitSettings.learning_rate,
    optimizer: str = FitSettings.optimizer,
    seed: int = 0,
    device: str = "cpu",
) -> Score:
    """Tree reconstruction error (TRE): the mean distance between messages and compositions of vectors for their values.

    Each value of each attribute, an atom, has a vector of the shape of a message (tokens as one-hot vectors, the end of
    a shorter message as one more token). The vectors, and the parameters of the composition if it has any, minimize the
    error (Andreas 2019). 0 is compositional; it has no upper bound.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        composition: "additive" is the sum of the vectors, solved exactly by linear programming. "permutation" gives
            each attribute a word of S / A positions (rounded up), joins the words and permutes their positions, solved
            exactly by assignment. "linear" is the sum of the vectors after a learned map over positions for each
            attribute (Andreas 2019 section 7), which is trained; because a map may be the identity, its least error is
            that of "additive", which bounds any training from below. Or a function of tensors or a torch module,
            trained together with the vectors, that takes all vectors of a row, [N, A, D] -> [N, D] with D = S *
            symbols, position by position, or two vectors at a time. Every restart trains a copy of a module, or, given
            a class of modules, a new one built as cls(attributes=A, length=S, symbols=symbols).
        distance: "l1", the sum of absolute differences; "l2", the Euclidean distance; "cosine"; "cross_entropy", summed
            over positions, with the composed vectors as logits; or a function of tensors ([N, D], [N, D]) -> [N]. All
            distances except "l1" require training.
        derivations: whether a composition that is a function gets all vectors at once ("flat") or two at a time from
            the left ("left", the binary tree ((a b) c)); named compositions are flat.
        rows: number of rows, drawn without replacement, each with its weight; by default all, or 1000 of a larger
            table unless the composition is "permutation". Few rows are overfitted, which lowers the value by more than
            its error suggests: `shuf` at 5x10 has 18.9 on 300 rows, 19.8 on 1000 and 20.0 on 5000.
        eos: the token that ends a message, a number or a name; see Table.of.
        preset: "published" is the program behind Perkins21 and Icy22: "linear" on 300 rows with two extra symbols, maps
            fixed at random initial values, vectors from zero, and 1000 steps of Adam at a constant rate of 0.01; it
            reports the error before the last step. `restarts`, `steps` and `learning_rate` do not apply.
        restarts: number of fits if something is trained; the best one counts.
        steps: updates per fit.
        learning_rate: initial learning rate, which decays to 0 along a half cosine.
        optimizer: "adam", or "rmsprop" as in the first version of the published program.
        seed: seed of the drawn rows and of initial values.
        device: where to train.

    Returns:
        A score of at least 0, with the standard error of the mean if rows were drawn. The details have the number of
        rows used; for an exact solution the error of each position, and for "permutation" the attribute of each; for a
        fit the error of every restart, the steps, and whether the last tenth of them changed the best by less than 1 %.
        NaN if all messages are empty or alike, which any composition reconstructs, or if every attribute is constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, conventions that exclude each other,
            a composition or distance that returns the wrong shape, or training that diverged.
        UnknownNameError: an unknown convention.

    Example:
        >>> from icy.metrics import tre
        >>> meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> tre(meanings, ["ac", "ad", "bc", "bd"]).value, tre(meanings, ["ac", "ad", "bd", "bc"]).value
        (0.0, 1.0)
    """
    _check(composition, distance, derivations, preset, optimizer)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Tree reconstruction error")
    restarts, steps = whole_number("number of restarts", restarts), whole_number("number of steps", steps)
    fit = FitSettings(restarts, steps, _rate(learning_rate), optimizer, seed, device)
    whole, most = len(table), _most_rows(table, rows, composition, preset)
    conventions = {
        "composition": _name(composition if preset == "default" else "linear"),
        "distance": _name(distance),
        "derivations": derivations if callable(composition) else None,
        "eos": eos,
        "preset": None if preset == "default" else preset,
        "rows": most if most < whole else None,
        **_random_settings(composition, distance, preset, most < whole, fit),
    }
    if why := why_unvaried(table.factors) or _why_constant(table):
        return undefined("tre", why, whole, conventions)
    if most < whole:
        table = table.rows(np.sort(stream(seed, "tre", "rows").choice(whole, most, replace=False)))
    target = make_target(table, published=preset == "published")
    found = _reconstruct(target, composition, distance, derivations, preset, fit)
    error = _standard_error(found.errors, target, whole) if 1 < len(table) < whole else None
    details = {"rows": len(table), **found.details}
    value = max(0.0, float(target.mean(found.errors)))
    drawn = f"{len(table)} drawn rows" if error is not None else ""
    return Score("tre", value, whole, conventions, details, error=error, error_of=drawn)


def _check(composition: Composition, distance: TensorDistance, derivations: str, preset: str, optimizer: str) -> None:
    """Raise an error for unknown conventions, and for conventions that exclude each other."""
    for what, given, known in (("composition", composition, COMPOSITIONS), ("distance", distance, DISTANCES)):
        if not isinstance(given, str) and not callable(given):
            raise InvalidSettingError(f"The {what} must be {', '.join(known)} or a function of tensors, not {given!r}.")
    if isinstance(composition, str) and composition not in COMPOSITIONS:
        raise unknown("composition", composition, COMPOSITIONS)
    if isinstance(distance, str) and distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    require_known("kind of derivations", derivations, DERIVATIONS)
    require_known("preset", preset, PRESETS)
    require_known("optimizer", optimizer, OPTIMIZERS)
    if derivations == "left" and isinstance(composition, str):
        raise InvalidSettingError("Derivations from the left need a composition that is a function of two vectors.")
    if composition == "permutation" and distance != "l1":
        raise InvalidSettingError("The composition 'permutation' only supports the distance l1.")
    if preset == "published" and (composition not in ("additive", "linear") or distance != "l1"):
        raise InvalidSettingError("The published program only supports the composition linear and the distance l1.")


def _why_constant(table: Table) -> str:
    """Return the reason why TRE is undefined if all messages are alike; "" if messages differ."""
    if not table.length:
        return "all messages are empty"
    return "" if count_varying(table.positions) else "all messages are alike, which any composition reconstructs"


def _name(given: object) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)


def _rate(given: object) -> float:
    """Return a learning rate, checked."""
    if isinstance(given, (int, float)) and 0 < given < math.inf:
        return float(given)
    raise InvalidSettingError(f"The learning rate must be above 0, not {given!r}.")


def _random_settings(
    composition: Composition, distance: TensorDistance, preset: str, sampled: bool, fit: FitSettings
) -> dict[str, object]:
    """Return the settings of training and sampling that affect the value."""
    if preset == "published":
        return {"optimizer": fit.optimizer, "seed": fit.seed}
    if composition != "permutation" and (composition, distance) != ("additive", "l1"):
        names = ("restarts", "steps", "learning_rate", "optimizer", "seed")
        return {name: getattr(fit, name) for name in names}
    return {"seed": fit.seed} if sampled else {}


def _most_rows(table: Table, rows: int | None, composition: Composition, preset: str) -> int:
    """Return the largest number of rows to use."""
    if rows is not None:
        return whole_number("number of rows", rows)
    if preset == "published":
        return PUBLISHED_ROWS
    return len(table) if composition == "permutation" else MOST_ROWS


def _standard_error(errors: Matrix, target: Target, whole: int) -> float:
    """Return the standard error of the mean of rows drawn without replacement from a table of `whole` rows.

    With weights, the mean is a ratio of two sums over the drawn rows.
    """
    if target.weights is not None:
        errors = (errors - target.mean(errors)) * (target.weights / target.weights.mean())
    return float(errors.std(ddof=1)) * math.sqrt((1 / len(errors)) * (1 - len(errors) / whole))


def _reconstruct(
    target: Target, composition: Composition, distance: TensorDistance, derivations: str, preset: str, fit: FitSettings
) -> ReconstructionErrors:
    """Minimize the error, exactly if the composition allows it, otherwise by training."""
    if composition == "permutation":
        return solve_permutation(target)
    if composition == "additive" and distance == "l1" and preset != "published":
        return solve_additive(target)
    from .reconstruction_fitted import fit_function, fit_linear, fit_published

    fit = replace(fit, device=resolve_device(fit.device))
    if preset == "published":
        return fit_published(target, fit)
    if composition == "linear":
        return fit_linear(target, distance, fit)
    return fit_function(target, composition, distance, derivations, fit)
