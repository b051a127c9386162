"""Sessions in real processes: Ctrl-C and other ends, kill and resume."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.core.text import counted
from icy.experiments.progress import ProgressWatcher
from icy.records.long_table import to_long
from icy.records.store import CHECKPOINTS
from icy.training.lockstep import Checkpoints
from tests.cli.helpers import FC2L, ROOT, run
from tests.training.resuming import leave_often

SLOW = (
    "probe", "-m", "RNNZero:GRU", "-g", "hol", "--meanings", "4x4", "--word-length", "2", "--hidden", "160",
    "--seeds", "5", "--set", "check_every=20", "--workers", "2",
)  # fmt: skip
IN_ALL = 10  # replicates; hol takes three times the updates of concat, so the first is on file long before the last


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


def wait_for_record(process: subprocess.Popen[str], out: str) -> None:
    """Until the first replicate is on file."""
    end = time.monotonic() + 900
    while not list(Path(out).glob("records/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def files(out: str) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path(out).glob("records/*.json")}


@pytest.mark.process
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(out: str) -> None:
    process = start(*SLOW, "--out", out)
    assert process.stderr is not None
    seen = ""
    while f"[1/{IN_ALL}]" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=900)
    kept = files(out)
    assert process.returncode == 130
    assert "Traceback" not in seen + rest
    assert f"Interrupted: {len(kept)} of {IN_ALL} finished and kept in {out}." in rest
    assert "run the same command again: icy probe -m RNNZero:GRU -g hol --meanings 4x4" in rest
    assert 1 <= len(kept) < IN_ALL
    assert (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert f"{counted(IN_ALL - len(kept), 'replicate')} of 1 model to train" in again.stderr
    assert f"{len(kept)} on file" in again.stderr
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL


@pytest.mark.slow
def test_ctrl_c_says_what_left_a_checkpoint(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_often(monkeypatch)
    save = Checkpoints.save

    def interrupted(checkpoints: Checkpoints, course: Any) -> None:
        save(checkpoints, course)
        raise KeyboardInterrupt

    probe = (
        "probe",
        "-m",
        "sender/FC1L",
        "-g",
        "perm",
        "--meanings",
        "2x3",
        "--seeds",
        "2",
        "--workers",
        "1",
        "--out",
        out,
    )
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", interrupted)
        ended = run(*probe)
    assert ended.exit_code == 130
    assert f"Interrupted: 0 of 4 finished and kept in {out}; 4 unfinished have a checkpoint." in ended.stderr
    assert run(*probe).exit_code == 0
    assert not (Path(out) / CHECKPOINTS).exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_the_command_even_if_a_library_drops_the_interrupt(
    out: str, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """As in a bare `except:` around an optional import."""

    def drop(*given: Any) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(ProgressWatcher, "filed", drop)
    ended = run(*FC2L, "--out", out, "--workers", workers)
    assert (ended.exit_code, "Ended by SIGTERM: " in ended.stderr) == (143, True), ended.stderr


@pytest.mark.process
def test_kill_loses_and_repeats_nothing_that_is_finished(out: str) -> None:
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    process.kill()
    process.communicate(timeout=900)  # ends once the workers, which share stderr, are gone too
    kept = files(out)
    assert 1 <= len(kept) < IN_ALL
    assert not (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL
    assert not list(Path(out).rglob(".*"))


# -- other ways to end -------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))  # which this process knows already
    return folder


@pytest.mark.process
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_the_end_of_a_job_keeps_what_is_finished_and_leaves_nothing(
    out: str, temporary: Path, name: str, code: int
) -> None:
    """As `scancel` and a lost connection send it: to all processes."""
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    os.killpg(process.pid, getattr(signal, name))
    _, said = process.communicate(timeout=900)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert f"Ended by {name}: {len(files(out))} of {IN_ALL} finished and kept in {out}." in said
    assert len(pd.read_csv(Path(out) / "results.csv")) == len(files(out)) >= 1
    assert not list(temporary.iterdir())
    assert not (Path(out) / "claims").exists()


@pytest.mark.process
def test_many_interrupts_leave_no_stack_trace(out: str) -> None:
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    for _ in range(8):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.06)
    _, said = process.communicate(timeout=900)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "ignored" not in said
    assert said.count("Interrupted: ") == 1
    assert (Path(out) / "results.csv").exists()


@pytest.mark.process
def test_a_lost_terminal_is_an_end_like_others(out: str) -> None:
    """Every word to it is an error; the tables are written all the same."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "icy", *SLOW, "--out", out]

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(there, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, cwd=ROOT, stdin=there, stdout=there, stderr=there, preexec_fn=take_terminal)
    os.close(there)
    while not files(out):
        assert process.poll() is None
        if select.select([here], [], [], 0.02)[0]:  # else it would wait for someone to read
            os.read(here, 4096)
    os.close(here)
    assert process.wait(900) == 129
    assert len(pd.read_csv(Path(out) / "results.csv")) == len(files(out))


@pytest.mark.process
def test_what_a_killed_run_left_is_swept_at_the_next_start(out: str, temporary: Path) -> None:
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    process.kill()
    process.communicate(timeout=900)
    assert [path.name.startswith("icy-pool-") for path in temporary.iterdir()] == [True]
    assert (Path(out) / "claims").exists()
    assert run(*SLOW, "--out", out, "--workers", "1").exit_code == 0
    assert not list(temporary.iterdir())
    assert not (Path(out) / "claims").exists()


@pytest.mark.process
def test_a_script_keeps_its_handlers(tmp_path: Path) -> None:
    script = f"""
import signal, icy
before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
icy.probe("sender/FC1L", "perm", quick=True, workers=2, out={str(tmp_path)!r}, target=0.5, progress=False)
print(before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.stdout.splitlines()[-2:] == ["True", "set()"], done.stderr


# -- dry runs: estimates that train and write nothing ------------------------------------------------------------------


@pytest.mark.slow
def test_dry_run_trains_and_writes_nothing(out: str) -> None:
    result = run(*FC2L, "-m", "RNNZero:GRU", "-g", "perm", "-o", out, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "4 of 4" in result.stdout
    assert "The time of an update was measured" in result.stderr
    assert not Path(out).exists()
    rows = json.loads(run(*FC2L, "-g", "perm", "-o", out, "--dry-run", "--format", "json").stdout)
    assert rows[0]["grammars"] == "concat perm"
    assert 0 < rows[0]["least_seconds"] < rows[0]["most_seconds"]


# -- `--compare` of `icy probe` ----------------------------------------------------------------------------------------


def test_a_new_model_is_placed_from_the_command_line(tmp_path: Path) -> None:
    words = ["probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "--compare", "atlas", "--workers", "1"]
    done = run(*words, "-o", str(tmp_path / "r"))
    assert done.exit_code == 0, done.output
    assert "sender/FC1L among" in done.stdout
    assert "Nearest in bias space" in done.stdout
    result = icy.ProbeResult.load(tmp_path / "r")
    theirs = icy.atlas().table
    both = to_long(result.records).merge(theirs, on="key", suffixes=("", "_atlas"))
    assert len(both) == 4  # filed under the same keys as in the atlas
    assert ((both["steps"] - both["steps_atlas"]).abs() <= 100).all()  # two checks, for another processor's last bits
