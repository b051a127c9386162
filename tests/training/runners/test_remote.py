"""Jobs in other processes: the number of retries, and the records of a lost worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.experiments.plan import Plan
from icy.records.store import Store
from icy.training.job import Job, Replicate
from icy.training.runners.base import Submission


@pytest.fixture
def job(plan: Plan) -> Job:
    return plan.rows[0].job


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_job_begins_again_as_often_as_retries_say(job: Job, retries: int) -> None:
    work = Submission(0, job)
    assert [work.may_retry(retries) for _ in range(retries + 2)] == [True] * retries + [False] * 2


def test_a_finished_job_is_not_retried(job: Job) -> None:
    work = Submission(0, job)
    for replicate in job.replicates:
        work.add_record({"key": job.key(replicate)})
    assert not work.may_retry(3)


def test_records_of_a_lost_worker_are_found(job: Job) -> None:
    """A record is on file without a report; records from before the job are to be replaced."""
    store, (old, new, *_) = Store(job.folder), job.replicates

    def put(replicate: Replicate, finished: str) -> None:
        store.put({**job.failure(replicate, ValueError("none")), "finished": finished})

    put(old, "2026-01-01")
    work = Submission(0, job)
    put(new, "2026-01-02")
    assert [r["key"] for r in work.unreported()] == [job.key(new)]
    assert list(Path(job.folder).rglob("*.json"))
