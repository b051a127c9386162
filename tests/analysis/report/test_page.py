"""The page of a report: one file, in which text from the results cannot act as HTML or as a script."""

from __future__ import annotations

import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.analysis.report.methods import methods
from icy.analysis.report.page import WEB, in_script, report_page
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.experiments.report import report_sections
from tests.helpers import THREE, long
from tests.pages import sections

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&amp;'


class Outline(HTMLParser):
    """Elements of a page, their attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.cells: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside == "td":
            self.cells[-1] += data


def page(table: pd.DataFrame, title: str = "Results") -> str:
    return report_page(report_sections(table), title, methods(table))


def data_of(text: str) -> Any:
    return json.loads(Outline(text).scripts[0])


@pytest.mark.slow
def test_names_and_reasons_have_no_meaning_in_the_page() -> None:
    table = long({EVIL: {"rot": [0.5, math.nan]}}).assign(failed=[False, True], error=[None, EVIL])
    text = page(table, EVIL)
    outline = Outline(text)
    assert [tag for tag, _ in outline.elements if tag == "img"] == []
    assert len(outline.scripts) == 3  # data, Vega, and icy's
    assert not any("onerror" in attributes for _, attributes in outline.elements)
    assert data_of(text)["sections"][0]["rows"] == [f"sender/{EVIL}"]
    assert EVIL in outline.cells


@pytest.mark.slow
def test_every_table_links_to_the_pitfalls() -> None:
    (section,) = report_sections(long(THREE))
    text = report_page([section, section], "", "We trained <models>.")
    assert [tag["href"] for _, tag in Outline(text).elements if tag.get("href")].count("#pitfalls") == 2
    assert 'id="pitfalls"' in text
    assert "<p>We trained &lt;models&gt;.</p>" in text


def test_the_page_of_pitfalls_has_the_same_topics() -> None:
    topics = re.findall("^<dt>(.*?)</dt>", (WEB / "report.html").read_text(), re.MULTILINE)
    assert topics == [heading for heading in sections("docs/pitfalls.md") if heading != "Pitfalls"]


@pytest.mark.slow
def test_nothing_is_fetched() -> None:
    outline = Outline(page(long(THREE)))
    for tag, attributes in outline.elements:
        assert "src" not in attributes
        assert tag != "link"
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for t, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "http" not in policy


@pytest.mark.slow
def test_the_same_results_give_the_same_page() -> None:
    assert page(long(THREE)) == page(long(THREE))


@pytest.mark.slow
def test_cells_are_printed_as_in_the_table() -> None:
    table = long(THREE)
    sections = report_sections(table)
    shown = set(Outline(page(table)).cells)
    for _, cells in sections[0].table.rows:
        assert {cell.text(2) for cell in cells.values()} <= shown


@pytest.mark.slow
def test_values_that_json_lacks_are_none() -> None:
    table = long({"A": {"rot": [0.5, math.nan]}}).assign(seconds=[math.inf, math.nan])
    runs = data_of(page(table))["sections"][0]["runs"]
    assert [run[3] for run in runs] == [0.5, None]
    assert "NaN" not in in_script({"a": None})


def test_a_ratio_of_nothing_has_a_colour() -> None:
    table = long({"A": {"rot": [0.0]}}, protocol="acquire", measure="ratio")
    (cell,) = data_of(page(table))["sections"][0]["charts"]["heat"]["values"]
    assert (cell["mean"], cell["shade"] > 0) == (0.01, True)


@pytest.mark.parametrize("text", ["<!--", "</script>", "\u2028", "é"])
def test_json_in_a_script_is_read_as_it_was(text: str) -> None:
    written = in_script([text])
    assert "<" not in written
    assert "\u2028" not in written
    assert json.loads(written) == [text]


def test_all_failed_is_a_report_too() -> None:
    text = page(long({"A": {"rot": [math.nan]}}).assign(failed=True, error="no memory"))
    assert "1 failed" in text
    assert data_of(text)["sections"][0]["charts"]["heat"]["values"] == []


@pytest.mark.slow
def test_every_kind_of_job_has_a_section(tmp_path: Path) -> None:
    probe = icy.probe("sender/FC1L", "perm", meanings="2x3", word_length=2, seeds=1, target=0.3, workers=1,
                      out=tmp_path / "probe", progress=False)  # fmt: skip
    game = icy.train("s2b", out=tmp_path / "s2b", progress=False, most=2, updates=2, seeds=1, episodes=10, workers=1,
                     settings={"episodes": 4})  # fmt: skip
    path = icy.report(probe + game, tmp_path / "both.html", "Both")
    data = data_of(path.read_text())
    assert [section["name"] for section in data["sections"]] == ["acquire", "s2b"]
    assert all(section["charts"]["curves"]["values"] for section in data["sections"])
    assert re.search(r"icy [\d.]+\S*, torch", path.read_text())


def test_errors_come_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSettingError, match=r"\.html"):
        icy.report(long(THREE), tmp_path / "report.pdf")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(IncompatibleError, match=r"icy-toolkit\[report\]"):
        icy.report(long(THREE), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []
