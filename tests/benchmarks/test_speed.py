"""The comparison of icy's speed with that of ordinary modules."""

from __future__ import annotations

import ctypes
import itertools
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bound, courses, plain, speed, whole
from icy.experiments.plan import make_plan
from icy.training.probe_settings import ProbeRequest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="the micro-kernel is compiled")


def results() -> list[Any]:
    rates = {speed.PLAIN: [10.0, 12.0, 11.0], speed.HAND: [20.0], speed.ICY: [50.0], speed.BOUND: [100.0]}
    found = speed.Measured("sender/HierZero:GRU", 1.5, rates, "broadcast", whole.Row("sender/HierZero:GRU", 100))
    seconds = {speed.PLAIN: (400.0, 12), speed.HAND: (200.0, 35), speed.ICY: (80.0, 35)}
    found.taken = {way: whole.Taken(*taken) for way, taken in seconds.items()}
    return [found]


def test_the_headline_is_relative_to_the_faster_plain_way() -> None:
    (found,) = results()
    assert found.to_best_plain == 2.5
    assert found.share == 0.75
    found.rates[speed.PLAIN] = [40.0]
    assert found.to_best_plain == 1.25


def test_tables_show_medians_and_ratios_to_the_plain_ways() -> None:
    steady = speed.steady_table(results()).splitlines()[-1]
    assert "| 11 (10 to 12) | 20 (20 to 20) | 50 (50 to 50) | 2.50 | 1.5 | 100 | 75% |" in steady
    assert speed.whole_table(results()).endswith("| ~400 | 200.0 | 80.0 | 5.00 | 2.50 |")


def test_rows_are_long_enough_for_both_sides() -> None:
    assert whole.updates_for(1, {speed.PLAIN: 10.0, speed.ICY: 20.0}, 6) == 100  # plain: a minute
    assert whole.updates_for(1, {speed.PLAIN: 10.0, speed.ICY: 60.0}, 6) == 200  # icy: a third of one


def test_the_plain_side_checks_as_icy_does() -> None:
    row = whole.Row("sender/FC2L", 138)
    updates = list(row.checks)
    assert updates[:3] == [1, 2, 3]
    assert updates[-1] == 138
    assert all(row.settings.next_check(a) == b for a, b in itertools.pairwise(updates))
    assert list(row.checks.values()) == [128] * (len(updates) - 1) + [1024]


def test_untrained_replicates_cost_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(arguments: list[tuple[object, ...]], threads: int) -> tuple[list[float], float]:
        asked.extend(arguments)
        return [30.0, 28.0], 35.0  # each trains for so long, and all is over after 5 s more

    monkeypatch.setattr(whole, "_run", run)
    monkeypatch.setattr(whole, "ways", lambda device: {speed.HAND: (2, 1)})
    row = whole.Row("sender/FC2L", 1000)
    # 4000 updates a minute on both: two replicates of 1000 on each
    found = whole.time_plain(row, speed.HAND, 1.0, 4000 / 60, speed.Where())
    assert found.trained == 4
    assert math.isclose(found.seconds, 5 + 30 * 35 / 4)
    parts = [argument[3] for argument in asked]
    assert parts == ['[["concat", 0], ["proj", 0]]', '[["perm", 0], ["pairsum", 0]]']


def test_icy_trains_every_replicate_of_a_row_for_as_long(tmp_path: Path) -> None:
    spec = ProbeRequest.asked(
        model="sender/FC2L", grammar="perm", meanings="3x3", seeds=2, settings={"max_steps": 13}, out=tmp_path
    )
    job = whole.FixedJob.of(make_plan(spec).rows[0].job)
    outcomes = list(job.train())
    assert [(one.reason, one.steps) for one in outcomes] == [("target", 13)] * 4
    expected = list(whole.Row("sender/FC2L", 13).checks)
    assert all([step for step, _ in one.curve] == expected for one in outcomes)


def test_operations_are_those_of_the_products_that_an_update_needs() -> None:
    state = 2 * 128 * 128 * 384  # the states of a batch times the weights of three gates
    recurrent = 3 * 2 * 20 * state  # forward, to the state and to the weights; two levels, 20 steps
    scores = 3 * 20 * 2 * 128 * 128 * 5
    meanings = 2 * 2 * 128 * 50 * 128
    found = bound.operations("sender/HierZero:GRU")
    assert found == pytest.approx((recurrent + scores + meanings) / 1e9, rel=1e-9)


def test_operations_of_a_pair_are_those_of_its_models() -> None:
    alone = sum(bound.operations(name) for name in ("sender/FC2L", "receiver/FC2L"))
    to_messages = 2 * 128 * 20 * 5 * 128 / 1e9  # the gradient of the messages, which only a pair needs
    assert bound.operations("pair/SOFT/FC2L+FC2L") == pytest.approx(alone + to_messages, rel=1e-9)


def test_operations_of_r2d2_are_those_of_its_layers() -> None:
    stimulus = 3 * 512 + 512 * 256 + 256 * 128  # numbers of weights
    others = 165 * 512 + 512 * 256 + 256 * 256 + 512 * 1024 + 384 * 512 + 128 * 4
    played, learned = 320, 640 + 320 + 3 * 320  # target network; burn-in; learned from, forward and backward
    found = bound.operations("agent/r2d2/LSTM") * 1e9 / 2
    most = (stimulus + others) * (played + learned)
    assert most - 0.7 * stimulus * learned < found < most - 0.3 * stimulus * learned  # equal stimuli are encoded once


@pytest.mark.parametrize("row", [speed.PAIRS[0], speed.GAMES[0]])
def test_a_course_makes_updates_of_every_replicate(row: str) -> None:
    course = courses.make_course(row, speed.Where())
    course.update(2)
    assert course.replicates == courses.SEEDS
    assert course.engine


@needs_compiler
def test_the_micro_kernel_multiplies(tmp_path: Path) -> None:
    library = bound.compiled(tmp_path)
    error = ctypes.CDLL(str(library)).micro_kernel_error
    error.restype = ctypes.c_double
    assert error() < 1e-5
    assert bound.micro_kernel_rate(library, 0.01) > 1


def test_all_models_have_a_plain_form() -> None:
    assert sorted(speed.PROBES) == sorted(plain.MODELS)


def test_a_row_that_is_unknown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["speed.py", "--rows", "sender/FC9L"])
    with pytest.raises(SystemExit, match="sender/FC2L"):
        speed.main()


@needs_compiler
@pytest.mark.stress
def test_a_quick_run_measures_both_parts_and_writes_nothing() -> None:
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "benchmarks").glob("speed-*")}
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--rows", "sender/FC2L,receiver/Hier:GRU"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert sum(line.startswith("| receiver/Hier:GRU |") for line in done.stdout.splitlines()) == 2
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "benchmarks").glob("speed-*")} == before
