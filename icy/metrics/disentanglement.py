"""Disentanglement of discrete or real codes: FactorVAE score, mutual information gap (MIG), modularity."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Real
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.languages.language import Language
from icy.languages.rule import unpacked
from icy.languages.table import Codes, Table, Weights, number

from .construction import Facts, positional
from .information import NOTHING, entropy, information_matrix
from .score import Score, undefined, why_unvaried

VARIANCES = ("one_hot", "ordinal")
DEAD = ("zero", "skip")
TRAINING_VOTES, TEST_VOTES, BATCH = 10_000, 5_000, 64  # Locatello et al. 2019
VOTES_AT_ONCE = 1000
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Coded:
    """The factors and codes of a table's rows.

    Attributes:
        factors: attributes of the meanings, [N] each.
        codes: [N, D] real numbers, or integers if they are tokens.
        discrete: whether the codes are tokens.
        weights: number of times each row counts, [N]; None for once.
        named: whether the tokens have names; their numbers are then positions in the sorted order.
    """

    factors: list[Codes]
    codes: Real[NDArray[Any], "batch dimension"]
    discrete: bool
    weights: Weights | None = None
    named: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def classes(self, bins: int) -> list[Codes]:
        """Return every dimension as a discrete variable, [N] each: tokens unchanged, real codes in equal-width bins."""
        if self.discrete:
            return [number(column) for column in self.codes.T]
        found = []
        for column in self.codes.T:
            if not _changes(column):  # otherwise rounding noise would be spread over the bins
                found.append(np.zeros(len(column), dtype=np.int64))
                continue
            edges = np.linspace(column.min(), column.max(), bins + 1)
            found.append(number(np.digitize(column, edges[1:-1])))
        return found


def read_codes(meanings: object, messages: object, eos: object) -> Coded:
    """Return factors and codes; if `messages` is an array of real numbers, it is the codes.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, or codes that are not finite.
    """
    if messages is None and isinstance(meanings, tuple) and len(meanings) == 2:
        meanings, messages = meanings
    real = _real(messages)
    table = Table.of(meanings, messages, eos=eos) if real is None else Table.of(meanings, [()] * len(real))
    table.require_discrete("Disentanglement")
    if real is not None and not np.isfinite(real).all():
        raise InvalidSettingError("Some codes are NaN or infinite; leave these rows out.")
    codes = table.messages if real is None else real
    return Coded(table.factors, codes, real is None, table.weights, table.token_names is not None)


def _real(messages: object) -> Matrix | None:
    """Return real codes, [N, D], or None if the messages are tokens: floats are real codes, even if all are whole."""
    if isinstance(messages, (Table, Language, str)) or messages is None:
        return None
    held = unpacked(messages, "Messages")
    if isinstance(held, np.ndarray):
        return held.astype(float) if held.ndim == 2 and held.dtype.kind == "f" else None
    rows = [row for row in held if isinstance(row, list)]
    numbers = {type(v) for row in rows for v in row}
    if (
        len(rows) < len(held)
        or len({len(row) for row in rows}) != 1
        or not numbers <= {int, float}
        or float not in numbers
    ):
        return None
    return np.array(rows, dtype=float)


def _changes(column: NDArray[Any]) -> bool:
    """Return whether the values of a dimension differ; for real codes, by more than rounding at their scale."""
    if column.dtype.kind == "i":
        return bool(column.min() < column.max())
    return bool(np.ptp(column) > NOTHING * np.abs(column).max())


@register_metric("mig", source="Chen et al. 2018", weighted=True, unstructured=0.0, by_construction=positional)
def mig(meanings: object, messages: object = None, *, bins: int = 20, eos: object = None) -> Score:
    """Mutual information gap: how far a single code encodes each attribute.

    An attribute's gap is the difference between its highest and second-highest mutual information with a dimension,
    divided by the attribute's entropy; MIG is the mean gap over attributes (Chen et al. 2018). If two
    dimensions encode an attribute equally, its gap is 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or real codes: floats in any container, also if they are whole numbers.
        bins: number of equal-width bins that discretize each dimension of real codes.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1], with the gap of each attribute in the details. Constant attributes are left out; with a
        single dimension, the second-highest value is 0. NaN if every attribute is constant, or the code has no
        dimensions.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, codes that are not finite, or fewer
            than one bin.

    Example:
        >>> import numpy as np
        >>> from icy.metrics import mig
        >>> factors = np.arange(100)[:, None] % 4
        >>> mig(factors, np.hstack([factors * 0.1, 0.5 + 0.0 * factors])).value
        1.0
    """
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    conventions = {"bins": None if coded.discrete else bins, "eos": eos}
    entropies = np.array([entropy(factor, coded.weights) for factor in coded.factors])
    if why := why_unvaried(coded.factors):
        return undefined("mig", why, len(coded), conventions)
    if not coded.codes.shape[1]:
        return undefined("mig", "the code has no dimension", len(coded), conventions)
    information = np.sort(information_matrix(coded.factors, coded.classes(bins), coded.weights), 1)
    second = information[:, -2] if information.shape[1] > 1 else 0.0
    gaps = np.full(len(entropies), math.nan)
    np.divide(information[:, -1] - second, entropies, out=gaps, where=entropies > NOTHING)
    return Score("mig", float(np.nanmean(gaps)), len(coded), conventions, {"gaps": gaps.tolist()})


@register_metric("modularity", source="Ridgeway and Mozer 2018", weighted=True, unstructured=0.0,
                 by_construction=positional)  # fmt: skip
def modularity(
    meanings: object, messages: object = None, *, bins: int = 20, dead: str = "zero", eos: object = None
) -> Score:
    """Modularity: how far each code encodes a single attribute.

    A dimension scores one minus the mean square of its mutual information with all attributes except its best, relative
    to the square of the mutual information with its best; modularity is the mean over dimensions (Ridgeway and Mozer
    2018).

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or real codes: floats in any container, also if they are whole numbers.
        bins: number of equal-width bins that discretize each dimension of real codes.
        dead: how to treat dimensions without information about any attribute: "zero" counts them as 0, as in Locatello
            et al. 2019; "skip" leaves them out.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1], with the score of each dimension in the details. NaN if fewer than two attributes change, or
        if every dimension is left out.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, codes that are not finite, or fewer
            than one bin.
        UnknownNameError: an unknown rule for dead dimensions.

    Example:
        >>> from icy.metrics import modularity
        >>> modularity([[0, 0], [0, 1], [1, 0], [1, 1]], ["acx", "adx", "bcx", "bdx"], dead="skip").value
        1.0
    """
    require_known("rule for dead codes", dead, DEAD)
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    conventions = {"bins": None if coded.discrete else bins, "dead": dead, "eos": eos}
    if why := why_unvaried(coded.factors, needed=2):
        return undefined("modularity", why, len(coded), conventions)
    parts = coded.classes(bins)
    squares = information_matrix(coded.factors, parts, coded.weights) ** 2 if parts else np.zeros((2, 0))
    greatest = squares.max(0)
    scores = np.full(len(parts), math.nan)
    others = (squares.sum(0) - greatest) / (len(coded.factors) - 1)
    np.divide(greatest - others, greatest, out=scores, where=greatest > NOTHING**2)
    counted = scores[~np.isnan(scores)] if dead == "skip" else np.nan_to_num(scores)
    if not len(counted):
        return undefined("modularity", "no dimension of the code predicts an attribute", len(coded), conventions)
    return Score("modularity", float(counted.mean()), len(coded), conventions, {"scores": scores.tolist()})


def _one_dimension(facts: Facts, score: Score) -> str:
    return (
        "only one position changes and wins every vote: about 1 / A for any language"
        if len(facts.changing) == 1
        else ""
    )


@register_metric("factor_vae", source="Kim and Mnih 2018", aliases=("FactorVAE",), weighted=True,
                 by_construction=_one_dimension)  # fmt: skip
def factor_vae(
    meanings: object,
    messages: object = None,
    *,
    variance: str = "one_hot",
    batch_size: int = BATCH,
    training_votes: int = TRAINING_VOTES,
    test_votes: int = TEST_VOTES,
    seed: int = 0,
    eos: object = None,
) -> Score:
    """FactorVAE score: how well the code that varies least identifies the attribute held fixed.

    A vote draws an attribute, one of its values, and a batch of rows with this value, and takes the dimension of the
    code with the lowest variance in the batch relative to its variance over all rows. The majority of the training
    votes assigns an attribute to each dimension; the score is the accuracy of this assignment on the test votes (Kim
    and Mnih 2018). Chance level is 1 / A. Constant attributes are not drawn. Constant dimensions do not vote; in the
    library of Locatello et al. 2019 they win every vote, and the score falls to chance level.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or real codes: floats in any container, also if they are whole numbers.
        variance: the variance of tokens: that of their one-hot vectors ("one_hot"), which does not depend on how tokens
            are numbered, or that of their numbers ("ordinal"). Real codes always use the variance of their numbers.
        batch_size: rows per vote, at least 2.
        training_votes: number of votes that assign attributes; 10,000 as in Locatello et al. 2019.
        test_votes: number of votes that are scored; 5,000 as in Locatello et al. 2019.
        seed: seed of the draws.
        eos: the token that ends a message, a number or a name; see Table.of.

    Returns:
        A score in [0, 1] with its standard error over test votes, and the attribute of each dimension in the details.
        NaN if every dimension is constant, or if fewer than two attributes change.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), continuous meanings, codes that are not finite, numbers
            of rows or votes that are too small, or ordinal variance of tokens that have names.
        UnknownNameError: an unknown variance.

    Example:
        >>> from icy.metrics import factor_vae
        >>> factor_vae([[0, 0], [0, 1], [1, 0], [1, 1]], ["acx", "adx", "bcx", "bdx"]).value
        1.0
    """
    require_known("variance", variance, VARIANCES)
    sizes = {"batch_size": batch_size, "training_votes": training_votes, "test_votes": test_votes}
    for name, size in sizes.items():
        whole_number(name.replace("_", " "), size, least=2 if name == "batch_size" else 1)
    coded = read_codes(meanings, messages, eos)
    if coded.named and variance == "ordinal":
        raise InvalidSettingError("Ordinal variance needs numbers, but these tokens have names; take one_hot.")
    conventions = {"variance": variance if coded.discrete else None, **sizes, "seed": seed, "eos": eos}
    active = np.flatnonzero([_changes(column) for column in coded.codes.T])
    why = why_unvaried(coded.factors, needed=2) or ("" if len(active) else "no dimension of the code ever changes")
    if why:
        return undefined("factor_vae", why, len(coded), conventions)
    votes = _Votes.of(coded, active, not coded.discrete or variance == "ordinal", batch_size, seed)
    training_wins, test_wins = votes.draw(training_votes), votes.draw(test_votes)
    majority = training_wins.argmax(1)
    right = float(test_wins[np.arange(len(active)), majority].sum()) / test_votes
    owners = {int(d): int(a) for d, a, n in zip(active, majority, training_wins.sum(1), strict=True) if n}
    error = math.sqrt(right * (1 - right) / test_votes)
    details = {"attributes": owners, "active": active.tolist()}
    of = f"{test_votes} drawn votes"
    return Score("factor_vae", right, len(coded), conventions, details, error=error, error_of=of)


def _scaled(column: NDArray[Any]) -> Matrix:
    """Scale numbers to [0, 1], so that their squares do not underflow or overflow."""
    above = column - column.min()  # with tokens as whole numbers: two large ones may be equal as floats
    return np.asarray(above / above.max())


def _variance(numbers: Matrix, weights: Weights | None = None) -> Matrix:
    """Return the variance along the last axis, exactly 0 for equal numbers, even if their mean is rounded.

    Args:
        numbers: [..., B].
        weights: number of times each of the B numbers counts, [B]. With fractions, the variance is biased.
    """
    above = numbers - numbers[..., :1]
    if weights is None:
        return np.asarray(above.var(-1, ddof=1))
    spread = (above - np.average(above, -1, weights)[..., None]) ** 2 @ weights
    return np.asarray(spread / (weights.sum() - (weights.dtype.kind == "i")))


def _unlikeness(codes: Codes, weights: Weights | None = None) -> Matrix:
    """Return the total variance of the codes' one-hot vectors along the last axis: [..., B] -> [...].

    If code v occurs n_v times among B, it is (B^2 - sum_v n_v^2) / (B (B - 1)). No vectors are built, because they
    could be as wide as the number of rows. Weights as in `_variance`, for codes [B].
    """
    if weights is not None:
        total, counts = float(weights.sum()), np.bincount(codes, weights)
        return np.asarray((total**2 - counts @ counts) / (total * (total - (weights.dtype.kind == "i"))))
    rows, size = codes.reshape(-1, codes.shape[-1]), codes.shape[-1]
    apart = np.sort(rows, axis=1) + np.arange(len(rows))[:, None] * (int(codes.max()) + 1)
    starts = np.flatnonzero(np.diff(apart.ravel(), prepend=-1))
    runs = np.diff(starts, append=apart.size)
    alike = np.bincount(starts // size, weights=runs.astype(float) ** 2, minlength=len(rows))
    return np.asarray(((size**2 - alike) / (size * (size - 1))).reshape(codes.shape[:-1]))


@dataclass(frozen=True)
class _Votes:
    """Draws the votes of the FactorVAE score.

    Attributes:
        factors: the attributes, [N] each.
        codes: the dimensions that vote, [N] each.
        spread: function that returns the variance of a dimension along the last axis.
        held: attributes that may be held fixed.
        batch: rows per vote.
        draws: stream of random numbers.
        weights: number of times each row counts, [N]; None for once.
    """

    factors: list[Codes]
    codes: list[NDArray[Any]]
    spread: Callable[..., Matrix]
    held: list[int]
    batch: int
    draws: np.random.Generator
    weights: Weights | None = None

    @classmethod
    def of(cls, coded: Coded, active: NDArray[np.intp], ordinal: bool, batch: int, seed: int) -> "_Votes":
        """Return the votes of the dimensions `active`, by the variance of numbers if `ordinal`, else of one-hots."""
        codes = [_scaled(coded.codes[:, d]) if ordinal else number(coded.codes[:, d]) for d in active]
        held = [a for a, factor in enumerate(coded.factors) if factor.max() > 0]
        draws = stream(seed, "factor_vae")
        return cls(coded.factors, codes, _variance if ordinal else _unlikeness, held, batch, draws, coded.weights)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Draw votes and count how often each dimension won while each attribute was held: [dimensions, A]."""
        found = np.zeros((len(self.codes), len(self.factors)), dtype=np.int64)
        attributes = np.array(self.held)[self.draws.integers(len(self.held), size=count)]
        for a in self.held:
            left = int((attributes == a).sum())
            while left:
                some = min(left, VOTES_AT_ONCE)
                found[:, a] += np.bincount(self._winners(a, some), minlength=len(found))
                left -= some
        return found

    def _winners(self, attribute: int, count: int) -> NDArray[np.int64]:
        """Return the winning dimension of each of `count` batches of rows that share a value of an attribute."""
        factor = self.factors[attribute]
        order = np.argsort(factor, kind="stable")
        sizes: NDArray[Any] = np.bincount(factor, self.weights)
        if self.weights is not None:
            sizes = sizes.astype(self.weights.dtype)
        values = self.draws.integers(len(sizes), size=(count, 1))
        within = (self.draws.random((count, self.batch)) * sizes[values]).astype(sizes.dtype)
        place = (np.cumsum(sizes) - sizes)[values] + within
        if self.weights is not None:  # the row at this place if rows are repeated
            place = np.searchsorted(np.cumsum(self.weights[order])[:-1], place, side="right")
        rows = order[place]
        spread = [self.spread(codes[rows]) / self.spread(codes, self.weights) for codes in self.codes]
        return np.asarray(np.stack(spread, 1).argmin(1))
