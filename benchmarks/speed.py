"""Compare the speed of icy with that of ordinary PyTorch modules: `python -m benchmarks.speed [--quick]`.

Rows are probes, pairs, games and learners of S2B (courses.py). One run measures in turn, on the same machine: plain
modules (benchmarks/plain), one after another with all threads; the same modules "by hand", in one process per core with
one thread each; and icy. The steady state (steady.py) is the time
of updates alone; whole rows (whole.py) are commands from start to end. bound.py computes the operations of an update
and the highest rate of a core. Writes speed-<device>.csv, with every single measurement, and speed-<device>.md.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks import bound, steady, whole
from benchmarks.courses import GRAMMARS, SEEDS
from benchmarks.harness import Where, matching
from benchmarks.steady import BOUND, HAND, ICY, PLAIN
from icy.core.machine import device_name, usable_cores
from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template, read_options

PROBES = (
    "sender/HierZero:GRU",
    "sender/RNNAutoReg:LSTM",
    "receiver/Hier:GRU",
    "sender/FC2L",
    "sender/TransDecSoft",
    # one model of each other family
    "sender/RNNZero:RNN",
    "sender/RNNZero:SRU",
    "sender/RNNAutoReg2L:GRU",
    "sender/RNNAutoReg:dgsend",
    "sender/HierAutoReg:LSTM",
    "sender/Transformer",
    "receiver/FC2L",
    "receiver/CNN",
    "receiver/RNN1L:GRU",
    "receiver/RNN2L:dgrecv",
    "receiver/Transformer",
)
PAIRS = tuple(f"pair/{link}/{pair}" for pair in ("FC2L+FC2L", "HierZero:GRU+Hier:GRU") for link in ("SOFT", "GUMB"))
GAMES = tuple(f"game/{channel}/{concepts}" for concepts in (1, 4) for channel in ("gs", "qt"))
AGENTS = ("agent/r2d2/LSTM", "agent/ppo/pairs")
PUBLISHED = ("game/qt/1/published", "game/qt/4/published")  # binary words that are normalised over the batch
ROWS = PROBES + PAIRS + GAMES + PUBLISHED + AGENTS  # as benchmarks/courses.py names them
HERE = Path(__file__).parent
WHOLE_ROWS = PROBES[:5]  # the default models to measure from start to end as well


@dataclass
class Measured:
    """The measurements of one row.

    Attributes:
        model: name of the row.
        operations: operations of an update, in billions.
        rates: updates per second by way, in each round; for BOUND, billions of operations per second.
        engine: engine that icy chose.
        row: the whole row, if it was timed.
        taken: time of each way for the whole row.
    """

    model: str
    operations: float
    rates: dict[str, list[float]] = field(default_factory=dict)
    engine: str = ""
    row: whole.Row | None = None
    taken: dict[str, whole.Taken] = field(default_factory=dict)

    @property
    def typical(self) -> dict[str, float]:
        """The median rate of each way."""
        return {way: median(found) for way, found in self.rates.items()}

    @property
    def to_best_plain(self) -> float:
        """The rate of icy relative to the faster plain way."""
        return self.typical[ICY] / max(self.typical.get(way, 0.0) for way in (PLAIN, HAND))

    @property
    def share(self) -> float:
        """The fraction of the bound that icy reaches."""
        return self.operations * self.typical[ICY] / self.typical[BOUND]

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield every measurement as a line of the csv file."""
        for way, found in self.rates.items():
            unit = "GFLOP/s" if way == BOUND else "updates/s"
            for number, value in enumerate(found, start=1):
                yield {"part": "steady", "model": self.model, "way": way, "round": number, "value": value, "unit": unit}
        for way, taken in self.taken.items():
            updates = self.row.updates if self.row else None
            line = {"part": "whole", "model": self.model, "way": way, "value": taken.seconds, "unit": "s"}
            yield {**line, "updates": updates, "trained": taken.trained}


@dataclass(frozen=True)
class Plan:
    """Durations of the measurements.

    Attributes:
        whole_rows: models to time from start to end as well.
        seconds: seconds of every way in every round.
        rounds: number of rounds.
        minutes: minutes of plain training in a whole row.
        seeds, grammars: numbers of seeds and of grammars in a whole row.
    """

    whole_rows: Sequence[str]
    seconds: float
    rounds: int
    minutes: float
    seeds: int = 5
    grammars: int = len(GRAMMARS)


def measure(model: str, where: Where, plan: Plan, kernel: Path | None) -> Measured:
    """Measure one row. The steady rates, which are always measured, determine the length of the whole row."""
    found = Measured(model, bound.operations(model))
    found.rates, found.engine = steady.measure(model, where, plan.seconds, plan.rounds, kernel)
    if model in plan.whole_rows:
        row = whole.Row(model, 1, plan.seeds, plan.grammars)
        row = replace(row, updates=whole.updates_for(plan.minutes, found.typical, len(row.replicates)))
        found.row = row
        for way in steady.ways(where.device):
            if way in (PLAIN, HAND):
                found.taken[way] = whole.time_plain(row, way, plan.minutes, found.typical[way], where)
        found.taken[ICY], found.engine = whole.time_icy(row, where)
    return found


# -- the page ----------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _spread(values: Sequence[float]) -> str:
    """Format the median and the range of values."""
    return f"{_number(median(values))} ({_number(min(values))} to {_number(max(values))})"


def steady_table(results: Sequence[Measured]) -> str:
    """Return the table of updates per second."""
    head = ["row", *(f"{way}, updates/s" for way in (PLAIN, HAND, ICY)), "to the best plain"]
    head += ["GFLOP an update", "bound, GFLOP/s", "share of the bound"]
    rows = [
        [
            found.model,
            *(_spread(found.rates[way]) if way in found.rates else "-" for way in (PLAIN, HAND, ICY)),
            f"{found.to_best_plain:.2f}",
            f"{found.operations:.3g}",
            _number(found.typical[BOUND]),
            f"{found.share:.0%}",
        ]
        for found in results
    ]
    return markdown_table(head, rows, numbers=range(1, len(head)))


def whole_table(results: Sequence[Measured]) -> str:
    """Return the table of whole rows."""
    head = ["model", "replicates", "updates each", "evaluations each"]
    head += [*(f"{way}, s" for way in (PLAIN, HAND, ICY)), f"to {PLAIN}", "to the best plain"]
    rows = []
    for found in results:
        if found.row is None:
            continue
        row, taken, count = found.row, found.taken, len(found.row.replicates)
        seconds = {way: one.seconds for way, one in taken.items()}
        shown = {way: f"{s:,.1f}" if taken[way].trained == count else f"~{s:,.0f}" for way, s in seconds.items()}
        ratios = [seconds[PLAIN], min(seconds.get(way, seconds[PLAIN]) for way in (PLAIN, HAND))]
        rows.append(
            [found.model, count, row.updates, len(row.checks)]
            + [shown.get(way, "-") for way in (PLAIN, HAND, ICY)]
            + [f"{ratio / seconds[ICY]:.2f}" for ratio in ratios]
        )
    return markdown_table(head, rows, numbers=range(1, len(head)))


BY_HAND = "*By hand*: {cores} of these processes at once, each on one thread. "
CORE_BOUND = (
    "The bound is the rate of a micro-kernel ({kernel}) in the same rounds with all cores busy; on one core, with the "
    "others idle, it reaches {alone:.0f} GFLOP/s."
)
GPU_BOUND = "The bound is the rate of one large product in the same rounds."


def page(results: Sequence[Measured], where: Where, plan: Plan, alone: float, load: float) -> str:
    """Return the text of the page.

    Args:
        results: measurements of every model.
        where: device, engine and stack.
        plan: durations of the measurements.
        alone: the bound of one core while other cores are idle.
        load: average number of runnable processes before the run, which should be near 0.
    """
    on_cpu, cores = where.device == "cpu", usable_cores()
    engines: dict[str, list[str]] = {}

    def named(of: list[str]) -> str:
        return ", ".join(of) if len(engines) > 1 else "all"

    for found in results:
        engines.setdefault(found.engine, []).append(found.model)
    values = {
        "where": processor(where.device),
        "versions": describe_versions(),
        "cores": cores,
        "by_hand": BY_HAND.format(cores=cores) if on_cpu else "",
        "processes": steady.ways(where.device)[ICY][0],
        "stack": where.stack,
        "seeds_of_pairs": SEEDS,
        "engines": "; ".join(f"`{engine}` for {named(of)}" for engine, of in engines.items()),
        "bound": CORE_BOUND.format(kernel=bound.MICRO_KERNEL, alone=alone) if on_cpu else GPU_BOUND,
        "load": load,
        "steady": steady_table(results),
        "whole": whole_table(results),
        **asdict(plan),
    }
    parts = ["speed.md", *["speed-whole.md"] * any(found.row for found in results)]
    return "".join(fill_template(HERE / name, **values) for name in parts)


def processor(device: str) -> str:
    """Return the name of the measured processor or GPU."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return device_name(device) + (f" ({names[0]})" if device == "cpu" and names else "")


def main() -> None:
    """Measure, and write the page after each model."""
    given = read_options(
        __doc__,
        device="cpu",
        engine=("auto", "engine of icy"),
        rows=("*", "rows or patterns, separated by commas; all by default"),
        whole=(",".join(WHOLE_ROWS), "probes to time from start to end too"),
        seconds=(8.0, "seconds of each way in a round"),
        rounds=5,
        minutes=(3.0, "minutes of plain training in a whole row"),
        out=(Path, "path without suffix; by default benchmarks/speed-<device>"),
        quick=(False, "a trial with 30 s per row; nothing is written"),
    )
    rows = ROWS if given.device == "cpu" else PROBES + PAIRS + GAMES  # learners of S2B train on the CPU
    models, whole_rows = matching(rows, given.rows), matching(PROBES, given.whole)
    plan = Plan(whole_rows, given.seconds, given.rounds, given.minutes)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its child processes end too
    where = Where(given.device, given.engine, 16 if given.device == "cpu" else 35)
    if given.quick:
        plan, where = Plan(whole_rows, 0.2, 1, 0.01, seeds=1, grammars=2), replace(where, stack=2)
    out = given.out or HERE / f"speed-{given.device}"
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        kernel = bound.compiled(Path(folder)) if given.device == "cpu" else None
        alone = steady.one_core(kernel, plan.seconds) if kernel else 0.0
        results: list[Measured] = []
        for model in models:
            results.append(measure(model, where, plan, kernel))
            print(model, {way: round(rate, 2) for way, rate in results[-1].typical.items()}, flush=True)
            if not given.quick:
                lines = [line for found in results for line in found.lines()]
                pd.DataFrame(lines).round({"value": 3}).to_csv(out.with_suffix(".csv"), index=False)
                out.with_suffix(".md").write_text(page(results, where, plan, alone, load))
        if given.quick:
            print(page(results, where, plan, alone, load))


if __name__ == "__main__":
    main()
