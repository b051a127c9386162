"""Progress of runs: its displays, and callbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import icy
from icy.experiments.display import _left
from icy.experiments.plan import Plan
from icy.experiments.progress import AT_MOST, ProgressWatcher, RowProgress, Watcher, Watchers
from icy.training.job import Reading
from tests.helpers import TINY

# -- progress of a row and its remaining time --------------------------------------------------------------------------


def test_remaining_time_is_bounded_once_concat_is_known(plan: Plan) -> None:
    row = RowProgress("FC2L", plan.rows[0])
    everyone = plan.rows[0].job.replicates
    row.read([Reading(r, 0, 0.1) for r in everyone], now=0.0)
    row.read([Reading(r, 100, 0.5) for r in everyone], now=4.0)
    assert row.remaining() is None
    for seed in (123, 124):
        row.filed({"grammar": "concat", "seed": seed, "failed": False, "baseline_steps": 100})
    # Two replicates of perm may train for 20 * 100 steps; 400 replicate steps took 4 seconds.
    assert row.remaining() == pytest.approx(2 * 1900 * 4 / 400)
    assert [name for name, _, ended in row.accuracies() if ended] == ["concat"]


def test_updates_of_an_earlier_run_do_not_count_for_the_pace(plan: Plan) -> None:
    row = RowProgress("FC2L", plan.rows[0])
    everyone = plan.rows[0].job.replicates
    for seed in (123, 124):
        row.filed({"grammar": "concat", "seed": seed, "failed": False, "baseline_steps": 100})
    row.read([Reading(r, 1000, 0.1) for r in everyone], now=0.0)  # resumed from a checkpoint
    assert row.remaining() is None
    row.read([Reading(r, 1100, 0.5) for r in everyone], now=4.0)
    assert row.remaining() == pytest.approx(2 * 900 * 4 / 400)


def test_stacks_of_a_row_resume_from_their_own_steps(plan: Plan) -> None:
    """As with two workers, which report one stack each."""
    row = RowProgress("FC2L", plan.rows[0])
    for seed in (123, 124):
        row.filed({"grammar": "concat", "seed": seed, "failed": False, "baseline_steps": 100})
    mine, other = ([r for r in plan.rows[0].job.replicates if r.seed == seed] for seed in (123, 124))
    row.read([Reading(r, 1000, 0.1) for r in mine], now=0.0)
    row.read([Reading(r, 1500, 0.1) for r in other], now=0.0)
    row.read([Reading(r, 1100, 0.5) for r in mine], now=4.0)
    row.read([Reading(r, 1600, 0.5) for r in other], now=4.0)
    assert row.remaining() == pytest.approx((900 + 400) * 4 / 400)


def test_expected_updates_give_the_remaining_time_until_they_have_passed(plan: Plan) -> None:
    everyone = plan.rows[0].job.replicates
    row = RowProgress("FC2L", plan.rows[0], expected={r: 300 if r.condition == "perm" else 150 for r in everyone})
    row.read([Reading(r, 0, 0.1) for r in everyone], now=0.0)
    row.read([Reading(r, 100, 0.5) for r in everyone], now=4.0)
    assert row.remaining() == pytest.approx(2 * (200 + 50) * 4 / 400)  # also before concat is known
    assert _left(row).startswith("about ")
    for seed in (123, 124):
        row.filed({"grammar": "concat", "seed": seed, "failed": False, "baseline_steps": 100})
    assert row.remaining() == pytest.approx(2 * 200 * 4 / 400)
    perm = [r for r in everyone if r.condition == "perm"]
    row.read([Reading(r, 400, 0.6) for r in perm], now=8.0)  # slower than nearly all similar records
    assert row.remaining() == pytest.approx(2 * 1600 * 8 / (2 * 100 + 2 * 400))


def test_a_row_that_may_end_early_has_its_expected_updates(plan: Plan) -> None:
    watcher = ProgressWatcher(Console())
    watcher.started(plan)
    (row,) = watcher.rows.values()
    assert row.row.job.limit_text() == AT_MOST
    assert {r.condition for r in row.expected} <= {"concat", "perm"}
    assert all(0 < steps < 100_000 for steps in row.expected.values())


# -- watchers: in what order they are called, also after an interruption -----------------------------------------------


class Diary(Watcher):
    """Notes events in their order; raises an error at one of them."""

    def __init__(self, error: BaseException | None = None, where: str = "filed") -> None:
        super().__init__()
        self.events: list[str] = []
        self.error, self.where = error, where

    def _note(self, what: str) -> None:
        self.events.append(what)
        if self.error is not None and what == self.where:
            raise self.error

    def started(self, plan: Any) -> None:
        super().started(plan)
        self._note("started")

    def read(self, job: Any, readings: Any) -> None:
        self._note("read")

    def filed(self, record: dict[str, Any]) -> None:
        self._note("filed")

    def ended(self) -> None:
        self._note("ended")


def test_several_watchers_get_the_same_events(tmp_path: Path) -> None:
    one, other = Diary(), Diary()
    both = Watchers(one, other)
    icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=both, **TINY)
    assert one.events == other.events
    assert one.events[0] == "started"
    assert one.events[-1] == "ended"
    assert [one.events.count(what) for what in ("started", "filed", "ended")] == [1, 2, 1]
    assert "read" in one.events
    assert one.plan is other.plan is both.plan is not None


def test_watchers_get_events_without_training(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    diary = Diary()
    icy.probe("sender/FC2L", "perm", out=tiny_folder, watcher=diary, **TINY)
    assert diary.events == ["started", "ended"]


@pytest.mark.parametrize("where", ["started", "read", "filed"])
def test_watchers_get_the_end_after_an_interruption(tmp_path: Path, where: str) -> None:
    stopped, other = Diary(KeyboardInterrupt(), where), Diary()
    with pytest.raises(KeyboardInterrupt):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(stopped, other), **TINY)
    assert stopped.events[-2:] == [where, "ended"]
    assert other.events[-1] == "ended"
    assert other.events.count("ended") == 1


def test_all_watchers_get_the_end_although_one_raises(tmp_path: Path) -> None:
    failing, other = Diary(OSError("no"), "ended"), Diary()
    with pytest.raises(OSError, match="no"):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(failing, other), **TINY)
    assert other.events[-1] == "ended"
    assert (tmp_path / "results.csv").exists()
