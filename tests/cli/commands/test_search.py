"""`icy search`: its tables, its dry run, and mistakes in its arguments and files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cli.helpers import run as icy_run

FILE = """
model = ["sender/FC1L", "sender/FC2L"]
minimize = "ratio:perm"
quick = true
meanings = "2x3"
seeds = 1
finalists = 0
hidden = [4, 8]

[settings]
check_every = 20
"""


run = partial(icy_run, "search")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "search.toml"
    found.write_text(FILE)
    return found


@pytest.mark.slow
def test_the_command_prints_trials_and_names_the_report(file: Path, tmp_path: Path) -> None:
    words = (str(file), "--workers", "1", "-o", str(tmp_path / "out"))
    result = run(*words)
    assert result.exit_code == 0, result.output
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["trial", "model", "ratio:perm", "(min)"]
    assert sum("hidden=" in line for line in lines) == 3  # FC1L has no hidden layer
    assert "search.md" in result.stderr
    assert "winner.py" in result.stderr
    again = json.loads(run(*words, "--format", "json", "-q", "--trials", "2").stdout)
    assert [row["trial"] for row in again] in (["0", "1"], ["1", "0"])
    tables = icy_run("table", str(tmp_path / "out")).stdout
    assert all(name in tables for name in ("sender/FC1L", "sender/FC2L", "perm"))


@pytest.mark.slow
def test_the_command_plans_the_first_batch_and_does_nothing(file: Path, tmp_path: Path) -> None:
    result = run(str(file), "--batch", "2", "--dry-run", "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "These are the first 2 of 4 trials, from a space of 4 combinations." in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "A search needs an objective"),
        (("--minimize", "ratio:perm"), "No model was given"),
        (("-m", "FC2L", "--minimize", "ratio:perm", "--side", "sender"), "There is nothing to choose"),
        (("-m", "sender/FC*", "--minimize", "speed"), "No objective is called 'speed'"),
        (("missing.toml",), "The search 'missing.toml' cannot be read"),
    ],
)
def test_mistakes_are_explained(words: tuple[str, ...], said: str) -> None:
    result = run(*words, "--dry-run")
    assert (result.exit_code, said in result.stderr) == ((1 if "cannot be read" in said else 2), True), result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trials = 1.5", "line 1: trials must be a whole number, not 1.5"),
        ("seeds = 1\nmodell = 'FC2L'", "No option of a search is called 'modell'; did you mean"),
        ("[space]\nlayers = {a = 1}", "`space` needs a list"),
        ("rungs = 3", "rungs needs tables"),
        ("[[rungs]]\nmeaning = '3x4'", "No setting in rungs is called 'meaning'"),
    ],
)
def test_mistakes_in_a_file_are_explained(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    result = run(str(tmp_path / "bad.toml"), "-m", "sender/FC*", "--minimize", "ratio:perm", "--dry-run")
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
