"""Shared parts of timing scripts: measuring rates, measuring several ways in turn, and printing tables.

A script states its workload and the columns of its table. These scripts do not use pyperf or asv. Neither is in the
package index that this project is built from. Both time one function in fresh processes and save the result in their
own file, while these scripts time several ways in turn, under the same load of the machine, compare their numbers, and
write the ratios into a page. So pyperf or asv would only replace the 20 lines of `rate` and `in_turn`, and add a file
format and a configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeVar

from icy.core.text import markdown_table

T = TypeVar("T")
Clock = Callable[[], float]


@dataclass(frozen=True)
class Where:
    """Device, engine and stack of a measuring process.

    Attributes:
        device: where to train.
        engine: engine of icy.
        stack: probes in each of icy's processes.
        clock: "perf_counter", or "process_time", which other work on the machine hardly changes, for one thread.
    """

    device: str = "cpu"
    engine: str = "auto"
    stack: int = 16
    clock: str = "perf_counter"


def waiting(device: str) -> Callable[[], None]:
    """Return a function that waits for the work of a device to end."""
    if device == "cpu":
        return lambda: None
    from icy.core import gpu  # imports torch, so the number of threads must be set before

    return partial(gpu.wait, device)


def rate(act: Callable[[], object], seconds: float, clock: Clock = time.perf_counter, least: int = 1) -> float:
    """Return the number of calls of `act` per second, measured for `seconds` and at least `least` calls."""
    done, began = 0, clock()
    while (passed := clock() - began) < seconds or done < least:
        act()
        done += 1
    return done / passed


def fastest(act: Callable[[], T], rounds: int = 1) -> tuple[T, float]:
    """Call a function `rounds` times; return its result, and the seconds of the fastest call."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        result = act()
        best = min(best, time.perf_counter() - began)
    return result, best


def in_turn(ways: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Call several measuring functions in turn, and return the values of each over all rounds."""
    found: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            found[name].append(measure())
    return found


def matching(names: Iterable[str], patterns: str) -> list[str]:
    """Return the names that match any of the patterns, separated by commas."""
    found = [name for name in names if any(fnmatchcase(name, one) for one in patterns.split(","))]
    if patterns and not found:
        raise SystemExit(f"No row matches {patterns!r}; rows: {', '.join(names)}.")
    return found


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], text: int = 1) -> None:
    """Print a Markdown table, each row as soon as it is measured. Columns after the first `text` are numbers."""
    print(markdown_table(columns, [], numbers=range(text, len(columns))).strip())
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)
