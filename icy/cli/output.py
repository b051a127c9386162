"""Output: tables on stdout, remarks on stderr, figures and files."""

from __future__ import annotations

import csv
import io
import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.progress import silence
from icy.core.surroundings import log_level
from icy.core.text import csv_cell, csv_table, in_a_line, listed, markdown_table, printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from icy.analysis.tables.printed_table import BiasTable


Rows = Sequence[Sequence[object]]
FORMATS = ("table", "markdown", "csv", "json")

SUFFIXES = (".png", ".pdf", ".svg")

# The same figure gives the same file.
NO_DATE: dict[str, dict[str, str | None]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
DPI = 200


def stdout() -> Console:
    """Return the console for results."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())  # lines for a pipe are not wrapped


def stderr() -> Console:
    """Return the console for progress and remarks."""
    return Console(stderr=True, highlight=False)


def note(sentence: str) -> None:
    """Print a remark to stderr."""
    click.echo(printable(sentence), err=True)


def print_rows(headings: Sequence[str], rows: Rows, format_: str = "table") -> None:
    """Print rows under their headings, in one of FORMATS; for "latex" in Markdown, as they are not for papers."""
    if format_ == "json":
        click.echo(json.dumps([dict(zip(headings, row, strict=True)) for row in rows], indent=1, default=str))
    elif format_ == "csv":
        click.echo(_csv([headings, *rows]), nl=False)
    elif format_ in ("markdown", "latex"):
        click.echo(markdown_table(headings, rows))
    elif (console := stdout()).is_terminal:
        console.print(rich_table(headings, rows))
    else:
        click.echo(_plain([headings, *rows]))


def print_records(records: Sequence[Mapping[str, object]], format_: str = "table") -> None:
    """Print records with the same keys, which are the headings; formats as for `print_rows`."""
    print_rows(list(records[0]) if records else [], [list(record.values()) for record in records], format_)


def print_data(data: pd.DataFrame, format_: str, **look: Any) -> bool:
    """Print a table as json or csv, and return True; return False for the other formats, which `print_rows` prints.

    Args:
        data: the table.
        format_: one of FORMATS.
        **look: arguments of `DataFrame.to_csv`.
    """
    if format_ == "json":
        click.echo(data.to_json(orient="records", indent=1))
    elif format_ == "csv":
        click.echo(csv_table(data).to_csv(index=False, **look), nl=False)
    return format_ in ("json", "csv")


def rich_table(headings: Sequence[str], rows: Rows, numbers: Sequence[int] = ()) -> Table:
    """Make a table for a terminal; `numbers` holds the indices of right-aligned columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        style = "cyan" if place == 0 else None
        side = "right" if place in numbers else "left"
        shown = Text(in_a_line(heading))
        table.add_column(shown, style=style, justify=side, no_wrap=place == 0, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(in_a_line(cell)) for cell in row))
    return table


def _plain(lines: Rows) -> str:
    texts = [[*map(in_a_line, line)] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    padded = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in texts]
    return "\n".join(padded)


def _csv(lines: Rows) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([*map(csv_cell, line)] for line in lines)
    return file.getvalue()


# -- bias tables -------------------------------------------------------------------------------------------------------


def print_table(table: BiasTable, format_: str) -> None:
    """Print a bias table; on a narrow terminal, transposed or cut into several.

    Args:
        table: the table.
        format_: "table", "markdown", "latex", "csv", "html" or "json".
    """
    console = stdout()
    if format_ == "json":
        click.echo(json.dumps(table.to_records(), indent=1))
    elif format_ != "table" or not console.is_terminal:
        click.echo(table.render("text" if format_ == "table" else format_))
    else:
        print_on_terminal(table, console)


def print_tables(tables: Sequence[BiasTable], format_: str) -> None:
    """Print several tables, one below the other; formats as for `print_table`."""
    for place, table in enumerate(tables):
        if place:
            click.echo()
        print_table(table, format_)


def print_on_terminal(table: BiasTable, console: Console) -> None:
    """Print a bias table in as many parts as the terminal needs."""
    console.print(Text(in_a_line(table.shown_title), style="bold"))
    for heading, rows in table.groups():
        if heading:
            console.print(Text(in_a_line(heading), style="italic"))
        for head, *body in _blocks([[*map(in_a_line, line)] for line in (table.head(), *rows)], console.width):
            console.print(rich_table(head, body, numbers=range(1, len(head))))
    for remark in table.remarks("* best, ° worst"):
        console.print(Text(in_a_line(remark), style="dim"))


def _blocks(whole: list[list[str]], room: int) -> list[list[list[str]]]:
    """Return a table unchanged if there is room, otherwise transposed, otherwise cut into several."""
    turned = [list(column) for column in zip(*whole, strict=True)]
    if _width(whole) <= room:
        return [whole]
    return [turned] if _width(turned) <= room else cut(whole, room)


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Return the width of a table as rich prints it: three spaces per column."""
    return sum(max(map(len, column)) + 3 for column in zip(*lines, strict=True))


def cut(lines: list[list[str]], room: int) -> list[list[list[str]]]:
    """Cut a table into several that each have the model and as many columns as fit."""
    blocks: list[list[int]] = [[0]]
    for place in range(1, len(lines[0])):
        if len(blocks[-1]) > 1 and _width(_columns(lines, [*blocks[-1], place])) > room:
            blocks.append([0])
        blocks[-1].append(place)
    return [_columns(lines, block) for block in blocks]


def _columns(lines: list[list[str]], places: Sequence[int]) -> list[list[str]]:
    return [[line[i] for i in places] for line in lines]


def checked_file(given: str | Path, suffixes: Iterable[str], what: str) -> Path:
    """Check and return the path of an output file. Commands call this before their work starts.

    Args:
        given: path of the file.
        suffixes: allowed suffixes.
        what: start of the error, such as "A plot is".

    Raises:
        InvalidSettingError: another suffix, or the folder does not exist.
    """
    path, known = Path(given), list(suffixes)
    if path.suffix.lower() not in known:
        raise InvalidSettingError(f"{what} written as {listed(known, 'or')}, not as '{path.name or given}'.")
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {path.absolute().parent} does not exist.")
    return path


def checked_plot(given: str | Path | None) -> Path | None:
    """Check and return the file to draw to, if one is given; also check that matplotlib can be imported."""
    if given is None:
        return None
    from icy.analysis.style import load_matplotlib

    path = checked_file(given, SUFFIXES, "A plot is")
    load_matplotlib()
    return path


def save_figure(figure: Figure, path: Path | None, quiet: bool = False) -> None:
    """Write a figure and print its path; do nothing without a path."""
    if path is None:
        return
    from icy.analysis import style

    try:
        with style.own_settings():
            figure.savefig(path, dpi=DPI, metadata=NO_DATE[path.suffix.lower()])
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error.strerror or error}.") from error
    if not quiet:
        note(f"Drawn: {path}.")
        if style.CAPTIONED and (caption := getattr(figure, "caption", "")):
            note(f"For the caption: {caption}")


def write_text(text: str, path: Path, flag: str = "--out") -> None:
    """Write a text to a file and print its path.

    Args:
        text: the text.
        path: the file.
        flag: option of the file, for errors.
    """
    write_atomically(path, text.encode(), flag)
    note(f"Written: {path}.")


# -- log ---------------------------------------------------------------------------------------------------------------


class _ConsoleLog(logging.Handler):
    """Prints icy's log above the progress display."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        self._console.print(Text(printable(record.getMessage()), style=style), soft_wrap=True)


def set_up_log(quiet: bool, verbose: int = 0) -> None:
    """Print icy's log on stderr until the command ends, from the level that `quiet` and `verbose` choose.

    With `quiet`, no progress is shown either.
    """
    level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    log, handler, context = logging.getLogger("icy"), _ConsoleLog(stderr()), click.get_current_context()
    log.addHandler(handler)
    context.call_on_close(lambda: log.removeHandler(handler))
    context.with_resource(log_level(level, log.name))
    context.with_resource(silence(quiet))
