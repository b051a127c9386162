"""Checkpoints of trainings in games: a file per replicate, so that a stack can go on in another company."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from icy.training.checkpoints import Checkpoint
from icy.training.job import Replicate

if TYPE_CHECKING:
    from .job import GameJob


class Checkpoints:
    """The checkpoints of a job, which are read once, when it begins.

    Args:
        job: whose replicates they are of.
    """

    def __init__(self, job: GameJob) -> None:
        self._of = {
            r: Checkpoint(job.folder, job.key(r), f"{job.name}, seed {r.seed}", job.checkpoints) for r in job.replicates
        }
        found = {replicate: _read(one, job.device) for replicate, one in self._of.items()}
        self._known = {replicate: state for replicate, state in found.items() if state is not None}

    def due(self, replicates: Iterable[Replicate]) -> bool:
        """Whether it is time for those of some replicates."""
        return any(self._of[replicate].due for replicate in replicates)

    def groups(self) -> list[tuple[Replicate, ...]]:
        """Return the replicates in groups that are equally far, the furthest first."""
        far: dict[int, list[Replicate]] = {}
        for replicate in self._of:
            far.setdefault(self._known.get(replicate, {}).get("updates", 0), []).append(replicate)
        return [tuple(far[updates]) for updates in sorted(far, reverse=True)]

    def take(self, replicate: Replicate) -> dict[str, Any] | None:
        """Return what was saved of a replicate, once."""
        return self._known.pop(replicate, None)

    def save(self, replicate: Replicate, state: dict[str, Any]) -> None:
        """Leave a checkpoint of a replicate; `state` has the number of its updates."""
        if self._of[replicate].used:
            self._of[replicate].save(state)

    def forget(self, replicate: Replicate) -> None:
        """Remove the checkpoint of a replicate."""
        self._of[replicate].forget()


def _read(one: Checkpoint, device: str) -> dict[str, Any] | None:
    state = one.load(device)
    if state is not None and not isinstance(state.get("updates"), int):
        one.refuse(ValueError("it holds something else"))
        return None
    return state
