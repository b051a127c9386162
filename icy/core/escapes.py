"""Escape text from others, so that Markdown, HTML, LaTeX, csv and terminals show it as plain text.

Records and tables may come from others, with any names of models, grammars and options, and any error messages.
"""

from __future__ import annotations

import html as _html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# Characters that control terminals, change the direction of text, or cannot be encoded; without the line feed.
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
# Without underscores, which many names contain: within a word, they are not emphasis.
MARKUP = re.compile(r"[\\<\[`*$]|&(?=#?\w+;)")
# Spreadsheets evaluate cells that begin so, also with the wide characters of East Asian keyboards.
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
    "[": "{[}",  # at the beginning of a line it would start an option
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
    r"""Return text with escaped control characters, except line feeds.

    Example:
        >>> printable("red: \x1b[31m")
        'red: \\x1b[31m'
    """
    plain = str(text)
    return plain if plain.isprintable() else CONTROLS.sub(lambda one: ascii(one[0])[1:-1], plain)


def in_a_line(text: object) -> str:
    r"""Return text in one line, for a table cell: line breaks and tabs become spaces, control characters are escaped.

    Example:
        >>> in_a_line("two\r\nlines")
        'two lines'
    """
    plain = str(text)
    return plain if plain.isprintable() else printable(BREAKS.sub(" ", plain))


def markdown(text: object) -> str:
    r"""Escape text for Markdown, so that it has no tags, links, emphasis, code or formulas.

    Example:
        >>> markdown("<script>"), markdown("sender/FC_2L")
        ('\\<script>', 'sender/FC_2L')
    """
    return MARKUP.sub(lambda one: f"\\{one[0]}", in_a_line(text))


def html(text: object) -> str:
    """Escape text for HTML.

    Example:
        >>> html("<script>")
        '&lt;script&gt;'
    """
    return _html.escape(printable(text))


def latex(text: object) -> str:
    r"""Escape text for LaTeX, also the symbols of tables.

    Example:
        >>> latex("FC_2L"), latex("0.5±0.1")
        ('FC\\_2L', '0.5$\\pm$0.1')
    """
    return "".join(LATEX.get(letter, letter) for letter in in_a_line(text))


def csv_cell(value: object) -> object:
    """Escape a cell for csv: put an apostrophe before text that a spreadsheet would evaluate as a formula.

    Numbers, as numbers or as text, and a single sign are not changed.

    Example:
        >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell(-1.5), csv_cell("-"), csv_cell("FC2L")
        ("'=1+1", '-1', -1.5, '-', 'FC2L')
    """
    if not isinstance(value, str):
        return value
    text = in_a_line(value)
    return f"'{text}" if FORMULA.match(text) and not _is_number(text) else text


def from_csv_cell(value: object) -> object:
    """Undo `csv_cell`, except for line breaks and control characters.

    Example:
        >>> from_csv_cell("'=1+1"), from_csv_cell("'tis")
        ('=1+1', "'tis")
    """
    return value[1:] if isinstance(value, str) and GUARDED.match(value) else value


def csv_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Escape the cells and headings of a table for csv (`csv_cell`)."""
    return _mapped(frame.set_axis([csv_cell(name) for name in frame.columns], axis=1), csv_cell)


def from_csv_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Undo `csv_table` for a table that was read from csv (`from_csv_cell`)."""
    return _mapped(frame, from_csv_cell)


def _mapped(frame: pd.DataFrame, change: Callable[[object], object]) -> pd.DataFrame:
    """Apply a function to the cells of all columns that are not numeric."""
    import pandas as pd

    changed = frame.copy()
    for place in range(frame.shape[1]):  # by position, because columns may have the same name
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
