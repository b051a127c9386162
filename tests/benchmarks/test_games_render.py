"""The benchmark of the worlds of games: single images can be read."""

from __future__ import annotations

import pytest

from benchmarks import games_render
from icy.games import make_world

pytestmark = pytest.mark.slow


def test_a_reader_learns_colours_within_a_few_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games_render, "TESTED", 256)
    found = games_render.accuracies(make_world("shape", canvas=16), 30)
    assert len(found) == 4
    assert found[1] > 0.3  # of six


@pytest.mark.stress
def test_single_images_can_be_read_at_the_default_sizes() -> None:
    shape, color, *places = games_render.accuracies(make_world("shape"))
    assert shape >= 0.95
    assert color >= 0.99
    assert min(places) >= 0.99
