"""Sweeps: what they consist of, shares of them, and what becomes of them when workers die or memory is short."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import icy
from icy.cli import main
from icy.config.specs import ProbeSpec, SweepSpec
from icy.core.errors import IcyError
from icy.experiments.probe import make_plan
from icy.experiments.run import run_plan
from icy.experiments.sweep import cost, expand, make_sweep, read_sweep
from icy.experiments.watcher import Watcher
from icy.records.record import Record, row_of
from icy.records.store import Store
from icy.training.engine import train as real_train
from icy.training.job import Job
from icy.training.runners import pool
from icy.training.runners import remote as work
from icy.training.runners.base import LocalRunner

NUMBERS = (
    "model",
    "representation",
    "protocol",
    "hidden_size",
    "grammar",
    "seed",
    "steps",
    "accuracy",
    "curve",
    "reason",
)


def numbers(records: Any) -> list[dict[str, Any]]:
    """What of records hangs on nothing but their configuration."""
    return sorted(({n: r.get(n) for n in NUMBERS} for r in records), key=lambda r: json.dumps(r, sort_keys=True))


def spec(out: Path | str = "unused", **given: Any) -> SweepSpec:
    return SweepSpec.asked(**{"grammar": "perm", "quick": True, "workers": 1, "out": str(out), **given})


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["sweep", *words])


# -- what a sweep consists of ------------------------------------------------------------------------------------------


def test_all_combinations_are_rows() -> None:
    plan = make_sweep(spec(model=["*/FC1L", "sender/FC2L"], representation="soft,gumb", protocol=["acquire", "budget"]))
    assert len(plan.rows) == 3 * 2 * 2
    assert len({row.job.row for row in plan.rows}) == 12
    assert plan.varying == ["representation", "protocol"]
    sizes = make_sweep(spec(model="sender/FC1L", hidden="16,32", vocab_size=[4, 5], meanings="2x3,3x4"))
    assert len(sizes.rows) == 2 * 2 * 2
    assert sizes.varying == ["hidden size", "meanings", "V"]


def test_a_sweep_of_one_row_is_a_probe(tmp_path: Path) -> None:
    """The same keys, so that each finds the other's results on file."""
    swept = make_sweep(spec(tmp_path, model="sender/FC1L"))
    probed = make_plan(ProbeSpec.asked(model="sender/FC1L", grammar="perm", quick=True, workers=1, out=str(tmp_path)))
    (one,), (other,) = swept.rows, probed.rows
    assert [one.job.key(r) for r in one.job.replicates] == [other.job.key(r) for r in other.job.replicates]


def test_one_side_may_be_left_out() -> None:
    assert {row.name for row in make_sweep(spec(model="FC1L", side="receiver")).rows} == {"receiver/FC1L"}
    assert {row.job.task.side for row in make_sweep(spec(model="FC*", side="sender")).rows} == {"sender"}


def test_models_that_do_not_work_somewhere_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    plan = make_sweep(spec(model=["sender/RNNSampling:RNN", "sender/FC1L"], representation=["soft", "discr"]))
    found = {(row.name, row.job.task.representation) for row in plan.rows}
    assert found == {
        ("sender/FC1L", "soft"),
        ("sender/FC1L", "discr"),
        ("sender/RNNSampling:RNN", "discr"),
    }
    assert "Left out" in caplog.text
    with pytest.raises(IcyError, match="RNNSampling"):
        make_sweep(spec(model="sender/RNNSampling:RNN", representation="soft"))


def test_parts_take_from_the_whole_what_they_do_not_say() -> None:
    parts = ({"model": "sender/FC1L", "hidden": [16, 32]}, {"model": "receiver/FC1L", "grammar": ["perm", "rot"]})
    plan = make_sweep(spec(parts=parts, seeds=3))
    found = {(row.name, row.job.task.hidden_size) for row in plan.rows}
    assert found == {("receiver/FC1L", 32), ("sender/FC1L", 16), ("sender/FC1L", 32)}
    grammars = {row.name: {r.grammar for r in row.job.replicates} for row in plan.rows}
    assert grammars == {"sender/FC1L": {"concat", "perm"}, "receiver/FC1L": {"concat", "perm", "rot"}}
    assert all(len({r.seed for r in row.job.replicates}) == 3 for row in plan.rows)


def test_what_is_given_goes_before_what_is_in_a_file_and_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "zoo.toml"
    file.write_text('hidden = 8\nseeds = 2\n[[sweep]]\nmodel = "sender/FC1L"\nhidden = [16, 32]\n')
    given: dict[str, Any] = {"grammar": "perm", "quick": True, "workers": 1, "out": str(tmp_path / "o")}
    assert {r["hidden_size"] for r in icy.sweep(file=file, target=0.3, **given).records} == {16, 32}
    assert {r["hidden_size"] for r in icy.sweep(file=file, target=0.3, hidden=8, **given).records} == {8}


def test_help_shows_every_option() -> None:
    parameters = inspect.signature(icy.sweep).parameters
    assert next(iter(parameters)) == "model"
    assert {f.name for f in dataclasses.fields(SweepSpec)} | {"file", "watcher"} == set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name != "model")


def test_a_pair_of_numbers_is_one_space() -> None:
    assert {str(row.job.task.space) for row in make_sweep(spec(model="sender/FC1L", meanings=(2, 3))).rows} == {"2x3"}
    sizes = make_sweep(spec(model="sender/FC1L", vocab_size=(4, 5))).rows
    assert {row.job.task.vocab_size for row in sizes} == {4, 5}


def test_a_row_that_two_parts_name_is_one_row() -> None:
    parts = ({"grammar": "perm"}, {"grammar": "rot", "seeds": [1, 2]})
    (row,) = make_sweep(spec(model="sender/FC1L", parts=parts, seeds=[1])).rows
    found = {(r.grammar, r.seed) for r in row.job.replicates}
    assert found == {("concat", 1), ("perm", 1), ("concat", 2), ("rot", 1), ("rot", 2)}


def test_a_sweep_is_read_from_toml_and_yaml(tmp_path: Path) -> None:
    toml, yaml = tmp_path / "zoo.toml", tmp_path / "zoo.yaml"
    toml.write_text('seeds = 5\nword-length = 2\n[[sweep]]\nmodel = "sender/*"\nrepresentation = ["soft", "gumb"]\n')
    yaml.write_text("seeds: 5\nword-length: 2\nsweep:\n  - model: sender/*\n    representation: [soft, gumb]\n")
    expected = {"seeds": 5, "word_length": 2, "parts": ({"model": "sender/*", "representation": ["soft", "gumb"]},)}
    assert read_sweep(toml) == expected
    pytest.importorskip("yaml")
    assert read_sweep(yaml) == expected


def test_the_longest_come_first() -> None:
    plan = make_sweep(spec(model=["sender/FC1L", "sender/FC2L", "sender/HierZero:GRU"], hidden=64))
    assert plan.rows[0].name == "sender/HierZero:GRU"
    assert [cost(row) for row in plan.rows] == sorted((cost(row) for row in plan.rows), reverse=True)
    given = make_sweep(spec(model=["sender/FC1L", "sender/HierZero:GRU"], order="given"))
    assert [row.name for row in given.rows] == ["sender/FC1L", "sender/HierZero:GRU"]


# -- shares ------------------------------------------------------------------------------------------------------------


def test_shares_are_all_of_it_and_do_not_overlap(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "*/FC*", "representation": "soft,gumb", "hidden": "8,16"}
    every = {row.job.row for row in make_sweep(spec(tmp_path, **given)).rows}
    shares = [{row.job.row for row in make_sweep(spec(tmp_path, **given, shard=f"{i}/3")).rows} for i in (1, 2, 3)]
    assert set.union(*shares) == every
    assert sum(map(len, shares)) == len(every)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_shares_write_into_one_folder_what_one_machine_would(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "*/FC1L", "quick": True, "grammar": "perm", "seeds": 1, "workers": 1}
    whole = icy.sweep(**given, out=str(tmp_path / "whole"))
    for i in (1, 2):
        icy.sweep(**given, out=str(tmp_path / "shared"), shard=f"{i}/2")
    assert numbers(Store(tmp_path / "shared").records()) == numbers(whole.records)


# -- running -----------------------------------------------------------------------------------------------------------


def test_rows_of_records_are_those_of_the_plan(tmp_path: Path) -> None:
    result = icy.sweep(
        "sender/FC1L", grammar="perm", quick=True, protocol="acquire,budget", workers=1, out=str(tmp_path)
    )
    plan = make_sweep(spec(tmp_path, model="sender/FC1L", protocol="acquire,budget"))
    assert plan.total == 0
    assert {row_of(record) for record in result.records} == {row.job.row for row in plan.rows}


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


class Killer(Watcher):
    """Kills a worker at the first reading of every so many rows."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.runner: pool.PoolRunner | None = None

    def read(self, job: Job, readings: Any) -> None:
        if self.left:
            self.left -= 1
            assert self.runner is not None
            for process in self.runner._pool[0].processes():  # none, while it begins again
                with contextlib.suppress(ProcessLookupError):  # it was killed a moment ago
                    os.kill(process.pid, signal.SIGKILL)


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(times: int) -> Killer:
        killer = Killer(times)
        real = pool.PoolRunner.__enter__

        def enter(self: pool.PoolRunner) -> pool.PoolRunner:
            killer.runner = self
            return real(self)

        monkeypatch.setattr(pool.PoolRunner, "__enter__", enter)
        return killer

    return install


SMALL: dict[str, Any] = {
    "model": ["sender/FC1L", "sender/HierZero:RNN"], "grammar": "perm", "quick": True, "settings": {"check_every": 20},
    "target": 0.6, "cap": 3,
}  # fmt: skip


def test_a_worker_that_is_killed_begins_again(tmp_path: Path, killing: Any, caplog: pytest.LogCaptureFixture) -> None:
    plain = icy.sweep(**SMALL, workers=1, out=str(tmp_path / "plain"))
    killer = killing(2)
    with caplog.at_level(logging.WARNING):
        found = icy.sweep(**SMALL, workers=2, out=str(tmp_path / "killed"), watcher=killer)
    assert killer.left == 0
    assert "again" in caplog.text
    assert numbers(found.records) == numbers(plain.records)
    assert not found.failures


@pytest.mark.slow
def test_what_is_killed_time_and_again_is_kept_as_failed_and_the_rest_goes_on(tmp_path: Path, killing: Any) -> None:
    killer = killing(10_000)
    found = icy.sweep(**SMALL, workers=2, out=str(tmp_path), retries=1, watcher=killer)
    assert found.failures
    assert work.KILLED.rstrip(".") in {record["error"] for record in found.failures}
    killer.left = 0
    again = icy.sweep(**SMALL, workers=2, out=str(tmp_path), rerun="failed")
    plain = icy.sweep(**SMALL, workers=1, out=str(tmp_path / "plain"))
    assert numbers(again.records) == numbers(plain.records)


def test_a_probe_stops_at_a_worker_that_is_killed(tmp_path: Path, killing: Any) -> None:
    killer = killing(1)
    plan = make_plan(ProbeSpec.asked(**{**SMALL, "workers": 2, "out": str(tmp_path)}))
    with pytest.raises(IcyError, match="A worker process was killed"):
        run_plan(plan, killer)


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


def test_what_does_not_fit_by_itself_is_a_failure_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(job: Job, report: Any = None) -> Any:
        if job.task.hidden_size == 64:
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


# -- the command -------------------------------------------------------------------------------------------------------

WORDS = ("-m", "sender/FC1L", "-g", "perm", "--quick", "--workers", "1")


def test_the_command_prints_a_table_per_protocol(tmp_path: Path) -> None:
    words = (*WORDS, "--protocol", "acquire,budget", "--representation", "soft,gumb", "-o", str(tmp_path))
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("sender/FC1L") == 4
    assert "acquire: steps to the target" in result.stdout
    assert "budget: accuracy" in result.stdout
    assert "Nothing to train" in run(*words).stderr


def test_the_command_plans_and_does_nothing(tmp_path: Path) -> None:
    file = tmp_path / "zoo.toml"
    file.write_text('quick = true\n[[sweep]]\nmodel = "*/FC1L"\ngrammar = "perm"\nrepresentation = "soft,gumb"\n')
    result = run(str(file), "--seeds", "1", "--dry-run", "-o", str(tmp_path / "o"))
    assert result.exit_code == 0, result.output
    head, *lines = result.stdout.splitlines()
    assert head.split()[:3] == ["model", "representation", "parameters"]
    assert len(lines) == 4
    assert all("2 of 2" in line for line in lines)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "No model was given"),
        (("-m", "sender/FC1L", "--side", "receiver"), "is no receiver"),
        (("-m", "sender/FC1L", "--engine", "auto+graph"), "only on a GPU"),
        (("-m", "sender/FC1L", "--runner", "ray", "--device", "cuda:1"), "device of a cluster"),
        (("-m", "FC3L"), "did you mean"),
        (("-m", "FC1L", "--side", "sender", "--shard", "3/2"), "A shard is i/n"),
        (("-m", "sender/FC1L", "--shard", "half"), "A shard is i/n"),
        (("-m", "sender/FC1L", "--protocol", "acquire,budge"), "did you mean budget"),
        (("-m", "sender/FC1L", "--representation", "sof"), "did you mean soft"),
        (("none.toml",), "cannot be read"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    result = run(*words)
    assert result.exit_code in (1, 2)
    assert said in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = ", "not of the format"),
        ("sweep = 3", "each under"),
        ("[[sweep]]\nmodel = 'FC1L'\nmodle = 'x'", "did you mean model"),
        ("[[sweep]]\nmodel = 'FC1L'\nout = 'x'", "for the whole sweep"),
        ("seed = 3\nmodel = 'sender/FC1L'", "did you mean seeds"),
    ],
)
def test_files_with_mistakes_are_answered_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "zoo.toml"
    file.write_text(text)
    result = run(str(file))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    other = tmp_path / "zoo.txt"
    other.write_text(text)
    assert ".toml, .yaml or .yml" in run(str(other)).stderr


def test_parts_are_the_arguments_of_a_probe() -> None:
    (one,) = expand(spec(model="sender/FC1L"))
    assert isinstance(one, ProbeSpec)
    assert not isinstance(one, SweepSpec)


def test_every_option_of_the_command_says_what_it_is() -> None:
    command = main.get_command(click.Context(main), "sweep")
    assert command is not None
    assert [p.name for p in command.params if isinstance(p, click.Option) and not p.help] == []
