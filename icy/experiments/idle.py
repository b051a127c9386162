"""Arguments and settings without effect: warned of or refused before training."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from icy.config.kinds import declared_in
from icy.config.requests import RunRequest
from icy.core.errors import InvalidSettingError
from icy.training.job import Job

log = logging.getLogger(__name__)


def warn_of_idle(request: RunRequest, jobs: Iterable[Job]) -> None:
    """Warn of arguments and settings of a request that have no effect in any of its jobs.

    Raises:
        InvalidSettingError: the declaration of an argument without effect refuses it.
    """
    if "per_gpu" in request.given and request.runner == "ray" and request.device == "cpu":
        log.warning("per_gpu does nothing on a cluster's CPUs; there is a process per core.")
    restarts = "retries" in request.given and not hasattr(request.settings_class, "retries")  # not those of requests
    if restarts and request.runner == "local" and request.workers == 1:
        log.warning("retries does nothing with one worker: the worker is this process, which is never restarted.")
    jobs = list(jobs)
    tf32 = [job.device == "cpu" and _uses_tf32(job) for job in jobs if "tf32" in job.given]
    if tf32 and all(tf32) and request.runner == "local":
        log.warning("The setting 'tf32' does nothing on a CPU.")
    idle = [(job, job.of_row.idle(job.given)) for job in jobs]
    for name in dict.fromkeys(name for _, found in idle for name in found):
        sentences = [found.get(name) for job, found in idle if name in job.given]
        if None in sentences:  # it has an effect in one of them
            continue
        for sentence in dict.fromkeys(filter(None, sentences)):
            declared = [declared_in(type(job.of_row)).get(name) for job, _ in idle]
            if any(one is not None and one.metadata.get("refused") for one in declared):
                raise InvalidSettingError(sentence)
            log.warning("%s", sentence)


def _uses_tf32(job: Job) -> bool:
    return any(getattr(getattr(job.settings, part, None), "tf32", False) for part in ("training", "learning"))
