"""`icy study`: the group, the report and power."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from icy.cli import main
from icy.study.rows import frame_of, rows_of_game
from tests.study.game.helpers import game_of, play_out

ROOT = Path(__file__).parents[4]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["study", *map(str, words)], catch_exceptions=False)


def test_help_lists_the_commands() -> None:
    found = run("--help")
    assert found.exit_code == 0
    assert all(name in found.output for name in ("simulate", "report", "power"))
    assert "`icy study` is called 'simulat'; did you mean simulate?" in run("simulat").output


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    words = ["--player", "composer", "--player", "random-letters", "--instances", "3", "--grammar", "concat,rot"]
    assert run("simulate", *words, "--workers", "1", "-q", "-o", folder).exit_code == 0
    return folder


@pytest.mark.slow
def test_report(games: Path, tmp_path: Path) -> None:
    game = game_of(dataset="eng")
    person = {"agent_kind": "human", "agent": "our people", "person": "a"}
    frame_of(rows_of_game(game, play_out(game), person)).to_csv(tmp_path / "rows.csv", index=False)
    found = run("report", games, "--rows", tmp_path / "rows.csv", "--published", "--contrasts", "--save",
                tmp_path / "report.csv", "--plot", tmp_path / "report.png")  # fmt: skip
    assert found.exit_code == 0
    assert "our people" in found.output
    assert "people (Icy22)" in found.output
    saved = pd.read_csv(tmp_path / "report.csv")
    assert len(saved) == 10 + 1 + 2 * 2 * 2
    cell = saved[(saved["agent"] == "composer") & (saved["grammar"] == "concat") & (saved["dataset"] == "eng")].iloc[0]
    assert (cell["accuracy"], cell["right"], cell["items"]) == (1.0, 9, 9)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_report_formats(games: Path) -> None:
    assert run("report", games, "--format", "markdown").output.count("| composer |") == 2
    assert run("report", games, "--format", "csv").output.startswith("dataset,agent")


@pytest.mark.slow
def test_filters_leave_out_games(games: Path) -> None:
    found = run("report", games, "--least-score", "50", "--sensitivity")
    assert found.exit_code == 0
    table, _, sensitivity = found.output.partition("dataset  agent")
    assert "random-letters" not in table
    assert sensitivity.count("score of 100 and more") == 2  # of the composer, in two datasets
    none = run("report", games, "--least-score", "5000")
    assert (none.exit_code, "No game passes the filters" in none.output) == (2, True)


@pytest.mark.slow
def test_other_numbers_than_accuracy(games: Path, tmp_path: Path) -> None:
    assert "Secret Spy Codes: score" in run("report", games, "--value", "score").output
    nothing = run("report", games, "--value", "agreement")
    assert (nothing.exit_code, "No game of the report has a value of agreement" in nothing.output) == (2, True)
    words = ["--player", "composer", "--protocol", "yoked", "--instances", "2", "--grammar", "concat"]
    assert run("simulate", *words, "--workers", "1", "-q", "-o", tmp_path).exit_code == 0
    found = run("report", tmp_path, games, "--value", "agreement")
    assert found.exit_code == 0
    assert "yoked" in found.output
    assert "played" not in found.output


@pytest.mark.slow
def test_the_order_of_grammars_is_compared_with_senders() -> None:
    found = run("report", "--published", "--acquisition", ROOT / "results" / "reproduced" / "replicates.parquet")
    assert found.exit_code == 0
    assert "tau people (Icy22), eng" in found.output
    assert run("report", "--published", "--acquisition", "nothing").exit_code == 1


def test_a_report_of_nothing() -> None:
    found = run("report")
    assert found.exit_code == 2 or found.exit_code == 1
    assert "There is nothing to report" in found.output


def test_power() -> None:
    found = run("power", "--persons", "10,60", "--mean", "concat=0.8", "--mean", "rot=0.1", "--mean", "perm=0.75",
                "--studies", "60", "--format", "csv")  # fmt: skip
    assert found.exit_code == 0
    table = pd.read_csv(pd.io.common.StringIO(found.output))
    assert table["persons"].tolist() == [10, 60]
    assert table["rot"].tolist()[1] == 1.0
    assert table["perm"].max() < 0.4
    assert "concat" in run("power", "--mean", "rot=0.1").output
