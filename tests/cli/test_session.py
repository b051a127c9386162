"""Sessions in real processes: Ctrl-C, kill and resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from icy.core.text import counted
from tests.cli.helpers import ROOT, run

SLOW = (
    "probe", "-m", "RNNZero:GRU", "-g", "perm", "--meanings", "3x4", "--word-length", "2", "--hidden", "160",
    "--seeds", "5", "--set", "check_every=20", "--workers", "2",
)  # fmt: skip
IN_ALL = 10  # replicates; so many that the first is on file long before the last


def start(*words: str) -> subprocess.Popen[str]:
    """The command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "icy", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_record(process: subprocess.Popen[str], out: str, seconds: float = 60) -> None:
    """Until the first replicate is on file."""
    end = time.monotonic() + seconds
    while not list(Path(out).glob("records/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def files(out: str) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path(out).glob("records/*.json")}


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(out: str) -> None:
    process = start(*SLOW, "--out", out)
    assert process.stderr is not None
    seen = ""
    while f"[1/{IN_ALL}]" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    kept = files(out)
    assert process.returncode == 130
    assert "Traceback" not in seen + rest
    assert f"Interrupted: {len(kept)} of {IN_ALL} finished and kept in {out}." in rest
    assert "run the same command again: icy probe -m RNNZero:GRU -g perm --meanings 3x4" in rest
    assert 1 <= len(kept) < IN_ALL
    assert (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert f"{counted(IN_ALL - len(kept), 'replicate')} of 1 model to train" in again.stderr
    assert f"{len(kept)} on file" in again.stderr
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL


def test_kill_loses_and_repeats_nothing_that_is_finished(out: str) -> None:
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    process.kill()
    process.communicate(timeout=30)  # ends once the workers, which share stderr, are gone too
    kept = files(out)
    assert 1 <= len(kept) < IN_ALL
    assert not (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL
    assert not list(Path(out).rglob(".*"))
