"""Probes that resume from checkpoints: killed and resumed equals uninterrupted, to the bit."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import icy
from icy.records.store import CHECKPOINTS, RECORDS
from icy.training import lockstep
from icy.training.engine import Probes, train
from icy.training.gradient import GradientLearner
from icy.training.lockstep import Checkpoint, Checkpoints, Lockstep, sweep_checkpoints
from icy.training.native import NativeLearner
from tests.cores import needs_native
from tests.helpers import all_numbers
from tests.training.helpers import SETTINGS, Plain, job, plug_in
from tests.training.resuming import kill_at_checkpoint, killed, leave_often, numbers, resumed, updates_of

REPLICATES = [(grammar, seed) for seed in (1, 2) for grammar in ("concat", "perm", "rot")]


@pytest.mark.parametrize(
    "how", [pytest.param("native", marks=needs_native), pytest.param("broadcast", marks=pytest.mark.process)]
)
@pytest.mark.parametrize(
    "model", ["sender/RNNAutoReg:LSTM", pytest.param("receiver/Hier:GRU", marks=pytest.mark.process)]
)
@pytest.mark.parametrize(
    "after",
    [pytest.param(1, marks=pytest.mark.process), 7],  # within the first block, and after some evaluations
)
def test_a_killed_training_resumes_to_the_same_bits(model: str, after: int, how: str, tmp_path: Path) -> None:
    of = job(model, REPLICATES, protocol="acquire", engine=how, keep_models=True, folder=str(tmp_path))
    ended = killed(of, after)
    assert updates_of(tmp_path) == [{1: 4, 7: 24}[after]] * len(REPLICATES)
    whole = train(replace(of, folder=str(tmp_path / "whole")))
    assert numbers(resumed(of, ended)) == numbers(list(whole))
    assert not (tmp_path / CHECKPOINTS).exists()


@pytest.mark.parametrize("growth", [0.1, 0.5])
def test_the_grid_of_checks_goes_on(growth: float, tmp_path: Path) -> None:
    settings = replace(SETTINGS, check_every=None, check_growth=growth)
    of = job("sender/FC2L", REPLICATES, protocol="acquire", training=settings, folder=str(tmp_path))
    ended = killed(of, 12)
    whole = train(replace(of, folder=str(tmp_path / "whole")))
    assert numbers(resumed(of, ended)) == numbers(list(whole))


def dropping() -> str:
    """A sender that draws its own random numbers, so that its replicates run one by one."""
    return plug_in(Plain, extra=lambda: nn.Sequential(nn.BatchNorm1d(16), nn.Dropout(0.5)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["loop", "sender/Hashtable", "receiver/kNN"])
def test_modules_of_all_kinds_resume(model: str, tmp_path: Path) -> None:
    """What draws, has running averages, or stores examples."""
    model = dropping() if model == "loop" else model
    replicates, baselines = [("perm", 1), ("rot", 2)], {1: 60, 2: 60}
    of = job(model, replicates, baselines=baselines, keep_models=True, folder=str(tmp_path))
    ended = killed(of, 5)
    assert updates_of(tmp_path)[0] > 0
    whole = train(replace(of, folder=str(tmp_path / "whole")))
    assert numbers(resumed(of, ended)) == numbers(list(whole))


def test_replicates_that_ended_before_their_baseline_are_trained_separately(
    tmp_path: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held back, so that its last checkpoint is older than that of the baseline it waits for."""

    def read(course: Probes, purpose: str, size: int, which: list[int] | None = None) -> list[float]:
        conditions = [course.active[i].replicate.condition for i in which or range(len(course.active))]
        return [float(course.updates >= {"perm": 20, "concat": 50, "rot": 70}[one]) for one in conditions]

    monkeypatch.setattr(Probes, "_read", read)
    replicates = [("concat", 1), ("perm", 1), ("rot", 1)]
    of = job("sender/FC2L", replicates, protocol="acquire", keep_models=True, folder=str(tmp_path))
    assert killed(of, 10) == []
    assert updates_of(tmp_path) == [18, 34, 34]
    caplog.set_level("INFO")
    found = numbers(list(train(of)))
    assert {grammar: (o.steps, o.baseline_steps) for (grammar, _), o in found.items()} == {
        "concat": (50, 50), "perm": (20, 50), "rot": (70, 50)
    }  # fmt: skip
    assert found == numbers(list(train(replace(of, folder=str(tmp_path / "whole")))))
    assert "after update 34 with 2 replicates" in caplog.text
    assert "after update 18 with 1 replicate" in caplog.text


def test_replicates_ahead_of_their_baseline_wait_for_it(tmp_path: Path, caplog: Any) -> None:
    """As where the file of the baseline was damaged."""
    of = job("sender/FC2L", REPLICATES, protocol="acquire", folder=str(tmp_path))
    whole = numbers(list(train(replace(of, folder=str(tmp_path / "whole")))))
    assert killed(of, 5) == []
    baseline = next(r for r in of.replicates if of.is_baseline(r))
    (tmp_path / CHECKPOINTS / f"{of.key(baseline)}.pt").unlink()
    caplog.set_level("INFO")
    assert numbers(list(train(of))) == whole
    lines = [line.partition("Resuming ")[2] for line in caplog.text.splitlines() if "Resuming" in line]
    assert lines == ["after update 18 with 3 replicates.", "after update 18 with 2 replicates."]


@pytest.mark.parametrize("damage", ["how", "learner", "own", "file", "other"])
def test_training_with_an_unusable_checkpoint_starts_again(damage: str, tmp_path: Path, caplog: Any) -> None:
    of = job("sender/FC2L", REPLICATES, protocol="acquire", folder=str(tmp_path))
    whole = numbers(list(train(replace(of, folder=str(tmp_path / "whole")))))
    assert killed(of, 5) == []
    for path in (tmp_path / CHECKPOINTS).glob("*.pt"):
        state = torch.load(path, weights_only=True)
        if damage == "file":
            path.write_bytes(path.read_bytes()[:100])
        elif damage == "other":
            torch.save([1, 2], path)
        else:
            state[damage] = {"how": "on another device", "learner": {"steps": 20}, "own": {"seconds": 1.0}}[damage]
            torch.save(state, path)
    assert numbers(list(train(of))) == whole
    assert "so training starts again" in caplog.text
    assert not (tmp_path / CHECKPOINTS).exists()


def test_out_of_memory_while_resuming_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the job trains it in halves."""
    of = job("sender/RNNAutoReg:LSTM", REPLICATES, protocol="acquire", folder=str(tmp_path))
    killed(of, 5)

    def resume(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        for learner in (GradientLearner, NativeLearner):
            patched.setattr(learner, "resume", resume)
        with pytest.raises(MemoryError):
            list(train(of))
    assert updates_of(tmp_path) == [18] * len(REPLICATES)


class Remembers(Plain):
    """A model that stores examples where nobody looks."""

    learns_by_gradient = False

    def observe(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.seen = getattr(self, "seen", 0) + len(inputs)


def test_a_model_with_an_unknown_store_starts_again(tmp_path: Path, caplog: Any) -> None:
    of = job(plug_in(Remembers), [("perm", 1)], baselines={1: 60}, folder=str(tmp_path))
    killed(of, 5)
    (ended,) = train(of)
    assert [steps for steps, _ in ended.curve] == [10, 20, 30, 40, 50, 60]
    assert "is not an icy.models.base.MemoryModel" in caplog.text


def test_checks_that_take_long_leave_checkpoints_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large model makes few updates at once, whatever the grid of checks."""
    monkeypatch.setattr(lockstep, "LONGEST", 1e-9)  # every update takes longer
    settings = replace(SETTINGS, check_every=80)
    course = Probes(job("sender/FC2L", [("concat", 1)], training=settings, folder=str(tmp_path)))
    made: list[int] = []
    update = course.update
    monkeypatch.setattr(course, "update", lambda count: (made.append(count), update(count)))
    Lockstep(course).advance(70)
    assert made == [64, 1, 1, 1, 1, 1, 1]


def test_a_job_that_travels_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = job("sender/FC2L", REPLICATES, folder=str(tmp_path)).for_travel()
    seen: list[bool] = []
    leave_often(monkeypatch)
    list(train(of, lambda _: seen.append((tmp_path / CHECKPOINTS).exists())))
    assert seen
    assert not any(seen)


@pytest.mark.process
def test_a_probe_that_is_killed_without_warning_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    sizes = {"meanings": "3x4", "word_length": 2, "hidden": 16, "keep_models": True}
    whole = {"model": "sender/RNNAutoReg:GRU", "grammar": ["perm", "rot"], "seeds": 2, **sizes}
    reached = [state["updates"] for state in kill_at_checkpoint("icy.probe(", out, whole, count=2)]
    assert max(reached) > 0
    icy.probe(out=out, progress=False, **whole)
    assert not (out / CHECKPOINTS).exists()
    icy.probe(out=tmp_path / "whole", progress=False, **whole)
    assert all_numbers(out) == all_numbers(tmp_path / "whole")
    kept = [sorted((folder / "models").iterdir()) for folder in (out, tmp_path / "whole")]
    assert [path.read_bytes() for path in kept[0]] == [path.read_bytes() for path in kept[1]]


STATE = {"updates": 3, "weights": torch.arange(4.0), "curve": [[0, 0.5]]}


def test_a_saved_state_is_loaded(tmp_path: Path) -> None:
    Checkpoint(tmp_path, "key", "a training").save(STATE)
    found = Checkpoint(tmp_path, "key", "a training").load()
    assert found is not None
    assert torch.equal(found.pop("weights"), STATE["weights"])
    assert found == {"updates": 3, "curve": [[0, 0.5]]}


def test_unused_missing_and_damaged_checkpoints_are_not_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = Checkpoint(tmp_path, "key", "a training")
    assert one.load() is None
    one.save(STATE)
    assert Checkpoint(tmp_path, "key", "a training", used=False).load() is None
    one.path.write_bytes(one.path.read_bytes()[:50])
    assert one.load() is None
    assert "starts again" in caplog.text


def test_when_one_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some seconds, or more where they take long, so that they take no more than their share of the time."""
    of = job("sender/FC2L", [("concat", 1)], folder=str(tmp_path))
    one = Checkpoints(of)
    assert not one.due
    monkeypatch.setattr(lockstep, "SECONDS", 0.0)
    assert one.due
    assert not Checkpoints(of.for_travel()).due
    monkeypatch.setattr(lockstep, "SHARE", 1e-9)
    course = Probes(of)
    one.resume(course)
    one.save(course)
    assert not one.due
    monkeypatch.setattr(lockstep, "SHARE", math.inf)
    assert one.due


def test_checkpoints_of_results_on_file_are_removed(tmp_path: Path) -> None:
    """Kept: checkpoints newer than their record, as the replicate is trained again, and checkpoints of failures."""
    names = ("done", "other", "again", "failed")
    of = {name: Checkpoint(tmp_path, name, name) for name in names}
    for one in of.values():
        one.save(STATE)
    (tmp_path / RECORDS).mkdir()
    for name in ("done", "again", "failed"):
        (tmp_path / RECORDS / f"{name}.json").write_text(json.dumps({"failed": name == "failed"}))
    later = (tmp_path / RECORDS / "again.json").stat().st_mtime + 5
    os.utime(of["again"].path, (later, later))
    half = [tmp_path / CHECKPOINTS / f".{name}.pt.x.tmp" for name in ("old", "new")]
    for path in half:
        path.write_bytes(b"")
    os.utime(half[0], (0, 0))
    sweep_checkpoints(tmp_path)
    assert [name for name in names if of[name].path.exists()] == ["other", "again", "failed"]
    assert [path.exists() for path in half] == [False, True]


def test_several_processes_may_remove_their_checkpoints(tmp_path: Path) -> None:
    """Of one folder: it goes with the last of them, whoever is first."""
    mine, other = (Checkpoint(tmp_path, name, name) for name in ("mine", "other"))
    other.path.parent.mkdir()
    other.path.write_bytes(b"")
    mine.forget()  # which is not there
    assert other.path.exists()
    other.forget()
    assert not (tmp_path / CHECKPOINTS).exists()
    other.forget()  # the folder is missing too
