"""Measure the time until the first update, and of a short probe, by cause: `python -m benchmarks.first_seconds`.

With `--before CHECKOUT`, a folder with another version of icy, both are measured in turn, and also `python -c "import
torch"` in every round. Times of single processes vary much on a machine with other work; the medians of the ratios
within a round vary less. Writes benchmarks/first-seconds.md.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icy.core.machine import device_name
from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template, read_options

HERE = Path(__file__).resolve().parent
PAGE = HERE / "first-seconds.md"
COMMANDS = {
    "small": "probe -m sender/FC1L -g perm --quick --meanings 3x4 --seeds 1",
    "whole": "probe -m sender/FC2L -g all --seeds 5 --target 0.5 --workers 2",
}
CAUSES = {
    "interpreter": "from the command to the first line of Python",
    "torch": "import torch",
    "other imports": "icy and its imports, up to the first update",
    "plan": "the plan of the training, without languages and imports",
    "languages": "made for the plan, and by the first worker before its first update",
    "workers": "from the plan to the first job in a worker",
    "first update": "models, stack and the first update of the first worker",
    "training": "from the first update to the last record",
    "results": "writing and printing tables, and the end of all processes",
}

# -- in the measured processes -----------------------------------------------------------------------------------------
# ------------------------------------------------------------------------------------------

MARKS = '''
"""Record when things begin and end, in every process of a command: [process, what, begin, end]."""
import importlib.abc, importlib.machinery, json, os, sys, time

def note(what, begun):
    with open(os.environ["FIRST_SECONDS"], "a") as file:
        file.write(json.dumps([os.getpid(), what, begun, time.time()]) + "\\n")

def timed(what, function):
    def wrapped(*given, **options):
        begun = time.time()
        try:
            return function(*given, **options)
        finally:
            note(what, begun)
    return wrapped

def once(what, function):
    done = set()  # processes: a copy of a process marks its own first time
    def wrapped(*given, **options):
        begun = time.time()
        try:
            return function(*given, **options)
        finally:
            if os.getpid() not in done:
                done.add(os.getpid())
                note(what, begun)
    return wrapped

def beginning(what, function):
    def wrapped(*given, **options):
        note(what, time.time())
        yield from function(*given, **options)
        note(what + " ended", time.time())
    return wrapped

def patch(holder, name, how, what):
    setattr(holder, name, how(what, getattr(holder, name)))

PATCHES = {
    "torch": lambda module: None,
    "icy.experiments.plan": lambda module: patch(module, "make_plan", timed, "plan"),
    "icy.grammars.languages": lambda module: patch(module, "make_language", timed, "language"),
    "icy.training.engine": lambda module: patch(module, "train", beginning, "job"),
    "icy.training.gradient": lambda module: patch(module.GradientLearner, "update", once, "update"),
    "icy.training.native": lambda module: patch(module.NativeLearner, "train", once, "update"),
}

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module
        def exec_module(module):
            begun = time.time()
            run(module)
            if name == "torch":
                note("torch", begun)
            PATCHES[name](module)
        spec.loader.exec_module = exec_module
        return spec

if "FIRST_SECONDS" in os.environ:
    sys.meta_path.insert(0, Finder())
    note("python", time.time())
'''


def run(arguments: Sequence[str], checkout: Path, marks: Path, notes: Path) -> tuple[float, float, list[list[Any]]]:
    """Run a command with a version of icy; return its start time, its end time, and the notes of its processes."""
    notes.write_text("")
    path = os.pathsep.join([str(marks), str(checkout)])
    environment = {**os.environ, "PYTHONPATH": path, "FIRST_SECONDS": str(notes)}
    begun = time.time()
    subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True, cwd=notes.parent)
    ended = time.time()
    return begun, ended, [json.loads(line) for line in notes.read_text().splitlines()]


def split(begun: float, ended: float, notes: list[list[Any]]) -> dict[str, float]:
    """Split the time of a command by cause; return the seconds of each cause, until the first update, and in total."""
    parent = notes[0][0]
    (python, *_) = (end for process, what, _, end in notes if what == "python" and process == parent)
    plan = next(n for n in notes if n[1] == "plan")
    first = min((n for n in notes if n[1] == "update"), key=lambda n: n[3])
    job = next(n for n in notes if n[0] == first[0] and n[1] == "job")
    last = max(n[3] for n in notes if n[1] == "job ended")

    def inside(what: str, process: int, start: float, end: float) -> float:
        return sum(n[3] - n[2] for n in notes if n[:2] == [process, what] and start <= n[2] and n[3] <= end)

    of_plan = inside("language", parent, plan[2], plan[3])
    of_job = inside("language", first[0], job[2], first[3])
    torch_in_plan, torch = (inside("torch", parent, start, first[3]) for start in (plan[2], begun))
    found = {
        "interpreter": python - begun,
        "torch": torch,
        "other imports": plan[2] - python - (torch - torch_in_plan),
        "plan": plan[3] - plan[2] - of_plan - torch_in_plan,
        "languages": of_plan + of_job,
        "workers": job[2] - plan[3],
        "first update": first[3] - job[2] - of_job,
        "training": last - first[3],
        "results": ended - last,
    }
    return {**found, "until the first update": first[3] - begun, "whole command": ended - begun}


def measure(versions: dict[str, Path], rounds: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Return the seconds of every command and version by round, with the seconds of `import torch`."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        marks, notes = Path(folder) / "marks", Path(folder) / "notes"
        marks.mkdir()
        (marks / "sitecustomize.py").write_text(MARKS)
        for turn in range(rounds + 1):  # the first round fills caches of files, and does not count
            for name, command in COMMANDS.items():
                begun, ended, _ = run(["-c", "import torch"], HERE.parent, marks, notes)
                for version, checkout in versions.items():
                    out = Path(folder) / f"{turn}-{name}-{version}"
                    arguments = ["-m", "icy", *command.split(), "-o", str(out), "-q"]
                    seconds = split(*run(arguments, checkout, marks, notes))
                    if turn:
                        found.setdefault((name, version), []).append({**seconds, "import torch": ended - begun})
                    print(turn, name, version, {key: round(value, 2) for key, value in seconds.items()}, flush=True)
    return found


def table(found: dict[tuple[str, str], list[dict[str, float]]], command: str) -> str:
    """Return the table of a command: medians over rounds, in seconds and in units of `import torch`."""
    versions = [version for name, version in found if name == command]

    def middle(version: str, name: str, unit: str | None = None) -> str:
        values = [r[name] / (r[unit] if unit else 1) for r in found[command, version]]
        return f"{statistics.median(values):.2f}"

    rows = [*CAUSES, "until the first update", "whole command"]
    lines = [
        [name, *(middle(v, name) for v in versions), *(middle(v, name, "import torch") for v in versions)]
        for name in rows
    ]
    heads = [*(f"{v}, s" for v in versions), *(f'{v}, in units of `python -c "import torch"`' for v in versions)]
    return markdown_table(["", *heads], lines, markup=True)


def main() -> None:
    """Measure, and write the page."""
    given = read_options(
        __doc__, before=(Path, "checkout of another version of icy, measured in turn"), rounds=5, out=PAGE
    )
    versions = {"before": given.before.resolve()} if given.before else {}
    found = measure({**versions, "now": HERE.parent}, given.rounds)
    commit = "git", "-C", str(given.before), "rev-parse", "--short", "HEAD"
    before = subprocess.run(commit, capture_output=True, text=True).stdout.strip() if given.before else ""
    alone = statistics.median(r["import torch"] for records in found.values() for r in records)
    made_by = "`python -m benchmarks.first_seconds`"
    if before:
        made_by = f"`python -m benchmarks.first_seconds --before CHECKOUT`, a checkout of {before}"
    text = fill_template(
        PAGE,
        rounds=given.rounds,
        alone=f"{alone:.2f}",
        device=device_name("cpu"),
        versions=describe_versions(),
        made_by=made_by,
        small=COMMANDS["small"],
        small_table=table(found, "small"),
        whole=COMMANDS["whole"],
        whole_table=table(found, "whole"),
        causes=markdown_table(["cause", "description"], [list(item) for item in CAUSES.items()], markup=True),
    )
    given.out.write_text(text)


if __name__ == "__main__":
    main()
