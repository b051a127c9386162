"""Topographic similarity (topsim): do similar meanings have similar messages?"""

import math

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.conventions import either_spelling
from icy.core.errors import require_known
from icy.core.machine import resolve_device
from icy.core.progress import Report, progress_to
from icy.core.register import register_metric
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.core.types import Options
from icy.languages.table import Table, Weights
from icy.metrics.score import Score, why_unvaried

from .distances import Distances, RowDistance, Rows, meaning_distance, message_distance
from .pairs import DistancePair, JointCounts, all_pairs, distances_of_pairs, joint_counts

CORRELATIONS = ("spearman", "pearson")
PAIRS = ("all", "ordered", "published")
PUBLISHED_PAIRS = 10_000
RowPairs = tuple[Rows, Rows]  # the two rows of each pair, [n] each
WORTH_A_GPU = 20_000  # number of rows; smaller tables are counted in less time than importing torch takes


@register_metric("topsim", source="Brighton and Kirby 2006; Lazaridou et al. 2018", aliases=("rho",), weighted=True,
                 heads=("message",))  # fmt: skip
@either_spelling
@standard_state()
def topsim(
    meanings: object,
    messages: object = None,
    *,
    correlation: str = "spearman",
    meaning: str | RowDistance = "hamming",
    message: str | RowDistance = "levenshtein",
    pairs: str | int = "all",
    padded: bool = False,
    normalise: str = "none",
    eos: object = None,
    seed: int = 0,
    device: str = "auto",
    workers: int | None = None,
    progress: bool | Report | None = None,
) -> Score:
    """Topographic similarity: correlation between distances of meanings and of their messages.

    Introduced by Brighton and Kirby 2006, and used for emergent languages since Lazaridou et al. 2018. Spearman
    correlation gives ties their average rank.

    Distances between discrete rows take few values. So the pairs are counted by both distances, which gives the exact
    correlation of all pairs without storing them: time is quadratic in the number of rows, memory is not. Real-valued
    distances are listed, up to the memory available.

    A row of weight w counts as w rows: with a row of weight v it forms v w pairs, and with itself w (w - 1) / 2 pairs
    at distance 0, or w^2 if pairs are "ordered". Weights with fractions are allowed only for "ordered" pairs, where
    their scale does not matter.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        correlation: "spearman" or "pearson".
        meaning: distance of meanings: "hamming"; "cosine", for discrete values the cosine distance of their
            concatenated one-hot vectors, which equals the share of attributes that differ; "euclidean", for values that
            are numbers; or a function of two meanings, [A] each.
        message: distance of messages: "levenshtein"; "hamming", position by position, with the end of a shorter message
            as one more token; "jaccard" of the sets of their tokens, or "cosine" of the counts of their tokens, in
            which two empty messages have distance 0, and an empty and another one 1; or a function of two messages
            (arrays of tokens).
        pairs: "all", every two different rows once; "ordered", all N^2 pairs, including each row with itself; a number,
            to draw that many of "all" with replacement; or "published", as in Icy22's program: "ordered" if N^2 is at
            most 10,000, and otherwise a draw of 10,000 of these.
        padded: for Levenshtein, compare messages padded to one length, as EGG does.
        normalise: divide the Levenshtein distance by nothing ("none"), by the "mean" of the two lengths, or by the
            larger one ("max").
        eos: the token that ends a message, a number or a name; see Table.of.
        seed: seed of the draw of pairs.
        device: device for counting pairs if both distances are Hamming: "cpu", "cuda", or "auto" for a GPU if there is
            one and the table is large.
        workers: number of threads; by default one per core.
        progress: a function, called with the number of finished pairs and the total. By default, work of more than ten
            seconds shows its progress on stderr, and with False never.

    Returns:
        A score in [-1, 1], with the number of pairs in its details. If pairs are drawn, its standard error is
        (1 - rho^2) / sqrt(n). NaN if one of the distances is the same for all pairs.

    Raises:
        InvalidSettingError: an invalid table (see Table.of), no meanings, Hamming distance of real numbers, Euclidean
            distance of names or of whole numbers more than 2^53 apart, a distance that is not finite, weights with
            fractions unless pairs are "ordered", too many pairs to list, or an unknown device.
        UnknownNameError: an unknown convention.

    Example:
        >>> from icy.metrics import topsim
        >>> topsim([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"]).value
        1.0
    """
    require_known("correlation", correlation, CORRELATIONS)
    table = Table.of(meanings, messages, eos=eos)
    given, weights, table = len(table), *_weighted(table, pairs)
    by_meaning, by_message = meaning_distance(table, meaning), message_distance(table, message, padded, normalise)
    two = DistancePair(by_meaning, by_message, len(table), weights)
    conventions = {"correlation": correlation, "meaning": two.x.name, "message": two.y.name, "pairs": pairs, "eos": eos}
    if two.y.name == "levenshtein":
        conventions |= {"padded": padded, "normalise": normalise}
    drawn, ordered = which_pairs(pairs, len(table), seed)
    with progress_to(progress, "pairs of topsim") as report:
        if drawn is not None:
            found, number = _of_listed(correlation, two, table, drawn, report)
        elif len(table) == 1 and two.weights is None:  # a long message has a slow distance from itself
            found, number = math.nan, int(ordered)
        elif two.countable:
            # Import torch only if a GPU may be worth it.
            worth_it = device != "cpu" and (device != "auto" or len(table) >= WORTH_A_GPU)
            counts = joint_counts(two, report, workers, resolve_device(device) if worth_it else "cpu")
            found, number = _of_counts(correlation, counts, two, table, ordered)
        else:
            found, number = _of_listed(correlation, two, table, all_pairs(len(table), ordered), report, ordered)
    if drawn is not None:
        conventions["seed"] = seed
    return _score(found, number, given, table, conventions, sampled=drawn is not None)


def _weighted(table: Table, pairs: str | int) -> tuple[Weights | None, Table]:
    """Return the weights of rows and the table. Fractions get the mean 1; rows are repeated if pairs are drawn."""
    if pairs == "all":
        table.require_whole_weights("topsim of all pairs", 'give counts of rows, or take pairs="ordered"')
    elif pairs != "ordered":
        table = table.repeated("topsim of drawn pairs")
    weights = table.weights
    if weights is not None and not table.has_whole_weights:
        weights = weights / weights.mean()
    return weights, table


def spearman_of_counts(counts: JointCounts) -> float:
    """Return the Spearman correlation of two ordinal variables from their joint counts, with average ranks for ties."""
    ranks = []
    for axis in (1, 0):
        margin = counts.sum(axis)
        ranks.append(margin.cumsum() - (margin - 1) / 2)
    return pearson_of_counts(counts, *ranks)


def pearson_of_counts(
    counts: JointCounts, x: Float64[NDArray[np.float64], " x_key"], y: Float64[NDArray[np.float64], " y_key"]
) -> float:
    """Return the Pearson correlation of two variables from their joint counts; NaN if one is constant.

    Args:
        counts: [values of x, values of y].
        x: the value of each row of the counts.
        y: the value of each column.
    """
    margins = counts.sum(1), counts.sum(0)
    total = margins[0].sum()
    if total == 0 or min((margin > 0).sum() for margin in margins) < 2:
        return math.nan
    centered = [value - margin @ value / total for value, margin in zip((x, y), margins, strict=True)]
    spread = [float(margin @ value**2) for value, margin in zip(centered, margins, strict=True)]
    return max(-1.0, min(1.0, float(centered[0] @ counts @ centered[1]) / math.sqrt(spread[0] * spread[1])))


def which_pairs(pairs: str | int, rows: int, seed: int) -> tuple[RowPairs | None, bool]:
    """Return the drawn pairs (None for all), and whether pairs are ordered and include each row with itself."""
    if pairs == "published":
        pairs = PUBLISHED_PAIRS if rows**2 > PUBLISHED_PAIRS else "ordered"
        ordered = True
    elif isinstance(pairs, str):
        require_known("choice of pairs", pairs, PAIRS, "A number draws that many pairs.")
        ordered = pairs == "ordered"
    else:
        whole_number("number of pairs", pairs)
        ordered = False
    if isinstance(pairs, str) or rows < 2:
        return None, ordered
    draws = stream(seed, "pairs")
    left = draws.integers(rows, size=pairs)
    return (left, draws.integers(rows, size=pairs) if ordered else _draw_other_rows(left, rows, draws)), ordered


def _draw_other_rows(left: Rows, rows: int, draws: np.random.Generator) -> Rows:
    """Draw for every row another row."""
    return (left + draws.integers(1, rows, size=len(left))) % rows


def _of_counts(
    correlation: str, counts: JointCounts, two: DistancePair, table: Table, ordered: bool
) -> tuple[float, int]:
    """Return the correlation and the number of pairs, from the counts of all ordered pairs."""
    assert two.x.values is not None
    assert two.y.values is not None
    x, rows = np.unique(two.x.values, return_inverse=True)
    y, columns = np.unique(two.y.values, return_inverse=True)
    merged = np.zeros((len(x), len(y)), dtype=counts.dtype)
    np.add.at(merged, (rows[:, None], columns), counts)  # two keys may have the same distance
    # A row and itself, or a copy of itself, have distance 0 in both; of rows with weights, each copy and itself.
    copies = np.bincount(table.drawn_from)[table.drawn_from] if table.drawn_from is not None else np.ones(len(table))
    own = int((copies if two.weights is None else copies * two.weights).sum())
    merged[0, 0] -= 0 if ordered else own
    number = round(merged.sum()) // (1 if ordered else 2)
    return (pearson_of_counts(merged, x, y) if correlation == "pearson" else spearman_of_counts(merged)), number


def _of_listed(
    correlation: str,
    two: DistancePair,
    table: Table,
    pairs: RowPairs,
    progress: Report | None,
    ordered: bool = True,
) -> tuple[float, int]:
    """Return the correlation and the number of pairs, from the distances of listed pairs."""
    from scipy.stats import rankdata

    left, right = pairs
    times = None
    if two.weights is not None:
        left, right, times = _weighted_pairs(two.weights, table, left, right, ordered)
    elif table.drawn_from is not None:
        apart = table.drawn_from[left] != table.drawn_from[right]
        left, right = left[apart], right[apart]
    x, y = distances_of_pairs(two, left, right, progress)
    if correlation == "spearman":
        x, y = (rankdata(one) if times is None else _weighted_ranks(one, times) for one in (x, y))
    return _pearson(x, y, times), len(left) if times is None else round(times.sum())


def _weighted_pairs(
    weights: Weights, table: Table, left: Rows, right: Rows, ordered: bool
) -> tuple[Rows, Rows, Distances]:
    """Return pairs of weighted rows, and how often each counts, [n] each; a row also forms pairs with its copies."""
    if not ordered:
        own = np.arange(len(table))
        left, right = np.concatenate([left, own]), np.concatenate([right, own])
    times = weights[left] * weights[right].astype(float)
    if not ordered or (table.drawn_from is not None and table.has_whole_weights):  # a copy has no pair with itself
        source = np.arange(len(table)) if table.drawn_from is None else table.drawn_from
        times -= np.where(source[left] == source[right], weights[left], 0)
    if not ordered:
        times[left == right] /= 2
    some = times > 0
    return left[some], right[some], times[some]


def _weighted_ranks(values: Distances, times: Distances) -> Distances:
    """Return average ranks of values that occur several times each, [n]."""
    codes = np.unique(values, return_inverse=True)[1]
    counts = np.bincount(codes, times)
    return (counts.cumsum() - (counts - 1) / 2)[codes]


def _pearson(x: Distances, y: Distances, times: Distances | None) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    if times is None:
        return max(-1.0, min(1.0, float(np.corrcoef(x, y)[0, 1])))
    spread = np.cov(x, y, aweights=times)
    return max(-1.0, min(1.0, float(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))))


def _score(value: float, number: int, rows: int, table: Table, conventions: Options, sampled: bool = False) -> Score:
    details = {"pairs": number}
    if math.isnan(value):
        alike = "all pairs of meanings, or all pairs of messages, are equally far apart"
        why = why_unvaried(table.factors) or (alike if number else "there are no pairs")
        return Score("topsim", value, rows, conventions, details, why=why)
    error = (1 - value**2) / math.sqrt(number) if sampled else None
    error_of = f"{number} drawn pairs" if sampled else ""
    return Score("topsim", value, rows, conventions, details, error=error, error_of=error_of)
