"""Trainings that are killed after some checkpoints, and go on from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from icy.training import checkpoints, lockstep
from icy.training.checkpoints import FOLDER
from icy.training.job import Job, Outcome


class _Killed(BaseException):
    """Stands in for a signal: nothing catches it."""


def leave_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a checkpoint after every few updates."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", math.inf)
    monkeypatch.setattr(lockstep, "DRAWN_AT_ONCE", 4)


def killed(of: Job, stack: type[Any], after: int) -> list[Outcome]:
    """Train a job until its stacks, of this class, have left so many checkpoints; return what had ended."""
    save, count, ended = stack.save_if_due, 0, list[Outcome]()

    def counted(run: Any) -> None:
        nonlocal count
        save(run)
        count += 1
        if count == after:
            raise _Killed

    with pytest.MonkeyPatch.context() as patched:
        leave_often(patched)
        patched.setattr(stack, "save_if_due", counted)
        with pytest.raises(_Killed):
            ended.extend(of.train())
    return ended


def resumed(of: Any, ended: Sequence[Outcome]) -> list[Outcome]:
    """Return all outcomes of a job that was killed, begun again as a plan does: without what is on file."""
    done = {o.replicate for o in ended}
    steps = {o.replicate.seed: o.baseline_crossing or o.baseline_steps for o in ended if of.is_baseline(o.replicate)}
    left = replace(of, replicates=tuple(r for r in of.replicates if r not in done), baselines={**of.baselines, **steps})
    return [*ended, *left.train()]


def numbers(outcomes: Sequence[Outcome]) -> dict[tuple[str, int], Any]:
    """Return all of the outcomes but the time they took."""
    return {(o.replicate.grammar, o.replicate.seed): replace(o, seconds=0.0, curve=list(o.curve)) for o in outcomes}


def updates_of(folder: Path) -> list[int]:
    """Return the updates of the checkpoints in a folder, sorted."""
    return sorted(torch.load(path, weights_only=True)["updates"] for path in (folder / FOLDER).glob("*.pt"))
