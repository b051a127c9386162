"""Rendering tables."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from icy.analysis.tables.bias import bias_table
from tests.helpers import THREE, long


def test_a_table_shows_and_saves_itself(tmp_path: Path) -> None:
    table = bias_table(long(THREE))
    assert repr(table) == table.render("text")
    assert table._repr_html_() == table.render("html")
    for suffix, format in (".tex", "latex"), (".json", "json"), (".md", "markdown"):
        assert table.save(tmp_path / f"t{suffix}").read_text() == table.render(format) + "\n"
    (first, *_) = json.loads(table.render("json"))
    assert (first["parameters"], first["seeds"], first["rot"]["seeds"]) == (100, 2, 2)


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
