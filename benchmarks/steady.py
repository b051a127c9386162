"""Steady state: updates per second of all cores together; only updates are timed.

Each way of training runs in its own processes. All processes are prepared first, and then measured in turn, several
times, so that other load on the machine is the same for all ways. Run as a script, this module is one of the processes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.courses import make_course
from benchmarks.harness import Where
from icy.core.machine import usable_cores

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DRAWN_AT_ONCE = 64  # number of batches that icy draws at once
PLAIN, HAND, ICY, BOUND = "one after another", "by hand", "icy", "bound"


def ways(device: str) -> dict[str, tuple[int, int]]:
    """Return the number of processes, and of threads per process, of each way."""
    cores = usable_cores()
    if device != "cpu":
        return {PLAIN: (1, cores), ICY: (1, cores), BOUND: (1, 1)}
    return {PLAIN: (1, cores), HAND: (cores, 1), ICY: (cores, 1), BOUND: (cores, 1)}


def start(module: str, arguments: Sequence[object], threads: int) -> subprocess.Popen[str]:
    """Start a Python process with `threads` threads, set in the environment before libraries are imported."""
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "ICY_PROGRESS": "0"}
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


class Crew:
    """The processes that train in one way.

    Crews prepare at the same time; `ready` waits for this crew.

    Args:
        way: PLAIN, HAND, ICY or BOUND.
        model: model to train.
        processes: number of processes.
        threads: threads of each process.
        where: device, engine and stack.
    """

    def __init__(self, way: str, model: str, processes: int, threads: int, where: Where) -> None:
        ask = (way, model, where.device, where.engine, where.stack, where.clock)
        self._members = [start("benchmarks.steady", (*ask, place), threads) for place in range(processes)]

    def ready(self) -> str:
        """Wait until all processes are ready; return the engine that icy chose, or ""."""
        engines = [self._answer(member) for member in self._members]
        return str(engines[0])

    @staticmethod
    def _answer(member: subprocess.Popen[str]) -> float | str:
        assert member.stdout is not None
        line = member.stdout.readline()
        if not line:
            raise SystemExit(f"A process ended with exit code {member.wait()} before its first measurement.")
        answer: float | str = json.loads(line)
        return answer

    def rate(self, seconds: float) -> float:
        """Return the updates per second of all processes together (for BOUND, billions of operations per second)."""
        begin = time.time() + 0.2  # time for all processes to receive it
        for member in self._members:
            print(json.dumps([begin, seconds]), file=member.stdin, flush=True)
        return sum(float(self._answer(member)) for member in self._members)

    def end(self) -> None:
        """End the processes."""
        for member in self._members:
            member.communicate()


def measure(
    model: str, where: Where, seconds: float, rounds: int, kernel: Path | None
) -> tuple[dict[str, list[float]], str]:
    """Return the rates of every way in each round, and the engine that icy chose; `kernel` is for the bound."""
    with contextlib.ExitStack() as at_the_end:
        crews = {}
        for way, (processes, threads) in ways(where.device).items():
            crews[way] = Crew(way, str(kernel) if way == BOUND else model, processes, threads, where)
            at_the_end.callback(crews[way].end)
        engine = {way: crew.ready() for way, crew in crews.items()}[ICY]
        measures = {way: functools.partial(crew.rate, seconds) for way, crew in crews.items()}
        return harness.in_turn(measures, rounds), engine


def one_core(kernel: Path, seconds: float) -> float:
    """Measure the bound on one core while other cores are idle."""
    crew = Crew(BOUND, str(kernel), 1, 1, Where())
    crew.ready()
    rate = crew.rate(seconds)
    crew.end()
    return rate


# -- in a process ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Prepare, report readiness, and then measure for the requested durations."""
    parser = argparse.ArgumentParser()
    for name, kind in (("way", str), ("model", str), ("device", str), ("engine", str), ("stack", int)):
        parser.add_argument(name, type=kind)
    parser.add_argument("clock")
    parser.add_argument("place", type=int)
    given = parser.parse_args()
    where = Where(given.device, given.engine, given.stack, given.clock)
    make = {BOUND: bound, ICY: trained_by_icy}.get(given.way, trained_plainly)
    rate, engine = make(given.model, where, given.place)
    rate(0.0)
    print(json.dumps(engine), flush=True)
    for line in sys.stdin:
        begin, seconds = json.loads(line)
        time.sleep(max(0.0, begin - time.time()))
        print(json.dumps(rate(seconds)), flush=True)


Rate = Callable[[float], float]  # function of a number of seconds


def bound(model: str, where: Where, place: int) -> tuple[Rate, str]:
    """Return a function that measures the bound: by the micro-kernel in the library `model`, or by GPU products."""
    from benchmarks.bound import large_product_rate, micro_kernel_rate

    if where.device == "cpu":
        return functools.partial(micro_kernel_rate, Path(model)), ""
    return functools.partial(large_product_rate, where.device), ""


def trained_plainly(model: str, where: Where, place: int) -> tuple[Rate, str]:
    """Return a function that measures the plain way on one replicate."""
    import torch

    from benchmarks import plain

    with torch.device(where.device):
        training = plain.make_training(model, place)

        def update(count: int) -> None:
            with torch.device(where.device):
                for _ in range(count):
                    training.update()

    return _rate(update, 1, where), ""


def trained_by_icy(model: str, where: Where, place: int) -> tuple[Rate, str]:
    """Return a function that measures icy on a stack, with the memory and the one thread of icy's workers."""
    import torch

    from icy.core.machine import keep_memory

    if where.device == "cpu":
        keep_memory()
        torch.set_num_threads(1)
    course = make_course(model, where, place)
    return _rate(course.update, course.replicates, where), course.engine


def _rate(update: Callable[[int], Any], replicates: int, where: Where) -> Rate:
    """Return a function that calls `update` for some seconds, and returns the updates per second of all replicates."""
    wait = harness.waiting(where.device)
    for _ in range(2 if where.device == "cpu" else 8):  # the first updates are slower; on a GPU, an update is captured
        update(1)
    wait()
    clock: Callable[[], float] = getattr(time, where.clock)
    began = clock()
    update(1)
    wait()
    took = max(clock() - began, 1e-6)

    def rate(seconds: float) -> float:
        at_once = max(1, min(DRAWN_AT_ONCE, int(seconds / 10 / took)))
        found = at_once * replicates * harness.rate(lambda: (update(at_once), wait()), seconds, clock)
        return found if seconds else 0.0

    return rate


if __name__ == "__main__":
    main()
