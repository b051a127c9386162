"""`icy s2b eoa`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.s2b import AcquisitionSettings, ease_of_acquisition
from tests.cli.commands.s2b.helpers import run

QUICK = ("--episodes", "2", "--seeds", "2", "--epochs", "3", "--learning-rate", "0.01", "--values", "2-3")


@pytest.mark.slow
def test_a_row_per_speaker_and_game_is_of_ease_of_acquisition(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["--speaker", "posdis,random", "--samples", "1,2", "--patient", "--out", str(out), "--format", "json"]
    result = run("eoa", *QUICK, *words)
    rows = json.loads(result.stdout)
    assert [(row["speaker"], row["O"]) for row in rows] == [
        ("posdis", 1), ("posdis", 2), ("random", 1), ("random", 2)
    ]  # fmt: skip
    assert {row["deaf"]["mean"] for row in rows} == {50.0}
    table = pd.read_csv(out)
    assert len(table) == 4 * 2 * 2
    settings = AcquisitionSettings(epochs=3, learning_rate=0.01, impatient=False)
    alone = ease_of_acquisition("posdis", most=3, samples=2, episodes=2, seed=124, settings=settings)
    same = table.query("speaker == 'posdis' and samples == 2 and seed == 124")
    assert same["zsct"].tolist() == pytest.approx(alone["zsct"].tolist())


@pytest.mark.slow
def test_published_rows_are_shown_for_similar_games() -> None:
    quick = [*QUICK[:-1], "2-5"]
    shown = run("eoa", *quick, "--samples", "4", "--shots", "1,2").stdout
    assert [line.split()[-5] for line in shown.splitlines() if line.startswith("LSTM (MetaRG24)")] == [
        "50.6±8.8", "50.6±5.8"
    ]  # fmt: skip
    assert "published values of pairs that learned both sides" in shown
    assert "MetaRG24" not in run("eoa", *QUICK, "--samples", "4").stdout  # of fewer values
    assert "MetaRG24" not in run("eoa", *quick).stdout


def test_an_interrupted_measurement_shows_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.cli.commands.s2b import eval as measuring

    real, calls = measuring._acquired, []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(measuring, "_acquired", interrupted)
    result = run("eoa", *QUICK, "--speaker", "posdis", "--speaker", "random")
    assert result.exit_code != 0
    assert "posdis" in result.stdout
    assert "1 of 2 rows measured" in result.stderr
