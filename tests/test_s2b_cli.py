"""`icy s2b` and `icy list players`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from icy.cli import main
from icy.cli.commands.s2b import s2b_command
from icy.s2b import GameSettings

QUICK = ("--episodes", "4", "--seeds", "2")


def run(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, ["s2b", *words], input=typed)


# -- help and lists ----------------------------------------------------------------------------------------------------


def test_every_command_has_examples() -> None:
    for name in s2b_command.commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"\n    icy s2b {name}" in result.stdout


@pytest.mark.parametrize("name", ["play", "eval", "language", "record", "stimuli"])
def test_options_are_the_settings_of_the_game(name: str) -> None:
    options = {p.name: p for p in s2b_command.commands[name].params if isinstance(p, click.Option)}
    assert vars(GameSettings()).keys() - {"least", "most"} <= set(options)
    assert all(option.help for name, option in options.items() if name not in ("format_", "episodes"))


def test_players_are_listed() -> None:
    result = CliRunner().invoke(main, ["list", "players", "--format", "json"])
    names = [row["player"] for row in json.loads(result.stdout)]
    assert {"speaker/posdis", "listener/binding", "listener/oracle", "listener/always-no"} <= set(names)


def test_what_near32_changes_is_listed() -> None:
    result = CliRunner().invoke(main, ["list", "presets", "s2b", "--format", "json"])
    rows = json.loads(result.stdout)
    assert {row["departure"] for row in rows} == {"samples", "query", "ratio", "masks", "duplicates"}


# -- play --------------------------------------------------------------------------------------------------------------


def test_an_episode_is_watched() -> None:
    result = run("play", "--seed", "3", "--listener", "oracle")
    assert result.exit_code == 0
    assert result.stdout.startswith("Episode of seed 3: ")
    assert "meaning (" in result.stdout
    assert result.stdout.rstrip().endswith("The episode is over: 100 % right in the support, 100 % in the query.")
    assert "meaning (" not in run("play", "--seed", "3", "--no-latents").stdout


def test_a_person_listens_and_sees_no_meanings() -> None:
    result = run("play", "--listener", "me", "--values", "2", typed="maybe\n" + "0\n" * 100)
    assert result.exit_code == 0
    assert "you decide (0 the same meaning, 1 another meaning)" in result.stdout
    assert "That is none of" in result.stdout
    assert "meaning (" not in result.stdout
    assert "the speaker sees" not in result.stdout
    assert "The episode is over" in result.stdout


def test_a_person_speaks() -> None:
    result = run("play", "--speaker", "me", "--listener", "random", "--values", "2", typed="9 9\n" + "1 2\n" * 100)
    assert result.exit_code == 0
    assert "That is not up to 3 tokens from 1 to 3" in result.stdout
    assert "the listener sees" not in result.stdout


def test_a_person_may_leave() -> None:
    result = run("play", "--listener", "me", typed="q\n")
    assert result.exit_code == 0
    assert "The episode is over" not in result.stdout
    assert run("play", "--listener", "me", typed="").exit_code == 130


# -- eval --------------------------------------------------------------------------------------------------------------


def test_players_are_measured_in_every_game_that_is_asked_for(tmp_path: Path) -> None:
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


def test_a_table_says_what_it_shows() -> None:
    result = run("eval", *QUICK, "--compat", "near32", "--distractors", "2")
    assert result.exit_code == 0
    assert "zero-shot compositional test accuracy" in result.stdout
    assert "chance: 25.0 % with 4 answers; 4 episodes per seed" in result.stdout


def test_an_interrupted_evaluation_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from icy.cli.commands.s2b import eval as measuring

    real, calls = measuring._evaluated, []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(measuring, "_evaluated", interrupted)
    out = tmp_path / "rows.csv"
    result = run("eval", *QUICK, "--shots", "1,2,4", "--out", str(out))
    assert result.exit_code == 130
    assert len(pd.read_csv(out)) == 2
    assert "posdis" in result.stdout
    assert "1 of 3 rows are measured" in result.stderr


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
    assert json.loads(result.stdout)[0]["posdis"] == {"mean": 1.0, "spread": 0.0, "seeds": 3}
    assert len(pd.read_parquet(out)) == 3


def test_stimuli_are_drawn_and_measured(tmp_path: Path) -> None:
    figure = tmp_path / "stimuli.png"
    result = run("stimuli", "--episodes", "2", "--rows", "all", "--samples", "3", "--plot", str(figure))
    assert result.exit_code == 0
    assert "factor_vae" in result.stdout
    assert figure.stat().st_size > 10_000


def test_games_are_recorded_and_measured_by_icy_metrics(tmp_path: Path) -> None:
    out = tmp_path / "games.parquet"
    result = run("record", "--episodes", "3", "-o", str(out))
    assert result.exit_code == 0
    assert "games of 3 episodes" in result.stderr
    columns = "meaning_0,meaning_1,meaning_2"
    words = ["metrics", str(out), "--meaning-columns", columns, "--message-columns", "said", "-m", "topsim"]
    assert CliRunner().invoke(main, words).exit_code == 0


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["eval", "--listener", "bindin"], "did you mean binding"),
        (["eval", "--vocab-size", "3"], "a vocabulary of 5 tokens"),
        (["eval", "--distractors", "9"], "take fewer distractors"),
        (["eval", "--dimensions", "1"], "test values in 2 dimensions"),
        (["eval", "--shots", "one"], "a whole number, or several"),
        (["eval", "--values", "x"], "neither a number of values"),
        (["eval", "--ratio", "half"], "neither a share"),
        (["eval", "--seeds", "0"], "leaves none"),
        (["eval", "--seeds", "9999999999999-9999999999999"], "seed must be a whole number"),
        (["eval", "--out", "rows.txt"], ".csv or .parquet"),
        (["play", "--seed", "-1"], "seed"),
        (["record", "-o", "games.csv"], "recorded as .parquet"),
        (["stimuli", "--rows", "some"], "choice of stimuli"),
        (["stimuli", "--representation", "ohe"], "no densities"),
        (["stimuli", "--plot", "figure.txt"], ".png"),
        (["language", "--metric", "topsi"], "did you mean topsim"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(words: list[str], said: str) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output


# -- the page of the documentation -------------------------------------------------------------------------------------


def test_the_listener_of_the_documentation_plays(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "s2b.md").read_text()
    (block,) = [b.partition("\n```")[0] for b in page.split("```python\n")[1:] if b.startswith("# listener.py")]
    (tmp_path / "listener.py").write_text(block)
    words = ["--listener", "first-dimension", "--plugin", str(tmp_path / "listener.py"), "--episodes", "30"]
    (row,) = json.loads(run("eval", *words, "--seeds", "2", "--format", "json").stdout)
    assert row["query"]["mean"] > 60
