"""Names from records that others made, through the commands that print them: no format passes what it would obey."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from icy.experiments.results import ProbeResult
from icy.records.long_table import write_tables
from icy.records.store import Store
from tests.cli.helpers import run
from tests.golden import make_names

FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of a model and a grammar with names that no registry would take; texts: `tests/golden/table.txt`."""
    monkeypatch.chdir(tmp_path)
    make_names()
    return tmp_path / "names"


def test_pages_and_notebooks(folder: Path) -> None:
    for shown in (run("table", str(folder), "--format", "html").stdout, ProbeResult.load(folder)._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown


def test_tables_of_the_folder(folder: Path) -> None:
    csv_file, parquet = write_tables(Store(folder))
    assert set(pd.read_csv(csv_file)["grammar"]) == {"concat", f"'{FORMULA}"}
    assert set(pd.read_parquet(parquet)["grammar"]) == {"concat", FORMULA}
    shown = run("table", str(csv_file)).stdout
    assert FORMULA in shown
    assert f"'{FORMULA}" not in shown
