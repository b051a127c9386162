"""Measure how the time of an update grows with replicates and with the meaning space: `python benchmarks/growth.py`.

icy trains a stack of one model for a few updates, on one thread of a CPU or on a GPU (`--device cuda`). For comparison,
the plain way (benchmarks/plain) trains one ordinary module after another on all cores, in the same run. Writes
benchmarks/growth-<device>.md.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import plain
import torch

import icy
from icy.config.specs import ProbeSpec
from icy.core.provenance import device_name, software
from icy.core.text import markdown_table
from icy.experiments.plan import make_plan
from icy.training.engine import rehearse
from icy.training.job import Job, Replicate
from icy.training.runners.base import one_thread

MODELS = ("sender/FC2L", "sender/HierZero:GRU")
GRAMMARS = ("concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol")
COUNTS = (1, 2, 5, 16, 35, 100, 250, 500)
MOST_ON_CPU = {"sender/HierZero:GRU": 100}  # 40 MB each
SPACES = ("2x5", "3x10", "4x10", "5x10", "6x10", "2x100")
STACK = 8  # replicates of every space


def job(model: str, count: int, space: str, device: str, engine: str) -> Job:
    """Return a job with `count` replicates of a model, cycling through the grammars."""
    spec = ProbeSpec.asked(model=model, grammar=GRAMMARS, meanings=space, seeds=1, device=device, engine=engine)
    pairs = itertools.product(range(-(-count // len(GRAMMARS))), GRAMMARS)
    some = tuple(Replicate(grammar, seed) for seed, grammar in itertools.islice(pairs, count))
    return replace(make_plan(spec).rows[0].job, replicates=some)


def seconds(of: Job, updates: int) -> float:
    """Return the seconds of one update of the whole stack."""
    with one_thread() if of.device == "cpu" else contextlib.nullcontext():
        return rehearse(of, updates)


def plain_seconds(model: str, space: str, device: str, updates: int) -> float:
    """Return the seconds of one update of one model, the plain way."""
    language = icy.make_language("perm", space)
    with torch.device(device):
        plain.train(model, language, 0, 3)
        started = time.perf_counter()
        plain.train(model, language, 0, updates)
        if device != "cpu":
            torch.cuda.synchronize()
        return (time.perf_counter() - started) / updates


def by_replicates(device: str, engine: str, updates: int) -> list[list[Any]]:
    """Return a line for every model and number of replicates."""
    lines = []
    for model in MODELS:
        slow = plain_seconds(model, "5x10", device, 10 * updates)
        for count in COUNTS:
            if device == "cpu" and count > MOST_ON_CPU.get(model, count):
                continue
            fast = seconds(job(model, count, "5x10", device, engine), updates)
            lines.append([model, count, _ms(fast), _ms(fast / count), _ms(slow), f"{slow * count / fast:.2f}"])
            print(*lines[-1], flush=True)
    return lines


def by_space(device: str, engine: str, updates: int) -> list[list[Any]]:
    """Return a line for every model and space."""
    lines = []
    for model, space in itertools.product(MODELS, SPACES):
        size = icy.MeaningSpace.of(space).size
        slow = plain_seconds(model, space, device, 10 * updates)
        fast = seconds(job(model, STACK, space, device, engine), updates)
        lines.append([model, space, f"{size:,}", _ms(fast / STACK), _ms(slow), f"{slow * STACK / fast:.2f}"])
        print(*lines[-1], flush=True)
    return lines


def _ms(value: float) -> str:
    return f"{1000 * value:.3g}"


def table(head: list[str], lines: list[list[Any]]) -> str:
    """Write a Markdown table whose columns, but for the first, are numbers."""
    return markdown_table(head, lines, numbers=range(1, len(head)))


def main() -> None:
    """Measure both and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--updates", type=int, default=5, help="that are timed")
    given = parser.parse_args()
    versions = ", ".join(f"{name} {version}" for name, version in software().items())
    measured = f"Milliseconds, measured on {device_name(given.device)}; {versions}."
    replicates = by_replicates(given.device, given.engine, given.updates)
    spaces = by_space(given.device, given.engine, given.updates)
    ways = f"icy on {'one thread' if given.device == 'cpu' else given.device}; plain, one model on all cores"
    text = [
        "# How the time of an update grows",
        measured
        + f" {ways}. The ratio is that of the time of as many plain models as there are replicates. Each figure is "
        "one timing of a few updates; on a shared machine they vary by a fifth.",
        "## With replicates, at 5x10",
        table(["model", "replicates", "stack", "of each", "plain, of each", "ratio"], replicates),
        f"## With the meaning space, {STACK} replicates",
        table(["model", "space", "meanings", "of each", "plain, of each", "ratio"], spaces),
    ]
    (Path(__file__).parent / f"growth-{given.device}.md").write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
