"""The live display: what it shows, and that it fits the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from icy.cli.display import LiveWatcher
from icy.config.specs import ProbeSpec
from icy.experiments.plan import Plan, make_plan
from icy.training.job import Reading, Replicate


@pytest.mark.parametrize("width", [40, 80, 120])
def test_live_display_fits_the_terminal(plan: Plan, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    watcher.started(plan)
    watcher.read(plan.rows[0].job, [Reading(Replicate(g, s), 50, 0.25) for g in ("concat", "perm") for s in (123, 124)])
    console.print(watcher.render())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "perm\N{NO-BREAK SPACE}0.25" in shown
    assert "FC2L" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_live_display_tells_hidden_sizes_apart(tmp_path: Path) -> None:
    sizes = ProbeSpec(
        ["sender/FC2L", "receiver/FC2L"], "perm", meanings="2x3", word_length=2, hidden="4,8", out=tmp_path
    )
    plan = make_plan(sizes)
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    watcher.started(plan)
    for row, accuracy in zip(plan.rows[:2], (0.25, 0.75), strict=True):
        watcher.read(row.job, [Reading(Replicate("perm", 123), 50, accuracy)])
    console.print(watcher.render())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    for place, (label, accuracy) in enumerate((("sender/FC2L E=4", "0.25"), ("sender/FC2L E=8", "0.75"))):
        assert lines[2 * place].startswith(label)
        assert accuracy in lines[2 * place + 1]
    assert "0 of 4 rows" in lines[-1]
    assert "2 rows waiting" in lines[-1]
