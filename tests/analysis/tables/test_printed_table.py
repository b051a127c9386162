"""Rendering tables."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from icy.analysis.table_cells import Reference, TableCell
from icy.analysis.tables.bias import bias_table
from icy.analysis.tables.printed_table import BiasTable
from tests.helpers import APART, THREE, long


def test_a_table_shows_and_saves_itself(tmp_path: Path) -> None:
    table = bias_table(long(THREE))
    assert repr(table) == table.render("text")
    assert table._repr_html_() == table.render("html")
    for suffix, format in (".tex", "latex"), (".json", "json"), (".md", "markdown"):
        assert table.save(tmp_path / f"t{suffix}").read_text() == table.render(format) + "\n"
    (first, *_) = json.loads(table.render("json"))
    assert (first["parameters"], first["seeds"], first["rot"]["seeds"]) == (100, 2, 2)


def test_formats_mark_and_escape() -> None:
    table = bias_table(pd.concat([long(APART), long(APART, representation="gumb")]))
    markdown = table.render("markdown").splitlines()
    assert "| **gumb** |" in "\n".join(markdown)
    assert "| *0.80±0.01* |" in "\n".join(markdown)
    latex = table.render("latex")
    assert r"\toprule" in latex
    assert r"rot $\downarrow$" in latex
    assert r"\textbf{0.40$\pm$0.01}" in latex
    assert r"\multicolumn{8}{l}{\emph{gumb}} \\" in latex
    html = table.render("html")
    assert '<th colspan="8" style="text-align:left">soft</th>' in html
    assert "<b>0.95±0.01</b>" in html
    assert len(table.render("csv").splitlines()) == 7


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    table = bias_table(
        pd.concat([long(THREE), long(THREE, representation="gumb", options="a_b=50%")]), compare=long(THREE)
    )
    other = replace(table, caption="50% of A_B & \n\n C", label="tab:a_b", footnotes=False)
    third = replace(table, caption=r"Ratios on \texttt{rot}, $p < 0.05$")
    body = "\n".join(one.render("latex") for one in (table, other, third))
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\n" + body + "\n\\end{document}\n"
    )
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-1500:]


def test_latex_can_be_referred_to() -> None:
    table = bias_table(long(THREE))
    lines = table.render("latex").splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(r"\caption"))
    assert lines[place + 1] == r"\label{tab:budget-5x10-soft}"
    other = bias_table(long(THREE, meanings="3x4")).render("latex")
    assert lines[place + 1] not in other  # several tables of one paper


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("difference; acquire: steps; meanings 3x4; V=4; preset published", "tab:difference-acquire-3x4"),
        ("a title of very many words that goes on", "tab:a-title-of-very"),
        ("end to end: meanings 5x10; learning_rate=0.1, seed=2", "tab:end-to-end"),
        ("†", "tab:results"),
    ],
)
def test_labels_are_short(title: str, label: str) -> None:
    latex = BiasTable(title, ["model"], ["rot"], []).render("latex")
    assert rf"\label{{{label}}}" in latex


def test_captions_labels_and_footnotes_can_be_set() -> None:
    table = bias_table(long(THREE))
    asked = replace(table, caption="Mine: 50% of A_B", label="tab:a_b", footnotes=False)
    latex = asked.render("latex")
    assert "\n\\caption{Mine: 50\\% of A\\_B}\n\\label{tab:a_b}\n" in latex
    assert latex.endswith("\\end{tabular}}\n\\end{table}")
    for format in "text", "markdown", "html":
        shown = asked.render(format)
        assert "Mine" in shown
        assert table.title not in shown
        assert "standard deviation" not in shown
        assert "standard deviation" in table.render(format)
    assert asked.render("csv") == table.render("csv")
    raw = replace(table, caption="Ratios on \\texttt{rot}\n\n of $n$").render("latex")
    assert "\\caption{Ratios on \\texttt{rot} of $n$}" in raw


def test_numbers_below_0_have_a_minus_in_latex() -> None:
    cells = {
        "rot": TableCell(-0.25, 0.5, 2, 0, 0, reference=Reference(-1.0, 0.5, -1.5)),
        "hol": TableCell(math.nan, 0, 0, 0, 0),
    }
    table = BiasTable("a title", ["model"], ["rot", "hol"], [(["A-1:x-2"], cells)], ["at -3 a hyphen-ated 1e-05"])
    latex = table.render("latex")
    assert r"A-1:x-2 & $-$0.25$\pm$0.50 & -- \\" in latex
    assert r"{\scriptsize $-$1.00$\pm$0.50 ($-$1.5)}" in latex
    assert r"At $-$3 a hyphen-ated 1e-05" in latex


def test_html_has_numbers_to_the_right() -> None:
    html = bias_table(long(THREE)).render("html")
    rows = [re.findall(r'<t[hd] style="text-align:(\w+)">', row) for row in re.findall("<tr>.*?</tr>", html)]
    assert len(rows) == 4
    assert all(row == ["left", *["right"] * (len(row) - 1)] and len(row) > 3 for row in rows)


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "html"])
def test_a_note_names_rows_that_are_never_marked(format: str) -> None:
    told = "rows without parameters, which memorize, are not marked"
    assert told not in bias_table(long(APART)).render(format)
    rows = long(APART)
    heart = rows[rows["model"].eq(rows["model"].iloc[0])].assign(model="sender/Hashtable", parameters=0)
    assert told in bias_table(pd.concat([rows, heart])).render(format)
