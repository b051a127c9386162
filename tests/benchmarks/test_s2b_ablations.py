"""Ablations of attention memories: every row trains, what is on file is not trained again, and the page tells it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from icy.core.errors import IcyError

from .helpers import benchmark


@pytest.fixture
def ablations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = benchmark("s2b_ablations", monkeypatch)
    for name, value in (("FEW", 4), ("MANY", 8), ("READINGS", 2)):
        monkeypatch.setattr(found, name, value)
    return found


def started(ablations: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["s2b_ablations.py", "--updates", "2", "--most", "2", *words])
    ablations.main()


def test_what_is_on_file_is_not_trained_again(
    ablations: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained: list[tuple[Any, ...]] = []
    real = ablations.measured
    monkeypatch.setattr(ablations, "measured", lambda *given: trained.append(given) or real(*given))
    table, page = tmp_path / "rows.csv", tmp_path / "page.md"
    files = ["--table", str(table), "--page", str(page)]
    started(ablations, monkeypatch, "--only", "listener deaf", "--seeds", "0", *files)
    started(ablations, monkeypatch, "--only", "listener deaf,listener", "--seeds", "0,1", *files)
    assert [(name, seed) for name, _, seed, _ in trained] == [
        ("listener deaf", 0), ("listener deaf", 1), ("listener", 0), ("listener", 1)
    ]  # fmt: skip
    rows = pd.read_csv(table)
    assert rows["updates"].tolist() == [1, 2] * 4
    assert rows["query"].between(0, 100).all()
    last = rows[(rows["row"] == "listener deaf") & (rows["updates"] == 2)]
    assert f"{last['query'].mean():.1f} ± {last['query'].std():.1f} (2)" in page.read_text()


def test_a_training_that_was_cut_is_not_on_file(ablations: ModuleType) -> None:
    found = pd.DataFrame({"row": ["pair"] * 2, "most": 3, "seed": 0, "total": 10, "updates": [5, 9]})
    assert not ablations.is_there(found, "pair", 3, 0)
    assert ablations.is_there(found.assign(updates=[5, 10]), "pair", 3, 0)
    assert not ablations.is_there(found.assign(updates=[5, 10]), "pair", 5, 0)


def test_how_fast_is_the_median_over_seeds(ablations: ModuleType) -> None:
    lines = [
        ablations.Reading("pair", 3, seed, 2, updates, 10.0 * updates + seed, query, 80.0)
        for seed, scores in ((0, (96, 99)), (1, (50, 98)), (2, (50, 60)))
        for updates, query in zip((1, 2), scores, strict=True)
    ]
    cells = ablations._cells(pd.DataFrame(lines))
    assert cells[0] == "85.7 ± 22.2 (3)"
    assert cells[2] == "21"  # 10, 21 and never


@pytest.mark.slow
def test_every_row_trains(ablations: ModuleType) -> None:
    for name in ablations.ROWS:
        (reading,) = ablations.measured(name, 2, 0, 1)
        assert 0 <= reading.query <= 100


def test_bad_words_are_answered_with_a_sentence(ablations: ModuleType) -> None:
    with pytest.raises(IcyError, match="listener deaf"):
        ablations.chosen("listener daef")
    with pytest.raises(IcyError, match="Whole numbers"):
        ablations.numbers("3,x")
