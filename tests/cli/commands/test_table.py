"""`icy table`."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import icy
from tests.cli.helpers import run as icy_run
from tests.helpers import THREE, long
from tests.pages import ROOT

run = partial(icy_run, "table")


def test_command(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    shown = run(str(tiny_folder))
    assert shown.exit_code == 0
    assert shown.stdout.rstrip() == tiny.table()
    assert "rot_mean" in run(str(tiny_folder), "--format", "csv", "-g", "rot").stdout
    difference = run(str(tiny_folder), "--diff", str(tiny_folder / "results.csv"))
    assert "+0.00±0.00" in difference.stdout
    beside = run(str(tiny_folder), "--compare", str(tiny_folder))
    assert f"  {tiny_folder.name}  " in beside.stdout
    assert beside.stdout.count("(+0.0)") == 3  # concat, perm and rot
    for suffix, word in (
        (".md", "| model"),
        (".tex", "tabular"),
        (".html", "<table"),
        (".csv", "model"),
        (".txt", "---"),
    ):
        file = tmp_path / f"t{suffix}"
        assert run(str(tiny_folder), "--save", str(file)).exit_code == 0
        assert word in file.read_text()


@pytest.mark.slow
def test_tables_for_papers(tmp_path: Path) -> None:
    pd.concat([long(THREE), long(THREE, protocol="acquire", measure="ratio")]).to_csv(
        tmp_path / "both.csv", index=False
    )
    words = [str(tmp_path / "both.csv"), "-m", "C", "-m", "A", "--caption", "Mine", "--label", "tab:mine"]
    several = run(*words)
    assert (several.exit_code, several.stdout) == (2, "")
    assert "--caption and --label need exactly one table, not 2" in several.stderr
    words += ["--where", "protocol=budget", "--no-footnotes"]
    shown = run(*words, "--format", "latex").stdout
    assert "\\caption{Mine}\n\\label{tab:mine}" in shown
    assert shown.index("sender/C") < shown.index("sender/A")
    assert "footnotesize" not in shown
    assert run(*words, "--save", str(tmp_path / "t.tex")).exit_code == 0
    assert (tmp_path / "t.tex").read_text() == shown
    assert run(*words).stdout.startswith("Mine\n")
    bad = run(*words, "--label", "a b")
    assert (bad.exit_code, bad.stderr.count("\n")) == (2, 1)


@pytest.mark.slow
def test_a_protocol_without_a_counterpart_is_left_out(tmp_path: Path) -> None:
    budget = long(THREE)
    pd.concat([budget, long(THREE, protocol="acquire", measure="ratio")]).to_csv(tmp_path / "both.csv", index=False)
    budget.to_csv(tmp_path / "budget.csv", index=False)
    shown = run(str(tmp_path / "both.csv"), "--diff", str(tmp_path / "budget.csv"))
    assert shown.exit_code == 0
    assert shown.stdout.count("+0.00") == 12
    assert "The protocol acquire has no results to compare with" in shown.stderr


@pytest.mark.slow
def test_several_protocols_are_one_json_and_one_csv(tmp_path: Path) -> None:
    both = pd.concat([long(THREE), long(THREE, protocol="acquire", measure="ratio")], ignore_index=True)
    both.to_parquet(tmp_path / "both.parquet")
    records = json.loads(run(str(tmp_path / "both.parquet"), "--format", "json").stdout)
    assert [(r["protocol"], r["model"]) for r in records][::3] == [("budget", "sender/A"), ("acquire", "sender/A")]
    frame = pd.read_csv(io.StringIO(run(str(tmp_path / "both.parquet"), "--format", "csv").stdout))
    assert frame["protocol"].tolist() == ["budget"] * 3 + ["acquire"] * 3
    least = both[["model", "grammar", "seed", "value"]].drop_duplicates(["model", "grammar", "seed"])
    least.to_csv(tmp_path / "least.csv", index=False)
    asked = run(str(tmp_path / "least.csv"))
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "The measure of this table is unknown: ratio, accuracy or held_out?" in asked.stderr
    shown = run(str(tmp_path / "least.csv"), str(tmp_path / "least.csv"), "--measure", "ratio").stdout
    assert "sender/B" in shown
    assert shown.splitlines()[0] == "updates to the target as a ratio to concat's"


def test_the_lines_on_the_log_scale_can_be_left_out(tmp_path: Path) -> None:
    ratios = long({"A": {"rot": [2.0, 8.0]}}, protocol="acquire", measure="ratio", cap=20.0)
    ratios.to_csv(tmp_path / "ratios.csv", index=False)
    assert "4.00×/2.67" in run(str(tmp_path / "ratios.csv")).stdout
    assert "log scale" not in run(str(tmp_path / "ratios.csv"), "--no-log").stdout


def test_results_on_the_authors_languages_are_compared_with_printed_numbers() -> None:
    """The numbers of docs/published-versus-corrected.md."""
    shown = run(str(ROOT / "results/reproduced/authors-languages.parquet"), "--compare", "icy22/table3")
    assert "6.90±2.63" in shown.stdout
    assert "7.00±1.74 (+0.0)" in shown.stdout
    assert "draws=authors" in shown.stdout
