"""Disentanglement of a code, discrete or real: FactorVAE score, mutual information gap, modularity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, unknown
from icy.core.streams import stream

from .entropy import NOTHING, Codes, entropy, number
from .information import information_matrix
from .score import Score, undefined
from .table import Table

VARIANCES = ("one_hot", "ordinal")
DEAD = ("zero", "skip")
TRAINING_VOTES, TEST_VOTES, BATCH = 10_000, 5_000, 64  # Locatello et al. 2019
VOTES_AT_ONCE = 1000
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Coded:
    """Factors and codes of the same rows.

    Attributes:
        factors: the attributes of the meanings, [N] each.
        codes: [N, D], real numbers, or whole ones for tokens.
        discrete: whether codes are tokens.
    """

    factors: list[Codes]
    codes: NDArray[Any]
    discrete: bool

    def __len__(self) -> int:
        return len(self.codes)

    def classes(self, bins: int) -> list[Codes]:
        """Every dimension as a discrete variable: tokens as they are, numbers in bins of equal width."""
        if self.discrete:
            return [number(column) for column in self.codes.T]
        found = []
        for column in self.codes.T:
            if not _changes(column):  # or rounding would be spread over the bins
                found.append(np.zeros(len(column), dtype=np.int64))
                continue
            edges = np.linspace(column.min(), column.max(), bins + 1)
            found.append(number(np.digitize(column, edges[1:-1])))
        return found


def read_codes(meanings: Any, messages: Any, eos: int | None) -> Coded:
    """Factors and codes: messages that are a table of real numbers are codes as they are.

    Raises:
        InvalidSettingError: as for Table.of; codes that are not finite; continuous factors.
    """
    if messages is None and isinstance(meanings, tuple) and len(meanings) == 2:
        meanings, messages = meanings
    real = _real(messages)
    table = Table.of(meanings, messages, eos=eos) if real is None else Table.of(meanings, [()] * len(real))
    table.require_discrete("Disentanglement")
    if real is not None and not np.isfinite(real).all():
        raise InvalidSettingError("Some codes are not numbers (NaN) or infinite; leave those rows out.")
    return Coded(table.factors, table.messages if real is None else real, real is None)


def _real(messages: Any) -> Matrix | None:
    """Real codes, [N, D], or None for what is to be read as tokens.

    An array of real numbers is never tokens, whatever numbers are in it; lists of numbers are, if all are whole.
    """
    try:
        codes = np.asarray(messages)
    except (TypeError, ValueError, RuntimeError):  # messages of unequal length; a tensor on another device
        return None
    if codes.ndim != 2 or codes.dtype.kind != "f":
        return None
    if not isinstance(messages, np.ndarray) and (codes == np.round(codes)).all():
        return None
    return codes.astype(float)


def _changes(column: NDArray[Any]) -> bool:
    """Whether the numbers of a dimension differ by more than rounding does, on whatever scale they are."""
    return bool(np.ptp(column) > NOTHING * np.abs(column).max())


def mig(meanings: Any, messages: Any = None, *, bins: int = 20, eos: int | None = None) -> Score:
    """Mutual information gap: how far every attribute is in one code alone (Chen et al. 2018).

    For every attribute the gap between the two greatest of its mutual informations with a dimension of the code, as a
    share of its entropy; the mean over attributes. Two dimensions that say the same make it 0.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or an array of real codes, which may hold whole numbers; lists of numbers that are not
            all whole are real codes too.
        bins: of equal width, into which real codes are put.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1], with the gap of each attribute in the details. Attributes that never change are left out; a
        code of one dimension has nothing to be less than. NaN where no attribute changes.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings.

    Example:
        >>> import numpy as np
        >>> from icy.metrics import mig
        >>> factors = np.arange(100)[:, None] % 4
        >>> mig(factors, np.hstack([factors * 0.1, 0.5 + 0.0 * factors])).value
        1.0
    """
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    conventions = {"bins": None if coded.discrete else bins, "eos": eos}
    entropies = np.array([entropy(factor) for factor in coded.factors])
    if not (entropies > NOTHING).any():
        return undefined("mig", "no attribute ever changes", len(coded), conventions)
    if not coded.codes.shape[1]:
        return undefined("mig", "the code has no dimension", len(coded), conventions)
    information = np.sort(information_matrix(coded.factors, coded.classes(bins)), 1)
    second = information[:, -2] if information.shape[1] > 1 else 0.0
    gaps = np.full(len(entropies), math.nan)
    np.divide(information[:, -1] - second, entropies, out=gaps, where=entropies > NOTHING)
    return Score("mig", float(np.nanmean(gaps)), len(coded), conventions, {"gaps": gaps.tolist()})


def modularity(
    meanings: Any, messages: Any = None, *, bins: int = 20, dead: str = "zero", eos: int | None = None
) -> Score:
    """Modularity: how far every code tells of one attribute alone (Ridgeway and Mozer 2018).

    For every dimension of the code one less the mean square of its mutual informations with the other attributes, as a
    share of the square of the greatest; the mean over dimensions.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or an array of real codes, which may hold whole numbers; lists of numbers that are not
            all whole are real codes too.
        bins: of equal width, into which real codes are put.
        dead: a dimension that tells of no attribute counts as 0 ("zero", as in Locatello et al. 2019) or is left out
            ("skip").
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1], with that of each dimension in the details. NaN for meanings of one attribute, and where
        every dimension is left out.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings.
        UnknownNameError: another rule for dead codes.

    Example:
        >>> from icy.metrics import modularity
        >>> modularity([[0, 0], [0, 1], [1, 0], [1, 1]], ["acx", "adx", "bcx", "bdx"], dead="skip").value
        1.0
    """
    if dead not in DEAD:
        raise unknown("rule for dead codes", dead, DEAD)
    coded, bins = read_codes(meanings, messages, eos), whole_number("number of bins", bins)
    conventions = {"bins": None if coded.discrete else bins, "dead": dead, "eos": eos}
    if len(coded.factors) < 2:
        return undefined("modularity", "there is no second attribute to tell from the first", len(coded), conventions)
    if all(entropy(factor) <= NOTHING for factor in coded.factors):
        return undefined("modularity", "no attribute ever changes", len(coded), conventions)
    parts = coded.classes(bins)
    squares = information_matrix(coded.factors, parts) ** 2 if parts else np.zeros((2, 0))
    greatest = squares.max(0)
    scores = np.full(len(parts), math.nan)
    others = (squares.sum(0) - greatest) / (len(coded.factors) - 1)
    np.divide(greatest - others, greatest, out=scores, where=greatest > NOTHING**2)
    counted = scores[~np.isnan(scores)] if dead == "skip" else np.nan_to_num(scores)
    if not len(counted):
        return undefined("modularity", "no dimension of the code tells of an attribute", len(coded), conventions)
    return Score("modularity", float(counted.mean()), len(coded), conventions, {"scores": scores.tolist()})


def factor_vae(
    meanings: Any,
    messages: Any = None,
    *,
    variance: str = "one_hot",
    batch_size: int = BATCH,
    training_votes: int = TRAINING_VOTES,
    test_votes: int = TEST_VOTES,
    seed: int = 0,
    eos: int | None = None,
) -> Score:
    """FactorVAE score: how well the dimension that varies least tells which attribute was held (Kim and Mnih 2018).

    A vote draws an attribute and one of its values, rows that have it, and the dimension of the code with the least
    variance over them as a share of its variance over all. The majority of the training votes says what attribute a
    dimension stands for; the score is how often that is right. By chance it is 1 / A. Attributes that never change are
    not drawn. Dimensions that never change cannot vote; in the common implementation they win every vote.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, D] tokens, or an array of real codes, which may hold whole numbers; lists of numbers that are not
            all whole are real codes too.
        variance: of tokens, that of their "one_hot" vectors, which does not depend on their numbers, or of the numbers
            ("ordinal"). Real codes have that of the numbers.
        batch_size: rows of a vote.
        training_votes: how many.
        test_votes: how many.
        seed: of the draws.
        eos: the token that ends a message; see Table.of.

    Returns:
        A score in [0, 1] with its standard error, and the attribute of each dimension in the details. NaN where no
        dimension of the code, or no attribute, ever changes.

    Raises:
        InvalidSettingError: tables that do not fit together, continuous meanings, numbers below 1.
        UnknownNameError: another variance.

    Example:
        >>> from icy.metrics import factor_vae
        >>> factor_vae([[0, 0], [0, 1], [1, 0], [1, 1]], ["acx", "adx", "bcx", "bdx"]).value
        1.0
    """
    if variance not in VARIANCES:
        raise unknown("variance", variance, VARIANCES)
    sizes = {"batch_size": batch_size, "training_votes": training_votes, "test_votes": test_votes}
    for name, size in sizes.items():
        whole_number(name.replace("_", " "), size, least=2 if name == "batch_size" else 1)
    coded = read_codes(meanings, messages, eos)
    conventions = {"variance": variance if coded.discrete else None, **sizes, "seed": seed, "eos": eos}
    ordinal = not coded.discrete or variance == "ordinal"
    active = np.flatnonzero([_changes(column) for column in coded.codes.T])
    held = [a for a, factor in enumerate(coded.factors) if factor.max() > 0]
    if not len(active) or not held:
        what = "attribute" if len(active) else "dimension of the code"
        return undefined("factor_vae", f"no {what} ever changes", len(coded), conventions)
    votes = _Votes(
        coded.factors,
        [_scaled(coded.codes[:, d]) if ordinal else number(coded.codes[:, d]) for d in active],
        _variance if ordinal else _unlikeness,
        held,
        batch_size,
        stream(seed, "factor_vae"),
    )
    learnt, tried = votes.draw(training_votes), votes.draw(test_votes)
    majority = learnt.argmax(1)
    right = float(tried[np.arange(len(active)), majority].sum()) / test_votes
    owners = {int(d): int(a) for d, a, n in zip(active, majority, learnt.sum(1), strict=True) if n}
    error = math.sqrt(right * (1 - right) / test_votes)
    details = {"attributes": owners, "active": active.tolist()}
    return Score(
        "factor_vae", right, len(coded), conventions, details, error=error, error_of=f"{test_votes} drawn votes"
    )


def _scaled(column: NDArray[Any]) -> Matrix:
    """Numbers from 0 to 1, of which no square is too small or too large to tell."""
    least, most = float(column.min()), float(column.max())
    scaled: Matrix = (column - least) / (most - least)
    return scaled


def _variance(numbers: Matrix) -> Matrix:
    """The variance along the last axis; exactly 0 for equal numbers, whose mean may be off by rounding."""
    found: Matrix = (numbers - numbers[..., :1]).var(-1, ddof=1)
    return found


def _unlikeness(codes: Codes) -> Matrix:
    """The variance along the last axis of the one-hot vectors of codes, summed over the vectors: [..., B] -> [...].

    With n rows of a code among B it is (B^2 - the sum of n^2) / (B (B - 1)), so that no vector need be made: a code may
    have as many values as there are rows.
    """
    rows, size = codes.reshape(-1, codes.shape[-1]), codes.shape[-1]
    apart = np.sort(rows, axis=1) + np.arange(len(rows))[:, None] * (int(codes.max()) + 1)
    starts = np.flatnonzero(np.diff(apart.ravel(), prepend=-1))
    runs = np.diff(starts, append=apart.size)
    alike = np.bincount(starts // size, weights=runs.astype(float) ** 2, minlength=len(rows))
    found: Matrix = ((size**2 - alike) / (size * (size - 1))).reshape(codes.shape[:-1])
    return found


@dataclass(frozen=True)
class _Votes:
    """The votes of dimensions for attributes.

    Attributes:
        factors: the attributes, [N] each.
        codes: the dimensions that vote, [N] each.
        spread: how much a dimension varies along the last axis.
        held: the attributes that are drawn.
        batch: rows of a vote.
        draws: the stream of random numbers.
    """

    factors: list[Codes]
    codes: list[NDArray[Any]]
    spread: Callable[[NDArray[Any]], Matrix]
    held: list[int]
    batch: int
    draws: np.random.Generator

    def draw(self, count: int) -> NDArray[np.int64]:
        """How often each dimension had the vote when each attribute was held: [dimensions, A]."""
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
        """The dimension that varies least in each of some batches of rows with one value of an attribute."""
        factor = self.factors[attribute]
        order = np.argsort(factor, kind="stable")
        sizes = np.bincount(factor)
        values = self.draws.integers(len(sizes), size=(count, 1))
        within = (self.draws.random((count, self.batch)) * sizes[values]).astype(np.int64)
        rows = order[(np.cumsum(sizes) - sizes)[values] + within]
        spread = [self.spread(codes[rows]) / self.spread(codes) for codes in self.codes]
        winners: NDArray[np.int64] = np.stack(spread, 1).argmin(1)
        return winners
