"""Topographic similarity: do like meanings get like messages?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.devices import resolve_device
from icy.core.errors import unknown
from icy.core.streams import stream
from icy.metrics.score import Score
from icy.metrics.table import Table

from .distances import Between, Rows, meaning_distance, message_distance
from .pairs import Counts, Two, all_pairs, joint_counts, of_pairs
from .progress import Progress, shown

CORRELATIONS = ("spearman", "pearson")
PAIRS = ("all", "ordered", "published")
PUBLISHED_PAIRS = 10_000
Drawn = tuple[Rows, Rows]
WORTH_A_GPU = 20_000  # rows; fewer are counted before torch is imported


def topsim(
    meanings: Any,
    messages: Any = None,
    *,
    correlation: str = "spearman",
    meaning: str | Between = "hamming",
    message: str | Between = "levenshtein",
    pairs: str | int = "all",
    padded: bool = False,
    normalise: str = "none",
    eos: int | None = None,
    seed: int = 0,
    device: str = "auto",
    workers: int | None = None,
    progress: bool | Progress | None = None,
) -> Score:
    """Topographic similarity: the correlation, over pairs, between distances of meanings and distances of messages.

    Of Brighton and Kirby 2006, as used since Lazaridou et al. 2018.

    Distances between discrete rows take few values, so that counting the pairs by both distances gives the exact
    correlation of all of them, ties at their average rank, without holding them: time grows with the square of the
    rows and memory does not. Distances that are real numbers are listed, which memory limits.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        correlation: "spearman" or "pearson".
        meaning: "hamming"; "cosine", for discrete values that of their one-hot vectors, which is Hamming's as a share;
            "euclidean"; or a function of two meanings [A].
        message: "levenshtein"; "hamming", by positions, the end of a shorter message counting as one more token; or a
            function of two messages (arrays of tokens).
        pairs: "all", every two different rows once; "ordered", all N*N, each row with itself too; a number, so many
            of "all" drawn with replacement; or "published", as Icy22's program has it, "ordered" up to 10,000 pairs
            and a draw of 10,000 of these beyond.
        padded: compare messages with what fills them up to one length, as EGG does, and not as they are; for
            Levenshtein.
        normalise: divide Levenshtein's distance by "none", the "mean" of the two lengths, or the greater one ("max").
        eos: the token that ends a message; see Table.of.
        seed: of the draw of pairs.
        device: where pairs are counted if both distances are Hamming's: "cpu", "cuda", or "auto" for a GPU if there
            is one and the table is large.
        workers: threads; one per core unless given.
        progress: show a bar; or a function that is called with the pairs done and the pairs in all.

    Returns:
        A score in [-1, 1], with the number of pairs in its details; of drawn pairs with a standard error,
        (1 - rho^2) / sqrt(n). NaN where one of the distances is the same for all pairs.

    Raises:
        InvalidSettingError: tables that do not fit together, too many pairs to be listed, or no such device.
        UnknownNameError: a convention that there is not.

    Example:
        >>> from icy.metrics import topsim
        >>> topsim([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]).value
        1.0
    """
    if correlation not in CORRELATIONS:
        raise unknown("correlation", correlation, CORRELATIONS)
    table = Table.of(meanings, messages, eos=eos)
    two = Two(meaning_distance(table, meaning), message_distance(table, message, padded, normalise), len(table))
    conventions = {"correlation": correlation, "meaning": two.x.name, "message": two.y.name, "pairs": pairs, "eos": eos}
    if two.y.name == "levenshtein":
        conventions |= {"padded": padded, "normalise": normalise}
    drawn, ordered = _which(pairs, len(table), seed)
    with shown(progress) as told:
        if drawn is not None:
            found, number = _of_listed(correlation, two, table, drawn, told)
        elif two.countable:
            counts = joint_counts(two, told, workers, _device(device, len(table)))
            found, number = _of_counts(correlation, counts, two, table, ordered)
        else:
            found, number = _of_listed(correlation, two, table, all_pairs(len(table), ordered), told)
    if drawn is not None:
        conventions["seed"] = seed
    return _score(found, number, table, conventions, sampled=drawn is not None)


def _which(pairs: str | int, rows: int, seed: int) -> tuple[Drawn | None, bool]:
    """The pairs that are drawn, if they are; and whether it is ordered ones, each row with itself too."""
    if pairs == "published":
        pairs = PUBLISHED_PAIRS if rows**2 > PUBLISHED_PAIRS else "ordered"
        ordered = True
    elif isinstance(pairs, str):
        if pairs not in PAIRS:
            raise unknown("choice of pairs", pairs, PAIRS, "A number draws so many.")
        ordered = pairs == "ordered"
    else:
        whole_number("number of pairs", pairs)
        ordered = False
    if isinstance(pairs, str) or rows < 2:
        return None, ordered
    draws = stream(seed, "pairs")
    left = draws.integers(rows, size=pairs)
    return (left, draws.integers(rows, size=pairs) if ordered else _another(left, rows, draws)), ordered


def _another(left: Rows, rows: int, draws: np.random.Generator) -> Rows:
    """For every row a different one."""
    return (left + draws.integers(1, rows, size=len(left))) % rows


def _device(asked: str, rows: int) -> str:
    """Where to count; torch is imported only where a GPU may be worth it."""
    worth_it = asked != "cpu" and (asked != "auto" or rows >= WORTH_A_GPU)
    return resolve_device(asked) if worth_it else "cpu"


def _of_counts(correlation: str, counts: Counts, two: Two, table: Table, ordered: bool) -> tuple[float, int]:
    """The correlation and the number of pairs, of the counts of all ordered ones."""
    assert two.x.values is not None
    assert two.y.values is not None
    x, rows = np.unique(two.x.values, return_inverse=True)
    y, columns = np.unique(two.y.values, return_inverse=True)
    merged = np.zeros((len(x), len(y)), dtype=np.int64)
    np.add.at(merged, (rows[:, None], columns), counts)  # two keys may mean one distance
    copies = np.bincount(table.drawn_from) if table.drawn_from is not None else np.ones(len(table), dtype=np.int64)
    own = int((copies**2).sum())  # a row with itself, or with a copy of itself, is at distance 0 in both
    merged[0, 0] -= 0 if ordered else own
    number = int(merged.sum()) // (1 if ordered else 2)
    return (pearson_of_counts(merged, x, y) if correlation == "pearson" else spearman_of_counts(merged)), number


def _of_listed(correlation: str, two: Two, table: Table, pairs: Drawn, progress: Progress | None) -> tuple[float, int]:
    """The correlation and the number of pairs, of pairs one by one."""
    from scipy.stats import rankdata

    left, right = pairs
    if table.drawn_from is not None:
        apart = table.drawn_from[left] != table.drawn_from[right]
        left, right = left[apart], right[apart]
    x, y = of_pairs(two, left, right, progress)
    if correlation == "spearman":
        x, y = rankdata(x), rankdata(y)
    return _pearson(x, y), len(left)


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return max(-1.0, min(1.0, float(np.corrcoef(x, y)[0, 1])))


def spearman_of_counts(counts: Counts) -> float:
    """Spearman correlation of two ordinal variables from their table of counts, with average ranks for ties."""
    ranks = []
    for axis in (1, 0):
        margin = counts.sum(axis)
        ranks.append(margin.cumsum() - (margin - 1) / 2)
    return pearson_of_counts(counts, *ranks)


def pearson_of_counts(counts: Counts, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson correlation of two variables from the table of counts of their values; NaN if one is constant.

    Args:
        counts: [values of x, values of y].
        x: the values that the rows of the table stand for.
        y: the values that its columns stand for.
    """
    margins = counts.sum(1), counts.sum(0)
    total = margins[0].sum()
    if total == 0 or min((margin > 0).sum() for margin in margins) < 2:
        return math.nan
    centred = [value - margin @ value / total for value, margin in zip((x, y), margins, strict=True)]
    spread = [float(margin @ value**2) for value, margin in zip(centred, margins, strict=True)]
    return max(-1.0, min(1.0, float(centred[0] @ counts @ centred[1]) / math.sqrt(spread[0] * spread[1])))


def _score(value: float, number: int, table: Table, conventions: Mapping[str, Any], sampled: bool = False) -> Score:
    details = {"pairs": number}
    if math.isnan(value):
        why = "all pairs of meanings, or all pairs of messages, are equally far apart" if number else "there is no pair"
        return Score("topsim", value, len(table), conventions, details, why=why)
    error = (1 - value**2) / math.sqrt(number) if sampled else None
    return Score(
        "topsim",
        value,
        len(table),
        conventions,
        details,
        error=error,
        error_of=f"{number} drawn pairs" if sampled else "",
    )
