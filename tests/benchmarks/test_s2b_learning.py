"""The benchmark of learning S2B, on a few episodes."""

from __future__ import annotations

import pytest

from benchmarks import s2b_learning as bench
from icy.s2b import GameSettings

pytestmark = pytest.mark.slow


def test_every_way_learns_and_its_seconds_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    game = GameSettings(most=2)
    monkeypatch.setattr(bench, "EPISODES", 128)
    few = {
        name: bench.WAYS[name]
        for name in ("memory of pairs, by reward", "LSTM (near32), supervised", "pair, by reward")
    }
    monkeypatch.setattr(bench, "WAYS", few)
    found = bench.measured(game, 1)
    for (spent,) in found.values():
        assert min(spent[phase] for phase in ("forward", "backward", "optimizer")) > 0
        assert set(spent) <= set(bench.PHASES)
    assert found["pair, by reward"][0]["dealing"] >= 0
