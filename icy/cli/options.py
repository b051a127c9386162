"""Options that several commands share, and types of values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Any], Any]

plugin_option: Decorator = click.option(
    "--plugin",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A Python file that registers models or grammars; repeatable.",
)


class Assignment(click.ParamType):  # type: ignore[type-arg]
    """`name=value`, the value read as JSON where it is that, else as text."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """The pair of name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"'{value}' is not of the form name=value.", param, ctx)
        try:
            return name.strip().replace("-", "_"), json.loads(text)
        except ValueError:
            return name.strip().replace("-", "_"), {"None": None, "True": True, "False": False}.get(text, text)


class Seeds(click.ParamType):  # type: ignore[type-arg]
    """How many seeds, or which; `icy.asking.seed_list` reads it."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """A number where it is one, else the text."""
        return int(value) if str(value).isdigit() else str(value)


class Sizes(Seeds):
    """A hidden size, or several; `icy.asking.hidden_list` reads it."""

    name = "sizes"


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of which results to read, as of `icy.reading.select`."""
    for option in (
        click.option(
            "--where",
            multiple=True,
            type=Assignment(),
            metavar="COLUMN=VALUE",
            help="Only what has this value in the long table, as in representation=gumb; repeatable.",
        ),
        click.option(
            "--grammar", "-g", multiple=True, metavar="NAME", help="Only these grammars: the same; repeatable."
        ),
        click.option(
            "--model", "-m", multiple=True, metavar="NAME", help="Only these: names or wildcards; repeatable."
        ),
    ):
        command = option(command)
    return command
