"""`icy s2b eval`, `language`, `stimuli` and `eoa`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.experiments.players import AcquisitionScores, PlayerScores, SpeakerScores
from icy.experiments.text_models import TextModelScores
from icy.s2b import AcquisitionSettings, ease_of_acquisition
from tests.cli.commands.s2b.helpers import QUICK, run

QUICK_EOA = ("--episodes", "2", "--seeds", "2", "--epochs", "3", "--learning-rate", "0.01", "--values", "2-3")


# -- `icy s2b eval`, `language` and `stimuli` --------------------------------------------------------------------------


# -- eval --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_players_are_measured_in_every_requested_game(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["--listener", "oracle", "--listener", "random", "--shots", "1,2", "--samples", "2", "--format", "json"]
    result = run("eval", *QUICK, *words, "--out", str(out))
    rows = json.loads(result.stdout)
    assert [(row["listener"], row["S"], row["O"]) for row in rows] == [
        ("oracle", 1, 2),
        ("oracle", 2, 2),
        ("random", 1, 2),
        ("random", 2, 2),
    ]
    assert rows[0]["query"] == {"mean": 100.0, "spread": 0.0, "seeds": 2}
    table = pd.read_csv(out)
    assert len(table) == 8
    assert set(table["decisions"]) == {2}


@pytest.mark.slow
def test_beside_a_score_stands_what_silence_is_worth(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["--compat", "near32", "--values", "2-3", "--shots", "2", "--format", "json", "--out", str(out)]
    result = run("eval", *QUICK, *words)
    (row,) = json.loads(result.stdout)
    table = pd.read_csv(out)
    assert (table["deaf"] == table["order"]).all()  # the best: it is always right where the query is shown whole
    assert row["deaf"]["mean"] == pytest.approx(100 * table["order"].mean())
    assert "ignores all messages" in run("eval", *QUICK).stdout


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        (PlayerScores, ("eval", *QUICK, "--shots", "1,2,4"), "1 of 3 rows measured."),
        (AcquisitionScores, ("eoa", *QUICK_EOA, "--shots", "1,2"), "1 of 2 rows measured."),
        (SpeakerScores, ("language", "--episodes", "2", "--speaker", "pos*,hol*"), "1 of 2 rows measured."),
        (
            TextModelScores,
            ("text", *QUICK, "--shots", "1,2", "--model", "scripted-yes"),
            "1 of 2 rows measured; run the same command again to continue from the answers in icy-text.",
        ),
    ],
)
def test_an_interrupted_measurement_keeps_its_rows(
    kind: Any, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    real, calls = kind.measure_part, []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(kind, "measure_part", interrupted)
    result = run(*words, "--out", "rows.csv")
    assert result.exit_code == 130
    assert len(pd.read_csv("rows.csv")) == (4 if kind is AcquisitionScores else 2)
    assert "posdis" in result.stdout or "scripted-yes" in result.stdout
    assert result.stderr == f"Written: rows.csv.\n\nInterrupted: {said}\n"


def test_a_strangers_listener_is_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from icy import register_listener\n"
        "from icy.s2b import Action, Player\n"
        "@register_listener('stranger')\n"
        "class Stranger(Player):\n"
        "    'Says yes.'\n"
        "    def acting(self, seen):\n"
        "        return Action(decision=np.zeros(self.seat.episodes, dtype=int))\n"
    )
    result = run("eval", *QUICK, "--listener", "stranger", "--plugin", str(tmp_path / "mine.py"), "--format", "json")
    assert json.loads(result.stdout)[0]["says yes"]["mean"] == 100


# -- language, stimuli, record -----------------------------------------------------------------------------------------


def test_languages_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    result = run("language", "--episodes", "3", "-m", "posdis", "--format", "json", "-o", str(out))
    assert json.loads(result.stdout)[0]["posdis"] == {
        "mean": 1.0,
        "spread": 0.0,
        "seeds": 3,
        "why": "",
        "note": "",
        "convention": "constant=skip",
    }
    assert len(pd.read_parquet(out)) == 3


@pytest.mark.slow
def test_stimuli_are_drawn_and_measured(tmp_path: Path) -> None:
    figure = tmp_path / "stimuli.png"
    result = run("stimuli", "--episodes", "2", "--rows", "all", "--samples", "3", "--plot", str(figure))
    assert result.exit_code == 0
    assert "factor_vae" in result.stdout
    assert figure.stat().st_size > 10_000


# -- the page of the documentation -------------------------------------------------------------------------------------


@pytest.mark.docs
@pytest.mark.usefixtures("forgetting")
def test_the_listener_of_the_documentation_plays(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "s2b.md").read_text()
    (block,) = [b.partition("\n```")[0] for b in page.split("```python\n")[1:] if b.startswith("# listener.py")]
    (tmp_path / "listener.py").write_text(block)
    words = ["--listener", "first-dimension", "--plugin", str(tmp_path / "listener.py"), "--episodes", "30"]
    (row,) = json.loads(run("eval", *words, "--seeds", "2", "--format", "json").stdout)
    assert row["query"]["mean"] > 60


# -- `icy s2b eoa` -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_row_per_speaker_and_game_is_of_ease_of_acquisition(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    words = ["--speaker", "posdis,random", "--samples", "1,2", "--patient", "--out", str(out), "--format", "json"]
    result = run("eoa", *QUICK_EOA, *words)
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
    quick = [*QUICK_EOA[:-1], "2-5"]
    shown = run("eoa", *quick, "--samples", "4", "--shots", "1,2").stdout
    assert [line.split()[-5] for line in shown.splitlines() if line.startswith("LSTM (MetaRG24)")] == [
        "50.6±8.8", "50.6±5.8"
    ]  # fmt: skip
    assert "published values of pairs that learned both sides" in shown
    assert "MetaRG24" not in run("eoa", *QUICK_EOA, "--samples", "4").stdout  # of fewer values
    assert "MetaRG24" not in run("eoa", *quick).stdout
