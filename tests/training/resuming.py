"""Trainings that are killed after some checkpoints, and resume from them."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import icy
from icy.records.store import CHECKPOINTS
from icy.training import chain_training, lockstep
from icy.training.job import Job, Outcome
from icy.training.lockstep import Lockstep


class _Killed(BaseException):
    """Stands in for a signal: nothing catches it."""


def leave_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a checkpoint after every few updates."""
    monkeypatch.setattr(lockstep, "SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "SHARE", math.inf)
    monkeypatch.setattr(chain_training, "SECONDS", 0.0)
    monkeypatch.setattr(lockstep, "DRAWN_AT_ONCE", 4)


def killed(of: Job, after: int) -> list[Outcome]:
    """Train a job until its stacks have saved `after` checkpoints; return the outcomes so far."""
    save, count, ended = Lockstep.save_if_due, 0, list[Outcome]()

    def counted(loop: Lockstep) -> None:
        nonlocal count
        save(loop)
        count += loop.checkpoints._used  # pre-training saves none
        if count == after:
            raise _Killed

    with pytest.MonkeyPatch.context() as patched:
        leave_often(patched)
        patched.setattr(Lockstep, "save_if_due", counted)
        with pytest.raises(_Killed):
            ended.extend(of.train())
    return ended


def resumed(of: Any, ended: Sequence[Outcome]) -> list[Outcome]:
    """Resume a killed job without its finished replicates, as a plan does; return all outcomes."""
    done = {o.replicate for o in ended}
    steps = {o.replicate.seed: o.baseline_crossing or o.baseline_steps for o in ended if of.is_baseline(o.replicate)}
    left = replace(of, replicates=tuple(r for r in of.replicates if r not in done), baselines={**of.baselines, **steps})
    return [*ended, *left.train()]


def numbers(outcomes: Sequence[Outcome]) -> dict[tuple[str, int], Any]:
    """Return all of the outcomes but the time they took."""
    return {(o.replicate.condition, o.replicate.seed): replace(o, seconds=0.0, curve=list(o.curve)) for o in outcomes}


def updates_of(folder: Path) -> list[int]:
    """Return the updates of the checkpoints in a folder, sorted."""
    return sorted(torch.load(path, weights_only=True)["updates"] for path in (folder / CHECKPOINTS).glob("*.pt"))


def kill_at_checkpoint(call: str, out: Path, options: Mapping[str, Any], count: int = 1) -> list[dict[str, Any]]:
    """Train in another process that leaves checkpoints after every few updates; kill it once there are so many.

    Args:
        call: its beginning, as in `icy.train("s2b", `.
        out: the results folder.
        options: of the call.
        count: of checkpoints.

    Returns:
        Their states.
    """
    script = f"""
import json, sys
import icy
from icy.training import lockstep
lockstep.SECONDS, lockstep.DRAWN_AT_ONCE = 0.0, 4
{call}out=sys.argv[1], progress=False, **json.loads(sys.argv[2]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(icy.__file__).parent.parent)}
    process = subprocess.Popen([sys.executable, "-c", script, str(out), json.dumps(options)], env=environment)
    while len(list((out / CHECKPOINTS).glob("*.pt"))) < count:
        assert process.poll() is None, "it ended before there was a checkpoint"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return [torch.load(path, weights_only=True) for path in (out / CHECKPOINTS).glob("*.pt")]
