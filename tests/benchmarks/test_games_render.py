"""The benchmark of the worlds of games: what it tabulates; and, slow, that single images can be read."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from icy.games import make_world

from .helpers import benchmark


@pytest.fixture
def games_render(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("games_render", monkeypatch)


def test_the_page_has_a_rate_for_every_world(games_render: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games_render, "BATCHES", (8, 16))
    monkeypatch.setattr(games_render, "WORLDS", [("shape", "16 x 16", {"canvas": 16, "bank": 1}), ("thing", "", {})])
    table = games_render.rate_table(torch.device("cpu"), 0.001)
    assert [line.split("|")[1].strip()[:16] for line in table.splitlines()[2:]] == [
        "objects of shape", "objects of thing", *["steps of ten tur"] * 3,
    ]  # fmt: skip
    page = games_render.page(table, "| read |")
    assert table in page
    assert "| read |" in page


def test_a_reader_learns_colours_within_a_few_updates(
    games_render: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(games_render, "TESTED", 256)
    found = games_render.accuracies(make_world("shape", canvas=16), 30)
    assert len(found) == 4
    assert found[1] > 0.3  # of six


@pytest.mark.stress
def test_single_images_can_be_read_at_the_default_sizes(games_render: ModuleType) -> None:
    shape, colour, *places = games_render.accuracies(make_world("shape"))
    assert shape >= 0.95
    assert colour >= 0.99
    assert min(places) >= 0.99
