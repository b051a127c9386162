"""The fault suite, in small; `python -m tests.stress.faults` does each fault many times."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stress import faults

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    return faults.Bench(tmp_path, models=("receiver/RNN1L:GRU",))


@pytest.mark.stress
def test_a_killed_sweep_and_two_in_a_folder_lose_repeat_and_leave_nothing(bench: Any) -> None:
    assert len(bench.whole) == 4
    killed = bench.disturb("killed", faults.signals(signal.SIGKILL, longest=0.5, after=faults.Sweep.works), 1)
    together = bench.together("together", 2, 1)
    assert (killed.tries, together.tries) == (1, 1)
    assert killed.exits == {-9: 1}
    assert together.exits == {0: 2}
    assert killed.clean, killed
    assert together.clean, together


@pytest.mark.stress
def test_no_fault_costs_anything(bench: Any) -> None:
    found = list(faults.suite(bench, 2))
    assert all(counts.clean for counts in found), found
    assert all(counts.tries for counts in found)


def test_what_goes_wrong_is_counted(tmp_path: Path) -> None:
    """A suite that could not see a loss would show zeros for ever."""
    counts, folder = faults.Counts("none"), tmp_path / "results"
    (folder / "records").mkdir(parents=True)
    for key in ("same", "other", "more"):
        (folder / "records" / f"{key}.json").write_text(f'{{"key": "{key}", "steps": 1}}')
    bench = faults.Bench.__new__(faults.Bench)
    bench.temporary, bench.whole = tmp_path / "tmp", faults.records(folder)
    bench.whole["gone"], bench.whole["other"] = bench.whole.pop("more"), {"key": "other", "steps": 2}
    (bench.temporary / "icy-pool-left").mkdir(parents=True)
    (tmp_path / "log").write_text("same new\nother new\nother new\nmore again\n")
    bench._finish(counts, folder, [tmp_path / "log"])
    assert (counts.lost, counts.differing, counts.repeated, counts.left) == (1, 2, 2, 1)
    assert not counts.clean
