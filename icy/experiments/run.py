"""Run a plan: train what it lacks, file each replicate, and return the results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from icy.records.long_table import tables_of, tables_show, write_tables
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job
from icy.training.runners.base import LocalRunner, Runner, deal

from .plan import Plan, Row
from .results import ProbeResult, result_class
from .watcher import Watcher

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
        IcyError, KeyboardInterrupt: as for `icy.probe`.
    """
    watcher = watcher or Watcher()
    rows, plan.store.asked = list(plan.rows), plan.versions
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


def make_runner(plan: Plan, watcher: Watcher, retries: int = 0) -> Runner:
    """Choose the runner: this process, a pool of workers, or a Ray cluster."""
    reports = watcher.read, watcher.filed
    if plan.runner == "ray":
        from icy.training.runners.ray_cluster import RayRunner

        return RayRunner(plan.workers, *reports, max(retries, 1), plan.device, plan.per_gpu)
    if plan.workers == 1:
        return LocalRunner(*reports, plan.device)
    from icy.training.runners.pool import PoolRunner

    return PoolRunner(plan.workers, *reports, retries, plan.device)


def _order(rows: Sequence[Row]) -> Callable[[Record], tuple[int, int]]:
    """Return the sort key of the plan's order."""
    place = {row.job.key(r): (i, j) for i, row in enumerate(rows) for j, r in enumerate(row.job.replicates)}
    return lambda record: place[record["key"]]


def _run_rows(plan: Plan, watcher: Watcher, retries: int) -> list[Row]:
    """Submit the jobs of every row and collect their records.

    On a pool, a row's baselines come first, because the other grammars of a seed stop relative to its baseline; the
    next row's baselines are queued behind the first row's grammars, so that no worker waits. One process trains
    baselines and grammars of a row together, in lockstep.
    """
    rows = list(plan.rows)
    waiting = [i for i, row in enumerate(rows) if row.missing]
    tickets: dict[int, int] = {}
    tables = _Tables(plan.store)
    with make_runner(plan, watcher, retries) as runner:
        watcher.started(plan)  # only now: a display runs a thread, and beside one no worker can be forked

        def submit(index: int) -> bool:
            """Queue what can be trained of a row now; return whether there was anything."""
            jobs = stacks_of(rows[index], runner.device, runner.workers, ready=True)
            tickets.update({runner.submit(job): index for job in jobs})
            return bool(jobs)

        def next_row() -> None:
            if waiting:
                submit(waiting.pop(0))
            while waiting and len(tickets) < runner.workers:
                submit(waiting.pop(0))

        next_row()
        for ticket, records in runner.finished():
            index = tickets.pop(ticket)
            rows[index] = rows[index].with_records(records)
            tables.refresh()
            if index not in tickets.values():  # the row's baselines, or all of it, are done
                submit(index)
                next_row()
    return rows


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
