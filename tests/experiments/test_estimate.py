"""Estimates of a dry run: times of updates, and the updates that similar records needed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.protocols import BASELINE
from icy.experiments import estimate as estimates
from icy.experiments.estimate import SECONDS, SLACK, UPDATES, estimate, on_workers
from icy.experiments.expected_updates import ExpectedUpdates, Updates
from icy.experiments.plan import Plan, make_plan
from icy.experiments.run import STACK_ON_CPU, stacks_of
from icy.experiments.sweep import make_sweep, sweep_request
from icy.records.pack import Pack
from icy.training import engine
from icy.training.chain_settings import ChainRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest


def plan(**given: Any) -> Plan:
    spec = {"model": "sender/FC1L", "grammar": "all", "meanings": "3x4", "word_length": 2, "seeds": 3, "hidden": 16}
    return make_plan(ProbeRequest.asked(**{**spec, "out": "none", **given}))


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


# -- timing ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def timings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The model, replicates and updates of each timing. An update of a replicate takes a millisecond, or `cost`."""
    calls: list[tuple[str, int, int]] = []

    def rehearse(job: Any, updates: int) -> float:
        calls.append((job.name, len(job.replicates), updates))
        return 1e-3 * len(job.replicates)

    monkeypatch.setattr(engine, "rehearse", rehearse)
    return calls


def test_a_stack_is_timed_for_twenty_updates(timings: list[tuple[str, int, int]]) -> None:
    (one,) = estimate(plan(workers=2))
    assert timings == [("sender/FC1L", 1, 1), ("sender/FC1L", 9, UPDATES)]  # 18 besides the baselines, for two workers
    assert one.timed
    assert one.update_seconds == pytest.approx(1e-3)
    low, high = (sum(updates[end] for updates in one.updates.values()) for end in (0, 1))
    assert [sum(ends) for ends in zip(*one.stacks, strict=True)] == pytest.approx(
        [SLACK[0] * low * 1e-3, SLACK[1] * high * 1e-3]
    )


@pytest.mark.parametrize(
    ("seconds", "timed"),
    [
        (SECONDS / 2 / 9 / 7, (9, 7)),  # fewer updates
        (SECONDS / 2 / 3, (1, 3)),  # one replicate
        (SECONDS, (1, 1)),  # the first timing
    ],
)
def test_slow_updates_are_timed_less(monkeypatch: pytest.MonkeyPatch, seconds: float, timed: tuple[int, int]) -> None:
    calls: list[tuple[int, int]] = []

    def rehearse(job: Any, updates: int) -> float:
        calls.append((len(job.replicates), updates))
        return seconds * 0.999 * len(job.replicates)

    monkeypatch.setattr(engine, "rehearse", rehearse)
    (one,) = estimate(plan(workers=2))
    assert calls[-1] == timed
    assert one.update_seconds == pytest.approx(seconds, rel=0.01)


def test_a_stack_that_does_not_fit_in_memory_is_timed_by_one_replicate(monkeypatch: pytest.MonkeyPatch) -> None:
    def rehearse(job: Any, updates: int) -> float:
        if len(job.replicates) > 1:
            raise MemoryError
        return 1e-3 * updates

    monkeypatch.setattr(engine, "rehearse", rehearse)
    (one,) = estimate(plan(workers=2))
    assert one.update_seconds == 1e-3 * UPDATES


def test_rows_that_are_trained_alike_are_timed_once(timings: list[tuple[str, int, int]]) -> None:
    spec = {"model": "sender/FC1L", "grammar": "perm", "quick": True, "workers": 1, "out": "none"}
    one, other = estimate(make_sweep(sweep_request(**spec, protocol="acquire,budget")))
    assert len(timings) == 2  # of one replicate, and of the stack
    assert one.update_seconds == other.update_seconds
    assert one.updates != other.updates


def test_after_the_time_limit_rows_take_as_long_as_the_most_similar_timed_row(
    monkeypatch: pytest.MonkeyPatch, timings: list[tuple[str, int, int]]
) -> None:
    monkeypatch.setattr(estimates, "SECONDS", 0.0)
    reports: list[str] = []
    found = estimate(plan(hidden="8,16,32,64"), report=reports.append)
    assert [one.timed for one in found] == [True, False, False, False]
    assert len({one.update_seconds for one in found}) == 1
    assert reports == ["timing sender/FC1L, 1 of 4"]


def test_a_row_that_raises_is_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def rehearse(job: Any, updates: int) -> float:
        if job.settings.hidden == 8:
            raise ValueError("broken")
        return 1e-3

    monkeypatch.setattr(engine, "rehearse", rehearse)
    (found,) = estimate(plan(hidden="16,8"))
    assert found.row.facts["hidden size"] == "16"
    assert "sender/FC1L cannot be timed: ValueError: broken" in caplog.text
    with pytest.raises(ValueError, match="broken"):
        estimate(plan(hidden="8"))


def test_rows_share_the_workers(timings: list[tuple[str, int, int]]) -> None:
    (one,) = estimate(plan())
    one = replace(one, stacks=[(3.0, 6.0), (2.0, 4.0), (2.0, 4.0)])
    assert on_workers([one], 1) == (7.0, 14.0)
    assert on_workers([one, one], 2) == (7.0, 14.0)
    assert on_workers([one], 8) == (3.0, 6.0)  # a stack is trained by one worker


def test_a_rehearsal_ends_no_replicate() -> None:
    """Though every target is reached: readings are not acted upon."""
    job = plan(target=1e-6).rows[0].job
    assert engine.rehearse(replace(job, replicates=job.replicates[:3]), 2) > 0


# -- expected updates --------------------------------------------------------------------------------------------------


def expected(plan: Plan) -> dict[str, Updates]:
    (row,) = plan.rows
    return {replicate.condition: updates for replicate, updates in ExpectedUpdates(plan).of_row(row).items()}


def probe(**given: Any) -> dict[str, Updates]:
    spec = {"model": "sender/RNNZero:GRU", "grammar": "perm", "quick": True, "seeds": 1, "out": "none"}
    return expected(make_plan(ProbeRequest.asked(**{**spec, **given})))


def quantiles(query: str) -> dict[str, tuple[float, float]]:
    table = icy.atlas().table.query(f"representation == 'soft' and {query}")
    low, high = (table.groupby("grammar")["steps"].quantile(q) for q in (0.05, 0.95))
    return {grammar: (low[grammar], high[grammar]) for grammar in low.index}


def test_updates_are_quantiles_of_the_same_model_in_the_atlas() -> None:
    known = quantiles("model == 'sender/RNNZero:GRU' and meanings == '3x4'")
    for grammar, (low, high, capped) in probe().items():
        assert (low, high) == pytest.approx(known[grammar])
        assert not capped


def test_updates_of_models_outside_the_atlas_come_from_other_models_of_similar_spaces() -> None:
    known = quantiles("role == 'sender' and meanings == '3x4' and protocol == 'acquire'")
    found = probe(hidden=16, grammar="perm,hol")
    for grammar in ("concat", "perm", "hol"):
        assert (found[grammar].low, found[grammar].high) == pytest.approx(known[grammar])
    assert probe(hidden=16, meanings="4x3") == {name: found[name] for name in ("concat", "perm")}
    assert probe(settings={"max_steps": 50})["concat"] == (50, 50, False)


def test_harder_targets_take_longer() -> None:
    easy, hard = probe(target=0.8), probe(target=0.96)
    assert hard["concat"].low == pytest.approx(2 * easy["concat"].low)  # the error is the square
    assert hard["concat"].high == pytest.approx(2 * easy["concat"].high)


def test_without_similar_records_the_upper_end_is_the_maximum() -> None:
    found = probe(meanings="2x60", word_length=4)
    assert found["concat"].high == 50_000
    assert found["perm"].high == 20 * 50_000  # the cap
    assert found["concat"].capped
    assert found["perm"].capped
    assert 0 < found["concat"].low < 10_000


def test_a_budget_depends_on_concat_and_baselines_on_file_are_used(tmp_path: Path) -> None:
    found = probe(protocol="budget", meanings="5x10", word_length=4, hidden=128)
    assert found["perm"] == (*map(math.ceil, found["concat"][:2]), False)
    known = {"meanings": "2x3", "word_length": 2, "hidden": 8, "workers": 1, "protocol": "budget", "target": 0.5}
    records = icy.probe("sender/FC1L", "concat", out=tmp_path / "a", seeds=1, progress=False, **known).records
    pack = Pack.of(records).write(tmp_path / "pack.parquet")
    given = {"model": "sender/FC1L", "grammar": "perm", "seeds": 1, **known}
    for where in ({"out": tmp_path / "a"}, {"out": tmp_path / "b", "initial_results": [pack]}):
        steps = math.ceil(records[0]["crossing"])
        assert expected(make_plan(ProbeRequest.asked(**given, **where)))["perm"] == (steps, steps, False)
    other = {**given, "seeds": [7], "grammar": "concat", "out": tmp_path / "a"}  # records of another seed
    assert expected(make_plan(ProbeRequest.asked(**other)))["concat"].low == pytest.approx(records[0]["steps"])


def test_pairs_pretrain_both_sides() -> None:
    def pairs(**given: Any) -> dict[str, Updates]:
        spec = {"sender": "FC1L", "receiver": "FC1L", "meanings": "3x4", "seeds": 1, "out": "none"}
        return expected(make_plan(EndToEndRequest.asked(**{**spec, **given})))

    assert pairs(steps=70) == {"none": (70, 70, False)}
    both = pairs(pretrain="perm", steps=70)
    assert both["perm"].high > both["perm"].low > 70


def test_later_learners_of_chains_need_the_updates_of_concat() -> None:
    def updates(**given: Any) -> dict[str, Updates]:
        spec = {"model": "FC2L", "grammar": "concat,hol", "meanings": "3x4", "generations": 3, "chains": 1}
        return expected(make_plan(ChainRequest.asked(**{**spec, "workers": 1, "out": "none", **given})))

    found = updates()
    assert found["hol"].low == found["concat"].low > 0
    assert found["hol"].high > found["concat"].high
    assert updates(updates=50)["hol"] == (150, 150, False)
    assert updates(target="none") == dict.fromkeys(("concat", "hol"), (12_000, 12_000, False))


def test_populations_and_costs_of_length_have_their_own_times() -> None:
    about: dict[str, Any] = {"sender": "FC2L", "receiver": "RNN1L:GRU", "quick": True, "updates": 20, "out": "none"}
    crowds = make_plan(EndToEndRequest.asked(**about, senders="1,3")).rows
    costs = make_plan(EndToEndRequest.asked(**about, max_length=4, length_cost="lazy,impatient")).rows
    assert len({row.job.alike for row in (*crowds, *costs)}) == 4
