"""Count pairs of rows by their two distances, block by block on all cores, without listing the pairs."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32, Int64, Real
from numpy.typing import NDArray

from icy.core.machine import require_memory, usable_cores
from icy.core.progress import Report
from icy.languages.table import Weights

from . import native
from .distances import WIDEST, Distance, Distances, Hamming, Keys, Rows

BLOCK = 1024  # rows on either side of a block; a block fits the caches
MOST_CELLS = 2**22  # cells of the table of counts; with more, pairs of rows are listed
LISTED_AT_ONCE = 2**20
ROWS_AT_ONCE = 4096  # on a GPU
BYTES_PER_LISTED_PAIR = 80  # two distances, two ranks, and work memory for sorting
Counts = NDArray[np.int64]
JointCounts = Real[NDArray[Any], "x_key y_key"]
Task = TypeVar("Task")
Found = TypeVar("Found")


@dataclass(frozen=True)
class DistancePair:
    """The two distances between the rows of a table that topsim correlates.

    Attributes:
        x: distance of meanings.
        y: distance of messages.
        rows: number of rows, N.
        weights: number of times each row counts, [N]; None for once. The weight of a pair is the product of its rows'.
    """

    x: Distance
    y: Distance
    rows: int
    weights: Weights | None = None

    @property
    def countable(self) -> bool:
        """Whether both distances have few enough values to count pairs by value."""
        if self.x.values is None or self.y.values is None:
            return False
        return len(self.x.values) * len(self.y.values) <= MOST_CELLS


def joint_counts(
    two: DistancePair, progress: Report | None = None, workers: int | None = None, device: str = "cpu"
) -> JointCounts:
    """Count the ordered pairs of rows by their two distances, including each row with itself.

    Args:
        two: distances that are countable.
        progress: callback, called with the number of counted pairs and the total.
        workers: number of threads; by default one per core.
        device: device for counting if both are Hamming distances; devices other than "cpu" require torch.

    Returns:
        The number of pairs with each combination of keys, [keys of x, keys of y]: integers, or with weights their sums
        as floats, which are exact while the pairs of repeated rows are fewer than 2^53.
    """
    assert two.x.values is not None
    assert two.y.values is not None
    shape = len(two.x.values), len(two.y.values)
    unweighted = two.weights is None
    on_gpu = unweighted and device != "cpu"
    if on_gpu and isinstance(two.x, Hamming) and isinstance(two.y, Hamming) and _narrow(two.x, two.y):
        return histogram_on(device, *_factors(two.x, two.y), shape[0] * shape[1], progress).reshape(shape)
    cells = shape[0] * shape[1]
    kind: Any = np.uint8 if cells <= 2**8 else np.uint16 if cells <= 2**16 else np.uint32
    total, done = np.zeros(cells, dtype=np.int64 if unweighted else np.float64), 0

    def count(block: tuple[slice, slice]) -> tuple[NDArray[Any], int]:
        found: Keys = two.x.block(*block).astype(kind, copy=False)
        found *= kind(shape[1])
        found += two.y.block(*block).astype(kind, copy=False)
        if two.weights is None:
            counts = native.count_keys(found, cells) if native.usable() else np.bincount(found.ravel(), minlength=cells)
            return counts, found.size
        times = np.outer(*(two.weights[rows].astype(float) for rows in block))
        return np.bincount(found.ravel(), times.ravel(), cells), found.size

    whole, rest = divmod(two.rows, BLOCK)
    slices = [slice(start, min(start + BLOCK, two.rows)) for start in range(0, two.rows, BLOCK)]
    blocks = ((left, right) for place, left in enumerate(slices) for right in slices[place:])
    pairs = (two.rows**2 + whole * BLOCK**2 + rest**2) // 2  # blocks on the diagonal are counted in both orders
    workers = workers or usable_cores()
    with ThreadPoolExecutor(workers) as threads:
        for (left, right), (counts, size) in in_order(threads, count, blocks, 2 * workers):
            total += counts if left == right else 2 * counts
            done += size
            if progress is not None:
                progress(done, pairs)
    return total.reshape(shape)


def all_pairs(rows: int, ordered: bool) -> tuple[Rows, Rows]:
    """Return the two rows of every pair, [pairs] each.

    Args:
        rows: number of rows, N.
        ordered: whether to return all N^2 pairs, including each row with itself, instead of every two rows once.

    Raises:
        InvalidSettingError: the pairs and their distances do not fit in memory.
    """
    pairs = rows * rows if ordered else rows * (rows - 1) // 2
    what = f"A list of the {pairs:,} pairs of {rows:,} rows, for distances that are real numbers,"
    require_memory(pairs * BYTES_PER_LISTED_PAIR, what)
    if not ordered:
        left, right = np.triu_indices(rows, 1)
        return left, right
    index = np.arange(rows)
    return index.repeat(rows), np.tile(index, rows)


def distances_of_pairs(
    two: DistancePair, left: Rows, right: Rows, progress: Report | None = None
) -> tuple[Distances, Distances]:
    """Return both distances of n listed pairs of rows, [n] each."""
    found = np.empty((2, len(left)))
    for first in range(0, len(left), LISTED_AT_ONCE):
        some = slice(first, first + LISTED_AT_ONCE)
        for row, distance in zip(found, (two.x, two.y), strict=True):
            row[some] = distance.of_pairs(left[some], right[some])
        if progress is not None:
            progress(min(some.stop, len(left)), len(left))
    return found[0], found[1]


def in_order(
    threads: ThreadPoolExecutor, function: Callable[[Task], Found], tasks: Iterable[Task], ahead: int
) -> Iterator[tuple[Task, Found]]:
    """Yield each task with its result, in order; at most `ahead` tasks wait, for memory and for Ctrl-C."""
    waiting = []
    for task in tasks:
        waiting.append((task, threads.submit(function, task)))
        if len(waiting) > ahead:
            first, future = waiting.pop(0)
            yield first, future.result()
    for task, future in waiting:
        yield task, future.result()


def _narrow(x: Hamming, y: Hamming) -> bool:
    """Return whether to count by products of one-hot vectors, which are exact in float32 below 2^24 cells."""
    return x.one_hot_width + y.one_hot_width <= WIDEST


def _factors(x: Hamming, y: Hamming) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return two matrices [N, D]. Entry (i, j) of `a @ b.T` is a number for the pair of distances of rows i and j."""
    width = np.float32(len(y.values))
    return np.concatenate([x.one_hot * width, y.one_hot], 1), np.concatenate([x.one_hot, y.one_hot], 1)


def histogram_on(
    device: str,
    left: Float32[NDArray[np.float32], "batch width"],
    right: Float32[NDArray[np.float32], "batch width"],
    cells: int,
    progress: Report | None = None,
) -> Int64[NDArray[np.int64], "cells={cells}"]:
    """Count each whole number in the product of two tables, left @ right.T, which is symmetric.

    Args:
        device: any device of torch, such as "cuda".
        left: [N, D] whole numbers.
        right: [N, D] whole numbers.
        cells: greater than any number in the product.
        progress: callback, called with the number of counted pairs and the total.

    Returns:
        The count of each number from 0, [cells].
    """
    import torch

    # Exact up to 2^24 in float32, also if products use TF32: its 11 bits hold ones and the factor of `left`.
    one, two = (torch.from_numpy(table).to(device) for table in (left, right))
    counts = torch.zeros(cells, dtype=torch.int64, device=device)
    half, width = len(one), ROWS_AT_ONCE
    for i in range(0, half, width):
        for j in range(i, half, width):
            found = torch.bincount((one[i : i + width] @ two[j : j + width].T).int().flatten(), minlength=cells)
            counts += found if i == j else 2 * found
        if progress is not None:
            progress(min(i + width, half) * half, half * half)
    return counts.cpu().numpy()
