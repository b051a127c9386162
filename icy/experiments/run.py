"""Run a plan: train what it lacks, file each replicate, and return the results."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from icy.core.scratch import sweep_scratch
from icy.core.signals import interrupt_with
from icy.core.text import counted, listed
from icy.records.claims import Claims, sweep_claims
from icy.records.long_table import tables_of, tables_show, write_tables
from icy.records.record import Record
from icy.records.store import CHECKPOINTS, Store
from icy.training.job import Job, Replicate
from icy.training.runners.base import LocalRunner, Runner, deal

from .plan import Plan, Row, called
from .results import ProbeResult, result_class
from .watcher import Watcher

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0  # between two looks at what another run is at
STACK_ON_CPU = 16  # replicates in one stack; more bring nothing once a stack outgrows the caches


def run_plan(plan: Plan, watcher: Watcher | None = None, retries: int = 0) -> ProbeResult:
    """Train what a plan lacks, record it, and return all of its results.

    Args:
        plan: what to run.
        watcher: callbacks.
        retries: how often a stack whose worker was killed is begun again, before it is recorded as failed; 0, a worker
            that is killed is an error.

    Returns:
        The results, of the class of the plan's kind of jobs (`JobKind.result`).

    Raises:
        IcyError: as for `icy.probe`.
        KeyboardInterrupt: at Ctrl-C; its text names the finished replicates.
    """
    started = time.time()
    try:
        return _run(plan, watcher or Watcher(), retries)
    except KeyboardInterrupt:
        raise interrupt_with(kept_text(plan, started)) from None


def _run(plan: Plan, watcher: Watcher, retries: int) -> ProbeResult:
    sweep_scratch()
    sweep_claims(plan.store.folder)
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
            at_the_end.callback(write_tables, plan.store)  # for what had finished
            rows = _run_rows(plan, watcher, retries)
    records = [record for row in rows for record in row.filed]
    if plan.start or (records and not tables_show(plan.store, records)):  # removed, or of another version of a plug-in
        write_tables(plan.store)
    written = [path for path in tables_of(plan.store) if path.exists()]
    return result_class(plan.kinds).collect(sorted(records, key=_order(rows)), written, plan.store.folder)


def kept_text(plan: Plan, started: float) -> str:
    """Return the kept results of an interrupted plan, for a sentence.

    Args:
        plan: as it was made.
        started: time when the run began, in seconds since 1970.
    """
    total = sum(len(row.job.replicates) for row in plan.rows)
    begun = _under_way(plan)
    half_done = f"; {begun} under way left a checkpoint" if begun else ""
    return f"{_finished(plan, started)} of {total} finished and kept in {plan.store.folder}{half_done}"


def _under_way(plan: Plan) -> int:
    """Return the number of replicates that have a checkpoint to resume from."""
    keys = [row.job.key(r) for row in plan.rows for r in row.missing]
    left = [key for key in keys if (plan.store.folder / CHECKPOINTS / f"{key}.pt").exists()]
    return sum(not plan.store.path(key).exists() for key in left)


def _finished(plan: Plan, started: float) -> int:
    """Return the number of replicates on file: those from before, and those recorded since."""
    paths = [plan.store.path(row.job.key(r)) for row in plan.rows for r in row.missing]
    margin = 1.0  # second; file systems keep time less exactly than programs
    fresh = sum(path.exists() and path.stat().st_mtime >= started - margin for path in paths)
    return sum(len(row.filed) for row in plan.rows) + fresh


def make_runner(plan: Plan, watcher: Watcher, retries: int = 0) -> Runner:
    """Choose the runner: this process, a pool of workers, or a Ray cluster.

    A daemonic process, such as a worker of `multiprocessing.Pool` or of PyTorch's `DataLoader`, may not start others.
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


def _order(rows: Sequence[Row]) -> Callable[[Record], tuple[int, int]]:
    """Return the sort key of the plan's order."""
    place = {row.job.key(r): (i, j) for i, row in enumerate(rows) for j, r in enumerate(row.job.replicates)}
    return lambda record: place[record["key"]]


def _run_rows(plan: Plan, watcher: Watcher, retries: int) -> list[Row]:
    """Train what every row lacks and return the rows with all of their records."""
    with Claims(plan.store.folder) as claims, make_runner(plan, watcher, retries) as runner:
        watcher.started(plan)  # only now: a display runs a thread, and beside one no worker can be forked
        rows = _Rows(plan, watcher, runner, claims)
        rows.train()
    return rows.rows


class _Rows:
    """The rows of a plan while they are trained: stacks in their order, each handed out when there is room for it.

    On a pool, a row's baselines come first, because the other grammars of a seed stop relative to its baseline; the
    next row's baselines come behind the first row's grammars, so that no worker waits. One process trains baselines
    and grammars of a row together, in lockstep.

    Another run may be at work in the same folder. So every stack is claimed before it is handed out, and the folder
    looked at again: what the other is at, or has filed, is left out. At the end the other is waited for.

    Args:
        plan: whose rows they are.
        watcher: callbacks.
        runner: who trains.
        claims: of this run.
    """

    def __init__(self, plan: Plan, watcher: Watcher, runner: Runner, claims: Claims) -> None:
        self.rows = list(plan.rows)
        self._watcher, self._runner, self._claims = watcher, runner, claims
        self._store = Store(plan.store.folder, warn=False)  # the plan has warned of records that cannot be read
        self._waiting = deque(i for i, row in enumerate(plan.rows) if row.missing)  # rows that are not begun
        self._stacks: deque[tuple[int, Job]] = deque()  # of those that are
        self._tickets: dict[int, tuple[int, Job]] = {}
        self._elsewhere: dict[int, set[Replicate]] = {}  # what another run is at
        self._told = False
        self._tables = _Tables(plan.store)

    def train(self) -> None:
        """Train everything, and wait for what another run is at."""
        while True:
            self._fill()
            for ticket, records in self._runner.finished():
                index, job = self._tickets.pop(ticket)
                self.rows[index] = self.rows[index].with_records(records)
                self._claims.done(_keys(job))
                self._go_on(index)
                self._fill()
                self._tables.refresh()
            if not any(self._elsewhere.values()):
                return
            self._wait()

    # -- stacks of one's own -----------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Hand out stacks until every worker has one."""
        while len(self._tickets) < self._runner.workers and (stack := self._next()) is not None:
            self._begin(*stack)

    def _next(self) -> tuple[int, Job] | None:
        if not self._stacks and not self._waiting:
            self._look_again()  # rather than have nothing to do
        while not self._stacks and self._waiting:
            self._open(self._waiting.popleft())
        return self._stacks.popleft() if self._stacks else None

    def _open(self, index: int) -> None:
        """Queue what can be trained of a row now."""
        row = self._without_elsewhere(index)
        jobs = stacks_of(row, self._runner.device, self._runner.workers, ready=True)
        self._stacks.extend((index, job) for job in jobs)

    def _go_on(self, index: int) -> None:
        """Queue what comes next of a row, once all of it that was queued is done: its baselines, or all of it."""
        if index not in [i for i, _ in (*self._tickets.values(), *self._stacks)]:
            self._open(index)

    def _begin(self, index: int, job: Job) -> None:
        """Hand out a stack, without what another run is at or has filed."""
        keys = _keys(job)
        mine = self._claims.take(keys)
        self._collect(index, keys)  # after claiming: others file before they give a claim up
        left = set(self.rows[index].missing)
        self._elsewhere.setdefault(index, set()).update(r for k, r in keys.items() if k not in mine and r in left)
        now = self._without_elsewhere(index).missing
        ready = tuple(r for k, r in keys.items() if k in mine and r in now)
        self._claims.drop([k for k in mine if keys[k] not in ready])
        if ready:
            job = replace(job, replicates=ready, baselines=self.rows[index].baselines())
            self._tickets[self._runner.submit(job)] = index, job
        else:
            self._go_on(index)

    # -- what other runs are at --------------------------------------------------------------------------------------

    def _without_elsewhere(self, index: int) -> Row:
        """Return a row without what another run is at, and what is measured relative to that."""
        row, elsewhere = self.rows[index], self._elsewhere.get(index, set())
        seeds = {r.seed for r in elsewhere if row.job.is_baseline(r)}
        return replace(row, missing=tuple(r for r in row.missing if r not in elsewhere and r.seed not in seeds))

    def _collect(self, index: int, keys: Mapping[str, Replicate]) -> bool:
        """Take over what another run has filed of some replicates; return whether there was anything."""
        row = self.rows[index]
        found = [called(record, r) for key, r in keys.items() if (record := self._filed_since(row, key)) is not None]
        self.rows[index] = row.with_records(found)
        for record in found:
            self._watcher.found(record)
        return bool(found)

    def _filed_since(self, row: Row, key: str) -> Record | None:
        """Return the record of a key that was not there when the plan was made."""
        record = self._store.get(key)
        if record is None or record["finished"] == row.before.get(key):
            return None
        return None if row.job.keep_models and self._store.lacks_model(record) else record

    def _look_again(self) -> None:
        """Take over what others have filed since, and queue what they have left."""
        if not any(self._elsewhere.values()):
            return
        taken = {key for claim in self._claims.others() for key in claim.keys}
        for index, elsewhere in self._elsewhere.items():
            keys = {self.rows[index].job.key(r): r for r in elsewhere}
            found = self._collect(index, keys)
            here = {r for key, r in keys.items() if key not in taken or r not in self.rows[index].missing}
            elsewhere -= here
            if found or here:
                self._go_on(index)

    def _wait(self) -> None:
        """Wait a moment for the other runs, and say so the first time."""
        if not self._told:
            self._told = True
            count = counted(sum(map(len, self._elsewhere.values())), "replicate")
            who = listed([str(claim) for claim in self._claims.others() if claim.keys]) or "it has just ended"
            log.warning("Waiting for %s that another run is training: %s.", count, who)
        time.sleep(LOOK_SECONDS)


def _keys(job: Job) -> dict[str, Replicate]:
    """Return the replicates of a job by key."""
    return {job.key(r): r for r in job.replicates}


class _Tables:
    """Rewrites the tables of a results folder now and then, so that they can be read while a plan runs."""

    SECONDS = 60.0

    def __init__(self, store: Store) -> None:
        self._store, self._written = store, time.monotonic()

    def refresh(self) -> None:
        """Write them if the last time is a while ago; less often in a large folder."""
        begun = time.monotonic()
        if begun - self._written > self.SECONDS:
            write_tables(self._store)
            took = time.monotonic() - begun
            self._written = begun + 20 * took


def stacks_of(row: Row, device: str, workers: int, ready: bool = False) -> list[Job]:
    """Split what is missing of a row into jobs, each the stack of one worker.

    On a GPU a row is one stack, whoever shares it: many models at once are what fills it.

    Args:
        row: the row.
        device: where to compute.
        workers: number of workers.
        ready: only the jobs that can start now: if the row is to be several stacks, the baselines before the others.
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
