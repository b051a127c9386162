"""Estimates of a dry run: their assumptions, and their memory compared with a run's."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icy
from icy.config.protocols import BASELINE
from icy.config.specs import ChainSpec, ProbeSpec
from icy.core.memory import PeakMemory
from icy.experiments.estimate import (
    _Costs,
    _shared,
    _stack_seconds,
    _StackCost,
    estimate,
    fitted_memory,
    fitted_rates,
    largest_stack,
    total_seconds,
)
from icy.experiments.plan import Plan, make_plan
from icy.experiments.run import STACK_ON_CPU, stacks_of
from icy.experiments.steps import expected_updates
from icy.experiments.sweep import make_sweep, sweep_spec
from icy.training import counting, engine
from icy.training.work import USUAL_RATES, Work

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


def plan(**given: Any) -> Plan:
    spec = {"model": "sender/FC1L", "grammar": "all", "meanings": "3x4", "word_length": 2, "seeds": 3, "hidden": 16}
    return make_plan(ProbeSpec.asked(**{**spec, "out": "none", **given}))


def test_stacks_are_all_that_is_missing_and_the_ready_ones_are_baselines() -> None:
    (row,) = plan(workers=2).rows
    every = [r for job in stacks_of(row, "cpu", 2) for r in job.replicates]
    assert sorted(every) == sorted(row.missing)
    ready = [r for job in stacks_of(row, "cpu", 2, ready=True) for r in job.replicates]
    assert {r.condition for r in ready} == {BASELINE}
    assert len(ready) == 3
    assert max(len(job.replicates) for job in stacks_of(row, "cpu", 1)) <= STACK_ON_CPU


@pytest.mark.parametrize("workers", [1, 4])
def test_on_a_gpu_a_row_is_one_stack_whoever_shares_it(workers: int) -> None:
    (row,) = plan(seeds=10).rows
    (job,) = stacks_of(row, "cuda", workers, ready=True)
    assert set(job.replicates) == set(row.missing)
    assert job.device == "cuda"


def test_the_largest_stack_is_measured() -> None:
    found = plan(workers=2)
    (row,) = found.rows
    assert len(largest_stack(row, found)) == 9  # 18 besides the baselines, for two workers
    small = plan(seeds=1, workers=1)
    assert len(largest_stack(small.rows[0], small)) == 7  # all of it at once


@pytest.mark.slow
def test_rows_that_are_trained_alike_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    real = engine.rehearse
    monkeypatch.setattr(engine, "rehearse", lambda job, n: measured.append(len(job.replicates)) or real(job, n))
    spec = {"model": "sender/FC1L", "grammar": "perm", "quick": True, "workers": 1, "out": "none"}
    both = make_sweep(sweep_spec(**spec, protocol="acquire,budget"))
    one, other = estimate(both, updates=1, within=60)
    assert measured == [1, 4]  # a replicate to load libraries, then the stack
    assert (one.update_seconds, one.memory) == (other.update_seconds, other.memory)
    assert one.updates != other.updates


@pytest.mark.slow
def test_a_stack_that_does_not_fit_is_measured_by_its_half_and_a_row_that_raises_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def small(job: Any, updates: int) -> float:
        if job.task.hidden_size == 8:
            raise ValueError("broken")
        if len(job.replicates) > 6:
            raise MemoryError
        return float(len(job.replicates))

    monkeypatch.setattr(engine, "rehearse", small)
    (found,) = estimate(plan(hidden="16,8", workers=1), within=60)
    assert (found.stack, found.update_seconds) == (5, 1.0)  # of 18, 9, 5
    assert "cannot be timed" in caplog.text
    assert "broken" in caplog.text


MANY = {"grammar": "perm", "quick": True, "workers": 1, "out": "none"}


@pytest.mark.slow
def test_many_rows_are_inferred_from_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """With arbitrary rates and proportional memory, inferred values are exact."""
    rates, timed = (1e-4, 1e-9, 3e-11), []

    def seconds(job: Any, stack: int) -> float:
        work = job.work()
        return 1.0 if work is None else sum(r * units for r, units in zip(rates, work.units(stack), strict=True))

    def rehearse(job: Any, updates: int) -> float:
        timed.append(job.name)
        return seconds(job, len(job.replicates))

    monkeypatch.setattr(engine, "rehearse", rehearse)
    many = make_sweep(sweep_spec(model=["RNN*:GRU", "RNN*:SRU", "sender/FC*", "sender/Hashtable"], **MANY))
    reports: list[str] = []
    found = estimate(many, report=reports.append, within=60)
    assert len(found) == len(many.rows) > 12
    inferred = [one for one in found if not one.timed]
    assert 3 <= len({*timed}) <= 8  # seven and the hash table, which is timed for itself
    assert len(inferred) >= 5
    for one in inferred:
        stack = len(largest_stack(one.row, many))
        assert one.update_seconds == pytest.approx(seconds(one.row.job, stack) / stack, rel=0.4)
        assert one.stack == stack
    assert any(text.startswith("counting the operations of") for text in reports)
    assert any(text == f"timing {timed[-1]}" for text in reports)


def test_nothing_is_timed_without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are then inferred from their operations and the speed of this machine."""
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: pytest.fail("timed"))
    found = estimate(plan(), within=0.0)
    assert [(one.timed, one.seconds > 0) for one in found] == [(False, True)]


def test_a_stack_costs_less_while_fewer_replicates_are_left() -> None:
    known = _StackCost(stack=4, seconds=0.4, peak=None, process=None, setup=1.0, fixed=0.5)
    assert known.of_size(2) == pytest.approx(0.3)
    assert _stack_seconds([10, 10, 10, 10], known) == pytest.approx(1 + 10 * 0.4)
    assert _stack_seconds([10, 30], known) == pytest.approx(1 + 10 * 0.3 + 20 * 0.25)


def test_workers_share_the_stacks() -> None:
    assert _shared([3.0, 2.0, 2.0], 1) == 7
    assert _shared([3.0, 2.0, 2.0], 2) == 4
    assert _shared([], 2) == 0


def test_the_range_of_an_estimate_is_a_factor_of_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: 0.1)
    found = plan(workers=1)
    (one,) = estimate(found)
    assert one.most == pytest.approx(2 * one.least)
    assert one.least * one.most == pytest.approx(one.seconds**2)
    assert total_seconds(found, [one], start=3.0) == pytest.approx(3 + one.seconds)


# -- expected updates --------------------------------------------------------------------------------------------------


def expected(**given: Any) -> dict[str, float]:
    spec = {"model": "sender/RNNZero:GRU", "grammar": "perm", "quick": True, "seeds": 1, "out": "none"}
    (row,) = make_plan(ProbeSpec.asked(**{**spec, **given})).rows
    return {replicate.condition: number for replicate, number in expected_updates(row).items()}


def test_updates_come_from_the_model_in_the_atlas() -> None:
    table = icy.atlas().table.query("model == 'sender/RNNZero:GRU' and meanings == '3x4' and representation == 'soft'")
    means = table[table["settings"] == ""].groupby("grammar")["steps"].mean()
    assert expected() == {grammar: pytest.approx(means[grammar]) for grammar in ("concat", "perm")}


def test_updates_of_models_outside_the_atlas_come_from_other_models() -> None:
    table = icy.atlas().table.query("side == 'sender' and meanings == '3x4' and representation == 'soft'")
    means = table[table["settings"] == ""].groupby(["model", "grammar"])["steps"].mean().groupby("grammar").median()
    assert expected(hidden=16) == {grammar: pytest.approx(means[grammar]) for grammar in ("concat", "perm")}
    assert expected(hidden=16, meanings="4x3")["perm"] > 0
    assert expected(protocol="budget")["perm"] == expected(protocol="budget")["concat"] > expected()["concat"]
    assert expected(settings={"max_steps": 50})["concat"] == 50


def test_chains_are_timed_and_later_learners_need_the_updates_of_concat() -> None:
    def chains(**given: Any) -> Plan:
        spec = {"model": "FC2L", "grammar": "concat,hol", "meanings": "3x4", "generations": 3, "chains": 1}
        return make_plan(ChainSpec.asked(**{**spec, "workers": 1, "out": "none", **given}))

    def updates(**given: Any) -> dict[str, float]:
        (row,) = chains(**given).rows
        return {replicate.condition: number for replicate, number in expected_updates(row).items()}

    found = updates()
    assert found["hol"] > found["concat"] > 0
    assert updates(generations=4)["hol"] - found["hol"] == pytest.approx(found["concat"] / 3)
    assert updates(updates=50) == {"concat": 150, "hol": 150}
    assert updates(target="none") == {"concat": 12_000, "hol": 12_000}
    (one,) = estimate(chains(), within=60)
    assert one.timed
    assert 0 < one.update_seconds < 1


def test_fitted_rates_and_memory_explain_the_timings() -> None:
    works = [Work(1000, 1e6, 1e8, 5e6), Work(50, 1e7, 1e7, 9e6), Work(300, 1e5, 5e9, 2e7), Work(2000, 1e5, 1e5, 1e6)]
    slow = np.array(USUAL_RATES) * 3
    rates = fitted_rates([(work, 2, float(slow @ work.units(2))) for work in works])
    assert rates == pytest.approx(slow, rel=1e-6)
    gpu = np.array([1e-5, 1e-11, 1e-13])  # where calls are all that counts
    rates = fitted_rates([(work, 20, float(gpu @ work.units(20))) for work in works * 2])
    for work in works:
        assert rates @ work.units(20) == pytest.approx(gpu @ work.units(20), rel=0.5)
    assert fitted_memory([(work.kept, 1e6 + 1.5 * work.kept) for work in works]) == pytest.approx((1e6, 1.5))
    assert fitted_memory([]) is None


@pytest.mark.slow
def test_a_model_that_cannot_be_counted_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = counting.work_of_task

    def count(task: Any, settings: Any) -> Any:
        if task.entry.name == "FC1L":
            raise ValueError("broken")
        return real(task, settings)

    monkeypatch.setattr(counting, "work_of_task", count)
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: 1.0)
    found = estimate(make_sweep(sweep_spec(model=["sender/FC*", "sender/RNNZero:*"], **MANY)))
    assert "sender/FC1L cannot be timed: ValueError: broken" in caplog.text
    assert "sender/FC1L" not in [one.row.name for one in found]
    assert len(found) == 8


def every_fc_and_rnn() -> Plan:
    return make_sweep(sweep_spec(model=["sender/FC*", "sender/RNNZero:*"], **MANY))


@pytest.mark.slow
def test_rows_that_are_not_counted_are_inferred_from_their_relative_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _Costs._count
    monkeypatch.setattr(_Costs, "_count", lambda self: dict([*real(self).items()][:5]))
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: 1e-3 * job.update_cost * len(job.replicates))
    found = estimate(every_fc_and_rnn(), within=60)
    assert len(found) == 9
    for one in found:
        assert one.update_seconds == pytest.approx(1e-3 * one.row.job.update_cost, rel=0.5)


@pytest.mark.slow
def test_rows_without_a_timing_are_inferred_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def rehearse(job: Any, updates: int) -> float:
        seen.append(job.name)
        return math.nan if job.name == seen[0] else 0.5

    monkeypatch.setattr(engine, "rehearse", rehearse)
    found = {one.row.name: one for one in estimate(every_fc_and_rnn(), within=60)}
    assert len(found) > 3
    assert all(one.update_seconds > 0 for one in found.values())
    assert not found[seen[0]].timed


@pytest.mark.slow
def test_if_no_rehearsal_tells_a_time_rows_are_inferred_from_their_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: math.nan)
    plan = every_fc_and_rnn()
    found = estimate(plan, within=60)
    assert [one.row.name for one in found] == [row.name for row in plan.rows]
    assert all(one.update_seconds > 0 and not one.timed for one in found)
    assert all(one.stack == len(largest_stack(one.row, plan)) for one in found)


@pytest.mark.slow
def test_rows_without_counted_operations_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "work_of_task", lambda task, settings: Work(0.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(engine, "rehearse", lambda job, updates: 0.5 * len(job.replicates))
    found = estimate(every_fc_and_rnn(), within=60)
    assert len(found) > 3
    assert all(one.timed and one.update_seconds == 0.5 for one in found)


def test_a_rehearsal_ends_no_replicate() -> None:
    """Though every target is reached: readings are not acted upon."""
    job = plan(target=1e-6).rows[0].job
    assert engine.rehearse(replace(job, replicates=job.replicates[:3]), 2) > 0


@pytest.mark.slow
@linux
def test_the_peak_excludes_memory_from_before() -> None:
    import numpy as np

    kept = np.ones(40_000_000 // 8)
    with PeakMemory("cpu") as peak:
        taken = np.ones(80_000_000 // 8)
        del taken
    with PeakMemory("cpu") as nothing:
        pass
    assert kept.all()
    assert peak.bytes == pytest.approx(80e6, rel=0.1)
    assert nothing.bytes is not None
    assert nothing.bytes < 4e6


RUN = """
import re, sys
from dataclasses import replace
from icy.config.specs import ProbeSpec
from icy.experiments.plan import make_plan
from icy.training.runners.base import run_job
model, out = sys.argv[1:]
plan = make_plan(ProbeSpec.asked(model=model, grammar="all", seeds=2, workers=1, out=out, settings={"max_steps": 100}))
job = plan.rows[0].job
records = run_job(job)
assert len(records) == len(job.replicates)
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024)
"""

ESTIMATE = """
import sys
from icy.experiments.estimate import estimate
from icy.config.specs import ProbeSpec
from icy.experiments.plan import make_plan
model, out = sys.argv[1:]
(found,) = estimate(make_plan(ProbeSpec.asked(model=model, grammar="all", seeds=2, workers=1, out=out)))
print(found.memory * found.stack, found.process)
"""


@linux
@pytest.mark.stress
@pytest.mark.parametrize("model", ["sender/FC2L", "sender/HierZero:RNN", "receiver/RNN1L:GRU"])
def test_the_memory_of_an_estimate_is_that_of_a_run(model: str, tmp_path: Path) -> None:
    """Of the whole process, within a tenth; and of the stack alone, within a fifth."""

    def output(script: str) -> list[float]:
        words = [sys.executable, "-c", script, model, str(tmp_path)]
        return [float(n) for n in subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()]

    (peak,), (stack, process) = output(RUN), output(ESTIMATE)
    assert stack + process == pytest.approx(peak, rel=0.1)
    assert stack == pytest.approx(peak - process, rel=0.4)
