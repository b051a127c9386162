"""`icy reproduce`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import icy
from icy.cli import main


@pytest.mark.slow
def test_command(memory: tuple[icy.Reproduction, Path], tmp_path: Path) -> None:
    done, folder = memory
    words = ["reproduce", "icy22/table3", "--only", "Hashtable", "-g", "perm", "--seeds", "2", "-o", str(folder)]
    page, cells = tmp_path / "page.md", tmp_path / "cells.csv"
    shown = CliRunner().invoke(main, [*words, "--save", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "agree by the 95 % interval of the difference" in shown.stdout
    assert "Nothing to train" in shown.stderr
    assert page.read_text() == done.page()
    assert CliRunner().invoke(main, [*words, "--save", str(cells)]).exit_code == 0
    assert pd.read_csv(cells)["verdict"].tolist() == ["agrees"]
    listed = CliRunner().invoke(main, ["reproduce", "--list"])
    assert "perkins21/table13" in listed.stdout
    assert CliRunner().invoke(main, ["reproduce"]).exit_code == 2
    missing = CliRunner().invoke(
        main, ["reproduce", "icy22/20", "--only", "FC1L", "--rerun", "never", "-o", str(tmp_path / "no")]
    )
    assert missing.stdout == "Not measured: none of 5 cells.\n"
