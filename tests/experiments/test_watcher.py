"""Watchers: in what order they are called, also after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.experiments.progress import Watcher, Watchers
from tests.helpers import TINY


class Diary(Watcher):
    """Notes events in their order; raises an error at one of them."""

    def __init__(self, error: BaseException | None = None, where: str = "filed") -> None:
        super().__init__()
        self.events: list[str] = []
        self.error, self.where = error, where

    def _note(self, what: str) -> None:
        self.events.append(what)
        if self.error is not None and what == self.where:
            raise self.error

    def started(self, plan: Any) -> None:
        super().started(plan)
        self._note("started")

    def read(self, job: Any, readings: Any) -> None:
        self._note("read")

    def filed(self, record: dict[str, Any]) -> None:
        self._note("filed")

    def ended(self) -> None:
        self._note("ended")


def test_several_watchers_get_the_same_events(tmp_path: Path) -> None:
    one, other = Diary(), Diary()
    both = Watchers(one, other)
    icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=both, **TINY)
    assert one.events == other.events
    assert one.events[0] == "started"
    assert one.events[-1] == "ended"
    assert [one.events.count(what) for what in ("started", "filed", "ended")] == [1, 2, 1]
    assert "read" in one.events
    assert one.plan is other.plan is both.plan is not None


def test_watchers_get_events_without_training(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    diary = Diary()
    icy.probe("sender/FC2L", "perm", out=tiny_folder, watcher=diary, **TINY)
    assert diary.events == ["started", "ended"]


@pytest.mark.parametrize("where", ["started", "read", "filed"])
def test_watchers_get_the_end_after_an_interruption(tmp_path: Path, where: str) -> None:
    stopped, other = Diary(KeyboardInterrupt(), where), Diary()
    with pytest.raises(KeyboardInterrupt):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(stopped, other), **TINY)
    assert stopped.events[-2:] == [where, "ended"]
    assert other.events[-1] == "ended"
    assert other.events.count("ended") == 1


def test_all_watchers_get_the_end_although_one_raises(tmp_path: Path) -> None:
    failing, other = Diary(OSError("no"), "ended"), Diary()
    with pytest.raises(OSError, match="no"):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(failing, other), **TINY)
    assert other.events[-1] == "ended"
    assert (tmp_path / "results.csv").exists()
