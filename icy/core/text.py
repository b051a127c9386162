"""Plain text: lists, counts, times and sizes for sentences, natural order, Markdown tables."""

from __future__ import annotations

import html as _html
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .checks import number_or_text
from .errors import InvalidSettingError

if TYPE_CHECKING:
    import pandas as pd


# -- escape text from others, so that Markdown, HTML, LaTeX, csv and terminals show it as plain text -------------------

# Records and tables may come from others, with any names of models, grammars and options, and any error messages.


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
    from pandas.api.types import is_numeric_dtype

    changed: pd.DataFrame = frame.apply(lambda column: column if is_numeric_dtype(column) else column.map(change))
    return changed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str], word: str = "and", most: int | None = None) -> str:
    """Join names with commas, and the last name with a word; of more names than `most`, give the number of the rest.

    Example:
        >>> listed([".png", ".svg", ".pdf"], "or"), listed(["a", "b", "c", "d"], most=2)
        ('.png, .svg or .pdf', 'a, b and 2 more')
    """
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def counted(number: int, word: str, verb: str = "") -> str:
    """Return a count with its noun and an optional verb, in the singular or plural.

    Args:
        number: the count.
        word: the noun in the singular.
        verb: the verb in the plural, such as "fit" or "are".

    Example:
        >>> counted(1, "worker"), counted(2, "worker"), counted(1, "cell", "rest"), counted(2, "entry", "are")
        ('1 worker', '2 workers', '1 cell rests', '2 entries are')
    """
    one = number == 1
    noun = word if one else f"{word[:-1]}ies" if re.search(r"[^aeiou]y$", word) else f"{word}s"
    form = {"are": "is", "have": "has", "were": "was", "do": "does"}.get(verb, f"{verb}s") if one and verb else verb
    return f"{number} {noun} {form}".rstrip()


def size(number: int | None) -> str:
    """Return a number of bytes as short text; "-" if unknown.

    Example:
        >>> size(8_100), size(7_170_000), size(431_000_000), size(2_340_000_000)
        ('8.1 kB', '7.2 MB', '431 MB', '2.3 GB')
    """
    if number is None:
        return "-"
    if number < 100_000:
        return f"{number / 1e3:.1f} kB" if number < 10_000 else f"{number / 1e3:.0f} kB"
    value, unit = (number / 1e9, "GB") if number >= 1e9 else (number / 1e6, "MB")
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return seconds as short text.

    Example:
        >>> duration(31.4), duration(200), duration(7300), duration(200_000)
        ('31 s', '3 min 20 s', '2 h 1 min', '2 d 7 h')
    """
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s" if seconds >= 1 or seconds == 0 else f"{seconds:.1f} s"


def natural(name: str) -> list[tuple[int, str] | str]:
    """Return a sort key that puts `b2` before `b10` and ignores case."""
    parts = re.split("([0-9]+)", name)  # text at even indices; numbers at odd indices, compared by size
    return [(len(p.lstrip("0")), p.lstrip("0")) if place % 2 else p.lower() for place, p in enumerate(parts)]


def several(value: object) -> list[Any]:
    """Return one or several values as a list.

    Text is split at commas outside brackets. Parts that are whole numbers become int.

    Example:
        >>> several("soft,gumb"), several(4), several(["3x4", "5x10"]), several(range(2))
        (['soft', 'gumb'], [4], ['3x4', '5x10'], [0, 1])
    """
    if isinstance(value, str):
        return [number_or_text(part) for part in _parts(value)]
    return list(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else [value]


def _parts(text: str) -> list[str]:
    """Split text at commas outside square brackets; leave empty parts out."""
    parts = re.split(r",(?![^\[\]]*\])", text) if "[" in text else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def words(value: object) -> list[str]:
    """Return the distinct names or values in an argument with one or several values, as text.

    Several values are a list, text with commas, or a list of texts with commas. All arguments follow this rule. Commas
    in square brackets are part of a name. An empty text in a list counts as a name, so that callers reject it.

    Example:
        >>> words("soft,gumb"), words(["soft, gumb", "discr"]), words(4), words(())
        (['soft', 'gumb'], ['soft', 'gumb', 'discr'], ['4'], [])
        >>> words("Composed[cell=GRU,layers=2],FC2L")
        ['Composed[cell=GRU,layers=2]', 'FC2L']
    """
    if isinstance(value, str):
        return list(dict.fromkeys(_parts(value)))
    return list(dict.fromkeys(part for text in map(str, several(value)) for part in words(text) or [""]))


def names_in(what: str, value: object, known: Sequence[str] = ()) -> list[str]:
    """Return the names in an argument; for "all", every known name.

    Raises:
        InvalidSettingError: the argument has no names.

    Example:
        >>> names_in("channel", "qt,gs"), names_in("channel", "all", ["gs", "qt"])
        (['qt', 'gs'], ['gs', 'qt'])
    """
    names = words(value)
    if not names:
        raise InvalidSettingError(f"{what} needs a name, or several names separated by commas.")
    return list(known) if known and "all" in names else names


def markdown_table(
    headings: Iterable[object], rows: Iterable[Iterable[object]], numbers: Collection[int] = (), markup: bool = False
) -> str:
    """Write a Markdown table.

    Args:
        headings: headings of the columns.
        rows: cells of any type. They are escaped, and line breaks become spaces.
        numbers: indices of the columns to align right.
        markup: whether headings and cells are already Markdown; then only '|' is escaped.

    Example:
        >>> print(markdown_table(["model", "steps"], [["FC2L", 350]], numbers=[1]))
        | model | steps |
        | --- | ---: |
        | FC2L | 350 |
    """
    escape = in_a_line if markup else markdown
    head, *body = [[escape(cell).replace("|", r"\|") for cell in line] for line in (headings, *rows)]
    rule = ["---:" if place in numbers else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
