"""Ctrl-C in a program that trains: KeyboardInterrupt with the finished replicates and a way to continue."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.core import processes as signals
from icy.experiments import plan

QUICK: dict[str, Any] = {"quick": True, "seeds": 1, "workers": 1, "progress": False}


class Stopped(icy.Watcher):
    """Presses Ctrl-C once the first replicate is recorded."""

    def filed(self, record: Any) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["probe", "sweep", "train", "end_to_end"])
def test_the_interrupt_reports_the_finished_replicates(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    call: dict[str, Any] = {
        "probe": lambda: icy.probe("sender/FC1L", "perm", watcher=Stopped(), out=tmp_path, **QUICK),
        "sweep": lambda: icy.sweep("sender/FC1L", grammar="perm", watcher=Stopped(), out=tmp_path, **QUICK),
        "train": lambda: icy.train(
            "probe", model="sender/FC1L", grammar="perm", watcher=Stopped(), out=tmp_path, **QUICK
        ),
        "end_to_end": lambda: icy.end_to_end(
            "FC1L", "FC1L", steps=10, watcher=Stopped(), out=tmp_path, **{**QUICK, "seeds": 2}
        ),
    }
    with pytest.raises(KeyboardInterrupt) as caught:
        call[kind]()
    assert type(caught.value) is KeyboardInterrupt  # by which Python ends with the code of Ctrl-C
    assert re.fullmatch(
        rf"1 of 2 finished and kept in {re.escape(str(tmp_path))}.*\. To continue, run the same call or script again\.",
        str(caught.value),
    )
    names = [entry.name for entry in caught.traceback]
    assert "_run" not in names  # the trace ends where icy was called


def test_other_exceptions_and_other_hooks_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own: Any = lambda *shown: None  # noqa: E731
    monkeypatch.setattr(sys, "excepthook", own)
    signals.interrupt_with("1 of 2 kept")
    assert sys.excepthook is own
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    error = signals.interrupt_with("1 of 2 kept")
    sys.excepthook(KeyboardInterrupt, error, None)
    assert capsys.readouterr().err == "\nInterrupted: 1 of 2 kept. To continue, run the same call or script again.\n"
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "KeyboardInterrupt\n"


@pytest.mark.process
def test_a_script_ends_with_one_line_and_the_code_of_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, icy\n"
        "class Stopped(icy.Watcher):\n"
        "    def filed(self, record): os.kill(os.getpid(), signal.SIGINT)\n"
        "options = dict(quick=True, seeds=1, workers=1, progress=False, watcher=Stopped())\n"
        f"icy.probe('sender/FC1L', 'perm', out={str(tmp_path / 'out')!r}, **options)\n"
    )
    root = Path(icy.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=900, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == -signal.SIGINT
    lines = done.stderr.strip().splitlines()
    kept = f"1 of 2 finished and kept in {tmp_path / 'out'}"
    assert lines == [f"Interrupted: {kept}. To continue, run the same call or script again."]


def test_an_interrupt_while_icy_plans_says_that_nothing_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plan, "store_of", interrupted)
    with pytest.raises(KeyboardInterrupt, match="nothing was trained"):
        icy.probe("sender/FC1L", "perm", out=tmp_path, **QUICK)
