"""Runners: dealing replicates into stacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icy.experiments.plan import Plan
from icy.records.store import Store
from icy.training.job import Job, Replicate
from icy.training.runners.base import EventLog, Submission, deal, run_job


def test_dealing_is_complete_and_even() -> None:
    replicates = [Replicate(g, s) for g in ("hol", "perm", "rot") for s in range(5)]
    stacks = deal(replicates, 2, 16)
    assert sorted(r for stack in stacks for r in stack) == sorted(replicates)
    for grammar in ("hol", "perm", "rot"):
        assert sorted(sum(r.condition == grammar for r in stack) for stack in stacks) == [2, 3]
    assert max(map(len, deal(replicates, 2, 4))) <= 4
    assert deal([], 2, 4) == []


@dataclass
class Wraps:
    """A stand-in for a job with an error in training; `of` is the cause of the error."""

    replicates = (Replicate("perm", 1),)
    name = device = "cpu"
    of: BaseException

    def train(self, report: Any) -> Any:
        raise RuntimeError("while a class was made") from self.of

    def failure(self, replicate: Replicate, error: BaseException) -> Any:
        return {"error": str(error)}


def test_an_interrupt_behind_an_error_is_not_a_failure_of_the_model() -> None:
    filed: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        run_job(Wraps(KeyboardInterrupt()), put=lambda record, files: filed.append(record))  # type: ignore[arg-type]
    assert filed == []
    run_job(Wraps(ValueError()), put=lambda record, files: filed.append(record))  # type: ignore[arg-type]
    assert filed == [{"error": "while a class was made"}]


# -- jobs in other processes: the number of retries, and the records of a lost worker ----------------------------------


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


# -- events of workers: lines on the disk arrive, and a full disk does not raise ---------------------------------------


FULL = Path("/dev/full")


def test_events_after_an_incomplete_line_arrive(tmp_path: Path) -> None:
    mail = EventLog(tmp_path)
    EventLog.path(tmp_path, 3).write_text('["read", [1')
    with EventLog.writing(tmp_path, 3) as write:
        write("filed", "é")
        assert list(mail.collect()) == [(3, "filed", "é")]
        write("log", {"msg": "a\nb"})
    assert list(mail.collect()) == [(3, "log", {"msg": "a\nb"})]


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_a_full_disk_and_a_missing_folder_are_ignored(tmp_path: Path) -> None:
    EventLog.path(tmp_path, 0).symlink_to(FULL)
    for folder in (tmp_path, tmp_path / "gone"):
        with EventLog.writing(folder, 0) as write:
            write("read", [])
    assert not list(EventLog(tmp_path / "gone").collect())
