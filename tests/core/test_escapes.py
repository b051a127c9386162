"""Escaped text is plain text in Markdown, HTML, LaTeX, csv and terminals."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from icy.core.text import (
    csv_cell,
    csv_table,
    from_csv_cell,
    from_csv_table,
    html,
    in_a_line,
    latex,
    markdown,
    printable,
)

ANSI = "\x1b[31mred\x1b]8;;http://x\x07\x9b1A"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ±†↑ text", "plain ±†↑ text"),
        (ANSI, r"\x1b[31mred\x1b]8;;http://x\x07\x9b1A"),
        ("a\nb\tc", "a\nb\\tc"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        (12, "12"),
    ],
)
def test_control_characters_are_escaped(text: object, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.slow
@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    shown = in_a_line(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown)
    shown.encode()


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S"))))
def test_escaped_markdown_shows_the_text(text: str) -> None:
    """A renderer that allows HTML shows no tags, and all letters."""
    tokens = MarkdownIt("commonmark", {"html": True}).parseInline(markdown(text))[0].children or []
    kinds = {token.type for token in tokens} - {"em_open", "em_close", "strong_open", "strong_close"}
    assert kinds <= {"text", "text_special"}
    if "_" not in text:
        assert "".join(token.content for token in tokens) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<script>alert(1)</script>", r"\<script>alert(1)\</script>"),
        ("[x](javascript:y)", r"\[x](javascript:y)"),
        ("a`b*c$d", r"a\`b\*c\$d"),
        ("&lt;b&gt; R&D", r"\&lt;b\&gt; R&D"),
        ("one\r\n\r\n# two", "one # two"),
        ("FC_2L+RNN:GRU", "FC_2L+RNN:GRU"),
    ],
)
def test_markdown(text: str, written: str) -> None:
    assert markdown(text) == written


def test_html_and_latex() -> None:
    assert html('<b title="x">&') == "&lt;b title=&quot;x&quot;&gt;&amp;"
    assert html("\x1b[31m") == r"\x1b[31m"
    assert latex("a_b & 50% [1cm]\n\n\\input{x}") == r"a\_b \& 50\% {[}1cm{]} \textbackslash{}input\{x\}"


@pytest.mark.parametrize("text", ["=1+1", "+cmd|x", "-1+1", "@SUM(A1)", "=HYPERLINK(1)", "'=1", "＝1+1", "=\n1"])
def test_formulas_become_text(text: str) -> None:
    assert csv_cell(text).startswith("'")
    assert from_csv_cell(csv_cell(text)) == in_a_line(text)


@pytest.mark.parametrize(
    "value", ["-1", "+2.5", "-1e-3", "-inf", -1, -1.5, None, True, "-", "+", "=", "FC2L", "a=1", "", "'tis"]
)
def test_numbers_and_names_are_not_escaped(value: object) -> None:
    assert csv_cell(value) is value


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))))
def test_csv_cells_are_restored(text: str) -> None:
    cell = csv_cell(text)
    assert from_csv_cell(cell) == in_a_line(text)
    assert cell[:1] not in ("=", "@") or len(cell) == 1


def test_csv_tables_are_restored() -> None:
    table = pd.DataFrame({"model": ["=1+1", "-2", 'a,"b"'], "value": [-1.0, 2.0, None], "=x": [True, False, True]})
    text = csv_table(table).to_csv(index=False)
    assert list(csv.reader(io.StringIO(text)))[:2] == [["model", "value", "'=x"], ["'=1+1", "-1.0", "True"]]
    again = from_csv_table(pd.read_csv(io.StringIO(text)))
    assert again["model"].tolist() == table["model"].tolist()
    assert again["value"].equals(table["value"])
