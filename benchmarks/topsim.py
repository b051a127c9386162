"""Measure the time of topsim: `python -m benchmarks.topsim [--rows 5000] [--whole] [--device cuda]`.

On all pairs of a sample of shufdet at 5x10 (20 tokens), it compares
(a) the plain way of common toolkits: scipy's pdist of all pairs, which for Levenshtein calls a compiled edit distance
    for each pair, and scipy's spearmanr of the two lists;
(b) icy without native code (ICY_NATIVE=off), which counts both distances block by block, by NumPy and RapidFuzz;
(c) icy.
It asserts that all results are equal. With --whole, (b) and (c) also run on all 5 * 10^9 pairs of the 100,000
meanings, with the processor time, which other work on the machine hardly changes, and the peak memory of the process.
Prints Markdown tables with wall times in seconds, and ratios of one run.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

import icy
from benchmarks.harness import fastest, print_table
from icy.core import native
from icy.core.machine import device_name, usable_cores
from icy.metrics import Table, topsim
from results.pages import describe_versions, read_options

ROUNDS = 3  # rounds of the fast ways; the best one counts


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


def compare(table: Table, device: str) -> Iterator[tuple[object, ...]]:
    """Yield a row per distance: the seconds of each way, and the ratio of (a) to (c)."""
    for message in ("hamming", "levenshtein"):

        def of_icy(message: str = message) -> float:
            return topsim(table, message=message, device=device).value

        expected, slow = fastest(lambda: plain(table, message))  # noqa: B023
        with without_native():
            reference, off = fastest(of_icy, ROUNDS)
        found, fast = fastest(of_icy, ROUNDS)
        assert abs(expected - found) < 1e-9, (expected, found)
        assert reference == found
        yield message, len(table), f"{slow:.2f}", f"{off:.3f}", f"{fast:.3f}", f"{slow / fast:.0f}"


def whole(language: icy.Language, device: str) -> Iterator[tuple[object, ...]]:
    """Yield a row per distance and way, on all pairs of meanings."""
    for code, setting in (("native", contextlib.nullcontext), ("without", without_native)):
        for message in ("hamming", "levenshtein"):
            used = time.process_time()
            with setting():
                score, seconds = fastest(lambda: topsim(language, message=message, device=device))  # noqa: B023
            used = time.process_time() - used
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            found = f"{seconds:.1f}", f"{used:.1f}", f"{score.value:.6f}", f"{memory:.0f}"
            yield message, score.details["pairs"], code, *found


def main() -> None:
    given = read_options(__doc__, rows=5000, whole=(False, "also all pairs of the 100,000 meanings"), device="cpu")
    language = icy.make_language("shufdet", "5x10", seed=123)
    chosen = np.random.default_rng(0).choice(language.space.size, given.rows, replace=False)
    code = native.in_use("icy.metrics.topographic.native", "NumPy and RapidFuzz")
    print(f"{device_name(given.device)}, {usable_cores()} cores; {describe_versions()}; {code}\n")
    if given.whole:  # first, so that its memory can be measured
        print_table(
            ["distance", "pairs", "code", "seconds", "CPU seconds", "value", "memory, MB"],
            whole(language, given.device),
        )
        print()
    print_table(
        ["distance", "rows", "plain", "without native code", "icy", "plain to icy"],
        compare(Table.of(language).rows(chosen), given.device),
    )


if __name__ == "__main__":
    main()
