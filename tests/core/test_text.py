"""Plain text: lists and counts in sentences, and Markdown tables."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from icy.core.text import (
    counted,
    csv_cell,
    csv_table,
    from_csv_cell,
    from_csv_table,
    html,
    in_a_line,
    latex,
    markdown,
    markdown_table,
    natural,
    printable,
)


def test_a_markdown_table_has_a_heading_a_rule_and_a_line_per_row() -> None:
    shown = markdown_table(("model", "steps", "ratio"), [["FC2L", 350, None], ("RNN", 1_400, 4.0)], numbers=(1, 2))
    assert shown.split("\n") == [
        "| model | steps | ratio |",
        "| --- | ---: | ---: |",
        "| FC2L | 350 | None |",
        "| RNN | 1400 | 4.0 |",
    ]


def test_bars_are_escaped_and_line_breaks_replaced_in_every_cell() -> None:
    assert markdown_table(["a|b"], [["c|d\ne"]]) == "| a\\|b |\n| --- |\n| c\\|d e |"


@pytest.mark.parametrize(
    ("number", "word", "verb", "said"),
    [
        (0, "cell", "rest", "0 cells rest"),
        (1, "run", "have", "1 run has"),
        (3, "row", "are", "3 rows are"),
        (1, "name", "were", "1 name was"),
        (2, "array", "", "2 arrays"),
    ],
)
def test_a_count_agrees_with_its_noun_and_verb(number: int, word: str, verb: str, said: str) -> None:
    assert counted(number, word, verb) == said


def test_names_are_ordered_by_their_numbers() -> None:
    names = ["b10", "b2", "B02", "b²", "a" + "9" * 5000, "10", "9"]
    assert sorted(names, key=natural) == ["9", "10", "a" + "9" * 5000, "b2", "B02", "b10", "b²"]


# -- escaped text is plain text in Markdown, HTML, LaTeX, csv and terminals --------------------------------------------


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
