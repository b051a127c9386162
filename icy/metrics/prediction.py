"""How well parts of a message predict attributes: conflict count, DCI and SAP."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import require_known
from icy.core.progress import Report, progress, track
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.core.text import counted
from icy.languages.table import Codes, Table, count_varying, together

from .construction import Facts, positional
from .disentanglement import read_codes
from .information import NOTHING, mutual_information, shares_of
from .score import Score, of_repeated_rows, undefined, why_unvaried

PARTS = ("disentanglement", "completeness", "informativeness")
MOST_DIMENSIONS = 10  # limit for an exact importance, which needs all 2^D subsets of the dimensions
ORDERS, GROUPS = 200, 10  # drawn orders for more dimensions, in groups that give the standard error
Matrix = NDArray[np.float64]


def _no_conflict(facts: Facts, score: Score) -> str:
    if score.value or facts.identifying < len(facts.varying):
        return ""
    return "as many positions as attributes have a different token in each row: 0 for any unique messages"


@register_metric("conflict_count", source="Kuciński et al. 2021", lower_is_better=True, unbounded=True,
                 by_construction=_no_conflict)  # fmt: skip
@of_repeated_rows
def conflict_count(meanings: object, messages: object = None, *, eos: object = None) -> Score:
    """Conflict count: how often a token at a position has an unusual meaning; lower is better.

    Each attribute has its own position. The value of this attribute with which a token occurs most often there is
    the token's principal meaning, and every row with another value is a conflict. The count is the least over all
    one-to-one assignments of positions to attributes (Kuciński et al. 2021, where messages have as many positions as
    there are attributes; for longer messages the best positions are used, and other positions are ignored).

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths; the end of a shorter message counts as one more symbol.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score of at least 0, a whole number; 0 is compositional. The details have the position and the conflicts of
        each attribute, and the share of conflicts among all pairs of a row and an attribute. Constant attributes are
        left out. NaN if every attribute is constant, or if messages have fewer positions than attributes that change.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), or continuous meanings.

    Example:
        >>> from icy.metrics import conflict_count
        >>> meanings = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> conflict_count(meanings, ["ac", "ad", "bc", "bd"]).value
        0.0
        >>> conflict_count(meanings, ["ac", "ad", "bd", "bc"]).value
        2.0
    """
    table = Table.of(meanings, messages, eos=eos).require_discrete("Conflict count")
    conventions = {"eos": eos}
    held = [a for a, factor in enumerate(table.factors) if factor.max() > 0]
    why = why_unvaried(table.factors)
    if table.length < len(held):
        why = f"{counted(len(held), 'attribute', 'need')} as many positions, but messages have {table.length}"
    if why:
        return undefined("conflict_count", why, len(table), conventions)
    from scipy.optimize import linear_sum_assignment

    rows = len(table)
    costs = np.array([[rows - _best(table.factors[a], part).sum() for part in table.positions] for a in held])
    chosen, positions = linear_sum_assignment(costs)
    each = costs[chosen, positions]
    count = int(each.sum())
    details = {
        "positions": dict(zip(held, positions.tolist(), strict=True)),
        "conflicts": dict(zip(held, each.tolist(), strict=True)),
        "share": count / (rows * len(held)),
    }
    return Score("conflict_count", count, rows, conventions, details)


@register_metric("dci", source="Eastwood and Williams 2018")
@of_repeated_rows
def dci(
    meanings: object,
    messages: object = None,
    *,
    part: str = "disentanglement",
    bins: int = 20,
    seed: int = 0,
    eos: object = None,
) -> Score:
    """DCI: how far codes are important for one attribute, attributes depend on one code, or both.

    The three are disentanglement, completeness and informativeness (Eastwood and Williams 2018). The importance R of
    each dimension for each attribute comes from a forest of decision trees that predict the attribute. It is the mean
    decrease of entropy in totally randomized trees, which branch on every value of a dimension and are fully grown. For
    infinitely many trees this is the Shapley value of the mutual information with the attribute, I(dimensions;
    attribute) (Louppe et al. 2013). It is computed exactly for up to 10 dimensions that vary, and otherwise from 200
    drawn orders of the dimensions. Dimensions and attributes that are constant are left out. R is divided by its sum
    over dimensions, so that each attribute has the same weight.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or real codes: floats in any container, also if they are whole numbers.
        part: the value to return. "disentanglement" is the mean over dimensions of 1 - H(R of a dimension over
            attributes) / log A, weighted by the dimension's sum of R: 1 if each dimension is important for one
            attribute. "completeness" is the mean over attributes of 1 - H(R of an attribute over dimensions) / log D: 1
            if each attribute depends on one dimension. "informativeness" is the accuracy of the trees on the rows of
            the table, the mean over attributes: 1 if messages determine meanings.
        bins: number of equal-width bins that discretize each dimension of real codes.
        seed: seed of the drawn orders.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1]; with a standard error if orders were drawn. The details have all three parts, NaN where
        undefined, and `importance`, R by attribute and dimension. Disentanglement is NaN if fewer than two attributes
        change, completeness if fewer than two dimensions do, and both if no dimension has information about an
        attribute. All are NaN if every attribute is constant.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, codes that are not finite, or fewer
            than one bin.
        UnknownNameError: an unknown part.

    Example:
        >>> from icy.metrics import dci
        >>> score = dci([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bd", "bc"])
        >>> round(score.value, 3), score.details["importance"].tolist(), score.details["informativeness"]
        (0.311, [[1.0, 0.0], [0.5, 0.5]], 1.0)
    """
    require_known("part of DCI", part, PARTS)
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    codes, rows = coded.classes(bins), len(coded)
    held, active = (np.flatnonzero([count_varying([one]) for one in some]) for some in (coded.factors, codes))
    drawn = len(active) > MOST_DIMENSIONS
    conventions = {"part": part, "bins": None if coded.discrete else bins, "seed": seed if drawn else None, "eos": eos}
    if why := why_unvaried(coded.factors):
        return undefined("dci", why, rows, conventions)
    factors, parts = [coded.factors[a] for a in held], [codes[d] for d in active]
    whole = together(np.zeros(rows, dtype=np.int64), *parts)
    informativeness = float(np.mean([_best(factor, whole).sum() / rows for factor in factors]))
    samples = list(_sampled_importance(factors, parts, seed)) if drawn else [_importance(factors, parts)]
    importance = np.zeros((len(coded.factors), len(codes)))
    importance[np.ix_(held, active)] = shares_of(np.sum(samples, 0), 1)
    found = _three(np.sum(samples, 0), informativeness)
    details = {**found, "importance": importance}
    if math.isnan(found[part]):
        return Score("dci", math.nan, rows, conventions, details, why=_why_undefined(part, coded.factors, len(active)))
    if not drawn:
        return Score("dci", found[part], rows, conventions, details)
    spread = np.std([_three(one, informativeness)[part] for one in samples], ddof=1) / math.sqrt(GROUPS)
    of = f"{ORDERS} drawn orders"
    return Score("dci", found[part], rows, conventions, details, error=float(spread), error_of=of)


def _why_undefined(part: str, factors: Sequence[Codes], active: int) -> str:
    """Return the reason why a part is undefined, given the number of dimensions that change."""
    if part == "completeness" and active < 2:
        return "no second dimension of the code changes"
    why = why_unvaried(factors, needed=2) if part == "disentanglement" else ""
    return why or "no dimension of the code has information about an attribute"


def _three(importance: Matrix, informativeness: float) -> dict[str, float]:
    """Return disentanglement and completeness, from the importance [A, D] of dimensions, and informativeness."""
    shares = shares_of(importance, 1)
    weights = shares.sum(0) / shares.sum() if shares.any() else shares.sum(0)
    informed = shares.any(1)
    values = math.nan, math.nan
    if informed.any():
        values = _concentration(shares_of(shares, 0).T) @ weights, _concentration(shares)[informed].mean()
    return dict(zip(PARTS, (*map(float, values), informativeness), strict=True))


def _concentration(shares: Matrix) -> Matrix:
    """Return 1 - H / log(columns) of each row of shares; NaN if there is one column."""
    rows, columns = shares.shape
    if columns < 2:
        return np.full(rows, math.nan)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    found: Matrix = 1 + (shares * logs).sum(1) / math.log(columns)
    return np.clip(found, 0, 1)


def _importance(factors: Sequence[Codes], parts: Sequence[Codes]) -> Matrix:
    """Return the Shapley values of the mutual information of all parts with each attribute, in bits: [A, D]."""
    count = len(parts)
    visited, information = 0, np.zeros((len(factors), 1 << count))  # by subset: bit j is set for part j

    def visit(subset: int, joint: Codes, report: Report) -> None:
        nonlocal visited
        visited += 1
        report(visited, 1 << count)
        information[:, subset] = [mutual_information(factor, joint) for factor in factors]
        for j in range(subset.bit_length(), count):
            visit(subset | 1 << j, together(joint, parts[j]), report)

    with progress("subsets of dci") as shown:
        visit(0, np.zeros(len(factors[0]), dtype=np.int64), shown)
    subsets = np.arange(1 << count)
    sizes = sum((subsets >> j & 1 for j in range(count)), np.zeros_like(subsets))
    orders = np.array([math.factorial(k) * math.factorial(count - k - 1) for k in range(count)]) / math.factorial(count)
    found = np.zeros((len(factors), count))
    for j in range(count):
        without = subsets[subsets >> j & 1 == 0]
        gains = information[:, without | 1 << j] - information[:, without]
        found[:, j] = np.where(gains > NOTHING, gains, 0) @ orders[sizes[without]]
    return found


def _sampled_importance(factors: Sequence[Codes], parts: Sequence[Codes], seed: int) -> Iterator[Matrix]:
    """Yield, for each group of drawn orders of the parts, the sum of the gains of each part: [A, D]."""
    draws = stream(seed, "dci")
    for _ in track(range(GROUPS), "samples of dci"):
        found = np.zeros((len(factors), len(parts)))
        for _ in range(ORDERS // GROUPS):
            joint, before = np.zeros(len(factors[0]), dtype=np.int64), np.zeros(len(factors))
            for j in draws.permutation(len(parts)):
                joint = together(joint, parts[j])
                now = np.array([mutual_information(factor, joint) for factor in factors])
                found[:, j] += np.where(now - before > NOTHING, now - before, 0)
                before = now
        yield found


def _ceiling(facts: Facts, score: Score) -> str:
    if note := positional(facts, score):
        return note
    guessing = [1 / (int(factor.max()) + 1) for factor in facts.varying]
    return f"an ideal language has {1 - sum(guessing) / len(guessing):.3g}, as the accuracy of guessing is subtracted"


@register_metric("sap", source="Kumar, Sattigeri and Balakrishnan 2018", unstructured=0.0, by_construction=_ceiling)
@of_repeated_rows
def sap(meanings: object, messages: object = None, *, bins: int = 20, eos: object = None) -> Score:
    """Separated attribute predictability: how much better one code predicts an attribute than the next.

    The score of a dimension and an attribute is the balanced accuracy, the mean over values of the share of rows that
    are right, of the best classifier that only sees this dimension. For each token (or bin), it predicts the value with
    the largest share. SAP is the mean over attributes of the difference between the two highest scores (Kumar et al.
    2018). Classifiers are fitted and scored on the same rows, so the value is biased on few rows. An ideal language of
    attributes with K values reaches 1 - 1 / K, since guessing has a balanced accuracy of 1 / K.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or real codes: floats in any container, also if they are whole numbers.
        bins: number of equal-width bins that discretize each dimension of real codes.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1], with the gap of each attribute and the balanced accuracies, [A, D], in the details. Constant
        attributes are left out; with a single dimension, the second-highest score is the score of guessing. NaN if
        every attribute is constant, or the code has zero dimensions.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, codes that are not finite, or fewer
            than one bin.

    Example:
        >>> from icy.metrics import sap
        >>> sap([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]).value
        0.5
    """
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    conventions = {"bins": None if coded.discrete else bins, "eos": eos}
    codes = coded.classes(bins)
    if why := why_unvaried(coded.factors) or ("" if codes else "the code has no dimension"):
        return undefined("sap", why, len(coded), conventions)
    worth = [1 / (sizes * len(sizes)) for sizes in map(np.bincount, coded.factors)]  # for balanced accuracies
    best = [
        [_best(factor, code, one).sum() for code in codes] for factor, one in zip(coded.factors, worth, strict=True)
    ]
    accuracies = np.array(best, dtype=float)
    guesses = np.array([1 / (int(factor.max()) + 1) for factor in coded.factors])
    ordered = np.sort(np.column_stack([guesses, accuracies]), 1)
    gaps = np.where(guesses < 1, ordered[:, -1] - ordered[:, -2], math.nan)
    details = {"gaps": gaps.tolist(), "accuracies": accuracies.tolist()}
    return Score("sap", float(np.nanmean(gaps)), len(coded), conventions, details)


def _best(factor: Codes, given: Codes, worth: Matrix | None = None) -> NDArray[Any]:
    """Return the number of rows that the best prediction of an attribute gets right, for each value of `given`.

    Args:
        factor: the attribute, [N].
        given: the variable to predict from, [N].
        worth: weight of a row with each value of the attribute; by default 1, which gives whole numbers.
    """
    values = int(factor.max()) + 1
    cells, counts = np.unique(given * values + factor, return_counts=True)
    found = counts if worth is None else counts * worth[cells % values]
    starts = np.flatnonzero(np.diff(cells // values, prepend=-1))
    return np.maximum.reduceat(found, starts)
