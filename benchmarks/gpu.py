"""Measure icy on a GPU: `python -m benchmarks.gpu`, at most 15 minutes.

First the tests that need a GPU, then the rows of the speed page, by icy and by ordinary modules, next to
the estimates of gpu-floors.md. Each finished step has a log in benchmarks/gpu/ (or `--out`) and is not run
again, so the command can be interrupted, and continues. It writes gpu.md, a page, and gpu.json, a file to send.

Longer steps run with `--only NAME` or `--all`: a profile of a captured update (captured.py); rows with plain updates
and without Triton; the time of all of Perkins21 table 13 for SOFT; the atlas at 5x10; topsim and S2B on the device; the
best number of processes that share the device; TF32. The step `count` needs no GPU: it counts an update's launches.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import floors, steady
from benchmarks.harness import Where
from icy.core import gpu
from icy.core.text import markdown_table
from results.pages import describe_versions, read_options

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
MOST_SECONDS, SECONDS = 900.0, 3.0  # of the tests and all rows together; of each measurement
SHARING = (1, 2, 4, 8)
SPEED_ROWS = "sender/HierZero:GRU,sender/RNNAutoReg:LSTM,receiver/Hier:GRU,sender/FC2L,sender/TransDecSoft"
TESTS = (
    "tests/training/test_cuda_graphs.py",
    "tests/training/test_engine.py",
    "tests/models/kernels/test_triton_steps.py",
)
WITHOUT_TRITON = ("env", "ICY_TRITON=off")


def steps(results: Path) -> dict[str, list[str]]:
    """Return the commands to run, keyed by the name of their log, in order of importance."""
    python = sys.executable
    speed = [python, "-m", "benchmarks.speed", "--device", "cuda", "--rows", SPEED_ROWS]
    speed += ["--seconds", "2", "--rounds", "3"]
    captured = [python, "-m", "benchmarks.captured"]
    sweep = [python, "-m", "icy", "sweep"]
    probe = [*sweep, "--device", "cuda", "-q", "--target", "0.9", "--cap", "3"]
    few = [word for name in ("sender/FC2L", "sender/HierZero:*", "sender/RNNZero:*") for word in ("-m", name)]
    table_13 = str(RESULTS / "reproduced" / "perkins21-table13.toml")
    atlas = [*sweep, str(RESULTS / "atlas" / "main.toml"), "--device", "cuda", "-q"]
    return {
        "tests": [python, "-m", "pytest", "-q", "-k", "gpu or a_graph or triton", *TESTS],
        **{_name_of(row): [python, "-m", "benchmarks.gpu", "--row", row] for row in floors.ROWS},
        "count": [python, "-m", "benchmarks.floors"],
        "speed-graph": [*speed, "--minutes", "0.25", "--engine", "auto+graph"],
        "speed-plain": [*speed, "--whole", "", "--engine", "auto+plain"],
        "speed-pytorch": [*WITHOUT_TRITON, *speed, "--whole", "", "--engine", "auto+graph"],
        "captured": captured,
        "captured-pytorch": [*WITHOUT_TRITON, *captured],
        "table-13": [*sweep, table_13, "--device", "cuda", "-q", "-o", str(results / "table-13")],
        **{
            f"atlas-{kind}": [*atlas, "--representation", kind, "-o", str(results / "atlas")]
            for kind in ("soft", "gumb", "discr")
        },
        "topsim": [python, "-m", "benchmarks.topsim", "--whole", "--device", "cuda"],
        "s2b": [python, "-m", "benchmarks.s2b", "--device", "cuda"],
        **{
            f"share-{n}": [*probe, *few, "--seeds", "2", "--workers", str(n), "-o", str(results / f"share-{n}")]
            for n in SHARING
        },
        "tf32": [*probe, *few, "--seeds", "2", "--set", "tf32=true", "-o", str(results / "tf32")],
    }


def _name_of(row: str) -> str:
    """Return the name of the step that measures a row."""
    return "row-" + row.replace("/", "-").replace(":", "-")


def measured(row: str, device: str, seconds: float) -> dict[str, Any]:
    """Return the updates per second of a row, by icy and by ordinary modules one after another."""
    where = Where(device, "auto", floors.REPLICATES)
    by_icy, engine = steady.trained_by_icy(row, where, 0)
    plainly, _ = steady.trained_plainly(row, where, 0)
    return {"row": row, "engine": engine, "icy": by_icy(seconds), "ordinary": plainly(seconds)}


def write_page(out: Path) -> None:
    """Write gpu.md and gpu.json from the logs of finished steps."""
    estimates = pd.read_csv(floors.TABLE).set_index("row")["most_updates_per_second"]
    logs = {path.stem: path.read_text() for path in sorted(out.glob("*.log"))}
    done = [text for name, text in logs.items() if name.startswith("row-") and "exit 0" in text]
    found = [json.loads(line) for text in done for line in text.splitlines() if line.startswith('{"row"')]
    rows = []
    for one in found:
        at_most = estimates[one["row"]]
        rates = [f"{rate:,.0f}" for rate in (one["ordinary"], one["icy"], at_most)]
        rows.append(
            [one["row"], one["engine"], *rates, f"{one['icy'] / at_most:.0%}", f"{one['icy'] / one['ordinary']:.1f}"]
        )
    head = [
        "row",
        "engine",
        "ordinary modules, updates/s",
        "icy, updates/s",
        "estimated at most",
        "share of it",
        "to ordinary",
    ]
    failed = [name for name, text in logs.items() if "exit 0" not in text]
    about = {
        "devices": [gpu.description(name) for name in gpu.names()],
        "versions": describe_versions(),
        "failed": failed,
    }
    tests = logs.get("tests", "not run").strip().splitlines()[-3:]
    lines = [
        f"# icy on {', '.join(about['devices']) or 'no GPU'}\n",
        f"{about['versions']}. Tests: {tests[0] if tests else 'no output'}.",
        f"Failed steps: {', '.join(failed) or 'none'}.\n",
        markdown_table(head, rows, numbers=range(2, len(head))),
        "\nThe estimates are bounds for an H200 (benchmarks/gpu-floors.md).",
    ]
    (out / "gpu.md").write_text("\n".join(lines) + "\n")
    (out / "gpu.json").write_text(json.dumps({**about, "tests": tests, "rows": found, "logs": logs}, indent=1))
    print(f"Written: {out / 'gpu.md'}; please send {out / 'gpu.json'} to the authors of icy.")


def run(name: str, command: list[str], out: Path, seconds: float | None = None) -> bool:
    """Run a command, and write its output and time to a log; the log gets its final name when it is complete.

    Args:
        name: name of the step.
        command: command to run.
        out: the folder of logs.
        seconds: time limit.

    Returns:
        Whether the command has finished, in this session or an earlier one.
    """
    log, partial = out / f"{name}.log", out / f"{name}.partial"
    if log.exists():
        return True
    begun = time.perf_counter()
    with partial.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            print(f"{name}: not done after {seconds:.0f} s; see {partial}", flush=True)
            return False
        file.write(f"\nexit {code} after {time.perf_counter() - begun:.1f} s: {' '.join(command[1:])}\n")
    if name.startswith("speed"):  # all write the same page
        for page in HERE.glob("speed-cuda.*"):
            shutil.copy(page, out / page.name.replace("cuda", f"cuda-{name.removeprefix('speed-')}"))
    partial.rename(log)
    print(log.read_text() if name == "count" else f"{name}: {log.read_text().splitlines()[-1]}", flush=True)
    return True


def main() -> None:
    """Run the unfinished steps."""
    given = read_options(
        __doc__,
        only=({"action": "append"}, "a step, repeatable; by default the tests and the rows"),
        all=(False, "also the longer steps"),
        out=(HERE / "gpu", "folder for logs, pages and results"),
        seconds=(float, f"time limit; by default {MOST_SECONDS:.0f}, and none with --only or --all"),
        row=("", "measure this row, and print its rates"),
        device="cuda",
        each=(SECONDS, "seconds of each measurement of a row"),
    )
    if given.row:
        print(json.dumps(measured(given.row, given.device, given.each)), flush=True)
        return
    known = steps(given.out / "results")
    if unknown := set(given.only or ()) - set(known):
        raise SystemExit(f"No step is called {', '.join(sorted(unknown))}; the steps are {', '.join(known)}.")
    usual = [name for name in known if name == "tests" or name.startswith("row-")]
    chosen = given.only or (list(known) if given.all else usual)
    if not gpu.names() and "count" not in chosen:
        raise SystemExit("PyTorch finds no GPU here; `icy doctor` lists the devices. `--only count` needs none.")
    given.out.mkdir(parents=True, exist_ok=True)
    limit = MOST_SECONDS if given.seconds is None and chosen == usual else given.seconds
    ends = None if limit is None else time.perf_counter() + limit
    for name in chosen:
        left = None if ends is None else max(0.0, ends - time.perf_counter())
        if not run(name, known[name], given.out, left):
            break
    write_page(given.out)


if __name__ == "__main__":
    main()
