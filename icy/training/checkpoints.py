"""Checkpoints: what long trainings leave in the results folder, and go on from after they were killed."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import torch

from icy.core.errors import IncompatibleError, StoreError, what_and_where
from icy.core.files import write_atomically
from icy.core.memory import out_of_memory
from icy.core.text import counted, listed
from icy.core.types import State
from icy.records.store import CHECKPOINTS, RECORDS, STALE_SECONDS

from .job import Job, Replicate
from .learners import Learner

log = logging.getLogger(__name__)
SECONDS = 30.0  # between two of a training
SHARE = 0.05  # of the time that they may take
FORMAT = 1  # of the state of a replicate of a stack; another is not gone on from
UPDATES = "updates"  # made so far, in such a state
L = TypeVar("L", bound=Learner)


class _Pace:
    """When it is time for a checkpoint: twice a minute, unless they take too long."""

    def __init__(self) -> None:
        self._saved, self._cost = time.perf_counter(), 0.0

    @property
    def due(self) -> bool:
        """Whether it is time for one."""
        return time.perf_counter() - self._saved > max(SECONDS, self._cost / SHARE)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Time what is saved within the block."""
        began = time.perf_counter()
        yield
        self._saved = time.perf_counter()
        self._cost = self._saved - began


class Checkpoint:
    """The checkpoint of one training: a file in the results folder, which its record replaces.

    Args:
        folder: the results folder.
        key: what the training's record is filed under.
        label: what to call the training in warnings.
        used: whether one is left, and gone on from, at all.
    """

    def __init__(self, folder: str | Path, key: str, label: str, used: bool = True) -> None:
        self.path = Path(folder) / CHECKPOINTS / f"{key}.pt"
        self.label, self.used = label, used
        self._pace = _Pace()

    @property
    def due(self) -> bool:
        """Whether it is time for one: twice a minute, unless they take too long."""
        return self.used and self._pace.due

    def save(self, state: State) -> None:
        """Leave a state of tensors, numbers, text and lists and dicts of these, whole or not at all.

        A training that cannot leave one goes on without.
        """
        with self._pace.saving():
            held = io.BytesIO()
            torch.save(state, held)
            try:
                write_atomically(self.path, held.getbuffer())
            except StoreError as error:
                log.warning("No checkpoint of %s: %s", self.label, error)

    def load(self) -> State | None:
        """Return the state that was left, with its tensors on the CPU; None if there is none that can be read."""
        if not self.used or not self.path.exists():
            return None
        try:
            state: State = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:  # of whatever kind: what was half done is then done again
            damage = f"it is damaged ({type(error).__name__})"
            self.refuse(error if out_of_memory(error) else StoreError(damage))
            return None
        return state

    def refuse(self, error: Exception, others: int = 0) -> None:
        """Say that the state cannot be gone on from, nor those of so many others of its stack."""
        if out_of_memory(error):
            raise error  # which whoever runs the job knows a way around
        them = f" and {counted(others, 'other')} of its stack" if others else ""
        why = what_and_where(error).rstrip(".")
        log.warning("The checkpoint %s%s cannot be gone on from, so training begins anew: %s.", self.path, them, why)

    def forget(self) -> None:
        """Remove it."""
        _remove(self.path)


@dataclass
class Resumed(Generic[L]):
    """A stack that goes on, or begins.

    Attributes:
        learner: of its replicates.
        updates: made so far.
        own: what else was saved of each replicate, in their order; empty if it begins anew.
    """

    learner: L
    updates: int = 0
    own: list[State] = field(default_factory=list)


class Checkpoints:
    """The checkpoints of a job that trains stacks: a file per replicate, so that one can go on in another company.

    They are read once, when the job begins.

    Args:
        job: whose replicates they are of; None for a stack that leaves none.
    """

    def __init__(self, job: Job | None = None) -> None:
        self._of: dict[Replicate, Checkpoint] = {}
        self._known: dict[Replicate, State] = {}
        self._job, self._used, self._pace = job, job is not None and job.checkpoints, _Pace()
        if job is None:
            return
        for r in job.replicates:
            label = f"{job.name} on {r.condition}, seed {r.seed}"
            self._of[r] = one = Checkpoint(job.folder, job.key(r), label, job.checkpoints)
            if (state := _read(one)) is not None:
                self._known[r] = state

    @property
    def due(self) -> bool:
        """Whether it is time for those of a stack: twice a minute, unless they take too long."""
        return self._used and self._pace.due

    def groups(self) -> list[tuple[Replicate, ...]]:
        """Return the replicates in groups that are equally far, the furthest first.

        Those that are further than a baseline they wait for come after all of these, as where its file was damaged.
        """
        ahead = _ahead_of_baselines(self._job, self._known) if self._job is not None else set()
        far: dict[tuple[bool, int], list[Replicate]] = {}
        for replicate in self._of:
            far.setdefault((replicate not in ahead, self.updates(replicate)), []).append(replicate)
        return [tuple(far[place]) for place in sorted(far, reverse=True)]

    def updates(self, replicate: Replicate) -> int:
        """Return the updates after which a replicate goes on."""
        return self._known[replicate][UPDATES] if replicate in self._known else 0

    def save(self, learner: Learner, updates: int, own: Mapping[Replicate, State]) -> None:
        """Leave a checkpoint of every replicate of a stack.

        Args:
            learner: of the replicates.
            updates: made so far.
            own: what else goes on, of every replicate in the order of the stack: numbers, text, tensors, and lists and
                dicts of these.
        """
        with self._pace.saving():
            for place, (replicate, rest) in enumerate(own.items()):
                about = {"format": FORMAT, UPDATES: updates, "how": self._how(learner)}
                self._of[replicate].save({**about, "learner": learner.state(place), "own": rest})

    def resumed(self, replicates: Sequence[Replicate], make: Callable[[], L], own: Collection[str]) -> Resumed[L]:
        """Return a stack as it was saved; from its beginning if it was not, or not by the same engine.

        Args:
            replicates: in order; what was saved of them is of one step.
            make: makes their learner, as it begins.
            own: names of what else goes on of each.
        """
        learner = make()
        states = [state for r in replicates if (state := self._known.pop(r, None)) is not None]
        if not states or len(states) < len(replicates):
            return Resumed(learner)
        try:
            if strange := {state["how"] for state in states} - {self._how(learner)}:
                raise IncompatibleError(f"it was trained {listed(sorted(strange))}, and now {self._how(learner)}")
            if any(set(state["own"]) != set(own) for state in states):
                raise IncompatibleError("another version of icy left it")
            learner.resume([state["learner"] for state in states])
        except Exception as error:  # as when it holds something else
            self._of[replicates[0]].refuse(error, len(replicates) - 1)
            return Resumed(make())
        updates = states[0][UPDATES]
        log.info("Going on after update %s with %s.", updates, counted(len(states), "replicate"))
        return Resumed(learner, updates, [state["own"] for state in states])

    def _how(self, learner: Learner) -> str:
        """Return how a stack is trained, as far as the last bits of its numbers depend on it."""
        assert self._job is not None
        return f"by the engine '{learner.engine.partition('+')[0]}' on {self._job.device.partition(':')[0]}"

    def forget(self, replicate: Replicate) -> None:
        """Remove the checkpoint of a replicate."""
        self._of[replicate].forget()


def _read(one: Checkpoint) -> State | None:
    """Return the state of a replicate of a stack, if there is one that this version of icy left."""
    state = one.load()
    if state is not None and not (isinstance(state, dict) and state.get("format") == FORMAT):
        one.refuse(IncompatibleError("another version of icy left it"))
        return None
    return state


def _ahead_of_baselines(job: Job, known: Mapping[Replicate, State]) -> set[Replicate]:
    """Return the replicates that are further than a baseline they wait for."""
    waiting = {r.seed: r for r in job.replicates if job.is_baseline(r) and r.seed not in job.baselines}
    updates = {seed: known.get(baseline, {}).get(UPDATES, 0) for seed, baseline in waiting.items()}
    return {r for r, state in known.items() if state[UPDATES] > updates.get(r.seed, state[UPDATES])}


def sweep_checkpoints(folder: str | Path) -> None:
    """Remove checkpoints that are older than a result on file, and what was being written when a process was killed.

    Those beside a failure stay, as of a worker that was killed: `--rerun failed` goes on from them.
    """
    folder = Path(folder)
    for path in (folder / CHECKPOINTS).glob("*.pt"):
        record = folder / RECORDS / f"{path.stem}.json"
        with contextlib.suppress(OSError, ValueError):  # other processes may have removed it
            if record.stat().st_mtime >= path.stat().st_mtime and not json.loads(record.read_bytes()).get("failed"):
                _remove(path)
    for path in (folder / CHECKPOINTS).glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                _remove(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other processes may have theirs in the folder, or have removed it
        path.parent.rmdir()
