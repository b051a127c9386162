"""Running a plan: the same numbers however it is run, and nothing trained twice."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pytest

import icy
from icy.core.errors import IncompatibleError
from icy.experiments import run
from icy.experiments.plan import make_plan
from icy.experiments.progress import Watcher
from icy.models.native import calls
from icy.records.record import Record
from icy.records.store import Claims, Store
from icy.training.engine import train as real_train
from icy.training.job import Job
from icy.training.probe_settings import ProbeRequest
from icy.training.runners.base import LocalRunner
from tests.experiments.helpers import HOLDING, PLUGIN, Counter, curves, plugin_file
from tests.helpers import TINY, mark_others, numbers

MODELS = ("sender/FC2L", "sender/RNNAutoReg:LSTM", "sender/HierZero:GRU", "receiver/Hier:GRU")


@pytest.mark.slow
def test_pool_equals_serial(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Two workers, baselines first, other stacks: the same readings to the last bit."""
    watcher = Counter()
    pooled = icy.probe("sender/FC2L", ["perm", "rot"], workers=2, out=tmp_path, watcher=watcher, **TINY)
    assert curves(pooled) == curves(tiny)
    assert len(watcher.keys) == 6
    assert watcher.readings > 0


@pytest.mark.parametrize("model", mark_others("slow", MODELS, lambda model: model == "receiver/Hier:GRU"))
def test_a_seed_alone_equals_the_seed_among_others(model: str, tmp_path: Path) -> None:
    among = icy.probe(model, ["perm"], workers=1, out=tmp_path / "a", **{**TINY, "seeds": [1, 2, 3]})
    alone = icy.probe(model, ["perm"], workers=1, out=tmp_path / "b", **{**TINY, "seeds": [3]})
    for place, (steps, accuracy, curve) in curves(alone).items():
        assert curves(among)[place] == (steps, accuracy, curve)


def test_more_than_one_stack_in_one_process(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Twenty replicates in stacks of at most sixteen: the same numbers again."""
    many = icy.probe(
        "sender/FC2L", ["perm", "rot", "shufdet"], workers=1, out=tmp_path, **{**TINY, "seeds": [123, 124, 1, 2, 3]}
    )
    assert not many.failures
    assert {place: curves(many)[place] for place in curves(tiny)} == curves(tiny)


def test_nothing_is_trained_twice(tmp_path: Path) -> None:
    first = icy.probe("sender/FC2L", ["perm"], workers=1, out=tmp_path, **{**TINY, "seeds": [1]})
    again = Counter()
    assert curves(icy.probe("sender/FC2L", ["perm"], out=tmp_path, watcher=again, **{**TINY, "seeds": [1]})) == curves(
        first
    )
    assert not again.keys
    more = Counter()
    icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, watcher=more, **{**TINY, "seeds": [1, 2]})
    assert len(more.keys) == 4  # rot at both seeds, concat and perm at the new one
    assert not set(more.keys) & {r["key"] for r in first.records}


def test_added_seeds_equal_those_of_one_run(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Resumed = uninterrupted: grammars stop at the same step with a baseline on file."""
    icy.probe("sender/FC2L", ["concat"], workers=1, out=tmp_path, **TINY)
    resumed = icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, **TINY)
    assert curves(resumed) == curves(tiny)


def test_rerun_never_shows_records_on_file(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    shown = icy.probe("sender/FC2L", ["perm", "shufdet"], out=tiny_folder, rerun="never", **TINY)
    assert {r["grammar"] for r in shown.records} == {"concat", "perm"}


@pytest.mark.process
def test_generalise_resumes_and_equals_itself_on_a_pool(tmp_path: Path) -> None:
    """Baselines on file, other stacks, two workers: the same numbers."""

    def held_out(result: icy.ProbeResult) -> Any:
        return curves(result), {(r["grammar"], r["seed"]): r["train_accuracy"] for r in result.records}

    whole = icy.probe("sender/FC2L", ["perm"], workers=1, out=tmp_path / "a", **HOLDING)
    icy.probe("sender/FC2L", ["concat"], workers=1, out=tmp_path / "b", **HOLDING)
    resumed = icy.probe("sender/FC2L", ["perm"], workers=2, out=tmp_path / "b", **HOLDING)
    assert held_out(resumed) == held_out(whole)
    assert make_plan(ProbeRequest("sender/FC2L", ["perm"], out=tmp_path / "b", **HOLDING)).total == 0


@pytest.mark.process
@pytest.mark.usefixtures("forgetting")
def test_a_plugin_reaches_the_workers(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Stranger")
    pooled = icy.probe("Stranger", "perm", plugin=file, workers=2, out=tmp_path / "pool", **TINY)
    serial = icy.probe("Stranger", "perm", plugin=file, workers=1, out=tmp_path / "one", **TINY)
    assert not pooled.failures
    assert curves(pooled) == curves(serial)


@pytest.mark.usefixtures("forgetting")
def test_a_model_that_raises_is_kept_with_its_error_and_retried_on_request(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Faulty", "if self.training: raise ValueError('out of luck')")
    result = icy.probe("Faulty", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert [r["error"] for r in result.failures] == ["ValueError: out of luck (line 15 of faulty_plugin.py)"] * 4
    assert "failed" in result.table()
    counter = Counter()
    icy.probe("Faulty", "perm", workers=1, out=tmp_path / "r", watcher=counter, **TINY)
    assert not counter.keys
    icy.probe("Faulty", "perm", workers=1, out=tmp_path / "r", watcher=counter, rerun="failed", **TINY)
    assert len(counter.keys) == 4


CELL = """
    import torch
    from torch import nn
    import icy
    from icy.models.cells import Cell

    @icy.register_cell("plaincell", source="a test")
    class PlainCell(Cell):
        "A cell of ordinary layers, which cannot be stacked by broadcasting."

        gate_blocks = 1

        def __init__(self, input_size, hidden_size, fed=True):
            super().__init__(input_size, hidden_size, fed)
            self.read, self.keep = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size)

        def project(self, x):
            return self.read(x)

        def weigh(self, x):
            return nn.functional.linear(x, self.read.weight)

        def unfed(self):
            return self.read.bias.unsqueeze(0)

        def step(self, gates, state):
            return (torch.tanh(gates + self.keep(state[0])),)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("forgetting")
def test_a_cell_of_ordinary_layers_trains_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "cell.py"
    file.write_text(textwrap.dedent(CELL))
    result = icy.probe("RNNZero:plaincell", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert not result.failures, result.failures[0]["error"]
    assert {r["engine"] for r in result.records} == {"native" if calls.available() else "vmap"}


@pytest.mark.usefixtures("forgetting")
def test_a_model_with_scores_of_another_shape_fails_with_a_reason(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Misshapen", "self.shape = (1, -1)")
    result = icy.probe("Misshapen", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert "must output (2, 4, 5)" in result.failures[0]["error"]


@pytest.mark.process
def test_a_model_from_a_script_without_a_main_guard(tmp_path: Path) -> None:
    """As in a notebook: the class lives in __main__, and nothing guards the call."""
    script = tmp_path / "script.py"
    call = f"r = icy.probe('Mine', 'perm', workers=2, out={str(tmp_path / 'r')!r}, **{TINY!r})"
    model = textwrap.dedent(PLUGIN).format(name="Mine", body="pass")
    script.write_text("\n".join([model, call, "print(len(r.failures), len(r.records))"]))
    root = str(Path(icy.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=900, env={"PYTHONPATH": root, "PATH": ""}
    )
    assert done.stdout.split() == ["0", "4"], done.stderr


# -- running -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_workers_are_given_rows_until_all_have_something_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU each row is one job; with four workers, four are at work at once."""
    most: list[int] = []

    class Counting(LocalRunner):
        workers = 4

        def finished(self) -> Any:
            for ticket, records in super().finished():
                most.append(len(self._waiting) + 1)
                yield ticket, records

    monkeypatch.setattr("icy.experiments.run.make_runner", lambda plan, watcher, retries: Counting())
    monkeypatch.setattr("icy.experiments.run.STACK_ON_CPU", 1000)
    icy.sweep("*/FC*", grammar="concat", quick=True, workers=1, out=str(tmp_path), representation="soft,gumb", seeds=1)
    assert max(most) == 4
    assert most[0] == 4


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_stack_that_does_not_fit_is_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    given: dict[str, Any] = {
        "model": "sender/FC1L", "grammar": ["perm", "rot"], "quick": True, "workers": 1, "target": 0.5, "cap": 2,
    }  # fmt: skip
    plain = icy.sweep(**given, out=str(tmp_path / "plain"))
    sizes: list[int] = []

    def small(job: Job, report: Any = None) -> Any:
        sizes.append(len(job.replicates))
        if len(job.replicates) > 1:
            raise error
        yield from real_train(job, report)

    monkeypatch.setattr("icy.training.engine.train", small)
    found = icy.sweep(**given, out=str(tmp_path / "halved"))
    assert sizes == [6, 3, 2, 1, 1, 1, 3, 2, 1, 1, 1]
    assert numbers(found.records) == numbers(plain.records)


@pytest.mark.slow
def test_a_replicate_that_does_not_fit_in_memory_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(job: Job, report: Any = None) -> Any:
        if job.settings.hidden == 64:
            raise MemoryError
        yield from real_train(job, report)

    monkeypatch.setattr("icy.training.engine.train", full)
    found = icy.sweep("sender/FC2L", grammar="perm", hidden="16,64", quick=True, workers=1, out=str(tmp_path))
    assert {record["hidden_size"] for record in found.failures} == {64}
    assert {record["hidden_size"] for record in found.records if not record["failed"]} == {16}


def test_tables_can_be_read_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.experiments.run._Tables.SECONDS", 0.0)
    seen: list[bool] = []

    class Reader(Watcher):
        def filed(self, record: Record) -> None:
            seen.append((tmp_path / "results.csv").exists())

    icy.sweep("*/FC1L", grammar="perm", quick=True, workers=1, out=str(tmp_path), watcher=Reader())
    assert seen[0] is False
    assert seen[-1] is True


# -- several runs in one folder ----------------------------------------------------------------------------------------


class Both(Counter):
    """Also collects what another run turns out to have filed."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[str] = []

    def found(self, record: Record) -> None:
        self.others.append(record["key"])


class WhenWaiting(logging.Handler):
    """Does something once a run says that it waits for another."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__()
        self.action, self.said = action, ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said = record.getMessage()
        self.action()

    def __enter__(self) -> Self:
        run.log.addHandler(self)
        return self

    def __exit__(self, *exception: object) -> None:
        run.log.removeHandler(self)


@pytest.fixture
def keys(tiny: icy.ProbeResult) -> dict[tuple[str, int], str]:
    return {(r["grammar"], r["seed"]): r["key"] for r in tiny.records}


@pytest.fixture(autouse=True)
def _looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.02)


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 2])
def test_replicates_of_another_run_are_waited_for(
    tiny: icy.ProbeResult, keys: dict[tuple[str, int], str], tmp_path: Path, workers: int
) -> None:
    """The other run trains a baseline, which its grammars wait for, and a grammar of the other seed."""
    theirs, watcher = [keys["concat", 123], keys["rot", 124]], Both()

    def finish() -> None:
        for record in tiny.records:
            if record["key"] in theirs:
                Store(tmp_path).put(record)
        other.__exit__(None, None, None)

    with Claims(tmp_path) as other, WhenWaiting(finish) as waiting:
        other.take(theirs)
        found = icy.probe("sender/FC2L", ["perm", "rot"], workers=workers, out=tmp_path, watcher=watcher, **TINY)
    assert curves(found) == curves(tiny)
    assert sorted(watcher.keys) == sorted(set(keys.values()) - set(theirs))
    assert sorted(watcher.others) == sorted(theirs)
    assert waiting.said.startswith(f"Waiting for 2 replicates that another run is training: process {os.getpid()} on ")
    assert len(pd.read_csv(tmp_path / "results.csv")) == 6
    assert not (tmp_path / "claims").exists()


def test_replicates_that_another_run_gives_up_are_trained(
    tiny: icy.ProbeResult, keys: dict[tuple[str, int], str], tmp_path: Path
) -> None:
    watcher = Both()
    other = Claims(tmp_path)
    other.take(keys.values())
    with WhenWaiting(lambda: other.__exit__(None, None, None)):
        found = icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, watcher=watcher, **TINY)
    assert curves(found) == curves(tiny)
    assert sorted(watcher.keys) == sorted(keys.values())


def test_replicates_recorded_since_the_plan_are_not_trained_again(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    plan = make_plan(ProbeRequest("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, **TINY))
    first, *_, last = tiny.records
    for record in (first, last):
        Store(tmp_path).put(record)
    watcher = Both()
    found = run.run_plan(plan, watcher)
    assert sorted(watcher.others) == sorted((first["key"], last["key"]))
    assert len(watcher.keys) == 4
    assert curves(found) == curves(tiny)


def test_replicates_that_another_run_retrained_are_not_trained(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    for record in tiny.records:
        Store(tmp_path).put(record)
    plan = make_plan(ProbeRequest("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, rerun="always", **TINY))
    again = {**tiny.records[0], "finished": "2199-01-01T00:00:00.000000+00:00"}
    Store(tmp_path).put(again)  # type: ignore[arg-type]
    watcher = Both()
    found = run.run_plan(plan, watcher)
    assert watcher.others == [again["key"]]
    assert len(watcher.keys) == 5
    assert curves(found) == curves(tiny)


def _custom() -> type:
    import torch
    from torch import nn

    class Odd(nn.Module):
        """A sender whose operations neither native cores nor broadcasting nor vmap support."""

        def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int) -> None:
            super().__init__()
            self.shape, self.values = (message_length, vocab_size + 1), space.values
            self.out = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))

        def forward(self, meanings: Any) -> Any:
            assert float(meanings.sum()) >= 0  # leaves PyTorch
            first = nn.functional.one_hot(meanings, self.values).flatten(-2).to(torch.float32)
            return self.out(first).unflatten(-1, self.shape)

    return Odd


@pytest.mark.slow
@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize(
    ("engine", "model"),
    [
        *((engine, "custom") for engine in ("native", "broadcast", "vmap")),
        ("vmap", "sender/RNNZero:GRU"),
        ("vmap", "receiver/Hier:GRU"),
        ("vmap", "sender/TransDecSoft"),
    ],
)
def test_an_engine_that_cannot_run_a_model_is_refused_before_training(engine: Any, model: Any, tmp_path: Path) -> None:
    given = _custom() if model == "custom" else model
    shared: Any = {"quick": True, "workers": 1, "engine": engine, "out": tmp_path / "runs", "progress": False}
    with pytest.raises(IncompatibleError, match=f"The engine '{engine}' cannot run .*; choose another, or 'auto'"):
        icy.probe(given, "perm", seeds=1, **shared)
    with pytest.raises(IncompatibleError, match=f"The engine '{engine}' cannot run"):
        icy.sweep(given, grammar="perm", seeds=1, **shared)
    if model != "receiver/Hier:GRU":
        with pytest.raises(IncompatibleError, match=f"The engine '{engine}' cannot run"):
            icy.iterate(given, "perm", chains=1, **shared)
    assert not list(tmp_path.glob("runs/records/*"))


def test_a_sweep_leaves_out_a_model_that_its_engine_cannot_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = icy.sweep(["sender/RNNZero:GRU", "sender/FC1L"], grammar="perm", quick=True, seeds=1, workers=1,
                       engine="vmap", out=tmp_path, progress=False)  # fmt: skip
    assert {record["model"] for record in result.records} == {"sender/FC1L"}
    assert "Left out: The engine 'vmap' cannot run RNNZero" in caplog.text
