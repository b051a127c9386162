"""The tracker for Weights & Biases, with a stand-in for the package: files that it removes from its folder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from icy.experiments.trackers import WandbTracker, version_of
from tests.helpers import on_file


class StandIn:
    """A run that makes its folder and ignores its numbers."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.summary: dict[str, float] = {}

    def log(self, readings: dict[str, float], step: int) -> None:
        pass

    def finish(self, code: int) -> None:
        pass


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WandbTracker:
    def begin(self: WandbTracker, record: Any) -> StandIn:
        return StandIn(self.place / f"offline-run-20260101_000000-{version_of(record)}")

    monkeypatch.setattr(WandbTracker, "_import", lambda self: None)
    monkeypatch.setattr(WandbTracker, "_begin", begin)
    return WandbTracker(tmp_path / "tracking")


def test_a_result_takes_the_place_of_the_one_before_and_of_no_other(tracker: WandbTracker) -> None:
    one, other = on_file(), on_file("perm")
    for record in (one, other, {**one, "finished": "2026-02-02T00:00:00+00:00"}):
        tracker.filed(record)  # type: ignore[arg-type]
    assert sorted(tracker._versions()) == sorted([version_of(other), f"{one['key']}-20260202000000"])


@pytest.mark.parametrize("key", ["x/../../victim", "*", "[a-z]*", "../..", ""])
def test_a_key_from_elsewhere_removes_nothing(
    key: str, tracker: WandbTracker, caplog: pytest.LogCaptureFixture
) -> None:
    kept = [
        tracker.place / "offline-run-1-abc-1",
        tracker.place / "offline-run-x" / "a",
        tracker.folder.parent / "victim-1",
    ]
    for folder in kept:
        folder.mkdir(parents=True)
    with caplog.at_level(logging.WARNING):
        tracker.filed({**on_file(), "key": key})
    assert all(folder.is_dir() for folder in kept)
    assert "gets no more results of this run: The key of a result consists of letters and digits" in caplog.text
