"""Displays: their content, their width on a terminal, and their default in Python."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import icy
from icy.experiments.display import (
    LiveWatcher,
    NotebookWatcher,
    PlainWatcher,
    SparseWatcher,
    with_progress,
)
from icy.experiments.plan import Plan, make_plan
from icy.experiments.progress import ProgressWatcher, Watcher, Watchers
from icy.training.job import Reading, Replicate
from icy.training.probe_settings import ProbeRequest


@pytest.mark.parametrize("width", [40, 80, 120])
def test_live_display_fits_the_terminal(plan: Plan, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    ProgressWatcher.started(watcher, plan)  # and no thread that draws
    watcher.read(plan.rows[0].job, [Reading(Replicate(g, s), 50, 0.25) for g in ("concat", "perm") for s in (123, 124)])
    console.print(watcher.render())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "perm\N{NO-BREAK SPACE}0.25" in shown
    assert "FC2L" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_live_display_tells_hidden_sizes_apart(tmp_path: Path) -> None:
    sizes = ProbeRequest(
        ["sender/FC2L", "receiver/FC2L"], "perm", meanings="2x3", word_length=2, hidden="4,8", out=tmp_path
    )
    plan = make_plan(sizes)
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    ProgressWatcher.started(watcher, plan)  # and no thread that draws
    for row, accuracy in zip(plan.rows[:2], (0.25, 0.75), strict=True):
        watcher.read(row.job, [Reading(Replicate("perm", 123), 50, accuracy)])
    console.print(watcher.render())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    for place, (label, accuracy) in enumerate((("sender/FC2L E=4", "0.25"), ("sender/FC2L E=8", "0.75"))):
        assert lines[2 * place].startswith(label)
        assert accuracy in lines[2 * place + 1]
    assert "0 of 4 rows" in lines[-1]
    assert "2 rows waiting" in lines[-1]


# -- in Python ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ICY_PROGRESS", raising=False)


def test_a_script_shows_its_progress_unless_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Watcher()
    assert type(with_progress(None, None)) is SparseWatcher  # pytest's stderr is not a terminal
    assert type(with_progress(None, True)) is PlainWatcher
    assert with_progress(None, False) is None
    assert with_progress(own, None) is own
    both = with_progress(own, True)
    assert isinstance(both, Watchers)
    assert own in both.watchers
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert type(with_progress(None, None)) is LiveWatcher
    monkeypatch.setenv("ICY_PROGRESS", "0")
    assert with_progress(None, None) is None
    assert type(with_progress(None, True)) is LiveWatcher  # as it was asked for


def test_a_log_file_gets_a_line_a_minute_at_most(plan: Plan) -> None:
    now, console = [0.0], Console(file=io.StringIO(), width=200)
    watcher = SparseWatcher(console, clock=lambda: now[0])
    watcher.started(plan)
    for second in (1.0, 30.0, 61.0, 70.0, 125.0):
        now[0] = second
        watcher.read(plan.rows[0].job, [Reading(Replicate("concat", 123), int(second), 0.25)])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.split(":")[0] for line in lines] == ["[0/4] FC2L at 61 updates", "[0/4] FC2L at 125 updates"]


def test_a_notebook_shows_it_in_the_output_of_its_cell(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Output:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Output:
        shown.append(data["text/plain"])
        return Output()

    kernel = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: kernel, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", module)
    watcher = with_progress(None, None)
    assert isinstance(watcher, NotebookWatcher)
    watcher.started(plan)
    watcher.read(plan.rows[0].job, [Reading(Replicate("concat", 123), 50, 0.25)])
    watcher.ended()
    assert "0 of 4 replicates" in shown[0]
    assert "concat\N{NO-BREAK SPACE}0.25" in shown[1]
    assert "\x1b" not in "".join(shown)


QUICK: dict[str, Any] = {"workers": 1, "quick": True, "seeds": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "given"),
    [
        ("probe", {"model": "sender/FC1L", "grammar": "concat", **QUICK}),
        ("sweep", {"model": "sender/FC1L", "grammar": "concat", **QUICK}),
        ("end_to_end", {"sender": "FC1L", "receiver": "FC1L", "steps": 4, "report_every": 2, **QUICK}),
        ("reproduce", {"table": "icy22/3", "only": "Hashtable", "grammar": "perm", "workers": 1, "seeds": 1}),
    ],
)
def test_every_function_shows_its_progress(
    function: str, given: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    getattr(icy, function)(**given, out=tmp_path / "quiet")
    assert capfd.readouterr().err == ""  # shorter than a minute, and no terminal
    getattr(icy, function)(**given, out=tmp_path, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert "to train on cpu" in lines[0]
    assert lines[-1].startswith(f"[{len(lines) - 1}/{len(lines) - 1}]")
    getattr(icy, function)(**given, out=tmp_path, progress=True)  # all on file
    assert capfd.readouterr().err == ""
