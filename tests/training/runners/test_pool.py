"""The pool of worker processes: a worker that is killed begins again."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.specs import ProbeSpec
from icy.core.errors import IcyError
from icy.experiments.plan import make_plan
from icy.experiments.run import run_plan
from icy.experiments.watcher import Watcher
from icy.training.job import Job
from icy.training.runners import pool
from icy.training.runners import remote as work
from tests.helpers import SMALL, numbers


class Killer(Watcher):
    """Kills a worker at the first reading of every so many rows."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.runner: pool.PoolRunner | None = None

    def read(self, job: Job, readings: Any) -> None:
        if self.left:
            self.left -= 1
            assert self.runner is not None
            for process in self.runner._pool[0].processes():  # none, while it begins again
                with contextlib.suppress(ProcessLookupError):  # it was killed a moment ago
                    os.kill(process.pid, signal.SIGKILL)


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(times: int) -> Killer:
        killer = Killer(times)
        real = pool.PoolRunner.__enter__

        def enter(self: pool.PoolRunner) -> pool.PoolRunner:
            killer.runner = self
            return real(self)

        monkeypatch.setattr(pool.PoolRunner, "__enter__", enter)
        return killer

    return install


@pytest.mark.process
def test_a_worker_that_is_killed_begins_again(tmp_path: Path, killing: Any, caplog: pytest.LogCaptureFixture) -> None:
    plain = icy.sweep(**SMALL, workers=1, out=str(tmp_path / "plain"))
    killer = killing(2)
    with caplog.at_level(logging.WARNING):
        found = icy.sweep(**SMALL, workers=2, out=str(tmp_path / "killed"), watcher=killer)
    assert killer.left == 0
    assert "again" in caplog.text
    assert numbers(found.records) == numbers(plain.records)
    assert not found.failures


@pytest.mark.slow
def test_what_is_killed_time_and_again_is_kept_as_failed_and_the_rest_goes_on(tmp_path: Path, killing: Any) -> None:
    killer = killing(10_000)
    found = icy.sweep(**SMALL, workers=2, out=str(tmp_path), retries=1, watcher=killer)
    assert found.failures
    assert work.KILLED.rstrip(".") in {record["error"] for record in found.failures}
    killer.left = 0
    again = icy.sweep(**SMALL, workers=2, out=str(tmp_path), rerun="failed")
    plain = icy.sweep(**SMALL, workers=1, out=str(tmp_path / "plain"))
    assert numbers(again.records) == numbers(plain.records)


@pytest.mark.process
def test_a_probe_stops_at_a_worker_that_is_killed(tmp_path: Path, killing: Any) -> None:
    killer = killing(1)
    plan = make_plan(ProbeSpec.asked(**{**SMALL, "workers": 2, "out": str(tmp_path)}))
    with pytest.raises(IcyError, match="A worker process was killed"):
        run_plan(plan, killer)
