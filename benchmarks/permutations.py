"""Measure permutation tests of topsim: `python benchmarks/permutations.py [--rows 5000] [--permutations 1000]`.

On a sample of shufdet at 5x10 (20 tokens), on one thread, it compares
(a) the plain way, that of scikit-bio's `mantel`: ranks of the listed distances, of which each permutation reorders rows
    and columns of one square table and takes the correlation of the two lists, by NumPy;
(b) icy without native code (ICY_NATIVE=off);
(c) icy.
(a) and (b) are measured on the first 20 of the permutations, and (c) on all. It asserts that all give the same values.
Prints a Markdown table with seconds for all permutations, and the peak memory of the process after (c), which runs first.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import replace

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np
from about import describe_versions
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from topsim import without_native

import icy
from icy.core import native
from icy.core.provenance import device_name
from icy.metrics import Table, permutation_test
from icy.metrics.significance import draw_permutations
from icy.metrics.topographic.permuted import permuted_topsim

FEW = 20  # permutations of the slow ways


def plain(table: Table, message: str, orders: NDArray[np.int32]) -> tuple[list[float], float]:
    """Return the values by the plain way (a), and the seconds that the permutations take once distances are listed."""
    messages = pdist(table.messages, "hamming" if message == "hamming" else Levenshtein.distance)
    x, y = (rankdata(distances) for distances in (pdist(table.meanings, "hamming"), messages))
    x, y = ((ranks - ranks.mean()) / np.linalg.norm(ranks - ranks.mean()) for ranks in (x, y))
    started, square = time.perf_counter(), squareform(y)
    values = [float(x @ squareform(square[order][:, order], checks=False)) for order in orders]
    return values, time.perf_counter() - started


def compare(table: Table, message: str, number: int) -> str:
    """Return a line of the table."""
    orders = draw_permutations(len(table), number, 0)[0]
    started, used = time.perf_counter(), time.process_time()
    test = permutation_test(table, permutations=number, message=message, workers=1)
    fast, used = time.perf_counter() - started, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with without_native():
        started = time.perf_counter()
        without = permuted_topsim(table, orders[:FEW], {"message": message, "workers": 1})
        slow = (time.perf_counter() - started) * number / FEW
    expected, seconds = plain(table, message, orders[:FEW])
    seconds *= number / FEW
    assert without is not None
    assert np.abs(without - test.values[:FEW]).max() < 1e-12
    assert np.abs(np.array(expected) - test.values[:FEW]).max() < 1e-9
    times = f"{seconds:.0f} | {slow:.0f} | {fast:.1f} | {used:.1f} | {seconds / fast:.0f} | {memory:.0f}"
    return f"| {message} | {len(table)} | {number} | {times} | {test.value:.4f} | {test.mean:.4f}±{test.sd:.4f} | {test.p:.4f} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--permutations", type=int, default=1000)
    arguments = parser.parse_args()
    language = icy.make_language("shufdet", "5x10", seed=123)
    chosen = np.random.default_rng(0).choice(language.space.size, arguments.rows, replace=False)
    sample = replace(Table.of(language).rows(chosen), drawn_from=None)
    code = native.in_use("icy.metrics.topographic.native", "NumPy")
    print(f"{device_name('cpu')}, one thread; {describe_versions()}; {code}\n")
    heads = ["distance", "rows", "permutations", "plain", "without native code", "icy", "CPU seconds", "plain to icy"]
    print("|", " | ".join([*heads, "memory, MB", "topsim", "by chance", "p"]), "|")
    print("|---|" + 11 * "---:|")
    for distance in ("hamming", "levenshtein"):
        print(compare(sample, distance, arguments.permutations), flush=True)
