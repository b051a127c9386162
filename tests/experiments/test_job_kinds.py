"""A third kind of job, registered by a plug-in, has all that probes and pairs have."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.core.errors import IcyError, InvalidSettingError, StoreError, UnknownNameError
from icy.core.registry import registry
from icy.experiments.estimate import estimate, on_workers
from icy.experiments.idle import warn_of_idle
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult, read_results
from icy.experiments.run import run_plan
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.trackers import curve_of
from icy.records.kinds import job_kind, job_kinds, kind_of, row_of
from icy.records.load import load_records
from icy.records.store import Store
from icy.training.job import Job, Outcome, Replicate, check_config
from tests.helpers import all_numbers

# The guesser: each update covers a share of the distance to 1. Its training is ten lines.
PLUGIN = '''
import os, signal
from dataclasses import dataclass
from pathlib import Path

from icy.config.requests import RunRequest
from icy.core.checks import seed_list
from icy.records.kinds import JobKind, register_job_kind
from icy.training.job import Job, Outcome, Reading, Replicate


@dataclass(frozen=True)
class GuessSpec(RunRequest):
    """What to guess.

    Attributes:
        rate: share of the distance that an update covers.
        seeds: how many.
        fault: "kill" or "raise" at seed 124, once.
    """

    function = "guess"
    job_kind = "guess"
    axes = ("rate",)
    rate: float = 0.1
    seeds: int | str = 2
    fault: str = ""


@dataclass(frozen=True)
class GuessJob(Job):
    rate: float
    fault: str = ""
    kind = "guess"

    @property
    def name(self):
        return "guesser"

    @property
    def facts(self):
        return {"rate": f"{self.rate:g}"}

    def config(self, replicate):
        return {"model": self.name, "grammar": replicate.condition, "seed": replicate.seed, "rate": self.rate}

    def train(self, report=None):
        for replicate in self.replicates:
            break_down(self, replicate)
            guess, curve = replicate.seed / 1000, []
            for step in (10, 20, 30):
                guess += self.rate * (1 - guess)
                curve.append((step, guess))
                if report:
                    report([Reading(replicate, step, guess)])
            file = {f"guesses/{self.key(replicate)}.txt": str(guess).encode()}
            yield Outcome(replicate, "steps", 30, guess, curve, extra={"distance": 1 - guess}, files=file)


def break_down(job, replicate):
    marker = Path(job.folder) / "broken"
    if job.fault and replicate.seed == 124 and not marker.exists():
        marker.write_text("")
        if job.fault == "raise":
            raise ArithmeticError("a guess too far")
        os.kill(os.getpid(), signal.SIGKILL)


def guess_jobs(spec):
    replicates = tuple(Replicate("number", seed) for seed in seed_list(spec.seeds))
    return [GuessJob(spec.rate, spec.fault, replicates=replicates)]


register_job_kind(JobKind("guess", "Guess a number.", GuessSpec, guess_jobs, measures=("distance",)))
'''


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of the plug-in, loaded for as long as this module's tests run."""
    registry.load_all()
    entries, files = dict(registry._entries), list(registry.plugin_files)
    file = tmp_path_factory.mktemp("plugin") / "guess.py"
    file.write_text(PLUGIN)
    registry.load_file(file)
    yield file
    registry._entries, registry.plugin_files = entries, files


@pytest.fixture
def module(plugin: Path) -> ModuleType:
    return sys.modules[job_kind("guess").request_class().__module__]


def run(module: ModuleType, out: Path, retries: int = 0, **given: Any) -> ProbeResult:
    spec = module.GuessSpec.asked(**{"workers": 1, "out": str(out), **given})
    return run_plan(make_plan(spec), retries=retries)


def test_it_is_registered_with_the_built_in_kinds(plugin: Path) -> None:
    names = [kind.name for kind in job_kinds() if kind.name != "guess_of_page"]  # which another test may have added
    assert names == ["chain", "context", "e2e", "games", "guess", "probe", "recall", "s2b", "study"]
    with pytest.raises(UnknownNameError, match="did you mean guess"):
        job_kind("gess")


def test_records_and_tables(module: ModuleType, tmp_path: Path) -> None:
    result = run(module, tmp_path, seeds=3, rate=0.2)
    expected = 1 - (1 - 0.123) * 0.8**3
    first = result.records[0]
    assert first["accuracy"] == pytest.approx(expected)
    assert (first["kind"], first["side"], first["measure"]) == ("guess", "guess", "accuracy")
    assert curve_of(first)[2] == (30, {"curve/accuracy": pytest.approx(expected)})
    assert row_of(first) == make_plan(module.GuessSpec(rate=0.2, out=str(tmp_path))).rows[0].job.row
    long = result.to_dataframe()
    assert long["distance"].tolist() == pytest.approx([1 - v for v in long["value"]])
    assert set(long["options"]) == {"rate=0.2"}
    assert "guesser" in result.table()
    assert "concat" not in result.table()
    files = {path.name: float(path.read_text()) for path in (tmp_path / "guesses").iterdir()}
    assert files == {f"{record['key']}.txt": record["accuracy"] for record in result.records}
    assert read_results([tmp_path]).to_dataframe()["value"].tolist() == long["value"].tolist()


def test_resumes(module: ModuleType, tmp_path: Path) -> None:
    run(module, tmp_path, seeds=3)
    before = all_numbers(tmp_path)
    store, lost = Store(tmp_path), before[1]["key"]
    store.path(lost).unlink()
    kept = store.path(before[0]["key"]).stat().st_mtime_ns
    plan = make_plan(module.GuessSpec(seeds=3, out=str(tmp_path), workers=1))
    assert [plan.rows[0].job.key(r) for r in plan.rows[0].missing] == [lost]
    run_plan(plan)
    assert all_numbers(tmp_path) == before
    assert store.path(before[0]["key"]).stat().st_mtime_ns == kept


@pytest.mark.process
def test_pool_equals_serial(module: ModuleType, tmp_path: Path) -> None:
    run(module, tmp_path / "serial", seeds=4)
    run(module, tmp_path / "pool", seeds=4, workers=2)
    assert all_numbers(tmp_path / "pool") == all_numbers(tmp_path / "serial")


@pytest.mark.process
def test_a_killed_worker_is_replaced(module: ModuleType, tmp_path: Path) -> None:
    result = run(module, tmp_path / "killed", retries=1, seeds=4, workers=2, fault="kill")
    assert (tmp_path / "killed" / "broken").exists()
    assert not result.failures
    run(module, tmp_path / "whole", seeds=4)
    assert all_numbers(tmp_path / "killed") == all_numbers(tmp_path / "whole")


def test_a_failure_is_recorded(module: ModuleType, tmp_path: Path) -> None:
    result = run(module, tmp_path, seeds=3, fault="raise")
    assert [(r["seed"], r["reason"]) for r in result.failures] == [(124, "error"), (125, "error")]
    assert "a guess too far" in str(result.failures[0]["error"])
    again = run(module, tmp_path, seeds=3, rerun="failed")
    assert not again.failures


@pytest.mark.slow
def test_is_estimated(module: ModuleType, tmp_path: Path) -> None:
    assert estimate(make_plan(module.GuessSpec(out=str(tmp_path), workers=1))) == []  # no maximum, and no records
    run_plan(make_plan(module.GuessSpec(out=str(tmp_path), seeds=1, workers=1)))
    (found,) = estimate(make_plan(module.GuessSpec(out=str(tmp_path), seeds=3, workers=1)))
    assert [updates[:2] for updates in found.updates.values()] == [(30, 30)] * 2
    low, high = on_workers([found], 1)
    assert 0 < low < high < 60
    shown = CliRunner().invoke(main, ["guess", "--dry-run", "-o", str(tmp_path), "--format", "json"])
    assert json.loads(shown.stdout)[0]["to_train"] == 1


@pytest.mark.slow
def test_many_that_report_once_are_estimated(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(job: Any, report: Any = None) -> Iterator[Outcome]:
        for replicate in job.replicates:
            yield Outcome(replicate, "steps", 1, 1.0, [(1, 1.0)])

    monkeypatch.setattr(module.GuessJob, "train", train)
    monkeypatch.setattr(module.GuessJob, "length", lambda job, baseline: 1)
    plan = make_sweep(sweep_request(kind="guess", rate=[0.1, 0.2, 0.3, 0.4, 0.5], seeds=1, workers=1, out="none"))
    assert [one.timed and one.update_seconds > 0 for one in estimate(plan)] == [True] * 5


def test_sweeps_and_shards(plugin: Path, tmp_path: Path) -> None:
    given = {"kind": "guess", "rate": [0.1, 0.2, 0.3], "seeds": 1, "workers": 1, "out": str(tmp_path)}
    whole = make_sweep(sweep_request(**given))
    assert [row.facts["rate"] for row in whole.rows] == ["0.1", "0.2", "0.3"]
    assert whole.varying == ["rate"]
    shares = [make_sweep(sweep_request(**given, shard=f"{i}/2")).rows for i in (1, 2)]
    assert sorted(len(share) for share in shares) == [1, 2]
    assert {row.job.row for share in shares for row in share} == {row.job.row for row in whole.rows}
    parts = ({"kind": "guess", "rate": 0.5}, {"model": "sender/FC1L", "grammar": "perm"})
    rows = make_sweep(sweep_request(parts=parts, quick=True, out=str(tmp_path))).rows
    assert {row.job.kind for row in rows} == {"guess", "probe"}
    for seeds in (1, 3, 4):  # 3 is the sweep's own default, 2 the guesser's
        (row,) = make_sweep(sweep_request(kind="guess", seeds=seeds, out=str(tmp_path))).rows
        assert len(row.job.replicates) == seeds
    shared = sweep_request(seeds=3, parts=({"kind": "guess"}, {"model": "sender/FC1L", "grammar": "concat"}))
    assert [len(row.job.replicates) for row in make_sweep(shared).rows] == [3, 3]
    whole = sweep_request(kind="guess", rate=0.4, parts=({}, {"kind": "probe", "model": "sender/FC1L"}))
    assert {row.facts.get("rate") for row in make_sweep(whole).rows} == {"0.4", None}
    for wrong in ({"grammar": "perm"}, {"side": "sender"}, {"model": "sender/FC1L"}):
        with pytest.raises(UnknownNameError, match=next(iter(wrong))):
            sweep_request(kind="guess", **wrong)
    with pytest.raises(UnknownNameError, match="did you mean rate"):
        sweep_request(kind="guess", ratte=1)
    with pytest.raises(UnknownNameError, match="did you mean rate"):
        make_sweep(sweep_request(parts=({"kind": "guess", "ratte": 1},)))


def test_has_a_command(plugin: Path, tmp_path: Path) -> None:
    words = ["guess", "--plugin", str(plugin), "--rate", "0.2", "--seeds", "2", "--workers", "1", "-o", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "guesser" in done.output
    shown = CliRunner().invoke(main, [*words, "--format", "json"])
    assert [record["seed"] for record in json.loads(shown.stdout)] == [123, 124]
    said = CliRunner().invoke(main, ["guess", "--help"])
    assert "Share of the distance that an update covers" in said.output
    table = CliRunner().invoke(main, ["table", str(tmp_path), "--format", "csv"])
    assert "guesser" in table.output


def test_the_documented_kind_runs(plugin: Path, tmp_path: Path) -> None:
    file = page_kind(tmp_path, "guess_of_page")
    about: dict[str, Any] = {"out": str(tmp_path / "out"), "workers": 1, "plugin": str(file), "seeds": 2}
    result = icy.train("guess_of_page", rate="0.2,0.5", updates=3, **about)
    left = [distance * (1 - rate) ** 3 for rate in (0.2, 0.5) for distance in (0.877, 0.876)]
    assert result.to_dataframe()["distance"].tolist() == pytest.approx(left)
    with pytest.raises(InvalidSettingError, match="setting rate must be a number above 0 and at most 1, not 2"):
        icy.train("guess_of_page", rate=2.0, **about)


def page_kind(tmp_path: Path, name: str, *changes: tuple[str, str]) -> Path:
    """The plug-in of the page on kinds of jobs, under another name and with changes."""
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0].replace('"guess"', f'"{name}"')
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    file = tmp_path / f"{name}.py"
    file.write_text(code)
    return file


def test_the_documented_request_runs(plugin: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    request = page.split("```python\n")[2].partition("```")[0].replace('"guess"', '"guess_names"')
    file = page_kind(tmp_path, "guess_names", ("register_job_kind(JobKind", "(JobKind"))
    file.write_text(f"{file.read_text()}\n{request}")
    asked: dict[str, Any] = {"guesser": "all", "rate": "0.1,0.5", "seeds": "5", "updates": 2}
    result = icy.train("guess_names", plugin=file, workers=1, out=tmp_path / "out", **asked)
    assert len(result.records) == 2 * 2 * 5
    assert {record["grammar"] for record in result.records} == {"slow", "fast"}


def test_a_sweep_file_loads_the_plug_in_of_its_parts(plugin: Path, tmp_path: Path) -> None:
    file = page_kind(tmp_path, "guess_of_parts")
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(f'plugin = "{file}"\nseeds = 1\n[[sweep]]\nkind = "guess_of_parts"\nrate = [0.1, 0.2]\n')
    result = icy.sweep(file=sweep, out=tmp_path / "out", workers=1)
    assert [record["rate"] for record in result.records] == [0.1, 0.2]
    assert all(record["seconds"] > 0 for record in result.records)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    updates: int", "    seed: int = setting(1)\n    updates: int", "cannot have a setting called 'seed'"),
        ("    updates: int", "    out: str = setting('')\n    updates: int", "cannot have a setting called 'out'"),
        ("quick=3", "quik=3", "has no argument 'quik'"),
        ('kind = "guess_', 'kind = "of_', "needs kind = 'guess_"),
    ],
)
def test_mistakes_in_declarations_are_named_at_once(
    plugin: Path, tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    with pytest.raises(IcyError, match=sentence):
        registry.load_file(page_kind(tmp_path, f"guess_{abs(hash(new))}", (old, new)))


def test_a_curve_has_the_columns_of_its_kind(plugin: Path, tmp_path: Path) -> None:
    file = page_kind(tmp_path, "guess_curves", ("(update, guess))", "(update, guess, 0))"))
    (record,) = icy.train("guess_curves", plugin=file, seeds=1, out=tmp_path / "out", workers=1).records
    assert record["failed"]
    assert "columns steps and accuracy, but a point has 3 numbers" in record["error"]


def breaking(module: ModuleType, out: Path, **changes: Any) -> ProbeResult:
    """Results of guessers with an error in training."""
    kind = type("Breaking", (module.GuessJob,), changes)
    (row,) = make_plan(module.GuessSpec(out=str(out), workers=1)).rows
    job = kind(row.job.rate, replicates=row.job.replicates, folder=str(out))
    plan = make_plan(module.GuessSpec(out=str(out), workers=1))
    return run_plan(replace(plan, rows=(replace(plan.rows[0], job=job),)))


def outcomes(**changes: Any) -> Any:
    def train(job: Any, report: Any = None) -> Iterator[Outcome]:
        for replicate in job.replicates:
            yield Outcome(**{"replicate": replicate, "reason": "steps", "steps": 1, "accuracy": 0.5, **changes})

    return train


@pytest.mark.parametrize(
    ("train", "error"),
    [
        (lambda job, report=None: iter(()), "ended without a result"),
        (outcomes(extra={"steps": 3}), "cannot have the reserved names steps"),
        (outcomes(extra={"distance": "far"}), "must be a number, not 'far'"),
        (outcomes(replicate=Replicate("number", 9)), "gave an unexpected result of"),
        (outcomes(error="no idea"), "no idea"),
    ],
    ids=["nothing", "reserved", "text", "foreign", "own reason"],
)
def test_training_that_breaks_the_contract_fails(module: ModuleType, tmp_path: Path, train: Any, error: str) -> None:
    result = breaking(module, tmp_path, train=train)
    assert [record["seed"] for record in result.failures] == [123, 124]
    assert all(error in str(record["error"]) for record in result.failures)


def test_numpy_numbers_and_none_are_stored(module: ModuleType, tmp_path: Path) -> None:
    train = outcomes(
        steps=np.int64(7), accuracy=np.float32(0.5), extra={"distance": math.nan}, curve=[(np.int64(7), 1)]
    )
    result = breaking(module, tmp_path, train=train)
    assert not result.failures
    first = load_records(tmp_path)[0]
    assert (first["steps"], first["accuracy"], first["curve"]) == (7, 0.5, [[7, 1]])
    assert result.to_dataframe()["distance"].isna().all()


def test_jobs_are_checked_before_they_run(module: ModuleType) -> None:
    with pytest.raises(TypeError, match="has no training function"):
        check_config(type("Idle", (module.GuessJob,), {"train": Job.train})(0.1))
    nameless = type("Nameless", (module.GuessJob,), {"config": lambda job, replicate: {"seed": 1}})(0.1)
    with pytest.raises(IcyError, match="lacks model and grammar"):
        check_config(nameless)
    rude = type("Rude", (module.GuessJob,), {"config": lambda *_: {"model": "", "grammar": "", "seed": 1, "value": 3}})
    with pytest.raises(IcyError, match="cannot have the reserved names value"):
        check_config(rude(0.1))


def test_versions_are_not_mixed(module: ModuleType, tmp_path: Path) -> None:
    run(module, tmp_path, seeds=2)
    entry = registry.get("guess", "job")
    with registry.holding(replace(entry, version=2)):
        result = run(module, tmp_path, seeds=1)
        assert len(load_records(tmp_path)) == 1
    assert len(load_records(tmp_path)) == 2  # of the version that is registered now
    assert result.records[0]["versions"]["guess"].startswith("2-")
    assert entry.full_version.startswith("1-")  # an edited file is another version


@pytest.mark.slow
def test_other_tables_of_the_folder_stay_as_they_are(module: ModuleType, tmp_path: Path) -> None:
    given: Any = {"grammar": "perm", "quick": True, "seeds": 1, "workers": 1, "out": str(tmp_path)}
    alone = icy.probe("sender/FC1L", **given).table()
    run(module, tmp_path)
    both = ProbeResult.load(tmp_path)
    assert both.to_dataframe()["vocab_size"].dropna().astype(str).unique().tolist() == ["4"]
    shown = CliRunner().invoke(main, ["table", str(tmp_path)]).output
    assert all(line in shown for line in alone.splitlines())
    assert "guesser" in shown


def test_a_kind_of_a_notebook_is_refused_by_a_cluster(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(registry.get("guess", "job"), origin="__main__")
    monkeypatch.setattr(registry, "_entries", {**registry._entries, ("job", "guess"): entry})
    with pytest.raises(IcyError, match="other machines cannot import"):
        make_plan(module.GuessSpec(out=str(tmp_path), runner="ray"))


def test_files_stay_in_the_folder(tmp_path: Path) -> None:
    record: Any = {"key": "0", "config": {}, "failed": False, "finished": ""}
    with pytest.raises(StoreError, match="is not a path in"):
        Store(tmp_path / "results").put(record, {"../escaped": b""})
    assert not (tmp_path / "escaped").exists()


def test_measures_are_kept_without_the_plugin(module: ModuleType, tmp_path: Path) -> None:
    run(module, tmp_path)
    entries = dict(registry._entries)
    del registry._entries[("job", "guess")]
    try:
        assert load_records(tmp_path)[0]["measures"] == ["distance"]
        assert ProbeResult.load(tmp_path).to_dataframe()["distance"].notna().all()
    finally:
        registry._entries.update(entries)


def test_results_are_read_without_the_plugin(tmp_path: Path) -> None:
    record: Any = {"key": "0", "kind": "unheard of", "side": "x", "config": {"model": "m", "grammar": "g", "seed": 1}}
    assert kind_of(record).name == "unheard of"
    assert kind_of(record).curve == ("steps", "accuracy")
    assert [kind_of({**record, "kind": None, "side": side}).name for side in ("pair", "sender")] == ["e2e", "probe"]


def test_a_job_of_an_older_plug_in_may_have_its_own_settings(module: ModuleType, tmp_path: Path) -> None:
    own = dataclass(frozen=True)(type("Own", (module.GuessJob,), {"__annotations__": {"settings": dict[str, int]}}))
    job = own(settings={"depth": 2}, rate=0.1, replicates=(Replicate("number", 1),), folder=str(tmp_path))
    assert (job.side, job.measure, job.short_name, job.length(None)) == ("guess", "accuracy", "guesser", None)
    (outcome,) = job.train()
    assert job.record(outcome)["kind"] == "guess"
    warn_of_idle(module.GuessSpec(), [job])
