"""Whole rows: the time from a command to its last result, with start-up, languages and evaluations.

A row is 7 grammars x 5 seeds, and every replicate gets the same number of updates. icy runs as `icy probe` does, with
its own number of workers; the plain ways run in one process with all threads, and by hand in one process per core. All
evaluate at the same updates, on the same number of meanings. Run as a script, this module is one of these processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from benchmarks.courses import GRAMMARS, SPACE
from benchmarks.harness import Where
from benchmarks.steady import ICY, PLAIN, start, ways
from icy.config.settings import TrainingSettings
from icy.training.job import Outcome, Reading
from icy.training.language_job import LanguageJob


@dataclass(frozen=True)
class Row:
    """The training of a row.

    Attributes:
        model: name of the model.
        updates: updates of every replicate.
        seeds: number of seeds of every grammar.
        grammars: number of grammars.
    """

    model: str
    updates: int
    seeds: int = 5
    grammars: int = len(GRAMMARS)

    @property
    def replicates(self) -> list[tuple[str, int]]:
        """Grammars and seeds, in an order where the first few have different grammars."""
        return [(grammar, seed) for seed in range(self.seeds) for grammar in GRAMMARS[: self.grammars]]

    @property
    def settings(self) -> TrainingSettings:
        """Training settings; the last evaluation is at the last update."""
        return TrainingSettings(max_steps=self.updates)

    @property
    def checks(self) -> dict[int, int]:
        """Number of meanings of each evaluation, keyed by the updates before it; the last accuracy is reported."""
        found, at = {}, 0
        while at < self.updates:
            at = self.settings.next_check(at)
            found[at] = self.settings.check_size(at)
        return {**found, at: self.settings.evaluation_size}


@dataclass(frozen=True)
class Taken:
    """The time of one way.

    Attributes:
        seconds: seconds of the whole row, extrapolated if only some replicates were trained.
        trained: number of trained replicates.
    """

    seconds: float
    trained: int


def updates_for(minutes: float, rates: dict[str, float], replicates: int) -> int:
    """Return the updates per replicate for which plain training takes `minutes` minutes and icy a third of that.

    Args:
        minutes: minutes of plain training, one model after another.
        rates: updates per second by way.
        replicates: number of replicates of the row.
    """
    return max(1, math.ceil(60 * minutes * max(rates[PLAIN], rates[ICY] / 3) / replicates))


def time_plain(row: Row, way: str, minutes: float, rate: float, where: Where) -> Taken:
    """Time a plain way. It trains as many replicates as fit in `minutes` minutes, and at least one per process."""
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
    """Return the time of icy for a row, and its engine."""
    arguments = (ICY, row.model, row.updates, json.dumps([row.seeds, row.grammars]), where.device, where.engine)
    answers, seconds = _run([arguments], ways(where.device)[PLAIN][1])
    return Taken(seconds, len(row.replicates)), str(answers[0])


def _run(arguments: Sequence[tuple[object, ...]], threads: int) -> tuple[list[Any], float]:
    """Run a process of this script per entry of `arguments`, at once; return their outputs, and the total seconds."""
    began = time.perf_counter()
    with contextlib.ExitStack() as at_the_end:
        processes = [at_the_end.enter_context(start("benchmarks.whole", some, threads)) for some in arguments]
        for process in processes:
            at_the_end.callback(process.kill)  # if this process is interrupted
        answers = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f"Processes ended with the exit codes {[process.returncode for process in processes]}.")
    return [json.loads(answer) for answer in answers], time.perf_counter() - began


# -- in a process ------------------------------------------------------------------------------------------------------


class FixedJob(LanguageJob):
    """A row in which all replicates get the same number of updates: the largest number in the settings."""

    @classmethod
    def of(cls, job: Any) -> FixedJob:
        """Return the job of a row with this training."""
        return cls(**{one.name: getattr(job, one.name) for one in fields(job)})

    def train(self, report: Callable[[list[Reading]], None] | None = None) -> Iterator[Outcome]:
        """Train as `icy probe` does, but as if the target were reached at the last check."""
        from icy.training.engine import ProbeProgress, Probes
        from icy.training.lockstep import Lockstep

        class Fixed(Probes):
            def _reached(self, one: ProbeProgress) -> float | None:
                return float(self.updates) if self.updates >= self.settings.max_steps else None

        yield from Lockstep(Fixed(self)).outcomes(report)


def train_row(row: Row, where: Where) -> str:
    """Train a row by icy, as `icy probe` does; return the engine."""
    from icy.experiments.plan import make_plan
    from icy.experiments.run import run_plan
    from icy.training.probe_settings import ProbeRequest

    with tempfile.TemporaryDirectory() as out:
        request = ProbeRequest.asked(
            model=row.model,
            grammar=GRAMMARS[: row.grammars],
            meanings=SPACE,
            seeds=row.seeds,
            settings={"max_steps": row.updates},
            device=where.device,
            engine=where.engine,
            out=out,
        )
        plan = make_plan(request)
        rows = [replace(one, job=FixedJob.of(one.job)) for one in plan.rows]
        records = run_plan(replace(plan, rows=tuple(rows))).records
    done = [(record["reason"], record["steps"], len(record["curve"])) for record in records]
    expected = [("target", row.updates, len(row.checks))] * len(row.replicates)
    if done != expected:
        raise SystemExit(f"icy should train {expected}, but trained {done}.")
    return str(records[0]["engine"])


def train_plainly(row: Row, replicates: list[tuple[str, int]], where: Where) -> float:
    """Train some replicates the plain way, one after another; return the seconds without start-up."""
    import torch

    import icy
    from benchmarks import plain

    with torch.device(where.device):
        plain.Training(row.model, icy.make_language(GRAMMARS[0], SPACE), 0)  # the first optimizer imports half of torch
        began = time.perf_counter()
        for grammar, seed in replicates:
            plain.train(row.model, icy.make_language(grammar, SPACE, seed=seed), seed, row.updates, row.checks)
    return time.perf_counter() - began


def main() -> None:
    """Train the requested models, and print the result."""
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
