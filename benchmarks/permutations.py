"""Measure permutation tests of topsim: `python -m benchmarks.permutations [--rows 5000] [--permutations 1000]`.

On a sample of shufdet at 5x10 (20 tokens), on one thread, it compares
(a) the plain way, as in scikit-bio's `mantel`: each permutation reorders rows and columns of a square table of ranks,
    and takes the correlation with another list of ranks, by NumPy;
(b) icy without native code (ICY_NATIVE=off);
(c) icy.
(c) runs all permutations, with all parts of a test; (a) and (b) run the first few permutations, and (a) is
measured without its distances. It asserts that all give the same values. Prints a Markdown table with seconds of
processor time for all permutations, which other work on the machine hardly changes, the wall time of (c), and the peak
memory of the process until the end of (c).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

import icy
from benchmarks.harness import print_table
from benchmarks.topsim import without_native
from icy.core import native
from icy.core.machine import device_name
from icy.metrics import PermutationTest, Table, permutation_test
from icy.metrics.score import draw_permutations
from icy.metrics.topographic.permuted import permuted_topsim
from results.pages import describe_versions, read_options

DISTANCES = ("hamming", "levenshtein")
FEW = 5  # number of permutations to run by the slow ways (a) and (b)


def tested(table: Table, message: str, number: int) -> tuple[PermutationTest, float, float, float]:
    """Run a test by icy (c); return the test, its CPU seconds, its wall seconds, and the peak memory in MB."""
    started, used = time.perf_counter(), time.process_time()
    test = permutation_test(table, permutations=number, message=message, workers=1)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return test, used, seconds, memory


def plain(table: Table, message: str, orders: NDArray[np.int32]) -> tuple[list[float], float]:
    """Return the values by the plain way (a), and the CPU seconds of the permutations."""
    messages = pdist(table.messages, "hamming" if message == "hamming" else Levenshtein.distance)
    x, y = (rankdata(distances) for distances in (pdist(table.meanings, "hamming"), messages))
    x, y = ((ranks - ranks.mean()) / np.linalg.norm(ranks - ranks.mean()) for ranks in (x, y))
    square, used = squareform(y), time.process_time()
    values = [float(x @ squareform(square[order][:, order], checks=False)) for order in orders]
    return values, time.process_time() - used


def compare(table: Table, message: str, test: PermutationTest) -> tuple[float, float]:
    """Return the CPU seconds of the plain way and of icy without native code, for all permutations of a test."""
    orders = draw_permutations(len(table), FEW, 0)[0]
    expected, slow = plain(table, message, orders)
    with without_native():
        used = time.process_time()
        without = permuted_topsim(table, orders, {"message": message, "workers": 1})
        used = time.process_time() - used
    assert without is not None
    assert np.abs(without - test.values[:FEW]).max() < 1e-12
    assert np.abs(np.array(expected) - test.values[:FEW]).max() < 1e-9
    return slow * test.permutations / FEW, used * test.permutations / FEW


def rows(sample: Table, permutations: int) -> Iterator[tuple[object, ...]]:
    """Yield a row per distance. icy's tests run first, so that their memory can be measured."""
    tests = {distance: tested(sample, distance, permutations) for distance in DISTANCES}
    for distance, (test, used, seconds, memory) in tests.items():
        slow, off = compare(sample, distance, test)
        times = f"{slow:.0f}", f"{off:.0f}", f"{used:.1f}", f"{slow / used:.0f}", f"{seconds:.1f}", f"{memory:.0f}"
        found = f"{test.value:.4f}", f"{test.mean:.4f}±{test.sd:.4f}", f"{test.p:.4f}"
        yield distance, len(sample), permutations, *times, *found


def main() -> None:
    given = read_options(__doc__, rows=5000, permutations=1000)
    language = icy.make_language("shufdet", "5x10", seed=123)
    chosen = np.random.default_rng(0).choice(language.space.size, given.rows, replace=False)
    sample = replace(Table.of(language).rows(chosen), drawn_from=None)
    code = native.in_use("icy.metrics.topographic.native", "NumPy")
    print(f"{device_name('cpu')}, one thread; {describe_versions()}; {code}\n")
    columns = ["distance", "rows", "permutations", "plain", "without native code", "icy", "plain to icy", "icy, wall"]
    with threadpool_limits(1):
        print_table([*columns, "memory, MB", "topsim", "by chance", "p"], rows(sample, given.permutations))


if __name__ == "__main__":
    main()
