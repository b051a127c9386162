"""Tables on stdout: handsome on a terminal, plain in a pipe, or in a format for other programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from icy.analysis.tables import BiasTable

Rows = Sequence[Sequence[Any]]
FORMATS = ("table", "markdown", "csv", "json")


def format_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --format of commands that print a list."""
    option = click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True)
    return option(function)


def stdout() -> Console:
    """A console for results."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())  # lines for a pipe are left whole


def stderr() -> Console:
    """A console for progress and remarks."""
    return Console(stderr=True, highlight=False)


def note(sentence: str) -> None:
    """A remark for the reader, apart from the results."""
    click.echo(sentence, err=True)


def print_rows(headings: Sequence[str], rows: Rows, format_: str = "table") -> None:
    """Print rows under their headings, in one of FORMATS."""
    if format_ == "json":
        click.echo(json.dumps([dict(zip(headings, row, strict=True)) for row in rows], indent=1, default=str))
    elif format_ == "csv":
        click.echo(_csv([headings, *rows]), nl=False)
    elif format_ == "markdown":
        click.echo(_markdown(headings, rows))
    elif (console := stdout()).is_terminal:
        console.print(rich_table(headings, rows))
    else:
        click.echo(_plain([headings, *rows]))


def rich_table(headings: Sequence[str], rows: Rows, numbers: Sequence[int] = ()) -> Table:
    """A table for a terminal; `numbers` are the places of columns that are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        style = "cyan" if place == 0 else None
        side = "right" if place in numbers else "left"
        table.add_column(Text(heading), style=style, justify=side, no_wrap=place == 0, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    return table


def _plain(lines: Rows) -> str:
    texts = [[str(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    padded = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in texts]
    return "\n".join(padded)


def _markdown(headings: Sequence[str], rows: Rows) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _csv(lines: Rows) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


# -- bias tables -------------------------------------------------------------------------------------------------------


def print_table(table: BiasTable, format_: str) -> None:
    """A bias table: on a terminal turned on its side, or cut into several, where it is too wide.

    Args:
        table: what to print.
        format_: "table", "markdown", "latex", "csv", "html" or "json".
    """
    console = stdout()
    if format_ == "json":
        click.echo(json.dumps(table.to_records(), indent=1))
    elif format_ != "table" or not console.is_terminal:
        click.echo(table.render("text" if format_ == "table" else format_))
    else:
        print_on_terminal(table, console)


def print_on_terminal(table: BiasTable, console: Console) -> None:
    """A bias table in as many parts as the terminal is narrow."""
    console.print(Text(table.title, style="bold"))
    for heading, rows in table.groups():
        if heading:
            console.print(Text(heading, style="italic"))
        for head, *body in _blocks([table.head(), *rows], console.width):
            console.print(rich_table(head, body, numbers=range(1, len(head))))
    for remark in table.remarks("* best, ° worst"):
        console.print(Text(remark, style="dim"))


def _blocks(whole: list[list[str]], room: int) -> list[list[list[str]]]:
    """A table as it is if there is room, else turned on its side, else cut into several."""
    turned = [list(column) for column in zip(*whole, strict=True)]
    if _width(whole) <= room:
        return [whole]
    return [turned] if _width(turned) <= room else _cut(whole, room)


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Of a table as rich prints it: three spaces to a column."""
    return sum(max(map(len, column)) + 3 for column in zip(*lines, strict=True))


def _cut(lines: list[list[str]], room: int) -> list[list[list[str]]]:
    """Several tables that each have the model and as many further columns as there is room for."""
    blocks: list[list[int]] = [[0]]
    for place in range(1, len(lines[0])):
        if len(blocks[-1]) > 1 and _width(_columns(lines, [*blocks[-1], place])) > room:
            blocks.append([0])
        blocks[-1].append(place)
    return [_columns(lines, block) for block in blocks]


def _columns(lines: list[list[str]], places: Sequence[int]) -> list[list[str]]:
    return [[line[i] for i in places] for line in lines]
