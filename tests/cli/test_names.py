"""Names from records that others made, through the commands that print them: no format passes what it would obey."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from icy.cli import main
from icy.experiments.results import ProbeResult
from icy.records.store import Store
from tests.helpers import on_file

BAD = "sender/<script>x</script>|\x1b[31m=`$[\n\n# two"
FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of a model and a grammar with names that no registry would take."""
    store = Store(tmp_path / "results")
    for seed in (1, 2):
        for grammar in ("concat", FORMULA):
            record = on_file(grammar, seed, model=BAD, protocol="acquire")
            store.put(record)
    return store.folder


def table(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(main, ["table", str(folder), *words])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    return done.stdout


def test_text(folder: Path) -> None:
    (line,) = [line for line in table(folder).splitlines() if line.startswith("sender/")]
    assert line.startswith(r"sender/<script>x</script>|\x1b[31m=`$[ # two  ")


def test_markdown(folder: Path) -> None:
    lines = table(folder, "--format", "markdown").splitlines()
    (line,) = [line for line in lines if line.startswith("| sender/")]
    assert line.startswith(r"| sender/\<script>x\</script>\|\\x1b\[31m=\`\$\[ # two |")
    head = next(line for line in lines if line.startswith("| model"))
    assert line.replace(r"\|", "").count("|") == head.count("|")


def test_html(folder: Path) -> None:
    shown = table(folder, "--format", "html")
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_latex(folder: Path) -> None:
    shown = table(folder, "--format", "latex")
    (line,) = [line for line in shown.splitlines() if line.startswith("sender/")]
    assert line.startswith(r"sender/$<$script$>$x$<$/script$>$|\textbackslash{}x1b{[}31m=`\${[} \# two &")
    assert line.endswith(r"\\")


def test_csv(folder: Path) -> None:
    head, row = csv.reader(io.StringIO(table(folder, "--format", "csv")))
    assert f"'{FORMULA}_mean" in head
    assert row[0] == r"sender/<script>x</script>|\x1b[31m=`$[ # two"


def test_json_has_them_as_they_are(folder: Path) -> None:
    (row,) = json.loads(table(folder, "--format", "json"))
    assert row["model"] == BAD
    assert FORMULA in row


def test_tables_of_the_folder(folder: Path, tmp_path: Path) -> None:
    from icy.records.long_table import write_tables

    csv_file, parquet = write_tables(Store(folder))
    assert set(pd.read_csv(csv_file)["grammar"]) == {"concat", f"'{FORMULA}"}
    assert set(pd.read_parquet(parquet)["grammar"]) == {"concat", FORMULA}
    assert FORMULA in table(csv_file)
    assert f"'{FORMULA}" not in table(csv_file)


def test_remarks_and_errors(folder: Path) -> None:
    done = CliRunner().invoke(main, ["table", str(folder), "--diff", "\x1b[31mX"])
    assert done.exit_code != 0
    assert "\x1b" not in done.output
    assert r"\x1b[31mX" in done.output


def test_a_notebook(folder: Path) -> None:
    shown = ProbeResult.load(folder)._repr_html_()
    assert "<script" not in shown
