"""Options that several commands share, and types of values."""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from icy.analysis.style import STYLES, plot_style
from icy.config.settings import RepresentationName
from icy.core.checks import number_or_text, parse_count
from icy.core.choices import typed
from icy.core.errors import InvalidSettingError, quoted
from icy.core.fields import described
from icy.core.registry import registry
from icy.experiments.sweep_file import OPTIONS
from icy.records.load import MEASURES, Results
from icy.records.store import RERUN

from . import groups

Decorator = Callable[[Any], Any]
Assignments = Sequence[tuple[str, object]]


def _load_plugins(ctx: click.Context, param: click.Parameter, files: Sequence[str]) -> None:
    registry.load_files(files)


_PLUGIN: dict[str, Any] = {
    "multiple": True,
    "type": click.Path(),
    "metavar": "FILE",
    "help": "A Python file that registers models or grammars; repeatable.",
}
plugin_option: Decorator = click.option("--plugin", expose_value=False, callback=_load_plugins, **_PLUGIN)
plugin_files: Decorator = click.option("--plugin", **_PLUGIN)  # for commands that load them after they set up the log

permutations_option: Decorator = click.option(
    "--permutations",
    type=click.IntRange(min=1),
    metavar="M",
    help="Show each metric's chance level and p-value, from M permutations of the messages, such as 1000.",
)

FORMATS = ("table", "markdown", "latex", "csv", "json")
MEANINGS: dict[str, Any] = {"metavar": "AxK|K,K,...", "help": "Attributes x values; or the sizes of each, 10,4,2."}
WORD_LENGTH = "Tokens per word, w; or 1-4 for words of 1 to 4 tokens."
DRAWS = "Generators of languages: icy's, or as in the authors' program (Perkins21, Icy22)."
REPRESENTATIONS = get_args(RepresentationName)  # of icy.core.representations, which imports torch
SPREADS = ("sd", "sem", "ci95")  # of icy.analysis.tables.bias, which is slow to import


class Assignment(click.ParamType):  # type: ignore[type-arg]
    """`name=value`. A value that is valid JSON is read as JSON, any other value as text.

    Args:
        plain: whether every value is text.
    """

    name = "name=value"

    def __init__(self, plain: bool = False) -> None:
        self.plain = plain

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Return name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{quoted(str(value))} is not of the form name=value.", param, ctx)
        return name.strip().replace("-", "_"), text if self.plain else typed(text)


def choice_of(where: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Return the assignments of `--where` by name; a name that is repeated has several values.

    Example:
        >>> choice_of([("seed", 1), ("side", "sender"), ("seed", 2)])
        {'seed': [1, 2], 'side': 'sender'}
    """
    found: dict[str, list[object]] = {}
    for name, value in where:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


class Count(click.ParamType):  # type: ignore[type-arg]
    """A whole number, also written as 1e6."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        number = parse_count(str(value))
        if number is None:
            self.fail(f"{quoted(str(value))} is not a whole number (1000000, or 1e6).", param, ctx)
        return number


class Several(click.Option):
    """An option with one value or several: separated by commas, by a repeated option, or both."""

    def __init__(self, *flags: Any, default: Any = None, **more: Any) -> None:
        default = None if default is None else [default]
        super().__init__(*flags, **{**more, "default": default, "multiple": True, "type": str})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return all values of the option as one text with commas, or a number; None if the option was not given."""
        given = super().process_value(ctx, value)
        return number_or_text(",".join(map(str, given))) if given else None


@dataclasses.dataclass(frozen=True)
class Selection:
    """The values of the options that select results: models, grammars and `where` (see `icy.records.load.select`).

    `measure` is the measure of tables without a column for it.
    """

    model: Sequence[str]
    grammar: Sequence[str]
    where: dict[str, Any]
    measure: str | None

    def read(self, results: Sequence[str]) -> Results:
        """Read results from folders or files, by default the folder icy-results, and return the selected ones."""
        from icy.experiments.results import read_results
        from icy.records.load import select

        found = read_results(results or ["icy-results"], self.measure)
        chosen: Results = select(found, self.model, self.grammar, self.where)
        return chosen


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select results; the command gets them as the argument `selected`, a Selection."""

    @wraps(command)
    def with_selection(*args: Any, model: Any, grammar: Any, where: Assignments, measure: Any, **given: Any) -> Any:
        return command(*args, selected=Selection(model, grammar, choice_of(where), measure), **given)

    for option in (
        click.option(
            "--measure",
            type=click.Choice(MEASURES),
            help="Measure for tables without a measure column: ratio to concat's updates, accuracy, or accuracy on "
            "held-out meanings.",
        ),
        click.option(
            "--where",
            multiple=True,
            type=Assignment(plain=True),  # a model may be called null, and a grammar 1e5
            metavar="COLUMN=VALUE",
            help="Use only rows with this value in the long table, as in representation=gumb, or of this option, as in "
            "senders=3; repeatable.",
        ),
        click.option(
            "--grammar",
            "-g",
            multiple=True,
            metavar="NAME",
            help="Use only these grammars: names, wildcards; repeatable.",
        ),
        click.option(
            "--model", "-m", multiple=True, metavar="NAME", help="Use only these models: names, wildcards; repeatable."
        ),
    ):
        with_selection = option(with_selection)
    return with_selection


# Fields of RunSpec in the order of the help; their options come after the command's own.
RUNNING = (
    *("quick", "plugin", "device", "workers", "engine", "out", "rerun", "initial_results", "keep_models", "track"),
    *("runner", "per_gpu"),
)
SHORT = {field: f"--{name}" for name, field in OPTIONS.items()}


class SpecOptions:
    """Makes click options of the fields of a spec, see `icy.config.specs`.

    Args:
        spec: the dataclass; its docstring describes each field under "Attributes:".
    """

    def __init__(self, spec: type) -> None:
        self._spec, self._descriptions = spec, described(spec)
        self._hints = typing.get_type_hints(spec)
        self.fields = {f.name: f for f in dataclasses.fields(spec)}

    def described(self, name: str) -> str:
        """Return the description of a field, as a sentence."""
        return _sentence(self._descriptions.get(name, ""))

    def option(self, name: str, *flags: str, help: str = "", **more: Any) -> Decorator:
        """Return the option of a field, with its default and its description.

        Args:
            name: name of the field.
                *flags: flags that replace the field's own.
                help: text that replaces the field's description.
            **more: arguments of `click.option`, which override those from the field's type.
        """
        field, default = self.fields[name], self.fields[name].default
        needed = default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        text = _sentence(help or field.metadata.get("help") or self._descriptions.get(name, ""))
        more = self._renamed(field) | self._form(field) | more
        if default is dataclasses.MISSING or default == ():
            default = None
        if more.get("multiple") and default is not None:
            default = [default] if isinstance(default, str) or not isinstance(default, Iterable) else list(default)
        shown = default is not None and default is not False
        how: dict[str, Any] = {"required": needed, "default": default, "show_default": shown, "help": text, **more}
        return click.option(*(flags or _flags(field)), name, **how)

    def _renamed(self, field: dataclasses.Field[Any]) -> dict[str, Any]:
        """Return the arguments of `click.option` that follow from old names of a field without flags of its own."""
        names = [] if "flags" in field.metadata else getattr(self._spec, "old_names", {}).items()
        old = [f"--{name.replace('_', '-')}" for name, new in names if new == field.name]
        return {"cls": Renamed, "old": old} if old else {}

    def _form(self, field: dataclasses.Field[Any]) -> dict[str, Any]:
        """Return the arguments of `click.option` that follow from a field's type and metadata."""
        parts, shown = _alternatives(self._hints[field.name]), field.metadata
        of_many = [get_args(part)[0] for part in parts if _is(part, Iterable) and get_args(part)]
        metavar = shown.get("metavar")
        if bool in parts:
            return {"is_flag": True}
        if any(_is(part, Mapping) for part in parts):
            return {"multiple": True, "type": Assignment()}
        if names := shown.get("names") or [name for one in of_many for name in _names(one)]:
            return {"cls": Several, "metavar": f"{'|'.join(names)}[,...]", "shell_complete": partial(_completed, names)}
        if names := [name for part in parts for name in _names(part)]:
            metavar = metavar or ("|".join(names) if not shown.get("brackets", True) else None)
            return {"type": click.Choice(names), "metavar": metavar}
        if (metavar or "").endswith("...]") or (of_many and int in parts):  # as `icy.config.settings.Numbers`
            return {"cls": Several, "metavar": metavar or "N[,N...]"}
        complete = getattr(groups, shown["completes"]) if "completes" in shown else None
        value = _value(of_many or parts, shown)
        return {"multiple": bool(of_many), "metavar": metavar, "type": value, "shell_complete": complete}


def spec_options(
    spec: type, first: Iterable[str] = (), last: Iterable[str] = (), without: Iterable[str] = (), **help: str
) -> Decorator:
    """Return an option per field of a spec, in the order of the fields; the fields of RUNNING come last.

    Args:
        spec: the dataclass.
        first: fields that come first, in this order.
        last: fields that come last among the spec's own, in this order.
        without: fields that have no option.
        **help: texts that replace the fields' descriptions.
    """
    options = SpecOptions(spec)
    own = [name for name in options.fields if name not in {*first, *last, *RUNNING}]
    names = dict.fromkeys((*first, *own, *last, *RUNNING))
    help["rerun"] = "; ".join(f"{name}: {what}" for name, what in RERUN.items()) + "."
    return together(*(options.option(name, help=help.get(name, "")) for name in names if name not in without))


def _flags(field: dataclasses.Field[Any]) -> Iterable[str]:
    """Return the flags that a field declares, by default the field's name and its name in sweep files."""
    flag = f"--{field.name.replace('_', '-')}"
    declared: Iterable[str] = field.metadata.get("flags", ())
    if declared:
        return declared
    return (f"{flag}/--no-{flag[2:]}",) if field.default is True else dict.fromkeys((SHORT.get(field.name, flag), flag))


def _alternatives(hint: object) -> tuple[object, ...]:
    """Return the types of a union, apart from None."""
    parts = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return tuple(part for part in parts if part is not type(None))


def _names(hint: object) -> tuple[str, ...]:
    """Return the names of a Literal; nothing for other types."""
    return get_args(hint) if get_origin(hint) is Literal else ()


def _is(hint: object, base: type) -> bool:
    """Return whether a type is a class derived from `base`, with or without arguments."""
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and origin is not str and issubclass(origin, base)


def _value(parts: Iterable[object], shown: Mapping[str, Any]) -> object:
    """Return click's type for a value of these Python types."""
    parts = {one for part in parts for one in _alternatives(part)}
    if "minimum" in shown:
        return click.IntRange(min=shown["minimum"])
    if "exponents" in shown:
        return Count()
    if Path in parts and "completes" not in shown:
        return click.Path()
    return str if str in parts else next((number for number in (float, int) if number in parts), str)


def _completed(names: Iterable[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that complete the last name in a list."""
    begun, comma, last = incomplete.rpartition(",")
    return [f"{begun}{comma}{name}" for name in names if name.startswith(last)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def agents_option(example: str) -> Decorator:
    """Return the option --where of commands that play with trained agents."""
    return click.option(
        "--where",
        multiple=True,
        type=Assignment(),
        metavar="NAME=VALUE",
        help=f"Use only matching trained agents of a folder, as in seed=124 or {example}; repeatable.",
    )


def together(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


OUTPUT_OPTIONS = together(
    click.option("--dry-run", is_flag=True, help="Show the planned training and its estimated time; train nothing."),
    click.option(
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="Output format; json has every replicate, other formats have the table.",
    ),
    click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds."),
    click.option("--quiet", "-q", is_flag=True, help="Print no progress and no remarks."),
    click.option("--verbose", "-v", count=True, help="Print how each model is stacked and why; -vv for the whole log."),
)


def style_option(*, exposed: bool = False) -> Decorator:
    """Return the option --style: all plots of the command are drawn in this style unless a function names another."""

    def begin(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
        if name is not None and not exposed:
            ctx.with_resource(plot_style(name))
        return name

    return click.option(
        "--style",
        type=click.Choice(list(STYLES)),
        expose_value=exposed,
        callback=begin,
        help="Sizes and fonts of plots, for a paper or for slides.",
    )


class Renamed(click.Option):
    """An option that also accepts old names, which its help does not show.

    Args:
        names: names of the option.
        old: old names.
        **more: arguments of `click.Option`.
    """

    def __init__(self, names: Sequence[str], old: Sequence[str] = (), **more: Any) -> None:
        super().__init__([*names, *old], **more)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the help, without the old names."""
        shown = copy.copy(self)
        shown.opts = [name for name in self.opts if name not in self.old]
        return super(Renamed, shown).get_help_record(ctx)


def file_option(help: str, name: str = "out", **more: Any) -> Decorator:
    """Return the option -o/--out of a command that writes a file; --save is its old name.

    Args:
        help: the content of the file, with the accepted suffixes.
        name: name of the argument.
        **more: arguments of `click.option`.
    """
    how: dict[str, Any] = {"metavar": "FILE", "type": click.Path(), "help": help, **more}
    return click.option("-o", "--out", name, cls=Renamed, old=("--save",), **how)


def plot_option(shows: str, old: Sequence[str] = ()) -> Decorator:
    """Return the options --plot and --style of a command that can also draw; `old` are other names of --plot."""
    plot = click.option("--plot", cls=Renamed, old=old, type=click.Path(), metavar="FILE", help=shows)
    return together(plot, style_option())


def given_by_user(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments from the command line, without defaults. Assignments become a dictionary."""
    chosen = {n: value for n, value in given.items() if ctx.get_parameter_source(n) is not ParameterSource.DEFAULT}
    flags = {one.name: one.opts[0] for one in ctx.command.params if isinstance(one.type, Assignment)}
    return {n: assigned(flags[n], value) if n in flags else value for n, value in chosen.items()}


def assigned(flag: str, pairs: Assignments) -> dict[str, object]:
    """Return assignments by name.

    Raises:
        InvalidSettingError: a name has two values, and only the last would count.
    """
    found: dict[str, object] = {}
    for name, value in pairs:
        if repr(found.setdefault(name, value)) != repr(value):
            several = f", or write a list, as in {name}=[1,2]" if flag in ("--space", "--set") else ""
            raise InvalidSettingError(
                f"{flag} has two values of {name}, {found[name]!r} and {value!r}: keep one{several}."
            )
    return found
