"""Tables on stdout: handsome on a terminal, plain in a pipe, or in a format for other programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

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
