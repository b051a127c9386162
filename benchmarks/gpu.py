"""Run all GPU tests and benchmarks, one after another: `python -m benchmarks.gpu`.

The step `count` needs no GPU: `python -m benchmarks.gpu --only count` prints the launches of an update. The other
steps: the tests that need a GPU; the comparison with plain PyTorch (speed.py) with captured updates, without them, and
without Triton; a profile of a captured update (captured.py); the time of all of Perkins21 table 13 for SOFT (25 senders
x 7 grammars x 3 seeds); the atlas at 5x10; topsim and S2B on the device; the best number of processes that share the
device; TF32.

Finished steps are skipped, and interrupted steps resume, so the script can run in several short sessions: with
`--seconds`, it ends after that time. Output goes to benchmarks/gpu/ or `--out`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from results.pages import read_options

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
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
        "count": [python, "-m", "benchmarks.floors"],
        "tests": [python, "-m", "pytest", "-q", "-k", "gpu or a_graph or triton", *TESTS],
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
        only=({"action": "append"}, "a step, repeatable"),
        out=(HERE / "gpu", "folder for logs, pages and results"),
        seconds=(float, "time limit; by default none"),
    )
    known = steps(given.out / "results")
    if unknown := set(given.only or ()) - set(known):
        raise SystemExit(f"No step is called {', '.join(sorted(unknown))}; the steps are {', '.join(known)}.")
    given.out.mkdir(parents=True, exist_ok=True)
    ends = None if given.seconds is None else time.perf_counter() + given.seconds
    for name, command in known.items():
        if not given.only or name in given.only:
            left = None if ends is None else max(0.0, ends - time.perf_counter())
            if not run(name, command, given.out, left):
                break


if __name__ == "__main__":
    main()
