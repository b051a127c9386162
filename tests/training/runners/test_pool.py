"""The pool of worker processes: a worker that is killed begins again."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.core.errors import IcyError
from icy.experiments.plan import make_plan
from icy.experiments.progress import Watcher
from icy.experiments.run import run_plan
from icy.training.job import Job
from icy.training.probe_settings import ProbeRequest
from icy.training.runners import base as work
from icy.training.runners import pool
from tests.helpers import SMALL, numbers

HELD = """\
import time
from pathlib import Path
from icy.core.register import register_sender
from torch import nn

@register_sender("Held", description="Waits after the first evaluation while a file exists.", source="a test")
class Held(nn.Module):
    def __init__(self, space, message_length, vocab_size, hidden_size=8, representation=None):
        super().__init__()
        self.space, self.shape = space, (message_length, vocab_size + 1)
        self.out = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))
        self.updates = 0

    def forward(self, meanings):
        self.updates += self.training
        while self.updates > 20 and Path(HOLD).exists():
            time.sleep(0.01)
        hot = nn.functional.one_hot(meanings, self.space.values).float().flatten(1)
        return self.out(hot).view(-1, *self.shape)
"""


class Killer(Watcher):
    """Kills a worker at the first evaluation of the model Held. The worker waits for that as long as `hold` exists."""

    def __init__(self, times: int, hold: Path) -> None:
        super().__init__()
        self.left, self.hold = times, hold
        self.runner: pool.PoolRunner | None = None
        hold.touch()

    def read(self, job: Job, readings: Any) -> None:
        assert self.runner is not None
        (worker,) = (w for w in self.runner._pool if w.work is not None and w.work.job == job)
        if self.left and "Held" in job.name:
            self.left -= 1
            for process in worker.processes():
                with contextlib.suppress(ProcessLookupError):  # it was killed a moment ago
                    os.kill(process.pid, signal.SIGKILL)
        if not self.left:
            self.hold.unlink(missing_ok=True)


@pytest.fixture
def held(tmp_path: Path, forgetting: None) -> dict[str, Any]:
    """Arguments of a sweep over FC1L and the model Held."""
    plugin = tmp_path / "held.py"
    plugin.write_text(f"HOLD = {str(tmp_path / 'hold')!r}\n{HELD}")
    return {**SMALL, "model": ["sender/FC1L", "sender/Held"], "target": 0.99, "plugin": str(plugin)}


@pytest.fixture
def killing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(times: int) -> Killer:
        killer = Killer(times, tmp_path / "hold")
        real = pool.PoolRunner.__enter__

        def enter(self: pool.PoolRunner) -> pool.PoolRunner:
            killer.runner = self
            return real(self)

        monkeypatch.setattr(pool.PoolRunner, "__enter__", enter)
        return killer

    return install


@pytest.mark.process
def test_a_worker_that_is_killed_begins_again(
    tmp_path: Path, held: dict[str, Any], killing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plain = icy.sweep(**held, workers=1, out=str(tmp_path / "plain"))
    killer = killing(2)
    with caplog.at_level(logging.WARNING):
        found = icy.sweep(**held, workers=2, out=str(tmp_path / "killed"), watcher=killer)
    assert killer.left == 0
    assert "A worker or node was lost" in caplog.text
    assert numbers(found.records) == numbers(plain.records)
    assert not found.failures


@pytest.mark.slow
def test_a_job_that_is_killed_repeatedly_is_recorded_as_failed(
    tmp_path: Path, held: dict[str, Any], killing: Any
) -> None:
    out = str(tmp_path / "out")
    killer = killing(10_000)
    found = icy.sweep(**held, workers=2, out=out, retries=1, watcher=killer)
    assert {record["model"] for record in found.failures} == {"sender/Held"}
    assert work.KILLED.rstrip(".") in {record["error"] for record in found.failures}
    killer.hold.unlink()
    again = icy.sweep(**held, workers=2, out=out, rerun="failed")
    plain = icy.sweep(**held, workers=1, out=str(tmp_path / "plain"))
    assert numbers(again.records) == numbers(plain.records)


@pytest.mark.process
def test_a_probe_stops_at_a_worker_that_is_killed(tmp_path: Path, held: dict[str, Any], killing: Any) -> None:
    killer = killing(1)
    plan = make_plan(ProbeRequest.asked(**{**held, "workers": 2, "out": str(tmp_path / "out")}))
    with pytest.raises(IcyError, match="A worker process was killed"):
        run_plan(plan, killer)


NESTED = """\
import faulthandler, logging, multiprocessing, sys
faulthandler.dump_traceback_later(800, exit=True)  # so that a standstill shows where it is
import icy

def probe(out):
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    logging.getLogger("icy").addHandler(handler)
    result = icy.probe("sender/FC2L", ["perm", "rot"], quick=True, workers=2, progress=False, out=out)
    return [record["steps"] for record in result.records], [one for one in heard if "daemonic" in one]

class Results:
    def __init__(self, out):
        self.out = out

    def __len__(self):
        return 1

    def __getitem__(self, place):
        return probe(self.out)

if __name__ == "__main__":
    kind, out = sys.argv[1:]
    if kind == "DataLoader":
        from torch.utils.data import DataLoader
        (found,) = DataLoader(Results(out), batch_size=None, num_workers=1)
    else:
        with multiprocessing.get_context(kind).Pool(1) as pool:
            found = pool.apply(probe, (out,))
    assert tuple(found) == (probe(out + "-here")[0], ["This is a daemonic process, which cannot start workers; "
                                               "it trains the replicates itself."]), found
"""


@pytest.mark.process
@pytest.mark.parametrize("kind", ["fork", "spawn", "DataLoader"])
def test_a_daemonic_process_trains_itself(tmp_path: Path, kind: str) -> None:
    script = tmp_path / "nested.py"
    script.write_text(NESTED)
    words = [sys.executable, str(script), kind, str(tmp_path / "results")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
