"""Whole rows: the time from a command to its last result, with start-up, languages and evaluations.

A row is 7 grammars x 5 seeds, and every replicate gets the same number of updates. icy runs as `icy probe` does, with
the workers that it chooses; the plain ways in one process with all threads, and by hand in one process a core. All
evaluate at the same updates, on as many meanings. As a script, this is one of their processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.steady import GRAMMARS, ICY, PLAIN, SPACE, Where, start, ways
from icy.config.settings import TrainingSettings
from icy.training.job import Outcome, Reading
from icy.training.probe_job import ProbeJob


@dataclass(frozen=True)
class Row:
    """What is trained.

    Attributes:
        model: its name.
        updates: of every replicate.
        seeds: of every grammar.
        grammars: how many.
    """

    model: str
    updates: int
    seeds: int = 5
    grammars: int = len(GRAMMARS)

    @property
    def replicates(self) -> list[tuple[str, int]]:
        """Grammars and seeds, so ordered that the first few have different grammars."""
        return [(grammar, seed) for seed in range(self.seeds) for grammar in GRAMMARS[: self.grammars]]

    @property
    def settings(self) -> TrainingSettings:
        """Settings whose grid of checks ends with the last update."""
        return TrainingSettings(max_steps=self.updates)

    @property
    def checks(self) -> dict[int, int]:
        """Meanings of every evaluation, by the updates before it; the last is the one that is reported."""
        found, at = {}, 0
        while at < self.updates:
            at = self.settings.next_check(at)
            found[at] = self.settings.check_size(at)
        return {**found, at: self.settings.evaluation_size}


@dataclass(frozen=True)
class Taken:
    """How long a way took.

    Attributes:
        seconds: of the whole row; if not all replicates were trained, their time is that of those that were.
        trained: number of replicates that were.
    """

    seconds: float
    trained: int


def updates_for(minutes: float, rates: dict[str, float], replicates: int) -> int:
    """Return the updates of each replicate with which plain training takes so many minutes, and icy a third of them.

    Args:
        minutes: of one model after another.
        rates: updates a second by way.
        replicates: of the row.
    """
    return max(1, math.ceil(60 * minutes * max(rates[PLAIN], rates[ICY] / 3) / replicates))


def time_plain(row: Row, way: str, minutes: float, rate: float, where: Where) -> Taken:
    """Time a plain way; it trains as many replicates as it can in about so many minutes, and at least one a process."""
    processes, threads = ways(where.device)[way]
    count = len(row.replicates)
    each = max(1, round(60 * minutes * rate / row.updates / processes))
    some = row.replicates[: each * processes]
    parts = [part for place in range(processes) if (part := some[place::processes])]
    arguments = [(PLAIN, row.model, row.updates, json.dumps(part), where.device, where.engine) for part in parts]
    answers, seconds = _run(arguments, threads)
    training = max(answers)
    return Taken(seconds - training + training * count / len(some), len(some))


def time_icy(row: Row, where: Where) -> tuple[Taken, str]:
    """Time icy; return its engine too."""
    arguments = (ICY, row.model, row.updates, json.dumps([row.seeds, row.grammars]), where.device, where.engine)
    answers, seconds = _run([arguments], ways(where.device)[PLAIN][1])
    return Taken(seconds, len(row.replicates)), str(answers[0])


def _run(arguments: Sequence[tuple[object, ...]], threads: int) -> tuple[list[Any], float]:
    """Run this script with all of these arguments at once; return what each says, and the seconds until the last."""
    began = time.perf_counter()
    with contextlib.ExitStack() as at_the_end:
        processes = [at_the_end.enter_context(start("benchmarks.whole", some, threads)) for some in arguments]
        for process in processes:
            at_the_end.callback(process.kill)  # if this one is interrupted
        answers = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"Processes ended with the exit codes {[process.returncode for process in processes]}.")
    return [json.loads(answer) for answer in answers], time.perf_counter() - began


# -- in a process ------------------------------------------------------------------------------------------------------


class FixedJob(ProbeJob):
    """A row whose replicates all get as many updates as the settings allow, in place of what concat takes."""

    def train(self, report: Callable[[list[Reading]], None] | None = None) -> Iterator[Outcome]:
        """Train as `icy probe` does, but take the last check for the one that reached the target."""
        from icy.training.engine import Run

        class Fixed(Run):
            def _reached(self, reading: Reading) -> float | None:
                return float(reading.steps) if reading.steps >= self.settings.max_steps else None

        yield from Fixed(self).go(report)


def train_row(row: Row, where: Where) -> str:
    """Train a row by icy, as `icy probe` does; return the engine."""
    from icy.config.specs import ProbeSpec
    from icy.experiments.plan import make_plan
    from icy.experiments.run import run_plan

    with tempfile.TemporaryDirectory() as out:
        spec = ProbeSpec.asked(
            model=row.model,
            grammar=GRAMMARS[: row.grammars],
            meanings=SPACE,
            seeds=row.seeds,
            settings={"max_steps": row.updates},
            device=where.device,
            engine=where.engine,
            out=out,
        )
        plan = make_plan(spec)
        rows = [replace(one, job=FixedJob(**vars(one.job))) for one in plan.rows]
        records = run_plan(replace(plan, rows=tuple(rows))).records
    done = [(record["reason"], record["steps"], len(record["curve"])) for record in records]
    expected = [("target", row.updates, len(row.checks))] * len(row.replicates)
    if done != expected:
        raise SystemExit(f"icy was to train {expected}, but trained {done}.")
    return str(records[0]["engine"])


def train_plainly(row: Row, replicates: list[tuple[str, int]], where: Where) -> float:
    """Train some replicates the plain way, one after another; return the seconds without start-up."""
    import torch

    import icy
    from benchmarks import plain

    with torch.device(where.device):
        plain.Training(row.model, icy.make_language(GRAMMARS[0], SPACE), 0)  # the first optimiser imports half of torch
        began = time.perf_counter()
        for grammar, seed in replicates:
            plain.train(row.model, icy.make_language(grammar, SPACE, seed=seed), seed, row.updates, row.checks)
    return time.perf_counter() - began


def main() -> None:
    """Train what is asked for, and say what came of it."""
    parser = argparse.ArgumentParser()
    for name, kind in (("way", str), ("model", str), ("updates", int), ("what", json.loads), ("device", str)):
        parser.add_argument(name, type=kind)
    parser.add_argument("engine")
    given = parser.parse_args()
    where = Where(given.device, given.engine)
    if given.way == ICY:
        print(json.dumps(train_row(Row(given.model, given.updates, *given.what), where)))
    else:
        print(json.dumps(train_plainly(Row(given.model, given.updates), given.what, where)))


if __name__ == "__main__":
    main()
