"""`icy reproduce`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.analysis.literature.catalogue import published_names
from tests.cli.helpers import run


@pytest.mark.slow
def test_command(memory: tuple[icy.Reproduction, Path], tmp_path: Path) -> None:
    done, folder = memory
    words = ["reproduce", "icy22/table3", "--only", "Hashtable", "-g", "perm", "--seeds", "2", "-o", str(folder)]
    page, cells = tmp_path / "page.md", tmp_path / "cells.csv"
    shown = run(*words, "--save", str(page))
    assert shown.exit_code == 0, shown.output
    assert "agree by the 95 % interval of the difference" in shown.stdout
    assert "Nothing to train" in shown.stderr
    assert page.read_text() == done.page()
    assert run(*words, "--save", str(cells)).exit_code == 0
    assert pd.read_csv(cells)["verdict"].tolist() == ["agrees"]
    listed = run("reproduce", "--list")
    assert "perkins21/table13" in listed.stdout
    assert run("reproduce").exit_code == 2
    missing = run("reproduce", "icy22/20", "--only", "FC1L", "--rerun", "never", "-o", str(tmp_path / "no"))
    assert missing.stdout == "Not measured: none of 5 cells.\n"


def dry(name: str, folder: Path) -> str:
    done = run("reproduce", name, "--dry-run", "-o", str(folder))
    assert done.exit_code == 0, f"{name}: {done.output}"
    assert not folder.exists()
    return done.output


def test_a_dry_run_of_what_is_not_trained_answers(tmp_path: Path) -> None:
    for one in published_names():
        if not one.is_measured:
            said = dry(one.name, tmp_path / "none")
            assert said.startswith("Nothing to train.")
            assert one.name in said
    assert "measured on languages of 5 seeds" in dry("icy22/table9", tmp_path / "none")


@pytest.mark.slow
def test_a_dry_run_of_every_table_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.experiments.estimate.SECONDS", 0.2)
    tables = {one.of.id: one.name for one in published_names() if one.is_measured}
    for name in tables.values():  # the last of its names: a part of another table where there is one
        assert "Nothing was trained or written" in (said := dry(name, tmp_path / "none")) or "Nothing to train" in said


@pytest.mark.slow
def test_residual_entropy_is_measured_by_command() -> None:
    done = run("reproduce", "icy22/table9", "--only", "greedy", "--format", "csv")
    assert done.exit_code == 0
    assert done.output.splitlines()[0].startswith("representation,model,grammar")
    shown = run("reproduce", "icy22/table9", "--only", "greedy")
    assert "greedy  rot      0.5510  0.5510     equal" in shown.output
