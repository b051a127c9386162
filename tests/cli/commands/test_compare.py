"""`icy compare`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.helpers import long

BEFORE = {"A": {"rot": [2.0, 3.0, 4.0], "hol": [5.0, 6.0, 7.0]}, "B": {"rot": [2.2, 2.9, 3.6], "hol": [8.0] * 3}}
AFTER = {**BEFORE, "A": {"rot": [1.0, 1.5, 2.0], "hol": [5.0, 6.0, 7.0]}}


def table(values: dict[str, dict[str, list[float]]], **more: Any) -> pd.DataFrame:
    return long(values, protocol="acquire", measure="ratio", cap=20.0).assign(**more)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table(BEFORE).to_parquet("before.parquet")
    table(AFTER).to_parquet("after.parquet")
    return tmp_path


def run(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(main, ["compare", *words])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("other", "code"), [("after.parquet", 1), ("again.parquet", 0)])
def test_the_exit_code_says_whether_anything_differs(folder: Path, other: str, code: int) -> None:
    table(BEFORE).to_parquet("again.parquet")
    run("before.parquet", other, "--exit-code", code=code)
    run("before.parquet", other)


@pytest.mark.slow
def test_a_missing_run_is_a_difference(folder: Path) -> None:
    table(BEFORE).iloc[:-1].to_parquet("fewer.parquet")
    shown = run("before.parquet", "fewer.parquet", "--exit-code", code=1)
    assert "Runs without a counterpart that finished without failure: 1 of before.parquet." in shown.stdout


@pytest.mark.slow
def test_parts_of_one_place_are_compared(folder: Path) -> None:
    parts = [table(BEFORE, representation="soft"), table(AFTER, representation="gumb")]
    pd.concat(parts).to_parquet("both.parquet")
    shown = run("both.parquet:representation=soft", "both.parquet:representation=gumb", "-m", "A").stdout
    assert "soft" in shown.splitlines()[3]
    assert "×0.50" in shown
    models = run("both.parquet:model=A,representation=soft", "both.parquet:model=B,representation=soft").stdout
    assert "6 pairs" in models


@pytest.mark.slow
def test_a_place_may_be_at_a_revision(folder: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "before.parquet"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    table(AFTER).to_parquet("before.parquet")
    found = json.loads(run("before.parquet@HEAD", "before.parquet", "--format", "json").stdout)
    assert [(cell["grammar"], round(cell["effect"], 6)) for cell in found][:2] == [("rot", 0.5), ("hol", 1.0)]
    assert run("before.parquet@HEAD", "before.parquet").stdout.splitlines()[3].split()[2:4] == ["HEAD", "now"]


@pytest.mark.slow
def test_formats_and_files(folder: Path) -> None:
    run("before.parquet", "after.parquet", "--save", "what.md", "--plot", "what.png")
    text = Path("what.md").read_text()
    assert text == run("before.parquet", "after.parquet", "--format", "markdown").stdout
    assert Path("what.png").read_bytes().startswith(b"\x89PNG")
    runs = run("before.parquet", "after.parquet", "--seeds", "--format", "csv").stdout.splitlines()
    assert len(runs) == 13
    assert runs[0].endswith("grammar,seed,first,second,difference,first_cut,second_cut")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["representation", "channel"])
def test_parts_are_named_by_columns_or_by_the_options_of_their_kind(folder: Path, column: str) -> None:
    both = pd.concat([table(BEFORE, representation="gs"), table(AFTER, representation="qt")], ignore_index=True)
    both.to_parquet("both.parquet")
    found = run(f"both.parquet:{column}=gs", f"both.parquet:{column}=qt", "--format", "json")
    cells = {(one["model"], one["grammar"]): one["effect"] for one in json.loads(found.stdout)}
    assert cells["sender/A", "rot"] == pytest.approx(0.5)
    assert cells["sender/B", "rot"] == pytest.approx(1.0)


def test_a_revision_that_does_not_exist_is_named(folder: Path) -> None:
    assert "revision nothing" in run("before.parquet@nothing", "after.parquet", code=1).stderr
