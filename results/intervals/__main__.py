"""Coverage of 95 % intervals in simulations: `python -m results.intervals [--tries 400] [--workers 2]`.

Writes intervals.md: statistics of `icy.analysis` on simulated runs with known true values, under their own models and
under dependences that icy's measurements have. It takes about 6 minutes on two cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from icy.core.text import markdown_table
from results.intervals.runs import Ends, across, contrast, crossed, models, quotient, seeds, within
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_name("intervals.md")
MOST_FAILED = 0.5  # coverage is not reported if a larger share of tries has no interval

ALONE = {"cell": 0, "architecture": 0, "language": 0, "model": 1}
CELLS = {"cell": 1, "architecture": 0.5, "language": 0, "model": 0.5}
LANGUAGES = {"cell": 0.5, "architecture": 0.5, "language": 1, "model": 0.5}
FEW = {"count": 30, "true": 0.6, "noise": 0.8}
SHARED = {"count": 30, "true": 0.3, "noise": 1, "shared": 0.7}
GROUPS = {"count": 60, "true": 0.6, "noise": 0.8, "per_cell": 5}
CROSSED = {"cells": (5, 5, 3, 2, 2, 2, 2, 2), "grammars": 13, "seeds": 10, "true": 0.3, "part": "across"}
TRUE, RELIABLE = {"part": "disattenuated"}, {"part": "reliability"}
# Name, runs, tries as a share of --tries, function and its arguments.
CASES: tuple[tuple[str, str, float, Callable[..., Any], dict[str, Any]], ...] = (
    ("ratio of a model", "3 seeds", 2, seeds, {"count": 3}),
    ("", "5 seeds, 25 % cut", 2, seeds, {"count": 5, "cap": 0.67}),
    ("", "10 seeds, 25 % cut", 2, seeds, {"count": 10, "cap": 0.67}),
    ("quotient of two models (Welch, TOST)", "3 and 5 seeds", 2, quotient, {"ours": 3, "theirs": 5}),
    ("mean over models (mixed_effects)", "independent models", 1, models, ALONE),
    ("", "shared cells and architectures", 1, models, CELLS),
    ("", "the same three languages", 1, models, LANGUAGES),
    ("", "the same two languages", 1, models, LANGUAGES | {"languages": 2}),
    ("", "shared cells, 20 % cut", 0.4, models, CELLS | {"cap": 1.35}),
    ("", "shared cells, 40 % cut", 0.4, models, CELLS | {"cap": 0.4}),
    ("its deviation of cells (profile)", "shared cells and architectures", 0.25, models, CELLS | {"part": "cell"}),
    ("difference of two families", "independent models", 1, contrast, {"cell": 0}),
    ("", "shared cells", 1, contrast, {"cell": 1}),
    ("median over models (within_model_order)", "24 models, 5 grammars", 1, within, {"count": 24, "grammars": 5}),
    ("", "24 models, 12 grammars", 1, within, {"count": 24, "grammars": 12}),
    ("", "48 models that share 8 cells, 5 grammars", 1, within, {"count": 48, "grammars": 5, "cell": 2}),
    ("correlation across seeds (across_models)", "30 models, 2 seeds", 1, across, FEW),
    ("", "a shared concat run", 1, across, SHARED),
    ("", "a shared concat run, the same two languages", 1, across, SHARED | {"language": 1}),
    ("", "60 models that share 12 cells", 1, across, GROUPS),
    ("its disattenuated correlation", "30 models, 2 seeds", 1, across, FEW | TRUE),
    ("", "a shared concat run", 1, across, SHARED | {"noise": 0.8} | TRUE),
    ("", "60 models that share 12 cells", 1, across, GROUPS | TRUE),
    ("reliability of means", "30 models, 2 seeds", 1, across, FEW | RELIABLE),
    ("", "60 models that share 12 cells", 1, across, GROUPS | RELIABLE),
    ("mean correlation over models (crossed_correlations)", "23 models in 8 cells", 0.25, crossed, CROSSED),
    ("", "23 models in 8 cells, no correlation", 0.25, crossed, CROSSED | {"true": 0.0}),
    ("its correlation of interactions", "23 models in 8 cells", 0.25, crossed, CROSSED | {"part": "interaction"}),
)


def table_row(index: int, tries: int) -> list[str]:
    """Simulate the case with this index, and return its row of the table."""
    statistic, setting, share, case, arguments = CASES[index]
    count = int(share * tries)
    found = [case(np.random.default_rng([index, i]), **arguments) for i in range(count)]
    return [statistic, setting, str(count), *(coverage([(one[0], one[of]) for one in found]) for of in (1, 2))]


def coverage(found: Sequence[tuple[float, Ends]]) -> str:
    """Return as text the percentage of intervals that contain the truth, and of tries without an interval."""
    known = [(truth, ends) for truth, ends in found if np.isfinite(ends).all()]
    if len(known) < MOST_FAILED * len(found):
        return "-"
    share = float(np.mean([low <= truth <= high for truth, (low, high) in known]))
    error = math.sqrt(share * (1 - share) / len(known))
    without = 1 - len(known) / len(found)
    return f"{share:.1%} ± {error:.1%}" + (f" ({without:.0%} without one)" if without else "")


def main(words: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, words, tries=(400, "simulations of most rows"), workers=(2, "processes at once"))
    with threadpool_limits(1), ProcessPoolExecutor(options.workers) as pool:  # matrices are small
        rows = []
        for row in pool.map(table_row, range(len(CASES)), [options.tries] * len(CASES)):
            print(*row, sep=" | ", flush=True)
            rows.append(row)
    table = markdown_table(["interval of", "simulated runs", "tries", "holds the truth", "plain interval"], rows)
    PAGE.write_text(fill_template(PAGE, table=table, versions=describe_versions()))


if __name__ == "__main__":
    main()
