"""Check that a sweep loses nothing to faults: `python benchmarks/faults.py`.

A sweep of some 50 quick rows runs undisturbed into one folder, and into another with one fault after another: a killed
worker, a killed sweep (both by signal 9), Ctrl-C, and a full disk (a small tmpfs, where one can be mounted). Then it is
resumed to its end, and every record is compared with the undisturbed one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODELS = ("*/FC1L", "*/FC2L", "sender/HierZero:*", "sender/RNNZero:*", "receiver/RNN1L:*", "receiver/Hier:RNN")
SOON = 1.0  # second after something has been filed
OWN = ("key", "curve", "steps", "accuracy", "reason", "baseline_steps", "parameters")  # what faults must not change


def main() -> None:
    """Run, disturb, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="2")
    parser.add_argument("--workers", default="2")
    given = parser.parse_args()
    # In the background of a shell Ctrl-C is ignored, which the sweep would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="icy-faults-"))
    options = f"--quick --seeds {given.seeds} --workers {given.workers} -q -g perm --representation soft,gumb"
    options += " --target 0.6 --cap 3 --set check_every=20"
    models = [word for model in MODELS for word in ("-m", model)]
    command = [sys.executable, "-m", "icy", "sweep", *options.split(), *models]
    plain, faulty = folder / "plain", folder / "faulty"
    begun = time.monotonic()
    run(command, plain)
    whole = records(plain)
    print(f"undisturbed: {len(whole)} replicates of {rows(whole)} rows in {time.monotonic() - begun:.0f} s", flush=True)
    for fault in (kill_worker, kill_all, interrupt, fill_disk):
        print(f"{fault.__name__}: {fault(command, faulty)}; {len(records(faulty))} on file", flush=True)
    begun = time.monotonic()
    print(f"resumed: exit {run(command, faulty)} in {time.monotonic() - begun:.0f} s")
    found = records(faulty)
    different = [key for key in whole.keys() | found.keys() if whole.get(key) != found.get(key)]
    print(f"{len(found)} replicates; {len(different)} differ from the undisturbed run")
    shutil.rmtree(folder)
    sys.exit(bool(different))


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records on file by key, without the fields that depend on the clock."""
    read = [json.loads(path.read_text()) for path in folder.glob("records/*.json")]
    return {r["key"]: {name: r.get(name) for name in OWN} | {"row": [r["model"], r["representation"]]} for r in read}


def rows(found: dict[str, dict[str, Any]]) -> int:
    """Return the number of rows that records belong to."""
    return len({tuple(record["row"]) for record in found.values()})


def run(command: list[str], folder: Path) -> int:
    """Run a command to its end; return its exit code."""
    return subprocess.run([*command, "-o", str(folder)], stdout=subprocess.DEVNULL).returncode


def started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in its own process group, and wait until it has filed a record, and a second longer."""
    process = subprocess.Popen(
        [*command, "-o", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    before = len(list(folder.glob("records/*.json")))
    while process.poll() is None and len(list(folder.glob("records/*.json"))) == before:
        time.sleep(0.05)
    time.sleep(SOON)
    return process


def kill_worker(command: list[str], folder: Path) -> str:
    """Kill one worker; the sweep starts its stack again, until Ctrl-C ends it."""
    process = started(command, folder)
    killed = next(children(process.pid), None)
    if killed is None:
        return "there was no worker"
    os.kill(killed, signal.SIGKILL)
    time.sleep(10 * SOON)
    alive = process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    process.wait(60)
    return "the sweep went on" if alive else f"the sweep ended with exit {process.returncode}"


def kill_all(command: list[str], folder: Path) -> str:
    """Kill the sweep itself."""
    process = started(command, folder)
    process.kill()
    process.wait(60)
    time.sleep(3)  # its workers end by themselves
    return f"exit {process.returncode}"


def interrupt(command: list[str], folder: Path) -> str:
    """Press Ctrl-C."""
    process = started(command, folder)
    os.killpg(process.pid, signal.SIGINT)
    process.wait(60)
    return f"exit {process.returncode}"


def fill_disk(command: list[str], folder: Path) -> str:
    """Run in a copy of the folder on a disk that soon is full; copy the results back."""
    small = folder.parent / "small"
    small.mkdir()
    size = 40_000 + sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        return "no tmpfs could be mounted; left out"
    try:
        shutil.copytree(folder, small / "o")
        code = run([*command, "-v"], small / "o")
        left = list((small / "o").rglob(".*"))
        shutil.copytree(small / "o", folder, dirs_exist_ok=True)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    return f"exit {code}, {len(left)} half-written files left"


def children(parent: int) -> Iterator[int]:
    """Yield the workers of a process, without Python's resource tracker."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"tracker" not in line:
            yield int(path.parent.name)


if __name__ == "__main__":
    main()
