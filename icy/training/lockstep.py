"""Lockstep: stacks of replicates with equal numbers of updates, and with checkpoints between updates."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from icy.core.errors import IncompatibleError, StoreError, what_and_where
from icy.core.files import write_atomically
from icy.core.machine import out_of_memory
from icy.core.text import counted, listed
from icy.core.types import State
from icy.records.store import CHECKPOINTS, RECORDS, STALE_SECONDS

from .job import Job, Outcome, Replicate
from .learners import Learner

# -- checkpoints of long trainings, saved in the results folder to resume after an interruption ------------------------


log = logging.getLogger(__name__)
SECONDS = 30.0  # between two checkpoints
SHARE = 0.05  # largest fraction of the time spent on checkpoints
FORMAT = 1  # format of a replicate's state; training does not resume from other formats
UPDATES = "updates"  # key of the number of updates in a replicate's state
L = TypeVar("L", bound=Learner)


class Pace:
    """Schedules checkpoints: twice a minute, or less often if saving takes long."""

    def __init__(self) -> None:
        self._saved, self._cost = time.perf_counter(), 0.0

    def due(self, seconds: float | None = None) -> bool:
        """Return whether a checkpoint is due.

        Args:
            seconds: minimum time since the last checkpoint; by default SECONDS.
        """
        least = SECONDS if seconds is None else seconds
        return time.perf_counter() - self._saved > max(least, self._cost / SHARE)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Measure the time of saving within the block."""
        began = time.perf_counter()
        yield
        self._saved = time.perf_counter()
        self._cost = self._saved - began


class Checkpoint:
    """The checkpoint of one training: a file in the results folder until the record is written.

    Args:
        folder: the results folder.
        key: key of the training's record.
        label: name of the training in warnings.
        used: whether to save checkpoints and to resume from them.
    """

    def __init__(self, folder: str | Path, key: str, label: str, used: bool = True) -> None:
        self.path = Path(folder) / CHECKPOINTS / f"{key}.pt"
        self.label, self.used = label, used
        self._pace = Pace()

    @property
    def due(self) -> bool:
        """Whether a checkpoint is due: twice a minute, or less often if saving takes long."""
        return self.used and self._pace.due()

    def save(self, state: State) -> None:
        """Save a state of tensors, numbers, text, and lists and dicts of these. The file is written atomically.

        If the file cannot be written, a warning is logged.
        """
        with self._pace.saving():
            buffer = io.BytesIO()
            torch.save(state, buffer)
            try:
                write_atomically(self.path, buffer.getbuffer())
            except StoreError as error:
                log.warning("No checkpoint of %s was saved: %s", self.label, error)

    def load(self) -> State | None:
        """Return the saved state, with its tensors on the CPU; None if there is no readable checkpoint."""
        if not self.used or not self.path.exists():
            return None
        try:
            state: State = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:  # any damage: training then starts again
            damage = f"it is damaged ({type(error).__name__})"
            self.refuse(error if out_of_memory(error) else StoreError(damage))
            return None
        return state

    def refuse(self, error: Exception, others: int = 0) -> None:
        """Warn that training cannot resume from this state and from `others` more states of the stack."""
        if out_of_memory(error):
            raise error  # the runner handles this
        more = f" and {counted(others, 'other')} of its stack" if others else ""
        why = what_and_where(error).rstrip(".")
        log.warning("The checkpoint %s%s cannot be used, so training starts again: %s.", self.path, more, why)

    def forget(self) -> None:
        """Remove the file."""
        _remove(self.path)


class Checkpoints:
    """The checkpoints of a job that trains stacks: a file per replicate, so that stacks may change on resuming.

    The files are read once, when the job begins.

    Args:
        job: the job; None for a stack without checkpoints.
        files: the checkpoint of each replicate; by default a file named after the key of its record.
    """

    def __init__(self, job: Job | None = None, files: Mapping[Replicate, Checkpoint] | None = None) -> None:
        self._of: dict[Replicate, Checkpoint] = {}
        self._known: dict[Replicate, State] = {}
        self._job, self._used, self._pace = job, job is not None and job.checkpoints, Pace()
        if job is None:
            return
        self._of = {r: checkpoint_of(job, r) for r in job.replicates} if files is None else dict(files)
        for r, checkpoint in self._of.items():
            if (state := read_state(checkpoint)) is not None:
                self._known[r] = state

    @property
    def due(self) -> bool:
        """Whether the stack's checkpoints are due: twice a minute, or less often if saving takes long."""
        return self._used and self._pace.due()

    def groups(self) -> list[tuple[Replicate, ...]]:
        """Return groups of replicates with equal numbers of updates, in descending order of updates.

        Replicates with more updates than their unfinished baseline come last. This happens if the baseline's
        checkpoint was damaged.
        """
        ahead: set[Replicate] = set()
        if (job := self._job) is not None:
            waiting = {r.seed: r for r in job.replicates if job.is_baseline(r) and r.seed not in job.baselines}
            known = {seed: self.updates(baseline) for seed, baseline in waiting.items()}
            ahead = {r for r in self._known if self.updates(r) > known.get(r.seed, math.inf)}
        far: dict[tuple[bool, int], list[Replicate]] = {}
        for replicate in self._of:
            far.setdefault((replicate not in ahead, self.updates(replicate)), []).append(replicate)
        return [tuple(far[place]) for place in sorted(far, reverse=True)]

    def updates(self, replicate: Replicate) -> int:
        """Return the number of updates in the checkpoint of a replicate."""
        return self._known[replicate][UPDATES] if replicate in self._known else 0

    def save(self, learner: Learner, updates: int, own: Mapping[Replicate, State]) -> None:
        """Save a checkpoint of every replicate of a stack.

        Args:
            learner: learner of the replicates.
            updates: number of updates so far.
            own: additional states of the replicates, in the order of the stack: numbers, text, tensors, and lists and
                dicts of these.
        """
        with self._pace.saving():
            for place, (replicate, rest) in enumerate(own.items()):
                about = {"format": FORMAT, UPDATES: updates, "how": self._how(learner)}
                self._of[replicate].save({**about, "learner": learner.state(place), "own": rest})

    def resumed(
        self, replicates: Sequence[Replicate], make: Callable[[], L], own: Collection[str]
    ) -> tuple[L, int, list[State]]:
        """Return a stack from its checkpoints; a new stack if there are none, or if another engine saved them.

        Args:
            replicates: the replicates in order; their checkpoints have equal steps.
            make: makes a new learner of the replicates.
            own: names in the additional state of each replicate.

        Returns:
            The learner, its number of updates, and the additional states in order, which are empty for a new stack.
        """
        learner = make()
        states = [state for r in replicates if (state := self._known.pop(r, None)) is not None]
        if not states or len(states) < len(replicates):
            return learner, 0, []
        try:
            if different := {state["how"] for state in states} - {self._how(learner)}:
                raise IncompatibleError(f"it was trained {listed(sorted(different))}, and now {self._how(learner)}")
            if any(set(state["own"]) != set(own) for state in states):
                raise IncompatibleError("another version of icy saved it")
            learner.resume([state["learner"] for state in states])
        except Exception as error:  # for example, other content in the file
            self._of[replicates[0]].refuse(error, len(replicates) - 1)
            return make(), 0, []
        updates = states[0][UPDATES]
        log.info("Resuming after update %s with %s.", updates, counted(len(states), "replicate"))
        return learner, updates, [state["own"] for state in states]

    def _how(self, learner: Learner) -> str:
        """Return a phrase with the engine and device of a stack. Both affect the last bits of its results."""
        assert self._job is not None
        return f"by the engine '{learner.engine.partition('+')[0]}' on {self._job.device.partition(':')[0]}"

    def forget(self, replicate: Replicate) -> None:
        """Remove the checkpoint of a replicate."""
        self._of[replicate].forget()


def checkpoint_of(job: Job, replicate: Replicate) -> Checkpoint:
    """Return the checkpoint of a replicate of a job."""
    label = f"{job.name} on {replicate.condition}, seed {replicate.seed}"
    return Checkpoint(job.folder, job.key(replicate), label, job.checkpoints)


def read_state(checkpoint: Checkpoint) -> State | None:
    """Return the state of a replicate, if this version of icy saved it."""
    state = checkpoint.load()
    if state is not None and not (isinstance(state, dict) and state.get("format") == FORMAT):
        checkpoint.refuse(IncompatibleError("another version of icy saved it"))
        return None
    return state


def sweep_checkpoints(folder: str | Path) -> None:
    """Remove temporary files of killed processes, and checkpoints of replicates with a newer result on file.

    Checkpoints of failed replicates are kept, as after a killed worker: `--rerun failed` resumes from them.
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
    with contextlib.suppress(OSError):  # other processes may have files in the folder, or have removed it
        path.parent.rmdir()


DRAWN_AT_ONCE = 64  # most batches in memory
LONGEST = 5.0  # most seconds of updates in a call, so that checkpoints are not delayed
J = TypeVar("J", bound=Job)


def in_groups(job: J, train: Callable[[J, Checkpoints], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Train a job's replicates as one stack, or as several stacks if their checkpoints are after different updates.

    Args:
        job: the job to train.
        train: trains a part of the job, with the known baselines. All its replicates have made equally many updates.
    """
    if job.checkpoints:
        sweep_checkpoints(job.folder)
    checkpoints, baselines = Checkpoints(job), dict(job.baselines)
    for group in checkpoints.groups():
        for outcome in train(replace(job, replicates=group, baselines=baselines), checkpoints):
            yield outcome
            checkpoints.forget(outcome.replicate)  # now the caller has put its record on file
            if job.is_baseline(outcome.replicate):
                baselines = {**job.baselines_in([job.record(outcome)]), **baselines}


class Lockstep(ABC):
    """A stack of replicates that train in lockstep, from the beginning or from a checkpoint.

    Args:
        checkpoints: the checkpoints to save and to resume from; by default none.

    Attributes:
        checkpoints: the checkpoints.
        learner: the learner of the replicates.
        updates: number of updates so far.
    """

    learner: Learner

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self.checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self.updates = 0
        self._pace = 0.0  # seconds of an update, measured at the last updates

    def advance(self, until: int) -> None:
        """Make updates up to a total number, with checkpoints in between."""
        while self.updates < until:
            began, before = time.perf_counter(), self.updates
            with self.timed():
                self._update(min(self._few(), until - before))
            self._pace = (time.perf_counter() - began) / (self.updates - before)
            if self.updates < until:
                self.save_if_due()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of the block to the replicates, in equal shares."""
        began = time.perf_counter()
        yield
        self._share(time.perf_counter() - began)

    def _few(self) -> int:
        """Return the number of updates to make in a call."""
        return DRAWN_AT_ONCE if self._pace * DRAWN_AT_ONCE <= LONGEST else max(1, int(LONGEST / self._pace))

    def save_if_due(self) -> None:
        """Save a checkpoint of every replicate if checkpoints are due."""
        if self.checkpoints.due:
            self.save()

    def save(self) -> None:
        """Save a checkpoint of every replicate."""
        self.checkpoints.save(self.learner, self.updates, self._own())

    @abstractmethod
    def _update(self, count: int) -> None:
        """Make and count `count` updates."""

    @abstractmethod
    def _share(self, seconds: float) -> None:
        """Add a time to the replicates, in equal shares."""

    @abstractmethod
    def _own(self) -> Mapping[Replicate, State]:
        """Return the states of the replicates in addition to the learner's state, in the order of the stack."""
