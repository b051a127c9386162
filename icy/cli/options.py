"""Options that several commands share, and types of values."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, get_args

import click
from click.core import ParameterSource

from icy.analysis.style import STYLES, plot_style
from icy.config.options import RepresentationName
from icy.config.settings import ENGINES, PRESETS, STACKINGS
from icy.core.checks import number_or_text, parse_count
from icy.core.docs import described
from icy.core.errors import quoted
from icy.experiments.plan import RUNNERS
from icy.records.load import MEASURES
from icy.records.store import RERUN

Decorator = Callable[[Any], Any]

plugin_option: Decorator = click.option(
    "--plugin",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="A Python file that registers models or grammars; repeatable.",
)

permutations_option: Decorator = click.option(
    "--permutations",
    type=click.IntRange(min=1),
    metavar="M",
    help="Show every metric's value by chance, and its p-value, from M permutations of the messages, such as 1000.",
)

FORMATS = ("table", "markdown", "latex", "csv", "json")
REPRESENTATIONS = get_args(RepresentationName)  # of icy.core.representations, which imports torch
SPREADS = ("sd", "sem", "ci95")  # of icy.analysis.tables.bias, which is slow to import


WORDS = {"None": None, "True": True, "False": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Assignment(click.ParamType):  # type: ignore[type-arg]
    """`name=value`, the value read as JSON where it is that, else as text.

    Args:
        plain: whether every value is text.
    """

    name = "name=value"

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Return name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{quoted(str(value))} is not of the form name=value.", param, ctx)
        if self.plain:
            return name.strip().replace("-", "_"), text
        try:
            return name.strip().replace("-", "_"), json.loads(text)
        except (ValueError, RecursionError):  # the latter of brackets within brackets
            return name.strip().replace("-", "_"), WORDS.get(text, text)


def choice_of(where: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the assignments of `--where` by name; a name that is repeated has several values.

    Example:
        >>> choice_of([("seed", 1), ("side", "sender"), ("seed", 2)])
        {'seed': [1, 2], 'side': 'sender'}
    """
    found: dict[str, list[Any]] = {}
    for name, value in where:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


class Count(click.ParamType):  # type: ignore[type-arg]
    """A whole number, also as in 1e6."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        number = parse_count(str(value))
        if number is None:
            self.fail(f"{quoted(str(value))} is no whole number (1000000, or 1e6).", param, ctx)
        return number


class Several(click.Option):
    """An option with one value or several: between commas, by repeating the option, or both."""

    def __init__(self, *flags: Any, default: Any = None, **more: Any) -> None:
        default = None if default is None else [default]
        super().__init__(*flags, **{**more, "default": default, "multiple": True, "type": str})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as it was typed once: text with commas, or a number; None if the option was not given."""
        given = super().process_value(ctx, value)
        return number_or_text(",".join(map(str, given))) if given else None


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the options that select results (see `icy.records.select.select`), and say what values of theirs are."""
    for option in (
        click.option(
            "--measure",
            type=click.Choice(MEASURES),
            help="What the values of tables are that do not say so: ratio to concat's steps, accuracy, or accuracy on "
            "held-out meanings.",
        ),
        click.option(
            "--where",
            multiple=True,
            type=Assignment(plain=True),  # a model may be called null, and a grammar 1e5
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


class SpecOptions:
    """Makes click options of the fields of a spec.

    Args:
        spec: the dataclass; its docstring describes each field under "Attributes:".
    """

    def __init__(self, spec: type) -> None:
        self._descriptions = described(spec)
        self._fields = {f.name: f for f in dataclasses.fields(spec)}

    def option(self, name: str, *flags: str, help: str = "", **more: Any) -> Decorator:
        """Return the option of a field, with its default and its description."""
        default = self._fields[name].default
        if default is dataclasses.MISSING or default == ():
            default = None
        if more.get("multiple") and default is not None:
            default = [default] if isinstance(default, str) or not isinstance(default, Iterable) else list(default)
        flags = flags or (f"--{name.replace('_', '-')}",)
        shown = default is not None and default is not False
        text = _sentence(help or self._descriptions.get(name, ""))
        return click.option(*flags, name, default=default, show_default=shown, help=text, **more)

    def described(self, name: str) -> str:
        """Return the description of a field, as a sentence."""
        return _sentence(self._descriptions.get(name, ""))

    def assignments(self, name: str, *flags: str, help: str) -> Decorator:
        """Return an option that may be repeated, each time a name and a value."""
        return self.option(name, *flags, multiple=True, type=Assignment(), help=help)

    def several(self, name: str, metavar: str, known: Iterable[str] = (), help: str = "") -> Decorator:
        """Return the option of a field with one value or several.

        Args:
            name: of the field.
            metavar: one value.
            known: names to complete; what else is accepted, the spec decides.
            help: its description, unless the spec has one.
        """
        complete = partial(_completed, list(known)) if known else None
        return self.option(name, cls=Several, metavar=f"{metavar}[,...]", shell_complete=complete, help=help)

    def sizes(self) -> Decorator:
        """Return the options of every language: meanings, tokens, and seeds."""
        return together(
            self.several("meanings", "AxK"),
            self.several("vocab_size", "V", help="number of tokens, V."),
            self.several("word_length", "w"),
            self.seeds(),
        )

    def seeds(self) -> Decorator:
        """Return the option --seeds."""
        text = "how many, counted from 123 as in the papers, or which: 1,2 or 123-127."
        return self.option("seeds", cls=Several, metavar="N|N,N,...", help=text)

    def word_seeds(self) -> Decorator:
        """Return the option --word-seeds."""
        text = "seeds of the words alone, each a row with all --seeds, which then vary weights and the meanings drawn."
        return self.option("word_seeds", cls=Several, metavar="N|N,N,...", help=text)

    def training(self) -> Decorator:
        """Return the options of every training."""
        return together(
            self.several("preset", "|".join(PRESETS), PRESETS),
            self.changes(),
        )

    def changes(self) -> Decorator:
        """Return the options for changes of settings, small values, and plug-ins."""
        return together(
            self.assignments(
                "settings", "--set", help="a change to the preset's training settings, as in learning_rate=0.002."
            ),
            self.option("quick", is_flag=True),
            self.option("plugin", multiple=True, type=click.Path(), metavar="FILE"),
        )

    def running(self) -> Decorator:
        """Return the options of where and how to run."""
        from icy.experiments.trackers.make import (
            TRACKERS,  # here, as commands that train nothing import this module too
        )

        return together(
            self.option("device"),
            self.option("workers", type=click.IntRange(min=1)),
            self.option(
                "engine",
                type=click.Choice(ENGINES),
                metavar="|".join(STACKINGS) + "[+plain|+graph]",
                help="how replicates are trained; +graph, one CUDA graph per update, +plain, none.",
            ),
            self.option("out", "--out", "-o", type=click.Path(), metavar="FOLDER"),
            self.option(
                "rerun",
                type=click.Choice(list(RERUN)),
                metavar="|".join(RERUN),
                help="; ".join(f"{name}: {what}" for name, what in RERUN.items()) + ".",
            ),
            self.option("start", "--from", multiple=True, type=click.Path(), metavar="PACK"),
            self.option("keep_models", is_flag=True),
            self.option(
                "track",
                cls=Several,
                metavar=f"{'|'.join(TRACKERS)}[,...]",
                help="show every result there too, in files under FOLDER/tracking.",
            ),
        )

    def runner(self) -> Decorator:
        """Return the options of the runner."""
        return together(
            self.option("runner", type=click.Choice(RUNNERS), metavar="|".join(RUNNERS)),
            self.option("per_gpu", type=click.IntRange(min=1)),
        )


def _completed(names: Iterable[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that complete the last of several."""
    begun, comma, last = incomplete.rpartition(",")
    return [f"{begun}{comma}{name}" for name in names if name.startswith(last)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def together(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


SHOWN = together(
    click.option("--dry-run", is_flag=True, help="Show what would be trained and an estimate of the time; do nothing."),
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="What is printed; json has every replicate, all others the table.",
    ),
    click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Of the seeds."),
    click.option("--quiet", "-q", is_flag=True, help="No progress, no remarks."),
    click.option("--verbose", "-v", count=True, help="Say how each model is stacked, and why; -vv for all of the log."),
)


def style_option(*, exposed: bool = False) -> Decorator:
    """Return the option --style, under which all plots of the command are drawn unless the command gets its name."""

    def begin(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
        if name is not None and not exposed:
            ctx.with_resource(plot_style(name))
        return name

    return click.option(
        "--style",
        type=click.Choice(list(STYLES)),
        expose_value=exposed,
        callback=begin,
        help="Sizes and letters of plots for a paper or for slides.",
    )


def plot_option(shows: str) -> Decorator:
    """Return the options --plot and --style of a command that can also draw."""
    return together(click.option("--plot", type=click.Path(), metavar="FILE", help=shows), style_option())


def given_by_user(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the user gave; the spec has the others' defaults. Assignments become a dictionary."""
    chosen = {n: value for n, value in given.items() if ctx.get_parameter_source(n) is not ParameterSource.DEFAULT}
    types = {parameter.name: parameter.type for parameter in ctx.command.params}
    return {n: dict(value) if isinstance(types.get(n), Assignment) else value for n, value in chosen.items()}
