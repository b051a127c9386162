"""Rendering tables."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from icy.analysis.tables.bias import bias_table
from icy.core.errors import InvalidSettingError
from tests.helpers import THREE, long


def test_a_table_shows_and_saves_itself(tmp_path: Path) -> None:
    table = bias_table(long(THREE))
    assert repr(table) == table.render("text")
    assert table._repr_html_() == table.render("html")
    for suffix, format in (".tex", "latex"), (".json", "json"), (".md", "markdown"):
        assert table.save(tmp_path / f"t{suffix}").read_text() == table.render(format) + "\n"
    (first, *_) = json.loads(table.render("json"))
    assert (first["parameters"], first["seeds"], first["rot"]["seeds"]) == (100, 2, 2)
    with pytest.raises(InvalidSettingError, match=r"not as 't\.doc'"):
        table.save(tmp_path / "t.doc")


def test_formats_mark_and_escape() -> None:
    table = bias_table(pd.concat([long(THREE), long(THREE, representation="gumb")]))
    markdown = table.render("markdown").splitlines()
    assert "| **gumb** |" in "\n".join(markdown)
    assert "| *0.80±0.00* |" in "\n".join(markdown)
    latex = table.render("latex")
    assert r"\toprule" in latex
    assert r"rot $\downarrow$" in latex
    assert r"\textbf{0.40$\pm$0.00}" in latex
    assert r"\multicolumn{8}{l}{\emph{gumb}} \\" in latex
    html = table.render("html")
    assert '<th colspan="8" style="text-align:left">soft</th>' in html
    assert "<b>0.95</b>" in html
    assert len(table.render("csv").splitlines()) == 7


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    table = bias_table(
        pd.concat([long(THREE), long(THREE, representation="gumb", options="a_b=50%")]), compare=long(THREE)
    )
    body = table.render("latex")
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
