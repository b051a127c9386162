"""Measure how long topsim takes: `python -m benchmarks.topsim [--rows 5000] [--whole] [--device cuda]`.

On all pairs of a sample of shufdet at 5x10 (20 tokens), it compares
(a) the plain way of common toolkits: scipy's pdist of all pairs, which for Levenshtein calls a compiled edit distance
    for each pair, and scipy's spearmanr of the two lists;
(b) icy without native code (ICY_NATIVE=off), which counts both distances block by block, by NumPy and RapidFuzz;
(c) icy.
It asserts that all give the same number. With --whole, (b) and (c) also run on all 5 * 10^9 pairs of the 100,000
meanings, with the processor time, which other work on the machine hardly changes, and the peak memory of the process.
Prints Markdown tables with wall times in seconds, and ratios of one run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import icy
from icy.core import native
from icy.core.provenance import device_name, usable_cores
from icy.metrics import Table, topsim
from results.pages import describe_versions

ROUNDS = 3  # of the fast ways, the best of which counts


@contextlib.contextmanager
def without_native() -> Iterator[None]:
    """Switch native code off."""
    with patch.dict(os.environ, {native.SETTING: native.OFF}):
        yield


def plain(table: Table, message: str) -> float:
    """Return topsim by the plain way (a)."""
    meanings = pdist(table.meanings, "hamming")
    if message == "hamming":
        return float(spearmanr(meanings, pdist(table.messages, "hamming"))[0])
    return float(spearmanr(meanings, pdist(table.messages, Levenshtein.distance))[0])


def timed(function: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Return a function's result, and the seconds of its fastest call."""
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        value = function()
        best = min(best, time.perf_counter() - started)
    return value, best


def compare(table: Table, device: str) -> list[str]:
    """Return a line per distance."""
    lines = ["| distance | rows | plain | without native code | icy | plain to icy |", "|---|---:|---:|---:|---:|---:|"]
    for message in ("hamming", "levenshtein"):
        expected, slow = timed(lambda: plain(table, message), 1)  # noqa: B023
        with without_native():
            reference, off = timed(lambda: topsim(table, message=message, device=device).value, ROUNDS)  # noqa: B023
        found, fast = timed(lambda: topsim(table, message=message, device=device).value, ROUNDS)  # noqa: B023
        assert abs(expected - found) < 1e-9, (expected, found)
        assert reference == found
        lines.append(f"| {message} | {len(table)} | {slow:.2f} | {off:.3f} | {fast:.3f} | {slow / fast:.0f} |")
    return lines


def whole(language: icy.Language, device: str) -> list[str]:
    """Return a line per distance, on all pairs."""
    lines = ["| distance | pairs | code | seconds | CPU seconds | value | memory, MB |", "|---|---:|---|" + 4 * "---:|"]
    for code, setting in (("native", contextlib.nullcontext), ("without", without_native)):
        for message in ("hamming", "levenshtein"):
            started, used = time.perf_counter(), time.process_time()
            with setting():
                score = topsim(language, message=message, device=device)
            seconds, used = time.perf_counter() - started, time.process_time() - used
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            found = f"{seconds:.1f} | {used:.1f} | {score.value:.6f} | {memory:.0f}"
            lines.append(f"| {message} | {score.details['pairs']} | {code} | {found} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--whole", action="store_true", help="also all pairs of the 100,000 meanings")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    language = icy.make_language("shufdet", "5x10", seed=123)
    chosen = np.random.default_rng(0).choice(language.space.size, arguments.rows, replace=False)
    code = native.in_use("icy.metrics.topographic.native", "NumPy and RapidFuzz")
    print(f"{device_name(arguments.device)}, {usable_cores()} cores; {describe_versions()}; {code}\n")
    if arguments.whole:  # first, for the memory that it takes
        print(*whole(language, arguments.device), "", sep="\n")
    print(*compare(Table.of(language).rows(chosen), arguments.device), sep="\n")
