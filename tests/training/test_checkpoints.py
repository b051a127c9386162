from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
import torch

from icy.records.store import CHECKPOINTS, RECORDS
from icy.training import lockstep
from icy.training.lockstep import Checkpoint, sweep_checkpoints

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
    assert not Checkpoint(tmp_path, "key", "a training").due
    monkeypatch.setattr(lockstep, "SECONDS", 0.0)
    one = Checkpoint(tmp_path, "key", "a training")
    assert one.due
    assert not Checkpoint(tmp_path, "key", "a training", used=False).due
    monkeypatch.setattr(lockstep, "SHARE", 1e-9)
    one.save(STATE)
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
