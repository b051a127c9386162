"""Train on a Ray cluster: many nodes, fractions of GPUs, nodes that may join and leave.

A task trains one job and sends each result to this process when it is ready. This process writes the records, so the
nodes do not need a shared folder. After the loss of a node, its unfinished replicates are restarted on another node.

Ray finds a running cluster by itself (RAY_ADDRESS, or a cluster started on this machine). If there is none, a cluster
is started on this machine for the time of the run. It listens only on 127.0.0.1.
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
from icy.core.processes import stop_if_ending
from icy.core.registry import Additions, registry
from icy.records.record import Record
from icy.training.job import Job

from .base import JobReport, LogForwarder, RecordCallback, RemoteRunner, Submission, packed, run_job

RETRIES = 2
POLL_SECONDS = 0.5
LOOPBACK = "127.0.0.1"
INSTALL = "The runner 'ray' needs the package ray: pip install \"icy-toolkit[ray]\". Nothing was trained."
log = logging.getLogger(__name__)


def import_ray() -> Any:
    """Return the package ray.

    Raises:
        IcyError: ray is not installed.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # avoids a warning of a future change in Ray
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
        workers: number of parallel tasks; 0 for as many as the cluster has cores, or shares of GPUs.
        report: called in this process with the readings of every check of every task.
        on_record: called in this process with every record when it is on file.
        retries: how often a job is restarted after a lost node or worker, before its unfinished replicates are recorded
            as failed.
        device: "cpu", "cuda", or "auto" for GPUs if the cluster has any.
        per_gpu: tasks that share one GPU.

    Raises:
        IcyError: ray is not installed.
    """

    def __init__(
        self,
        workers: int = 0,
        report: JobReport | None = None,
        on_record: RecordCallback | None = None,
        retries: int = RETRIES,
        device: str = "auto",
        per_gpu: int = 1,
    ) -> None:
        self._ray = import_ray()
        super().__init__(report, on_record, retries)
        self.workers, self.device, self._per_gpu = workers, device, per_gpu
        self._tasks: dict[Any, Submission] = {}
        self._mail: Any = None

    def __enter__(self) -> Self:
        ray = self._ray
        self._own = not ray.is_initialized()
        if self._own:
            _connect(ray)
        resources = ray.cluster_resources()
        gpus, cores = resources.get("GPU", 0), resources.get("CPU", 0)
        if self.device == "auto":
            self.device = "cuda" if gpus else "cpu"
        if self.device != "cpu" and not gpus:
            self.__exit__(None, None, None)
            raise InvalidSettingError(f"The Ray cluster has no GPU for the device '{self.device}'.")
        places = int(cores if self.device == "cpu" else gpus * self._per_gpu)
        self.workers = max(1, min(self.workers or places, places))
        share = {"num_cpus": 1} if self.device == "cpu" else {"num_cpus": 0, "num_gpus": 1 / self._per_gpu}
        # max_calls=0: otherwise a worker with a GPU would be restarted for every task. Ray's own retries would restart
        # the whole job; those of icy restart only its unfinished replicates.
        self._run = ray.remote(max_calls=0, max_retries=0, **share)(_run_in_task)
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._mail = ray.util.queue.Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self._additions = registry.additions()._replace(entries=[])
        log.info("Ray: %s parallel tasks on %s nodes, %s.", self.workers, len(ray.nodes()), self.device)
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
        """Submit waiting jobs, up to the number of parallel tasks."""
        while self._waiting and len(self._tasks) < self.workers:
            work = self._waiting.popleft()
            # As bytes: classes of a plug-in file can be unpickled only after the file is loaded.
            job = pickle.dumps(work.rest().for_travel())
            level = logging.getLogger("icy").getEffectiveLevel()
            self._tasks[self._run.remote(job, work.ticket, self._additions, self._mail, level)] = work

    def finished(self) -> Iterator[tuple[int, list[Record]]]:
        """Yield tickets and records of jobs as they end; more may be submitted meanwhile.

        Raises:
            StoreError: a record cannot be written here.
        """
        while self._tasks:
            done, _ = self._ray.wait(list(self._tasks), timeout=POLL_SECONDS)
            stop_if_ending()
            self._pass_on_mail()
            for task in done:
                work = self._tasks.pop(task)
                if not self._lost(task, work):
                    yield work.ticket, list(work.records.values())
            self._fill()

    def _lost(self, task: Any, work: Submission) -> bool:
        """Return whether a job must be continued, since its task was lost; queue it again, or record failures."""
        try:
            self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:  # an error of icy, or a plug-in that cannot be loaded there
            raise IcyError(f"A task of the Ray cluster failed: {error.cause or error}") from error
        except self._ray.exceptions.RayError as error:
            log.debug("Ray: %s", error)
            return self._retry(work)
        return False

    def _pass_on_mail(self) -> None:
        works = {work.ticket: work for work in self._tasks.values()}
        waiting = self._mail.qsize()
        for ticket, kind, content in self._mail.get_nowait_batch(waiting) if waiting else ():
            work = works.get(ticket)
            if kind != "filed":
                self._pass_on(work, kind, content)
            elif work is not None and content[0]["key"] not in work.records:  # skips late events of a lost task
                self._put(work, *content)


def _connect(ray: Any) -> None:
    """Connect to a running cluster, or start a cluster that only this machine can reach.

    Anyone who can reach the ports of a cluster can run code on it. By default Ray opens the ports to the network, even
    for a cluster on a single machine.

    Raises:
        IcyError: Ray cannot start or reach a cluster.
    """
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    joins = ray._private.services.canonicalize_bootstrap_address(None) is not None  # as ray.init does
    try:
        if joins:
            ray.init(**quiet)
        else:
            with _on_loopback(ray):
                ray.init(address="local", include_dashboard=False, _node_ip_address=LOOPBACK, **quiet)
    except Exception as error:  # Ray raises plain exceptions
        done = "reached" if joins else "started"
        raise IcyError(f"The Ray cluster cannot be {done}: {what_and_where(error)}") from error
    if not joins and (address := ray.util.get_node_ip_address()) != LOOPBACK:
        log.warning(
            "Ray %s listens on %s instead of 127.0.0.1, so other machines may reach it.", ray.__version__, address
        )


@contextlib.contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Make Ray listen only on the loopback address. On Linux it would choose an address that other machines can reach.

    This sets the switch that Ray uses for this purpose on macOS and Windows.
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
