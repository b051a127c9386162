"""Run a plan: train the missing replicates, record each of them, and return the results."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from icy.core.errors import IncompatibleError
from icy.core.processes import interrupt_with, sweep_scratch
from icy.core.text import counted, listed
from icy.records.long_table import tables_of, tables_show, write_tables
from icy.records.record import Record
from icy.records.store import CHECKPOINTS, Claims, Store, sweep_claims
from icy.training.combinations import warn_of_same_networks
from icy.training.job import Job, Replicate
from icy.training.runners.base import LocalRunner, Runner, deal, one_thread

from .plan import Plan, Row, called
from .progress import Watcher
from .results import ProbeResult, result_class

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0  # between two checks of the other runs in the folder
STACK_ON_CPU = 16  # replicates in one stack; larger stacks do not fit in the caches and are not faster


def run_plan(plan: Plan, watcher: Watcher | None = None, retries: int = 0, tables: bool = True) -> ProbeResult:
    """Train and record the missing replicates of a plan, and return all of its results.

    Args:
        plan: the plan to run.
        watcher: callbacks.
        retries: how often a stack is restarted after its worker was killed, before it is recorded as failed. With 0, a
            killed worker is an error.
        tables: whether to write the tables of the folder at the end. A caller with many plans writes them once.

    Returns:
        The results, of the class of the plan's kind of jobs (`JobKind.result`).

    Raises:
        IcyError: as for `icy.probe`.
        KeyboardInterrupt: at Ctrl-C; its text names the finished replicates.
    """
    started = time.time()
    try:
        return _run(plan, watcher or Watcher(), retries, tables)
    except KeyboardInterrupt:
        raise interrupt_with(finished_text(plan, started)) from None


def _run(plan: Plan, watcher: Watcher, retries: int, tables: bool) -> ProbeResult:
    sweep_scratch()
    sweep_claims(plan.store.folder)
    warn_of_same_networks(row.job for row in plan.rows)
    require_engine(plan.rows)
    rows, plan.store.plan_versions = list(plan.rows), plan.versions
    if plan.total or plan.start:
        plan.store.prepare()
    for pack in plan.start:
        pack.unpack(plan.store)
    with contextlib.ExitStack() as at_the_end:  # also after an error or Ctrl-C
        at_the_end.callback(watcher.ended)
        if not plan.total:
            watcher.started(plan)
        else:
            if tables:
                at_the_end.callback(write_tables, plan.store)  # tables of the finished replicates
            with Claims(plan.store.folder) as claims, make_runner(plan, watcher, retries) as runner:
                watcher.started(plan)  # after the workers are forked, as a display runs a thread
                training = _Rows(plan, watcher, runner, claims)
                training.train()
            rows = training.rows
    records = [record for row in rows for record in row.filed]
    # Tables may have been removed, or made with another version of a plug-in.
    if tables and (plan.start or (records and not tables_show(plan.store, records))):
        write_tables(plan.store)
    written = [path for path in tables_of(plan.store) if path.exists()]
    keys = [row.job.key(r) for row in rows for r in row.job.replicates]
    place = {key: number for number, key in enumerate(keys)}
    ordered = sorted(records, key=lambda record: place[record["key"]])
    return result_class(plan.kinds)(ordered, written, plan.store.folder)


def require_engine(rows: Iterable[Row]) -> None:
    """Rehearse an update of each row that is to be trained by a certain engine on this machine.

    Raises:
        IncompatibleError: the engine cannot run the model.
    """
    jobs = {row.job.alike: row.job for row in rows if row.missing and row.job.device != "auto"}
    for job in jobs.values():
        if job.engine in ("auto", "loop"):
            continue
        try:
            with one_thread():
                replace(job, replicates=job.replicates[:1], checkpoints=False).rehearse(1)
        except IncompatibleError:
            raise
        except Exception as error:  # training records it as a failure
            log.debug("%s cannot be rehearsed: %s", job.name, error)


def finished_text(plan: Plan, started: float) -> str:
    """Return a part of a sentence about the finished replicates of an interrupted plan.

    Args:
        plan: the plan.
        started: time when the run began, in seconds since 1970.
    """
    total = sum(len(row.job.replicates) for row in plan.rows)
    paths = {key: plan.store.path(key) for row in plan.rows for key in map(row.job.key, row.missing)}
    margin = 1.0  # second; file systems store less exact times than programs use
    fresh = sum(path.exists() and path.stat().st_mtime >= started - margin for path in paths.values())
    begun = [key for key, path in paths.items() if not path.exists()]
    left = sum((plan.store.folder / CHECKPOINTS / f"{key}.pt").exists() for key in begun)
    half_done = f"; {left} unfinished have a checkpoint" if left else ""
    finished = sum(len(row.filed) for row in plan.rows) + fresh
    return f"{finished} of {total} finished and kept in {plan.store.folder}{half_done}"


def make_runner(plan: Plan, watcher: Watcher, retries: int = 0) -> Runner:
    """Choose the runner: this process, a pool of workers, or a Ray cluster.

    A daemonic process, such as a worker of `multiprocessing.Pool` or of PyTorch's `DataLoader`, cannot start workers.
    """
    reports = watcher.read, watcher.filed
    if plan.runner == "ray":
        from icy.training.runners.ray_cluster import RayRunner

        return RayRunner(plan.workers, *reports, max(retries, 1), plan.device, plan.per_gpu)
    nested = plan.workers > 1 and multiprocessing.current_process().daemon
    if nested:
        log.warning("This is a daemonic process, which cannot start workers; it trains the replicates itself.")
    if plan.workers == 1 or nested:
        return LocalRunner(*reports, plan.device)
    from icy.training.runners.pool import PoolRunner

    return PoolRunner(plan.workers, *reports, retries, plan.device)


class _Rows:
    """The rows of a plan during training. Stacks are submitted in order, each when a worker is free.

    On a pool, a row's baselines come first, because the other grammars of a seed stop relative to its baseline. Workers
    without a stack meanwhile start the next row's baselines. A single process trains baselines and grammars of a row
    together, in lockstep.

    Another run may train in the same folder. So every stack is claimed before it is submitted, and the folder is
    checked again. Replicates that the other run is training or has recorded are left out. At the end, this run waits
    for the other run.

    Args:
        plan: the plan.
        watcher: callbacks.
        runner: the runner, which trains the stacks.
        claims: the claims of this run.
    """

    def __init__(self, plan: Plan, watcher: Watcher, runner: Runner, claims: Claims) -> None:
        self.rows = list(plan.rows)
        self._watcher, self._runner, self._claims = watcher, runner, claims
        self._store = Store(plan.store.folder, warn=False)  # the plan has warned of records that cannot be read
        self._waiting = deque(i for i, row in enumerate(plan.rows) if row.missing)  # rows that have not started
        self._stacks: deque[tuple[int, Job]] = deque()  # waiting stacks of the rows that have started
        self._tickets: dict[int, tuple[int, Job]] = {}
        self._in_other_runs: dict[int, set[Replicate]] = {}  # replicates that another run is training
        self._warned = False
        self._tables = _Tables(plan.store)

    def train(self) -> None:
        """Train everything, and wait for replicates that another run is training."""
        while True:
            self._fill()
            for ticket, records in self._runner.finished():
                index, job = self._tickets.pop(ticket)
                self.rows[index] = self.rows[index].with_records(records)
                self._claims.done(_keys(job))
                self._queue_next(index)
                self._fill()
                self._tables.refresh()
            if not any(self._in_other_runs.values()):
                return
            self._wait()

    # -- stacks of this run ------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Submit stacks until every worker has one."""
        while len(self._tickets) < self._runner.workers and (stack := self._next()) is not None:
            self._begin(*stack)

    def _next(self) -> tuple[int, Job] | None:
        if not self._stacks and not self._waiting:
            self._check_folder()  # replicates that another run has left give idle workers a stack
        while not self._stacks and self._waiting:
            self._open(self._waiting.popleft())
        return self._stacks.popleft() if self._stacks else None

    def _open(self, index: int) -> None:
        """Queue the stacks of a row that can be trained now."""
        row = self._available_row(index)
        jobs = stacks_of(row, self._runner.device, self._runner.workers, ready=True)
        self._stacks.extend((index, job) for job in jobs)

    def _queue_next(self, index: int) -> None:
        """Queue the next stacks of a row when all of its queued stacks are done."""
        if index not in [i for i, _ in (*self._tickets.values(), *self._stacks)]:
            self._open(index)

    def _begin(self, index: int, job: Job) -> None:
        """Submit a stack, without replicates that another run is training or has recorded."""
        keys = _keys(job)
        mine = self._claims.take(keys)
        self._collect(index, keys)  # after claiming, since other runs record a replicate before they release its claim
        left = set(self.rows[index].missing)
        self._in_other_runs.setdefault(index, set()).update(r for k, r in keys.items() if k not in mine and r in left)
        now = self._available_row(index).missing
        ready = tuple(r for k, r in keys.items() if k in mine and r in now)
        self._claims.drop([k for k in mine if keys[k] not in ready])
        if ready:
            job = replace(job, replicates=ready, baselines=self.rows[index].baselines())
            self._tickets[self._runner.submit(job)] = index, job
        else:
            self._queue_next(index)

    # -- replicates of other runs ------------------------------------------------------------------------------------

    def _available_row(self, index: int) -> Row:
        """Return a row without replicates that another run is training, or that wait for a baseline in another run."""
        row, others = self.rows[index], self._in_other_runs.get(index, set())
        seeds = {r.seed for r in others if row.job.is_baseline(r)}
        return replace(row, missing=tuple(r for r in row.missing if r not in others and r.seed not in seeds))

    def _collect(self, index: int, keys: Mapping[str, Replicate]) -> bool:
        """Add records of some replicates that another run has written; return whether there were any."""
        row = self.rows[index]
        records = [called(record, r) for key, r in keys.items() if (record := self._new_record(row, key)) is not None]
        self.rows[index] = row.with_records(records)
        for record in records:
            self._watcher.found(record)
        return bool(records)

    def _new_record(self, row: Row, key: str) -> Record | None:
        """Return the record of a key if it was written after the plan was made."""
        record = self._store.get(key)
        if record is None or record["finished"] == row.before.get(key):
            return None
        return None if row.job.keep_models and self._store.lacks_model(record) else record

    def _check_folder(self) -> None:
        """Add the new records of other runs, and queue the replicates that these runs claimed but did not train."""
        if not any(self._in_other_runs.values()):
            return
        claimed = {key for claim in self._claims.others() for key in claim.keys}
        for index, replicates in self._in_other_runs.items():
            keys = {self.rows[index].job.key(r): r for r in replicates}
            recorded = self._collect(index, keys)
            free = {r for key, r in keys.items() if key not in claimed or r not in self.rows[index].missing}
            replicates -= free
            if recorded or free:
                self._queue_next(index)

    def _wait(self) -> None:
        """Wait a moment for the other runs, with a warning the first time."""
        if not self._warned:
            self._warned = True
            count = counted(sum(map(len, self._in_other_runs.values())), "replicate")
            who = listed([str(claim) for claim in self._claims.others() if claim.keys]) or "it has just ended"
            log.warning("Waiting for %s that another run is training: %s.", count, who)
        time.sleep(LOOK_SECONDS)


def _keys(job: Job) -> dict[str, Replicate]:
    """Return the replicates of a job by key."""
    return {job.key(r): r for r in job.replicates}


class _Tables:
    """Rewrites the tables of a results folder about once a minute, so that they can be read while a plan runs."""

    SECONDS = 60.0

    def __init__(self, store: Store) -> None:
        self._store, self._written = store, time.monotonic()

    def refresh(self) -> None:
        """Write the tables if the last time was a minute ago; less often if writing takes long."""
        begun = time.monotonic()
        if begun - self._written > self.SECONDS:
            write_tables(self._store)
            took = time.monotonic() - begun
            self._written = begun + 20 * took


def stacks_of(row: Row, device: str, workers: int, ready: bool = False) -> list[Job]:
    """Split the missing replicates of a row into jobs, each the stack of one worker.

    On a GPU a row is one stack, even if several workers share the GPU, since a GPU is efficient with many models.

    Args:
        row: the row.
        device: where to compute.
        workers: number of workers.
        ready: return only the jobs that can start now: the baselines, if the row has several stacks.
    """
    on_cpu = device == "cpu"
    most = STACK_ON_CPU if on_cpu else max(1, len(row.missing))
    baselines = tuple(r for r in row.missing if row.job.is_baseline(r))
    together = len(row.missing) <= most and (workers == 1 or not on_cpu)
    parts = [row.missing]
    if baselines and not together:
        others = tuple(r for r in row.missing if not row.job.is_baseline(r))
        parts = [baselines] if ready else [baselines, others]
    stacks = [stack for part in parts for stack in deal(part, workers if on_cpu else 1, most)]
    return [replace(row.job, replicates=stack, baselines=row.baselines(), device=device) for stack in stacks]
