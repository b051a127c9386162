"""Exit codes of commands, and signals that ask a command to end."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from icy.cli import exit_codes
from icy.cli.exit_codes import exit_code, exit_code_of, interruptible, what_happened
from icy.core.processes import NOTHING, interrupted_with
from tests.cli.helpers import run

# -- exit codes of commands --------------------------------------------------------------------------------------------


def interrupted_as_a_class_is_made() -> None:
    """As by a signal in the midst of an import: Python raises something else."""

    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    type("Made", (), {"field": Field()})


def test_an_interrupt_within_another_error_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        interrupted_as_a_class_is_made()
    assert exit_code_of(interrupted_as_a_class_is_made) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"


def test_other_errors_are_bugs() -> None:
    def fails() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        exit_code_of(fails)


THROUGH_EXEC = """
import click, icy.cli
def within_a_dataclass() -> None:
    exec("raise KeyboardInterrupt")
icy.cli.LazyGroup.get_command = lambda *_: click.Command("doctor", callback=within_a_dataclass)
icy.cli.main(prog_name="icy")
"""


def test_an_interrupt_within_exec_ends_with_its_exit_code(tmp_path: Path) -> None:
    """Python would end the process by SIGINT, whatever the exit code."""
    (tmp_path / "within.py").write_text(THROUGH_EXEC)
    done = subprocess.run(
        [sys.executable, "-m", "within", "doctor"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")


PROBE = "probe -m sender/FC2L -g perm --quick --seeds 1 --workers 1 -o out"
TABLE = "table out"


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="shells of Windows cannot close streams")
@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        ("<&-", 0),
        ("<&- >&- 2>&-", 0),
        ("| true", 1),  # of icy, by pipefail: nobody read the table
        ("2> >(true)", 0),
        ("2>/dev/full", 0),
        (">/dev/full", 1),
    ],
)
def test_a_closed_stream_costs_no_result(tmp_path: Path, streams: str, code: int) -> None:
    """Whatever icy cannot print, it trains and files everything, and ends without a traceback."""
    icy = f"{shlex.quote(sys.executable)} -m icy"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(words: str, streams: str) -> subprocess.CompletedProcess[str]:
        line = f"set -o pipefail; {icy} {words} {streams}"
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)

    for words in (PROBE, TABLE):
        done = run(words, streams)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert done.returncode == code
    assert len(list((tmp_path / "out" / "records").iterdir())) == 2
    assert (tmp_path / "out" / "results.csv").read_text().count("\n") == 3


# -- signals that ask a command to end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("SIGINT", 130, "Interrupted"), ("SIGTERM", 143, "Ended by SIGTERM"), ("SIGHUP", 129, "Ended by SIGHUP")],
)
def test_each_signal_interrupts_and_has_its_exit_code(name: str, code: int, said: str) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with interruptible(whole=False):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        for _ in range(8):  # what ends is not disturbed
            signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
        assert (exit_code(), what_happened()) == (code, said)
    assert signal.getsignal(number) is before


def test_an_end_that_takes_long_is_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with interruptible(whole=False):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        later = time.monotonic() + exit_codes.PATIENCE_SECONDS + 1
        monkeypatch.setattr(exit_codes, "time", SimpleNamespace(monotonic=lambda: later))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert exit_code() == 143  # of the first


def test_ignored_signals_stay_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible(whole=False):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


class Finalized:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs between two of these
            pass


def test_an_interrupt_that_python_drops_comes_again(capsys: pytest.CaptureFixture[str]) -> None:
    hook = sys.unraisablehook
    with interruptible(whole=False):
        made = Finalized()
        del made
        with pytest.raises(KeyboardInterrupt):
            time.sleep(20)
    assert sys.unraisablehook is hook
    assert "ignored" not in capsys.readouterr().err


LATE = """
import os, signal, sys
from icy.cli.exit_codes import interruptible
class Late:
    def __del__(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
with interruptible(whole=True):
    pass
_late = Late()  # goes with the last of Python, after its handlers
sys.exit(7)
"""


def test_signals_do_not_change_the_end_of_a_process() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (7, "")


def _interrupt(*given: object, **more: object) -> None:
    raise KeyboardInterrupt


SMALL = ("--quick", "--workers", "1")
STARTS = {
    "probe": ("probe", "-m", "sender/FC1L", "-g", "perm"),
    "sweep": ("sweep", "-m", "sender/FC1L", "-g", "perm"),
    "iterate": ("iterate", "-m", "sender/FC1L", "-g", "perm"),
    "e2e": ("e2e", "-s", "FC1L", "-r", "FC1L"),
    "search": ("search", "-m", "sender/FC1L,sender/FC2L", "--minimize", "ratio:perm"),
    "games": ("games", "train"),
}


@pytest.mark.parametrize(
    "where",
    ["importlib.import_module", "icy.config.requests.RunRequest.asked", "icy.core.registry.registry.load_files"],
)
@pytest.mark.parametrize("name", STARTS)
def test_an_interrupt_at_the_start_says_how_to_continue(
    name: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*STARTS[name], *SMALL, "-o", str(tmp_path))
    module, _, attribute = where.rpartition(".")
    target = "icy.cli.groups.importlib" if module == "importlib" else module
    monkeypatch.setattr(f"{target}.{attribute}", _interrupt)
    ended = run(*words)
    monkeypatch.undo()
    assert ended.exit_code == 130
    assert ended.stderr.strip().endswith(f"To continue, run the same command again: {shlex.join(['icy', *words])}")
    assert re.search(r"Interrupted: (nothing was trained|finished replicates are kept)\. ", ended.stderr)


def test_an_interrupt_between_two_batches_of_a_search_keeps_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icy.experiments.search.search import Trials

    monkeypatch.setattr(Trials, "batch", interrupted_with(NOTHING)(_interrupt))  # as while a batch is planned
    ended = run(*STARTS["search"], *SMALL, "-o", str(tmp_path))
    assert f"Interrupted: finished trials are kept in {tmp_path}. To continue, run the same command" in ended.stderr


def test_other_commands_are_only_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.core.registry.registry.entries", _interrupt)
    assert run("list", "models").stderr.strip() == "Interrupted."
