"""Topographic similarity after permutations of the messages: the values by chance of a Mantel test.

A permutation reorders the distances between messages and does not change them. So they are computed once, and each
permutation looks them up: O(N^2) per permutation, for any cost of the distance.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64, Shaped, UInt16
from numpy.typing import NDArray

from icy.core.machine import require_memory, usable_cores
from icy.core.progress import Report
from icy.core.types import Options
from icy.languages.table import Table

from . import native
from .distances import Distance, Keys, meaning_distance, message_distance
from .pairs import BLOCK, Counts, DistancePair, all_pairs, distances_of_pairs, in_order, joint_counts
from .topsim import pearson_of_counts, spearman_of_counts, topsim, which_pairs

MOST_CELLS = 2**16  # largest number of combinations of two distances to count; with more, distances are multiplied
KEYS_AT_ONCE = 2**17  # keys of meanings; they stay in a cache while all permutations are counted
COUNTS_AT_ONCE = 2**18  # numbers of pairs, by permutation and combination of distances
Permutations = Int32[NDArray[np.int32], "permutation batch"]  # the row of each meaning's message
Values = Float64[NDArray[np.float64], " permutation"]
Others = Int32[NDArray[np.int32], " pair"]  # the second row of each pair
XKeys = UInt16[NDArray[np.uint16], " pair"]
Starts = Int64[NDArray[np.int64], " start"]  # the index of the first pair of each row, and the number of pairs
CountPairs = Callable[[int, Starts, Others, XKeys], Counts]


class Codes(NamedTuple):
    """The distances that occur, numbered in ascending order.

    Attributes:
        values: the distances, [codes].
        of_key: number of the distance of each key, [keys]; 0 for keys that do not occur.
        pairs: number of pairs i < j with each distance, [codes].
    """

    values: Float64[NDArray[np.float64], " code"]
    of_key: Shaped[NDArray[Any], " key"]
    pairs: Int64[Counts, " code"]


def permuted_topsim(
    table: Table, permutations: Permutations, conventions: Options, progress: Report | None = None
) -> Values | None:
    """Return the value of `topsim` for each permutation of the messages, [permutations].

    Args:
        table: meanings and messages; no row may be a copy of another one (`Table.drawn_from`).
        permutations: the row of the message for each meaning, in each permutation, [permutations, N].
        conventions: arguments of `topsim`.
        progress: callback, called with the number of finished permutations and the total.

    Returns:
        The values of `topsim` on the permuted tables, up to rounding. None if pairs are drawn, or if distances are real
        numbers and each row is also compared with itself: then call `topsim` for each permutation.

    Raises:
        InvalidSettingError: the distances do not fit in memory: N^2 bytes (twice as many for more than 256 different
            distances of messages), or the memory of `topsim` and 12 N^2 bytes for real-valued distances.
    """
    given = {name: parameter.default for name, parameter in inspect.signature(topsim).parameters.items()}
    given |= conventions
    table = Table.of(table, eos=given["eos"])
    drawn, ordered = which_pairs(given["pairs"], len(table), given["seed"])
    if drawn is not None:
        return None
    x = meaning_distance(table, given["meaning"])
    two = DistancePair(x, message_distance(table, given["message"], given["padded"], given["normalise"]), len(table))
    correlation, workers = given["correlation"], given["workers"] or usable_cores()
    if two.countable:
        counts = joint_counts(two, workers=workers)
        codes = _codes(two.x, counts.sum(1)), _codes(two.y, counts.sum(0))
        if len(codes[0].values) * len(codes[1].values) <= MOST_CELLS:
            return _by_counts(correlation, two, codes, permutations, ordered, workers, progress)
    return None if ordered else _by_products(correlation, two, permutations, progress)


def _codes(distance: Distance, counts: Int64[Counts, " key"]) -> Codes:
    """Number the distances that occur, given the number of ordered pairs (also of a row and itself) of each key."""
    assert distance.values is not None
    values, codes = np.unique(distance.values[counts > 0], return_inverse=True)
    of_key = np.zeros(len(counts), dtype=np.uint8 if len(values) <= 2**8 else np.uint16)
    of_key[counts > 0] = codes
    pairs = np.zeros(len(values), dtype=np.int64)
    np.add.at(pairs, codes, counts[counts > 0])
    pairs[0] -= math.isqrt(int(counts.sum()))  # N: each row with itself
    return Codes(values, of_key, pairs // 2)


def _by_counts(
    correlation: str,
    two: DistancePair,
    codes: tuple[Codes, Codes],
    permutations: Permutations,
    ordered: bool,
    workers: int,
    progress: Report | None,
) -> Values:
    """Return the correlations from joint counts of the pairs i < j, as whole numbers in any order of counting.

    Pairs with the most frequent distance of meanings are not counted: their count is the total minus all other counts.
    """
    x, y = codes
    shape, common = (len(x.values), len(y.values)), int(x.pairs.argmax())
    table = _table_of_codes(two.y, y, two.rows)
    at_once = max(1, COUNTS_AT_ONCE // (shape[0] * shape[1]))
    found = np.empty(len(permutations))
    for first in range(0, len(permutations), at_once):
        some = permutations[first : first + at_once]
        count = _counting(table, some, shape[0] * shape[1])

        def count_rows(rows: slice, count: CountPairs = count) -> Counts:
            keys = x.of_key[two.x.block(rows, slice(rows.start, two.rows))]
            listed = (keys != common) & (np.arange(len(keys))[:, None] < np.arange(keys.shape[1]))  # i < j
            row, other = np.nonzero(listed)
            starts = row.searchsorted(np.arange(len(keys) + 1))
            of_x = keys[row, other].astype(np.uint16) * np.uint16(shape[1])
            return count(rows.start, starts, (other + rows.start).astype(np.int32), of_x)

        total = np.zeros((len(some), *shape), dtype=np.int64)
        with ThreadPoolExecutor(workers) as threads:
            for rows, counts in in_order(threads, count_rows, _rows_at_once(two.rows), 2 * workers):
                total += counts.reshape(total.shape)
                if progress is not None:
                    left = (1 - rows.stop / two.rows) ** 2  # share of the pairs
                    progress(first + int(len(some) * (1 - left)), len(permutations))
        total[:, common] = y.pairs - total.sum(1)
        total *= 2  # pairs in both orders, as topsim counts them
        total[:, 0, 0] += two.rows if ordered else 0  # each row with itself
        for place, counts in enumerate(total, first):
            spearman = correlation == "spearman"
            found[place] = spearman_of_counts(counts) if spearman else pearson_of_counts(counts, x.values, y.values)
    return found


def _table_of_codes(distance: Distance, codes: Codes, rows: int) -> Keys:
    """Return the code of the distance of every two rows, [N, N]."""
    what = f"A table of the distances between {rows:,} messages, which permutations of all pairs look up,"
    require_memory(rows * rows * codes.of_key.itemsize, what)
    found = np.empty((rows, rows), dtype=codes.of_key.dtype)
    for first in range(0, rows, BLOCK):
        some = slice(first, first + BLOCK)
        for other in range(0, rows, BLOCK):
            found[some, other : other + BLOCK] = codes.of_key[distance.block(some, slice(other, other + BLOCK))]
    return found


def _rows_at_once(rows: int) -> Iterator[slice]:
    first = 0
    while first < rows:
        stop = min(rows, first + max(1, KEYS_AT_ONCE // (rows - first)))
        yield slice(first, stop)
        first = stop


def _counting(y: Keys, permutations: Permutations, cells: int) -> CountPairs:
    """Return a function that counts sums of keys of listed pairs: `native.PermutedCounts.count`, or an equivalent."""
    if native.usable():
        return native.PermutedCounts(y, permutations, cells).count
    flat = y.ravel()

    def count(first: int, starts: Starts, others: Others, x: XKeys) -> Counts:
        row, found = np.arange(first, first + len(starts) - 1).repeat(np.diff(starts)), []
        for order in permutations.astype(np.int64):
            found.append(np.bincount(x + flat[order[row] * len(y) + order[others]], minlength=cells))
        return np.stack(found)

    return count


def _by_products(correlation: str, two: DistancePair, permutations: Permutations, progress: Report | None) -> Values:
    """Return the correlations from products of the listed distances or their ranks, in 64-bit floats."""
    from scipy.spatial.distance import squareform
    from scipy.stats import rankdata

    centered = []
    for distances in distances_of_pairs(two, *all_pairs(two.rows, ordered=False)):
        values = rankdata(distances) if correlation == "spearman" else distances
        centered.append(values - values.mean())
    x, y = centered
    scale = np.sqrt((x @ x) * (y @ y))
    square = squareform(y)
    found = np.empty(len(permutations))
    for place, order in enumerate(permutations):
        total, first = 0.0, 0
        for i, row in enumerate(order[:-1]):
            later = order[i + 1 :]
            total += x[first : first + len(later)] @ square[row].take(later)
            first += len(later)
        found[place] = total / scale
        if progress is not None:
            progress(place + 1, len(permutations))
    return found.clip(-1, 1)
