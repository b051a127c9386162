"""The benchmark of trained agents: its sweeps can be planned, and its page is made of records."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from results.s2b_agents import __main__ as bench

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["memory", "pair", "ablations", "papers", "listener"])
def test_sweeps_can_be_planned(name: str, tmp_path: Path) -> None:
    assert name in bench.TITLES
    given = read_sweep(bench.HERE / f"{name}.toml")
    plan = make_sweep(sweep_request(**given, out=str(tmp_path)))
    assert len(plan.rows) >= 6
    assert {row.job.kind for row in plan.rows} == {"s2b"}


def test_the_page_and_the_figure_are_of_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    few = {"most": 2, "updates": 2, "seeds": 1, "episodes": 10, "workers": 1, "settings": {"episodes": 4}}
    results = {"memory": icy.train("s2b", out=tmp_path / "results", progress=False, **few)}
    text = bench.page(results)
    assert "## Listeners, by reward alone" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| pairs+ppo ")]
    assert line.split(" | ")[2:6] == ["2-2", "1", "1", "0"]
    bench.draw(results)
    assert (tmp_path / "page.png").stat().st_size > 5000


def test_constant_answers_are_added_to_older_records(tmp_path: Path) -> None:
    few = {"most": 2, "updates": 1, "seeds": 1, "episodes": 10, "workers": 1, "settings": {"episodes": 4}}
    result = icy.train("s2b", out=tmp_path / "results", progress=False, **few)
    (record,) = result.records
    constant = record.pop("constant_floor")
    assert bench.with_constants(result).records[0]["constant_floor"] == constant
    record["constant_floor"] = 0.25  # newer records are not changed
    assert bench.with_constants(result).records[0]["constant_floor"] == 0.25
