"""The loop of all trainings: stacks of replicates advance in lockstep, with checkpoints between updates."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from icy.core import gpu
from icy.core.errors import IncompatibleError, StoreError, what_and_where
from icy.core.files import write_atomically
from icy.core.machine import out_of_memory
from icy.core.processes import stop_if_ending
from icy.core.text import counted, listed
from icy.core.types import Choices, State
from icy.records.store import CHECKPOINTS, RECORDS, STALE_SECONDS

from .job import Job, Outcome, Reading, Replicate, Report
from .stack import WARM_UP

# -- checkpoints of long trainings, saved in the results folder to resume after an interruption ------------------------


log = logging.getLogger(__name__)
SECONDS = 30.0  # between two checkpoints
SHARE = 0.05  # largest fraction of the time spent on checkpoints
FORMAT = 1  # format of a replicate's state; training does not resume from other formats
UPDATES = "updates"  # key of the number of updates in a replicate's state


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

    def save(self, state: State) -> None:
        """Save a state of tensors, numbers, text, and lists and dicts of these. The file is written atomically.

        If the file cannot be written, a warning is logged.
        """
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
        if job is not None:
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

    def save(self, course: Course[Any]) -> None:
        """Save a checkpoint of every replicate of a stack."""
        with self._pace.saving():
            about = {"format": FORMAT, UPDATES: course.updates, "how": self._how(course.learner)}
            for place, one in enumerate(course.active):
                state = {**about, "learner": course.learner.state(place), "own": course.own(place)}
                self._of[one.replicate].save(state)

    def resume(self, course: Course[Any]) -> None:
        """Make the learner of a stack, and resume from its checkpoints.

        The stack is new if there are none, or if another engine saved them. All are after the same update.
        """
        course.learner = course.make_learner()
        replicates = [one.replicate for one in course.active]
        states = [state for r in replicates if (state := self._known.pop(r, None)) is not None]
        if not states or len(states) < len(replicates):
            return
        try:
            if different := {state["how"] for state in states} - {self._how(course.learner)}:
                now = self._how(course.learner)
                raise IncompatibleError(f"it was trained {listed(sorted(different))}, and now {now}")
            if any(set(state["own"]) != set(course.own(0)) for state in states):
                raise IncompatibleError("another version of icy saved it")
            course.learner.resume([state["learner"] for state in states])
        except Exception as error:  # for example, other content in the file
            self._of[replicates[0]].refuse(error, len(replicates) - 1)
            course.learner = course.make_learner()
            return
        course.updates = states[0][UPDATES]
        course.resume([state["own"] for state in states])
        log.info("Resuming after update %s with %s.", course.updates, counted(len(states), "replicate"))

    def _how(self, learner: Any) -> str:
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
    if isinstance(state, dict) and "training" in state:  # of an agent, by icy 0.3 or older
        learner = state.pop("training")
        about = {"format": FORMAT, UPDATES: learner["updates"], "how": "by the engine 'pytorch' on cpu"}
        return {**about, "learner": learner, "own": state}
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


# -- the loop of all trainings, and its questions to each kind ---------------------------------------------------------

DRAWN_AT_ONCE = 64  # most batches in memory
LONGEST = 5.0  # most seconds of updates in a call, so that checkpoints are not delayed
J = TypeVar("J", bound=Job)


@dataclass
class Progress:
    """The progress of one replicate of a stack.

    Attributes:
        replicate: the replicate.
        curve: a point per evaluation, with the columns of `JobKind.curve`.
        seconds: the replicate's share of the time of its stacks, over all sessions.
    """

    replicate: Replicate
    curve: list[Any] = field(default_factory=list)
    seconds: float = 0.0


P = TypeVar("P", bound=Progress)


class Course(ABC, Generic[P]):
    """The questions of the loop to a kind of training, in their order.

    Args:
        job: the job.
        active: the progress of its replicates. Their checkpoints, if there are any, are after the same update.

    Attributes:
        active: the progress of each replicate that has not ended, in the order of the stack.
        saved: attributes of a progress that are in checkpoints.
        learner: the learner of these replicates.
        updates: number of updates so far.
    """

    saved: Sequence[str]
    learner: Any
    updates = 0

    def __init__(self, job: Any, active: list[P]) -> None:
        gpu.make_current(job.device)
        self.job, self.active, self.device = job, active, torch.device(job.device)

    @abstractmethod
    def make_learner(self) -> Any:
        """Make the learner of the replicates."""

    @abstractmethod
    def next_check(self) -> int | None:
        """Return the number of updates at the next evaluation, 0 for one before the first; None if all were made."""

    def at_once(self) -> int:
        """Return the maximum number of updates in the next call of `update`."""
        return DRAWN_AT_ONCE

    @abstractmethod
    def update(self, count: int) -> None:
        """Make `count` updates, which the loop counts afterwards."""

    @abstractmethod
    def read(self) -> list[Reading]:
        """Evaluate, add points to the curves, and return the readings to report."""

    @abstractmethod
    def ended(self) -> dict[int, str]:
        """Return the places of the replicates that end after this evaluation, with reasons."""

    @abstractmethod
    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield the outcomes of these replicates, which are still in the stack."""

    @abstractmethod
    def keep(self, staying: list[int]) -> None:
        """Keep only the replicates at these places in everything that is stacked besides the learner."""

    def own(self, place: int) -> State:
        """Return the state of a replicate for a checkpoint, in addition to the learner's state."""
        return {name: getattr(self.active[place], name) for name in self.saved}

    def resume(self, owns: Sequence[State]) -> None:
        """Resume from these states of the replicates."""
        for one, own in zip(self.active, owns, strict=True):
            for name in self.saved:
                setattr(one, name, own[name])

    def place(self, replicate: Replicate) -> int:
        """Return the place of a replicate in the stack."""
        return [one.replicate for one in self.active].index(replicate)

    def diverged(self) -> list[bool]:
        """Return whether the last loss of each replicate is not finite."""
        losses = self.learner.losses()
        return [False] * len(self.active) if losses is None else (~torch.isfinite(losses)).tolist()

    def outcome(self, place: int, reason: str, accuracy: float, **more: Any) -> Outcome:
        """Return the outcome of a replicate that ends now. `more` are further fields."""
        one = self.active[place]
        about: Choices = {"curve": one.curve, "engine": self.learner.engine, "seconds": one.seconds}
        accuracy = math.nan if reason == "diverged" else accuracy
        return Outcome(one.replicate, reason, self.updates, accuracy, **about | more)


class Lockstep:
    """The loop: replicates of a kind of training advance in lockstep, from the beginning or from checkpoints.

    Args:
        course: the kind of training, with its replicates.
        checkpoints: the checkpoints to save and to resume from; by default none.
    """

    def __init__(self, course: Course[Any], checkpoints: Checkpoints | None = None) -> None:
        self.course = course
        self.checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self.checkpoints.resume(course)
        self._pace = 0.0  # seconds of an update, measured at the last updates

    def outcomes(self, report: Report | None = None) -> Iterator[Outcome]:
        """Train until every replicate has ended; yield the outcome of each while it is still in the stack.

        Args:
            report: called with the readings of every evaluation.
        """
        course = self.course
        while course.active:
            stop_if_ending()
            if (until := course.next_check()) is not None:
                self.advance(until)
                with self._timed():
                    readings = course.read()
                if report is not None and readings:
                    report(readings)
            if ended := course.ended():
                yield from course.outcomes(ended)
                self._retire(ended)
            if course.active and course.updates:
                self.save_if_due()

    def advance(self, until: int) -> None:
        """Make updates up to a total number, with checkpoints in between."""
        course = self.course
        while course.updates < until:
            most = max(1, int(LONGEST / self._pace)) if self._pace else DRAWN_AT_ONCE
            count = min(DRAWN_AT_ONCE, most, course.at_once(), until - course.updates)
            began = time.perf_counter()
            with self._timed():
                course.update(count)
            course.updates += count
            self._pace = (time.perf_counter() - began) / count
            if course.updates < until:
                self.save_if_due()

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the time of the block to the replicates, in equal shares."""
        began = time.perf_counter()
        yield
        share = (time.perf_counter() - began) / len(self.course.active)
        for one in self.course.active:
            one.seconds += share

    def _retire(self, ended: Collection[int]) -> None:
        """Remove replicates from the stack."""
        course = self.course
        staying = [place for place in range(len(course.active)) if place not in ended]
        if staying:
            course.learner.keep(staying)
            course.keep(staying)
        course.active = [course.active[place] for place in staying]

    def save_if_due(self) -> None:
        """Save a checkpoint of every replicate if checkpoints are due."""
        if self.checkpoints.due:
            self.checkpoints.save(self.course)


def in_groups(
    job: J,
    train: Callable[[J, Checkpoints], Iterator[Outcome]],
    files: Mapping[Replicate, Checkpoint] | None = None,
) -> Iterator[Outcome]:
    """Train a job's replicates as one stack, or as several stacks if their checkpoints are after different updates.

    Args:
        job: the job to train.
        train: trains a part of the job, with the known baselines. All its replicates have made equally many updates.
        files: the checkpoint of each replicate; by default a file named after the key of its record.
    """
    if job.checkpoints and files is None:
        sweep_checkpoints(job.folder)
    checkpoints, baselines = Checkpoints(job, files), dict(job.baselines)
    for group in checkpoints.groups():
        for outcome in train(replace(job, replicates=group, baselines=baselines), checkpoints):
            yield outcome
            checkpoints.forget(outcome.replicate)  # now the caller has put its record on file
            if job.is_baseline(outcome.replicate):
                baselines = {**job.baselines_in([job.record(outcome)]), **baselines}


def train_courses(job: J, course_of: Callable[[J], Course[Any]], report: Report | None) -> Iterator[Outcome]:
    """Train a job's replicates in groups, each by the course of its part of the job; see Job.train."""
    return in_groups(job, lambda part, checkpoints: Lockstep(course_of(part), checkpoints).outcomes(report))


def seconds_of_update(course: Course[Any], updates: int) -> float:
    """Return the seconds of one update of a stack, which cannot be trained afterwards.

    Args:
        course: the training.
        updates: number of timed updates. As many updates run before them, because the first updates are slower.
    """
    loop = Lockstep(course)
    loop.advance(updates if course.device.type == "cpu" else updates + WARM_UP + 1)  # also captures an update
    gpu.wait(course.job.device)
    started = time.perf_counter()
    loop.advance(course.updates + updates)
    gpu.wait(course.job.device)
    return (time.perf_counter() - started) / updates
