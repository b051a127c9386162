"""Recurrent PPO by icy and by a library, on a game that both learn in a minute."""

from __future__ import annotations

import statistics

import pytest

from benchmarks import s2b_library as compare

pytestmark = pytest.mark.slow


@pytest.mark.stress
def test_a_library_trains_the_same_listener_alike() -> None:
    pytest.importorskip("sb3_contrib")
    found = {way: compare.scores(way, steps=60_000, seeds=3)[0] for way in compare.WAYS}
    icy, library = found["icy"], found["sb3-contrib"]
    error = (sum(statistics.variance(each) / len(each) for each in (icy, library)) + 0.02**2) ** 0.5
    assert abs(statistics.mean(icy) - statistics.mean(library)) < 3 * error, found
    assert min(map(statistics.mean, (icy, library))) > 0.7, found  # the answer "no" is right in half of the games


def test_both_play_what_they_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sb3_contrib")
    monkeypatch.setattr(compare, "EPISODES", 8)
    for way in compare.WAYS:
        (score,), took = compare.scores(way, steps=256, seeds=1)
        assert 0.2 < score < 0.8
        assert took > 0
