"""The benchmark of games: its sweeps can be planned, and its page and pictures are made of records."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from results.games import __main__ as bench

pytestmark = pytest.mark.slow

ROWS = {"thing": 4, "wide": 1, "shape": 1, "targets": 5, "channels": 3, "speakers": 28}


@pytest.mark.parametrize("name", [n if n != "speakers" else pytest.param(n, marks=pytest.mark.slow) for n in ROWS])
def test_sweeps_can_be_planned(name: str, tmp_path: Path) -> None:
    assert list(bench.TITLES) == list(ROWS) == list(bench.DRAWN)
    given = read_sweep(bench.HERE / f"{name}.toml")
    rows = make_sweep(sweep_request(**given, out=str(tmp_path))).rows
    assert len(rows) == ROWS[name]
    assert {row.job.kind for row in rows} == {"games"}


def test_the_page_and_the_pictures_are_of_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "PAGE", tmp_path / "games.md")
    few = {"steps": 2, "seeds": 1, "workers": 1, "targets": [1, 3], "settings": {"epoch": 1, "turns": 20}}
    found = icy.train("games", out=tmp_path / "results", progress=False, **few)
    results = {"thing": found, "targets": found}
    assert "## One target against several" in bench.page(results)
    bench.draw(results)
    assert all((tmp_path / f"games-{name}.png").stat().st_size > 5000 for name in results)


def test_a_row_is_next_to_its_printed_row() -> None:
    same = {"world": "thing", "representation": "qt", "rule_length": 1.0}
    sizes = pd.DataFrame({"vocab_size": [6, 64], "message_length": [1.0, 4.0]}).assign(**same)
    printed = [bench.references(table)[row] for table, row in zip(bench.PRINTED, bench._rows(sizes), strict=True)]
    assert [row["accuracy"] for row in printed] == [0.92, 0.973]
