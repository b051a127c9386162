"""Logs of games: evidence and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core.errors import InvalidSettingError, StoreError
from icy.study.game import Event, Trial
from icy.study.players.player import Exposure, Log, digest_of, evidence, logs_text, play, read_logs
from icy.study.players.simulated import Composer
from tests.study.game.helpers import game_of


def test_evidence_has_all_items_shown_and_asked() -> None:
    shown: list[tuple[tuple[int, int], str]] = []

    class Watched(Composer):
        def learn(self, item: tuple[int, int], code: str) -> None:
            shown.append((item, code))
            super().learn(item, code)

    for preset in ("clean", "published"):
        shown.clear()
        played = play(game_of(preset, dataset="eng"), Watched(), 0)
        steps = list(evidence(played.game, played.events))
        assert [(s.item, s.code) for s in steps if isinstance(s, Exposure)] == shown
        assert tuple(s for s in steps if isinstance(s, Trial)) == played.state.trials


def test_events_that_changed_nothing_are_not_evidence() -> None:
    game = game_of()
    events = [Event("answer", "abcd"), Event("start"), Event("answer", ""), Event("next"), Event("train_view", at=3)]
    assert list(evidence(game, events)) == []


def test_files(tmp_path: Path) -> None:
    played = play(game_of(grammar="perm"), Composer(), 0)
    logs = [Log(f"person {n}", played.game, tuple(played.events)) for n in range(2)]
    path = tmp_path / "games.jsonl"
    path.write_text(logs_text(logs))
    assert read_logs(path) == logs
    assert (log := read_logs(path)[0]).game.replay(log.events) == played.state
    first = digest_of(path)
    path.write_text(logs_text(logs[:1]))
    assert digest_of(path) != first


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be read: No such file or directory\.$"):
        read_logs(tmp_path / "none.jsonl")
    with pytest.raises(StoreError, match=r"cannot be read: No such file or directory\.$"):
        digest_of(tmp_path / "none.jsonl")
    (tmp_path / "bad.jsonl").write_text('\n{"person": 1}\n')
    with pytest.raises(InvalidSettingError, match=r"Line 2 of '.*' is not a game"):
        read_logs(tmp_path / "bad.jsonl")
