"""Tree reconstruction error (TRE): how far messages are from a composition of the parts of their meanings."""

import math
from dataclasses import replace

import numpy as np

from icy.core.checks import real_number, whole_number
from icy.core.conventions import either_spelling
from icy.core.errors import InvalidSettingError, require_known
from icy.core.machine import resolve_device
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.languages.table import Table, count_varying

from .construction import Facts
from .reconstruction_solvers import (
    Composition,
    FitSettings,
    ReconstructionErrors,
    Target,
    TensorDistance,
    make_target,
    solve_additive,
    solve_permutation,
)
from .score import Score, undefined, why_unvaried

COMPOSITIONS = ("additive", "permutation", "linear")
DISTANCES = ("l1", "l2", "cosine", "cross_entropy")
DERIVATIONS = ("flat", "left")
PRESETS = ("default", "published")
OPTIMIZERS = ("adam", "rmsprop")
MOST_ROWS = 1000  # default number of drawn rows of a larger table, for compositions slower than the permutation
PUBLISHED_ROWS = 300  # number of rows that the program of Perkins21 and Icy22 draws


def _single_sums(facts: Facts, score: Score) -> str:
    if len(facts.varying) > 1 or score.conventions["composition"] != "additive" or score.value > 1e-9:
        return ""
    return "only one attribute changes, so every message is the sum of one part: 0 for any language without synonyms"


@register_metric("tre", source="Andreas 2019", aliases=("TRE7",), weighted=True, lower_is_better=True, unbounded=True,
                 by_construction=_single_sums)  # fmt: skip
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
    """Tree reconstruction error: how far messages are from a composition of their parts; lower is better.

    The error is the mean distance between messages and compositions of vectors for the values of their meanings. Each
    value of each attribute, an atom, has a vector of the shape of a message (tokens as one-hot vectors, the end of a
    shorter message as one more token). The vectors, and the parameters of the composition if it has any, minimize the
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
    table = Table.of(meanings, messages, eos=eos).require_discrete("Tree reconstruction error")
    restarts, steps = whole_number("number of restarts", restarts), whole_number("number of steps", steps)
    rate = real_number("learning rate", learning_rate, above=True)
    fit = FitSettings(restarts, steps, rate, optimizer, seed, device)
    whole = len(table)
    usual = PUBLISHED_ROWS if preset == "published" else whole if composition == "permutation" else MOST_ROWS
    most = usual if rows is None else whole_number("number of rows", rows)
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
    error = None
    if 1 < len(table) < whole:  # with weights, the mean is a ratio of two sums over the drawn rows
        errors, weights = found.errors, target.weights
        if weights is not None:
            errors = (errors - target.mean(errors)) * (weights / weights.mean())
        error = float(errors.std(ddof=1)) * math.sqrt((1 / len(errors)) * (1 - len(errors) / whole))
    details = {"rows": len(table), **found.details}
    value = max(0.0, float(target.mean(found.errors)))
    drawn = f"{len(table)} drawn rows" if error is not None else ""
    return Score("tre", value, whole, conventions, details, error=error, error_of=drawn)


def _check(composition: Composition, distance: TensorDistance, derivations: str, preset: str, optimizer: str) -> None:
    """Raise an error for unknown conventions, and for conventions that exclude each other."""
    for what, given, known in (("composition", composition, COMPOSITIONS), ("distance", distance, DISTANCES)):
        if isinstance(given, str):
            require_known(what, given, known)
        elif not callable(given):
            raise InvalidSettingError(f"The {what} must be {', '.join(known)} or a function of tensors, not {given!r}.")
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
