"""Measure how finely ratios are resolved, and what checks cost: `python benchmarks/resolution.py [--models ...]`.

Each row is trained under the protocol `acquire` three times from the same words, weights and batches: with the default
grid of checks, with a check every 50 updates, and with a check after every update of so many meanings that its step of
the target stands for the true one. Training does not depend on when it is looked at, so that the ratios differ by
nothing else. Also measures the share of a row's processor time that goes into checks. Writes benchmarks/resolution.md;
after an interruption it goes on from benchmarks/resolution.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from about import describe_versions

import icy
from icy.config.protocols import reached_at
from icy.core.provenance import device_name
from icy.core.text import markdown_table
from icy.records.record import Record, value_of
from icy.training.engine import Run

HERE = Path(__file__).parent
ROWS = {"receiver/CNN": "5x10", "receiver/FC": "5x10", "receiver/FC2L": "5x10", "sender/FC1L": "5x10",
        "sender/FC2L": "5x10", "receiver/RNN1L:GRU": "3x4", "sender/HierZero:GRU": "3x4"}  # fmt: skip
GRAMMARS = ("perm", "rot", "proj")
CAP = 4  # longer trainings are no harder to resolve
GRIDS: dict[str, dict[str, Any]] = {
    "default": {}, "every 50": {"check_every": 50}, "every update": {"check_every": 1, "evaluation_size": 4096},
}  # fmt: skip


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Collect the processor time of checks and of the whole block."""
    spent, originals = {"checks": 0.0, "all": 0.0}, (Run._check, Run._measure)

    def clocked(original: Any) -> Any:
        def call(*args: Any) -> Any:
            began = time.process_time()
            try:
                return original(*args)
            finally:
                spent["checks"] += time.process_time() - began

        return call

    began = time.process_time()
    Run._check, Run._measure = map(clocked, originals)  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Run._check, Run._measure = originals  # type: ignore[method-assign]
        spent["all"] = time.process_time() - began


def measure(model: str, space: str, grid: str) -> list[Record]:
    """Return the records of a row under a grid of checks."""
    sizes = {"meanings": space, **({"word_length": 2, "hidden": 32} if space == "3x4" else {})}
    where = {"out": HERE / "resolution", "workers": 1, "device": "cpu", "progress": False}
    return list(icy.probe(model, GRAMMARS, cap=CAP, settings=GRIDS[grid], **sizes, **where).records)


def share(model: str, space: str) -> float:
    """Return the share of checks in the processor time of a row of all grammars up to the default cap."""
    import tempfile

    sizes = {"meanings": space, **({"word_length": 2, "hidden": 32} if space == "3x4" else {})}
    with tempfile.TemporaryDirectory() as out, timed() as spent:
        icy.probe(model, seeds=1, out=out, workers=1, device="cpu", progress=False, **sizes)
    return spent["checks"] / spent["all"]


def crossing(record: Record) -> float:
    """Return the step of the target of a record with a check after every update, between two of them."""
    points = [(int(steps), float(reading)) for steps, reading in record["curve"]]
    for before, now in zip([None, *points], points, strict=False):
        if (found := reached_at(record["target"], before, now)) is not None:
            return found
    return math.nan


def ratios(records: list[Record], dense: bool) -> dict[tuple[str, int], float]:
    """Return the ratio of each grammar and seed that reached the target."""
    if not dense:
        return {(r["grammar"], r["seed"]): value_of(r) for r in records if r["reason"] == "target"}
    at = {(r["grammar"], r["seed"]): crossing(r) for r in records if r["reason"] == "target"}
    return {place: steps / at["concat", place[1]] for place, steps in at.items()}


def line(model: str, space: str) -> list[str]:
    """Return the line of a row."""
    found = {grid: measure(model, space, grid) for grid in GRIDS}
    true = ratios(found["every update"], dense=True)
    errors = {}
    for grid in ("default", "every 50"):
        own = ratios(found[grid], dense=False)
        both = [place for place in own if place in true and place[0] != "concat"]
        errors[grid] = math.sqrt(statistics.fmean(math.log(own[p] / true[p]) ** 2 for p in both))
    long = icy.ProbeResult(found["default"]).to_dataframe()
    concat = long.loc[long["grammar"] == "concat", "crossing"].mean()
    resolution = long.loc[(long["grammar"] != "concat") & ~long["cut"], "resolution"].mean()
    shown = [f"{resolution:.1%}", f"{errors['default']:.1%}", f"{errors['every 50']:.1%}", f"{share(model, space):.1%}"]
    return [model, space, f"{concat:.1f}", str(len(true)), *shown]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(ROWS), help="rows to measure; all unless given")
    given = parser.parse_args()
    headings = ["model", "meanings", "concat", "ratios", "resolution", "error", "error, every 50", "checks"]
    lines = [line(model, ROWS[model]) for model in given.models]
    text = "\n".join(
        [
            "# How finely ratios are resolved",
            "",
            "Made by `python benchmarks/resolution.py`: perm, rot and proj at three seeds, cut at 4. *concat*: updates "
            "to the target; *ratios*: how many reached it; *resolution*: standard uncertainty by the gaps between "
            "checks, as tables have it; *error*: root mean square of the logarithm of a ratio over the true one, under "
            "the default grid and with a check every 50 updates; *checks*: their share of the processor time of a row "
            "of all grammars at one seed, languages and start-up included.",
            "",
            "The error has two parts: the gaps between checks, and the chance in a reading, which is of 128 meanings "
            "up to 160 updates and of more later. More meanings or more checks would make the error of the fastest "
            "rows smaller, and their checks dearer.",
            "",
            markdown_table(headings, lines),
            "",
            f"On {device_name('cpu')}; {describe_versions()}.",
            "",
        ]
    )
    (HERE / "resolution.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
