"""`icy power`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.helpers import long

MODELS = {"A": {"rot": [2.0, 3.0, 4.1], "hol": [20.0] * 3}, "B": {"rot": [2.2, 2.9, 3.6], "hol": [20.0] * 3}}


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    table = long({**MODELS, "C": MODELS["A"]}, protocol="acquire", measure="ratio", cap=20.0)
    table.assign(cut=table["value"].eq(20)).to_parquet(tmp_path / "pilot.parquet")
    return tmp_path / "pilot.parquet"


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["power", *words])


def test_command(pilot: Path) -> None:
    shown = run(str(pilot), "-m", "A", "-m", "B")
    assert shown.exit_code == 0, shown.output
    title, _, head, rot, hol, _, legend, *_ = shown.stdout.splitlines()
    assert title == "sender/A and sender/B: seeds that find the pilot's effect with a power of 0.8 at alpha 0.05"
    assert head.split() == ["grammar", "pairs", "cut", "effect", "spread", "seeds", "Holm", "cautious", "remark"]
    name, pairs, cut, effect, spread, *seeds = rot.split()[:8]
    assert (name, pairs, cut, effect, spread) == ("rot", "3", "0", "1.02", "×/1.12")
    assert int(seeds[0]) < int(seeds[1]) < int(seeds[2])
    assert hol.endswith("3 of 3 pairs cut in both: only a higher cap can tell")
    assert legend.startswith("effect: of the pilot, quotient of their ratios")
    (one,) = json.loads(run(str(pilot), "-m", "A", "-m", "B", "-g", "rot", "--format", "json").stdout)
    assert str(one["seeds"]) == seeds[0]
    asked = run(str(pilot), "-m", "A", "-m", "B", "-g", "rot", "--effect", "2", "--format", "csv").stdout
    assert pd.read_csv(io.StringIO(asked))["seeds"].item() == 3


def test_settings_are_told_apart(tmp_path: Path) -> None:
    settings = [{}, {"settings": "check_every=50"}, {"preset": "published"}]
    parts = [long(MODELS, protocol="acquire", measure="ratio", cap=20.0, **one) for one in settings]
    pd.concat(parts).to_parquet(tmp_path / "pilot.parquet")
    _, _, head, *rows = run(str(tmp_path / "pilot.parquet"), "-g", "rot").stdout.splitlines()
    assert head.split()[:3] == ["preset", "settings", "grammar"]
    assert [row.split()[:3] for row in rows[:3]] == [
        ["default", "-", "rot"], ["default", "check_every=50", "rot"], ["published", "-", "rot"],
    ]  # fmt: skip
    seeds = [row.split()[7:9] for row in rows[:3]]
    assert all(one == holm for one, holm in seeds)  # one grammar per setting, so that there is nothing to correct


def test_mistakes(pilot: Path, tmp_path: Path) -> None:
    three = run(str(pilot))
    assert (three.exit_code, three.stdout) == (2, "")
    assert "sender/A, sender/B, sender/C: name two" in three.stderr
    assert run(str(pilot), "-m", "A", "-m", "B", "--power", "2").exit_code == 2
    assert run(str(tmp_path / "none")).exit_code == 1
