"""`icy s2b play` and `record`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from icy.cli import main
from tests.cli.commands.s2b.helpers import run

# -- `icy s2b play` ----------------------------------------------------------------------------------------------------


def test_a_person_listens_and_sees_no_meanings() -> None:
    result = run("play", "--listener", "me", "--values", "2", typed="maybe\n" + "0\n" * 100)
    assert result.exit_code == 0
    assert "you decide (0 the same meaning, 1 another meaning)" in result.stdout
    assert "That is not one of" in result.stdout
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


# -- `icy s2b record` --------------------------------------------------------------------------------------------------


def test_games_are_recorded_and_measured_by_icy_metrics(tmp_path: Path) -> None:
    out = tmp_path / "games.parquet"
    result = run("record", "--episodes", "3", "-o", str(out))
    assert result.exit_code == 0
    assert "games of 3 episodes" in result.stderr
    columns = "meaning_0,meaning_1,meaning_2"
    words = ["metrics", str(out), "--meaning-columns", columns, "--message-columns", "said", "-m", "topsim"]
    assert CliRunner().invoke(main, words).exit_code == 0
