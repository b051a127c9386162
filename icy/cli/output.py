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
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([*map(csv_cell, line)] for line in (headings, *rows))
        click.echo(file.getvalue(), nl=False)
    elif format_ in ("markdown", "latex"):
        click.echo(markdown_table(headings, rows))
    elif (console := stdout()).is_terminal:
        console.print(rich_table(headings, rows))
    else:
        texts = [[*map(in_a_line, line)] for line in (headings, *rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for line in texts:
            click.echo("  ".join(c.ljust(width) for c, width in zip(line, widths, strict=True)).rstrip())


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


# -- bias tables -------------------------------------------------------------------------------------------------------


def print_tables(tables: Iterable[BiasTable], format_: str) -> None:
    """Print bias tables, one below the other; on a narrow terminal, each is cut into several.

    Args:
        tables: the tables.
        format_: "table", "markdown", "latex", "csv", "html" or "json".
    """
    console = stdout()
    for place, table in enumerate(tables):
        if place:
            click.echo()
        if format_ == "table" and console.is_terminal:
            print_on_terminal(table, console)
        else:
            click.echo(table.render("text" if format_ == "table" else format_))


def print_on_terminal(table: BiasTable, console: Console) -> None:
    """Print a bias table in as many parts as the terminal needs."""
    console.print(Text(in_a_line(table.shown_title), style="bold"))
    for heading, rows in table.groups():
        if heading:
            console.print(Text(in_a_line(heading), style="italic"))
        for head, *body in fitting([[*map(in_a_line, line)] for line in (table.head(), *rows)], console.width):
            console.print(rich_table(head, body, numbers=range(1, len(head))))
    for remark in table.remarks("* best, ° worst"):
        console.print(Text(in_a_line(remark), style="dim"))


def fitting(lines: list[list[str]], room: int) -> list[list[tuple[str, ...]]]:
    """Cut a table into parts that fit the terminal; each has the first column and as many others as fit."""
    first, *columns = zip(*lines, strict=True)
    parts = [[first]]
    for column in columns:
        width = sum(max(map(len, one)) + 3 for one in (*parts[-1], column))  # rich puts three spaces around a column
        if len(parts[-1]) > 1 and width > room:
            parts.append([first])
        parts[-1].append(column)
    return [list(zip(*part, strict=True)) for part in parts]


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
