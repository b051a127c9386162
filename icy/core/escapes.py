"""Text from elsewhere, written so that Markdown, HTML, LaTeX, csv and terminals take it for text and nothing else.

Names of models, grammars and options, and sentences on failures, come from records and tables that others may have
made.
"""

from __future__ import annotations

import html as _html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# What commands a terminal, turns the direction of what follows, or cannot be encoded; the line feed is none of these.
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
# Emphasis by underscores is left out: names are full of them, and within a word they mean nothing.
MARKUP = re.compile(r"[\\<\[`*$]|&(?=#?\w+;)")
# A spreadsheet computes such a cell, or a part of it; also the wide forms of East Asian keyboards.
FORMULA = re.compile(r"'*[=+\-@＝＋－＠].")
GUARDED = re.compile(r"'+[=+\-@＝＋－＠].")
LATEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "[": "{[}",  # after a line's end it would begin an option
    "]": "{]}",
    "†": r"$^\dagger$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "°": r"$^\circ$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
}


def printable(text: object) -> str:
    r"""Return text with control characters spelt out; line feeds stay.

    Example:
        >>> printable("red: \x1b[31m")
        'red: \\x1b[31m'
    """
    found = str(text)
    return found if found.isprintable() else CONTROLS.sub(lambda one: ascii(one[0])[1:-1], found)


def in_a_line(text: object) -> str:
    r"""Return text in one line, for the cell of a table: breaks and tabs as a space, control characters spelt out.

    Example:
        >>> in_a_line("two\r\nlines")
        'two lines'
    """
    found = str(text)
    return found if found.isprintable() else printable(BREAKS.sub(" ", found))


def markdown(text: object) -> str:
    r"""Return text as Markdown that reads the same: without tags, links, emphasis, code or formulas.

    Example:
        >>> markdown("<script>"), markdown("sender/FC_2L")
        ('\\<script>', 'sender/FC_2L')
    """
    return MARKUP.sub(lambda one: f"\\{one[0]}", in_a_line(text))


def html(text: object) -> str:
    """Return text as HTML.

    Example:
        >>> html("<script>")
        '&lt;script&gt;'
    """
    return _html.escape(printable(text))


def latex(text: object) -> str:
    r"""Return text as LaTeX, with the signs that tables have.

    Example:
        >>> latex("FC_2L"), latex("0.5±0.1")
        ('FC\\_2L', '0.5$\\pm$0.1')
    """
    return "".join(LATEX.get(letter, letter) for letter in in_a_line(text))


def csv_cell(value: object) -> object:
    """Return a cell for csv: a text that a spreadsheet would take for a formula gets an apostrophe before it.

    Numbers stay as they are, as numbers or as text, and so does a lone sign.

    Example:
        >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell(-1.5), csv_cell("-"), csv_cell("FC2L")
        ("'=1+1", '-1', -1.5, '-', 'FC2L')
    """
    if not isinstance(value, str):
        return value
    text = in_a_line(value)
    return f"'{text}" if FORMULA.match(text) and not _is_number(text) else text


def from_csv_cell(value: object) -> object:
    """Return what `csv_cell` was given, but for breaks and control characters.

    Example:
        >>> from_csv_cell("'=1+1"), from_csv_cell("'tis")
        ('=1+1', "'tis")
    """
    return value[1:] if isinstance(value, str) and GUARDED.match(value) else value


def csv_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts, those of its headings too, are cells for csv (`csv_cell`)."""
    return _mapped(frame.set_axis([csv_cell(name) for name in frame.columns], axis=1), csv_cell)


def from_csv_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table that was read from csv with its texts as they were (`from_csv_cell`)."""
    return _mapped(frame, from_csv_cell)


def _mapped(frame: pd.DataFrame, change: Callable[[object], object]) -> pd.DataFrame:
    """Return a table with a function applied to the cells of its columns that may hold text."""
    import pandas as pd

    changed = frame.copy()
    for place in range(frame.shape[1]):  # by place, as two may have one name
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column):
            changed.isetitem(place, column.map(change).array)
    return changed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
