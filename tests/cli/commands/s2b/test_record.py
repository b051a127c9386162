"""`icy s2b record`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from icy.cli import main
from tests.cli.commands.s2b.helpers import run


def test_games_are_recorded_and_measured_by_icy_metrics(tmp_path: Path) -> None:
    out = tmp_path / "games.parquet"
    result = run("record", "--episodes", "3", "-o", str(out))
    assert result.exit_code == 0
    assert "games of 3 episodes" in result.stderr
    columns = "meaning_0,meaning_1,meaning_2"
    words = ["metrics", str(out), "--meaning-columns", columns, "--message-columns", "said", "-m", "topsim"]
    assert CliRunner().invoke(main, words).exit_code == 0
