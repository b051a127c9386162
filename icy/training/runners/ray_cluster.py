"""A Ray cluster, for those who outgrow one machine: many nodes, fractions of GPUs, nodes that come and go.

A task trains one job and sends what it finds home as it finds it: this process files the records, so that the nodes
need no folder in common. A job whose node is lost begins again elsewhere with what it still lacks.

Where there is a cluster, Ray finds it by itself (RAY_ADDRESS, or one started on this machine); or else one is started
here for as long as the run takes, which listens on 127.0.0.1 alone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from icy.core.errors import IcyError, InvalidSettingError, what_and_where
from icy.core.registry import Additions, registry
from icy.records.record import Record
from icy.training.job import Job

from .base import JobReport, RecordCallback, run_job
from .events import LogForwarder
from .remote import RemoteRunner, Submission, packed

RETRIES = 2
POLL_SECONDS = 0.5
LOOPBACK = "127.0.0.1"
INSTALL = "The runner 'ray' needs the package ray: pip install \"icy-toolkit[ray]\". Nothing was trained."
log = logging.getLogger(__name__)


def import_ray() -> Any:
    """The package ray.

    Raises:
        IcyError: it is not installed.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns of a change to come otherwise
    try:
        import ray
        import ray._private.services
        import ray.exceptions
        import ray.util.queue
    except ImportError as error:
        raise IcyError(INSTALL) from error
    return ray


class RayRunner(RemoteRunner):
    """Runs jobs as tasks on a Ray cluster.

    Args:
        workers: tasks at once; 0, as many as the cluster has cores, or shares of GPUs.
        report: called in this process with the readings of every check of every task.
        filed: called in this process with every record once it is on file.
        retries: how often a job is begun again whose node or worker was lost, before what it lacks is filed as failed.
        device: "cpu", "cuda", or "auto" for GPUs if the cluster has any.
        per_gpu: tasks that share one GPU.

    Raises:
        IcyError: ray is not installed.
    """

    def __init__(
        self,
        workers: int = 0,
        report: JobReport | None = None,
        filed: RecordCallback | None = None,
        retries: int = RETRIES,
        device: str = "auto",
        per_gpu: int = 1,
    ) -> None:
        self._ray = import_ray()
        super().__init__(report, filed, retries)
        self.workers, self.device, self._per_gpu = workers, device, per_gpu
        self._tasks: dict[Any, Submission] = {}
        self._mail: Any = None

    def __enter__(self) -> Self:
        ray = self._ray
        self._own = not ray.is_initialized()
        if self._own:
            _connect(ray)
        found = ray.cluster_resources()
        gpus, cores = found.get("GPU", 0), found.get("CPU", 0)
        if self.device == "auto":
            self.device = "cuda" if gpus else "cpu"
        if self.device != "cpu" and not gpus:
            self.__exit__(None, None, None)
            raise InvalidSettingError(f"The Ray cluster has no GPU for the device '{self.device}'.")
        places = int(cores if self.device == "cpu" else gpus * self._per_gpu)
        self.workers = max(1, min(self.workers or places, places))
        share = {"num_cpus": 1} if self.device == "cpu" else {"num_cpus": 0, "num_gpus": 1 / self._per_gpu}
        # max_calls=0: a worker with a GPU would otherwise be started anew for every task. Ray's own retries would
        # begin a job from its start; ours begin with what it lacks.
        self._run = ray.remote(max_calls=0, max_retries=0, **share)(_run_in_task)
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._mail = ray.util.queue.Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self._additions = registry.additions()._replace(entries=[])
        log.info("Ray: %s tasks at once on %s nodes, %s.", self.workers, len(ray.nodes()), self.device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks.clear()
        if self._own:
            self._ray.shutdown()
        elif self._mail is not None:
            self._mail.shutdown(force=True)

    def _fill(self) -> None:
        """Hand out work up to the number of tasks at once."""
        while self._waiting and len(self._tasks) < self.workers:
            work = self._waiting.popleft()
            # As bytes: what a plug-in file defines can be read only once the file is loaded.
            job = pickle.dumps(work.rest().for_travel())
            level = logging.getLogger("icy").getEffectiveLevel()
            self._tasks[self._run.remote(job, work.ticket, self._additions, self._mail, level)] = work

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Tickets and records of jobs, as they end; more may be submitted meanwhile.

        Raises:
            StoreError: a record cannot be filed here.
        """
        while self._tasks:
            done, _ = self._ray.wait(list(self._tasks), timeout=POLL_SECONDS)
            self._pass_on_mail()
            for task in done:
                work = self._tasks.pop(task)
                if not self._lost(task, work):
                    yield work.ticket, list(work.records.values())
            self._fill()

    def _lost(self, task: Any, work: Submission) -> bool:
        """Whether a task ended without its job; it is then queued again, or what it lacks filed as failed."""
        try:
            self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:  # of icy's own, or a plug-in that cannot be loaded there
            raise IcyError(f"A task of the Ray cluster failed: {error.cause or error}") from error
        except self._ray.exceptions.RayError as error:
            log.debug("Ray: %s", error)
            return self._begins_again(work)
        return False

    def _pass_on_mail(self) -> None:
        works = {work.ticket: work for work in self._tasks.values()}
        waiting = self._mail.qsize()
        for ticket, kind, content in self._mail.get_nowait_batch(waiting) if waiting else ():
            work = works.get(ticket)
            if kind != "filed":
                self._pass_on(work, kind, content)
            elif work is not None and content[0]["key"] not in work.records:  # none of a task that was taken for lost
                self._put(work, *content)


def _connect(ray: Any) -> None:
    """Connect to the cluster there is, or start one that no other machine reaches.

    Whoever reaches the ports of a cluster can run code on it. By default Ray opens them to the network, even for a
    cluster of this machine alone.

    Raises:
        IcyError: Ray cannot start one, or not reach the one there is.
    """
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    joins = ray._private.services.canonicalize_bootstrap_address(None) is not None  # found as by ray.init
    try:
        if joins:
            ray.init(**quiet)
        else:
            with _on_loopback(ray):
                ray.init(address="local", include_dashboard=False, _node_ip_address=LOOPBACK, **quiet)
    except Exception as error:  # Ray raises bare ones
        done = "reached" if joins else "started"
        raise IcyError(f"The Ray cluster cannot be {done}: {what_and_where(error)}") from error
    if not joins and (address := ray.util.get_node_ip_address()) != LOOPBACK:
        log.warning(
            "Ray %s listens on %s, which other machines may reach, and not on this one alone.", ray.__version__, address
        )


@contextlib.contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Have Ray keep to the address of this machine alone: on Linux it takes one that others reach in its place.

    This is the switch of Ray's own by which it does so on macOS and Windows.
    """
    constants = ray._private.ray_constants
    before, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


# -- in a task ---------------------------------------------------------------------------------------------------------


def _run_in_task(packed_job: bytes, ticket: int, additions: Additions, mail: Any, log_level: int) -> None:
    import torch

    def send(kind: str, content: Any) -> None:
        mail.put((ticket, kind, content))

    torch.set_num_threads(1)
    logging.getLogger("icy").setLevel(log_level)
    registry.add_all(additions)
    job: Job = pickle.loads(packed_job)
    with LogForwarder(send):
        run_job(
            job,
            lambda _, readings: send("read", packed(readings)),
            lambda record, files: send("filed", (record, dict(files))),
        )
