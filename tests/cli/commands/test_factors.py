"""`icy factors`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.analysis.tables.test_factors import BALANCED, cut


@pytest.fixture
def results(tmp_path: Path) -> str:
    BALANCED.to_parquet(tmp_path / "sizes.parquet")
    return str(tmp_path / "sizes.parquet")


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["factors", *words])


def test_command(results: str) -> None:
    done = run(results)
    assert done.exit_code == 0, done.output
    title, _, head, grammar, cell, interactions, seeds, _, *legend = done.stdout.splitlines()
    assert title == "sender, probe, acquire, ratio"
    assert head.split()[:4] == ["factor", "levels", "share", "p"]
    assert " ".join(grammar.split()) == "grammar 2 78.8% <0.001 rot over perm ×4.00 ×3.07 to ×5.21"
    assert cell.split()[:3] == ["cell", "2", "19.7%"]
    assert interactions.split() == ["interactions", "0.0%", "1"]
    assert seeds.split() == ["seeds", "1.5%"]
    assert len(legend) == 4


def test_cut_runs_are_a_row_of_the_table(tmp_path: Path) -> None:
    cut(BALANCED.query("grammar == 'rot'"), 10).to_parquet(tmp_path / "cut.parquet")
    done = run(str(tmp_path / "cut.parquet"), "--format", "markdown")
    cell, _, bound = done.stdout.splitlines()[4:7]
    assert [one.strip() for one in cell.split("|")[5:8]] == ["LSTM over GRU", "> ×1.25", "×0.23 or more"]
    assert bound.split("|")[1:3] == [" cut ", " 1 "]
    assert "only a bound: LSTM" in bound
    assert "they count as this bound or more" in done.stdout


def test_formats_and_selections(results: str) -> None:
    found = json.loads(run(results, "-g", "rot", "--format", "json").stdout)
    assert [row["factor"] for row in found] == ["cell", "seeds"]
    assert found[0]["effect"] == pytest.approx(2)
    read = pd.read_csv(io.StringIO(run(results, "-m", "A:GRU", "--format", "csv").stdout))
    assert read["factor"].tolist() == ["grammar", "seeds"]
    assert "| grammar | 2 |" in run(results, "--format", "markdown").stdout


def test_mistakes_are_one_sentence(results: str, tmp_path: Path) -> None:
    alone = run(results, "-g", "rot", "-m", "A:GRU")
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "differ only in their seeds" in alone.stderr
    assert run(str(tmp_path / "none")).exit_code == 1
