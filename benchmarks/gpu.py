"""Run all GPU tests and benchmarks, one after another: `python benchmarks/gpu.py`.

These are the tests that need a GPU; the comparison with the plain way (speed.py), with and without captured updates;
how many processes should share the device; how time grows (growth.py); and how long all of Perkins21 table 13 takes for
SOFT: 25 senders x 7 grammars x 3 seeds. Finished steps are skipped, so it can run in several short sessions. Output
goes to benchmarks/gpu/.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE / "gpu"
TABLE_13 = HERE / "sweeps" / "perkins21-table13.toml"
SHARING = (1, 2, 4, 8)


def steps(results: Path) -> dict[str, list[str]]:
    """Return the commands to run, by the name of their log."""
    python = sys.executable
    speed = [python, str(HERE / "speed.py"), "--device", "cuda"]
    sweep = [python, "-m", "icy", "sweep"]
    probe = [*sweep, "--device", "cuda", "-q", "--target", "0.9", "--cap", "3"]
    few = [word for name in ("sender/FC2L", "sender/HierZero:*", "sender/RNNZero:*") for word in ("-m", name)]
    tests = ["tests/training/test_cuda_graphs.py", "tests/training/test_engine.py"]
    shared = {
        f"share-{n}": [*probe, *few, "--seeds", "2", "--workers", str(n), "-o", str(results / f"share-{n}")]
        for n in SHARING
    }
    return {
        "tests": [python, "-m", "pytest", "-q", "-k", "gpu or a_graph", *tests],
        "speed-graph": [*speed, "--engine", "auto+graph"],
        "speed-plain": [*speed, "--engine", "auto+plain"],
        **shared,
        "growth": [python, str(HERE / "growth.py"), "--device", "cuda"],
        "table-13": [*sweep, str(TABLE_13), "--device", "cuda", "-q", "-o", str(results / "table-13")],
        "tf32": [*probe, *few, "--seeds", "2", "--set", "tf32=true", "-o", str(results / "tf32")],
        "s2b": [python, str(HERE / "s2b.py"), "--device", "cuda"],
    }


def run(name: str, command: list[str]) -> None:
    """Run a command into its log, with the time it took; the log gets its name only when it is complete."""
    log, partial = OUT / f"{name}.log", OUT / f"{name}.partial"
    if log.exists():
        return
    begun = time.perf_counter()
    with partial.open("w") as file:
        code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT).returncode
        file.write(f"\nexit {code} after {time.perf_counter() - begun:.1f} s: {' '.join(command[1:])}\n")
    if name.startswith("speed"):  # both engines write the same page
        for page in HERE.glob("speed-cuda.*"):
            shutil.copy(page, OUT / page.name.replace("cuda", f"cuda-{name.removeprefix('speed-')}"))
    partial.rename(log)
    print(log.read_text().splitlines()[-1], flush=True)


def main() -> None:
    """Run the steps that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a step, repeatable")
    parser.add_argument("--results", type=Path, default=OUT / "results")
    given = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    for name, command in steps(given.results).items():
        if not given.only or name in given.only:
            run(name, command)


if __name__ == "__main__":
    main()
