"""Output: tables that fit the terminal, and durations."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import icy
from icy.cli.output import print_on_terminal
from icy.core.text import duration


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bias_table_fits_the_terminal(tiny: icy.ProbeResult, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_on_terminal(tiny.bias_table(), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert all(word in shown for word in ("sender/FC2L", "concat", "perm", "rot"))


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0.2, 59, 60, 3725, 90_000)] == ["0.2 s", "59 s", "1 min", "1 h 2 min", "1 d 1 h"]
