"""Tree reconstruction error: how far messages are from a composition of the parts of their meanings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from icy.core.checks import whole_number
from icy.core.devices import resolve_device
from icy.core.errors import InvalidSettingError, unknown
from icy.core.streams import stream
from icy.metrics.score import Score, undefined
from icy.metrics.table import Table

from .exact import _additive, _permuted
from .problem import Composition, Fit, Found, Gap, Matrix, Target, make_target

COMPOSITIONS = ("additive", "permutation", "linear")
DISTANCES = ("l1", "l2", "cosine", "cross_entropy")
DERIVATIONS = ("flat", "left")
PRESETS = ("default", "published")
OPTIMISERS = ("adam", "rmsprop")
USUAL_ROWS = 1000  # of a larger table, for what is solved or trained
PUBLISHED_ROWS = 300


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
    optimiser: str = Fit.optimiser,
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
            vectors of a row, [N, A, D] -> [N, D] with D = S * symbols, position by position; or of two at a time. Every
            restart trains a copy of a module; of a class of modules, a new one, made as cls(attributes=A, length=S,
            symbols=symbols).
        distance: "l1", the sum of absolute differences; "l2", the length of the difference; "cosine"; "cross_entropy",
            summed over positions, the vectors being scores; or a function of tensors ([N, D], [N, D]) -> [N]. All but
            "l1" are trained.
        derivations: a composition that is a function gets all vectors at once ("flat"), or two at a time from the left
            ("left": the binary tree ((a b) c)); a composition with a name is flat.
        rows: so many, drawn without replacement; by default all, or 1000 of a larger table unless the composition is a
            permutation. Few rows are fitted too well, which lowers the value and which its error does not tell: `shuf`
            at 5x10 has 18.9 on 300 rows, 19.8 on 1000 and 20.0 on 5000.
        eos: the token that ends a message; see Table.of.
        preset: "published" is the program behind Perkins21 and Icy22: "linear" on 300 rows and two more symbols, with
            maps that stay at their random first values, vectors from zero, and 1000 steps of Adam at 0.01, without
            decay, the error of the last of which is reported before it is made; `restarts`, `steps` and `learning_rate`
            do not apply.
        restarts: fits that are made when something is trained, the best of which counts.
        steps: updates of each.
        learning_rate: at the start.
        optimiser: "adam", or "rmsprop", with which the first version of the published program trained.
        seed: of the rows drawn and of first values.
        device: where to train.

    Returns:
        The score; over drawn rows with the standard error of their mean. The details have the rows used; of the exact
        forms the share of each position, and for a permutation the attribute of each; of a fit the error of every
        restart and whether the last tenth of the steps changed the best by less than a hundredth.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, a combination that there is not.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import tre
        >>> meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> tre(meanings, ["ac", "ad", "bc", "bd"]).value, tre(meanings, ["ac", "ad", "bd", "bc"]).value
        (0.0, 1.0)
    """
    _check(composition, distance, derivations, preset, optimiser)
    table = Table.of(meanings, messages, eos=eos)
    table.require_discrete("Tree reconstruction error")
    restarts, steps = whole_number("number of restarts", restarts), whole_number("number of steps", steps)
    fit = Fit(restarts, steps, _rate(learning_rate), optimiser, seed, device)
    whole, most = len(table), _most_rows(table, rows, composition, preset)
    conventions = {
        "composition": _name(composition if preset == "default" else "linear"),
        "distance": _name(distance),
        "derivations": derivations if callable(composition) else None,
        "eos": eos,
        "preset": None if preset == "default" else preset,
        "rows": most if most < whole else None,
        **_of_chance(composition, distance, preset, most < whole, fit),
    }
    if not table.length:
        return undefined("tre", "all messages are empty", whole, conventions)
    if most < whole:
        table = table.rows(np.sort(stream(seed, "tre", "rows").choice(whole, most, replace=False)))
    target = make_target(table, published=preset == "published")
    found = _reconstruct(target, composition, distance, derivations, preset, fit)
    error = _standard_error(found.errors, whole) if 1 < len(table) < whole else None
    details = {"rows": len(table), **found.details}
    value = max(0.0, float(found.errors.mean()))
    drawn = f"{len(table)} drawn rows" if error is not None else ""
    return Score("tre", value, whole, conventions, details, error=error, error_of=drawn)


def _check(composition: Composition, distance: Gap, derivations: str, preset: str, optimiser: str) -> None:
    """Refuse what there is not."""
    for what, given, known in (("composition", composition, COMPOSITIONS), ("distance", distance, DISTANCES)):
        if not isinstance(given, str) and not callable(given):
            raise InvalidSettingError(f"The {what} is {', '.join(known)} or a function of tensors, not {given!r}.")
    if isinstance(composition, str) and composition not in COMPOSITIONS:
        raise unknown("composition", composition, COMPOSITIONS)
    if isinstance(distance, str) and distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    if derivations not in DERIVATIONS:
        raise unknown("kind of derivations", derivations, DERIVATIONS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if optimiser not in OPTIMISERS:
        raise unknown("optimiser", optimiser, OPTIMISERS)
    if derivations == "left" and isinstance(composition, str):
        raise InvalidSettingError("Derivations from the left are for a composition that is a function of two vectors.")
    if composition == "permutation" and distance != "l1":
        raise InvalidSettingError("The best permutation is found for the distance l1 only.")
    if preset == "published" and (composition not in ("additive", "linear") or distance != "l1"):
        raise InvalidSettingError("The published program has the composition linear and the distance l1.")


def _name(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)


def _rate(given: Any) -> float:
    """A learning rate, checked."""
    if isinstance(given, (int, float)) and 0 < given < math.inf:
        return float(given)
    raise InvalidSettingError(f"The learning rate is a number above 0, not {given!r}.")


def _of_chance(composition: Composition, distance: Gap, preset: str, sampled: bool, fit: Fit) -> dict[str, Any]:
    """Those settings of a fit that move the value here."""
    if preset == "published":
        return {"optimiser": fit.optimiser, "seed": fit.seed}
    if composition != "permutation" and (composition, distance) != ("additive", "l1"):
        names = ("restarts", "steps", "learning_rate", "optimiser", "seed")
        return {name: getattr(fit, name) for name in names}
    return {"seed": fit.seed} if sampled else {}


def _most_rows(table: Table, rows: int | None, composition: Composition, preset: str) -> int:
    """How many rows to work on, at most."""
    if rows is not None:
        return whole_number("number of rows", rows)
    if preset == "published":
        return PUBLISHED_ROWS
    return len(table) if composition == "permutation" else USUAL_ROWS


def _standard_error(errors: Matrix, whole: int) -> float:
    """Of the mean of rows drawn without replacement from a table of `whole` rows."""
    return float(errors.std(ddof=1)) * math.sqrt((1 / len(errors)) * (1 - len(errors) / whole))


def _reconstruct(
    target: Target, composition: Composition, distance: Gap, derivations: str, preset: str, fit: Fit
) -> Found:
    """The reconstruction of least error, in the way that the composition allows."""
    if composition == "permutation":
        return _permuted(target)
    if composition == "additive" and distance == "l1" and preset != "published":
        return _additive(target)
    from .fitted import fit_function, fit_linear, fit_published

    fit = replace(fit, device=resolve_device(fit.device))
    if preset == "published":
        return fit_published(target, fit)
    if composition == "linear":
        return fit_linear(target, distance, fit)
    return fit_function(target, composition, distance, derivations, fit)
