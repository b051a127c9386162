"""Commands made of functions: their options, which follow from types and docstrings, and options that several share."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click
from click.core import ParameterSource

from icy.analysis.style import STYLES, plot_style
from icy.config.requests import option
from icy.config.settings import RepresentationName
from icy.core.checks import number_or_text, parse_count
from icy.core.choices import typed
from icy.core.errors import InvalidSettingError, quoted
from icy.core.fields import OF_SETTINGS, described
from icy.core.registry import registry
from icy.core.streams import DrawsName
from icy.core.types import Fields
from icy.experiments.measuring import FILES, Measurement, save_rows
from icy.experiments.sweep_file import OPTIONS
from icy.records.load import MEASURES, Results
from icy.records.store import RERUN

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable

from . import groups
from .output import FORMATS as LIST_FORMATS
from .output import checked_file, checked_plot, note, print_tables, set_up_log

Decorator = Callable[[Any], Any]
Assignments = Sequence[tuple[str, object]]

FORMATS = ("table", "markdown", "latex", "csv", "json")
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


class FilePath(click.Path):
    """The path of a file or folder. That of an option is not empty, which would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if isinstance(param, click.Option) and not str(value).strip():
            flag = param.opts[0]
            raise InvalidSettingError(
                f"{flag} needs the path of a file or folder, not ''; give a path, or omit {flag}."
            )
        return super().convert(value, param, ctx)


class Several(Renamed):
    """An option with one value or several: separated by commas, by a repeated option, or both."""

    def __init__(self, *flags: Any, default: Any = None, **more: Any) -> None:
        default = None if default is None else [default]
        super().__init__(*flags, **{**more, "default": default, "multiple": True, "type": str})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return all values of the option as one text with commas, or a number; None if the option was not given."""
        given = super().process_value(ctx, value)
        return number_or_text(",".join(map(str, given))) if given else None


# Fields of RunRequest in the order of the help; their options come after the command's own.
RUNNING = (
    *("quick", "plugin", "device", "workers", "engine", "out", "rerun", "initial_results", "keep_models", "track"),
    *("runner", "per_gpu"),
)
SHORT = {field: f"--{name}" for name, field in OPTIONS.items()}
MINE = ("flags", "help", "also", "completes", "names", "minimum", "exponents", "brackets", "check")  # not click's


@dataclasses.dataclass(frozen=True)
class Declared:
    """What an option of a command is made of: a field of a dataclass, or a parameter of a function.

    Attributes:
        name: name of the field or parameter.
        hint: its type, from which the form of the option follows.
        default: its default; MISSING if the user must give a value.
        text: its description in the docstring.
        shown: its metadata, see `icy.config.requests`; and arguments of `click.option`, which override those from the
            type. The key `also` has decorators of further options, which the command does not get.
        old: old names of the option.
    """

    name: str
    hint: Any
    default: Any
    text: str
    shown: Mapping[str, Any]
    old: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, hint: Any, default: Any, text: str, shown: Mapping[str, Any], **more: Any) -> Declared:
        """Return the declaration of a field or parameter; dictionaries in an Annotated type are metadata, too."""
        hint, *extra = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        merged = {key: value for one in (*extra, shown) if isinstance(one, Mapping) for key, value in one.items()}
        return cls(name, hint, default, text, merged, **more)

    def option(self, *flags: str, help: str = "", **more: Any) -> Decorator:
        """Return the option, with its default and its description.

        Args:
            *flags: flags that replace the field's own.
            help: text that replaces the description.
            **more: arguments of `click.option`, which override all others.
        """
        text = _sentence(help or self.shown.get("help") or self.text)
        more = ({"cls": Renamed, "old": self.old} if self.old else {}) | self._form() | more
        default = None if self.default is dataclasses.MISSING or self.default == () else self.default
        if more.get("multiple") and default is not None:
            default = [default] if isinstance(default, str) or not isinstance(default, Iterable) else list(default)
        shown = default is not None and default is not False and default != ""
        needed = self.default is dataclasses.MISSING
        how: dict[str, Any] = {"required": needed, "default": default, "show_default": shown, "help": text, **more}
        return click.option(*(flags or self._flags()), self.name, **how)

    def argument(self) -> Decorator:
        """Return an argument of a command in place of an option."""
        many = any(_is(part, Sequence) for part in _alternatives(self.hint))
        how = {name: value for name, value in self._form().items() if name in ("type", "metavar", "shell_complete")}
        return click.argument(self.name, nargs=-1 if many else 1, required=self.default is dataclasses.MISSING, **how)

    def _flags(self) -> Iterable[str]:
        """Return the flags that a field declares, by default the field's name and its name in sweep files."""
        if declared := self.shown.get("flags", ()):
            return tuple(declared)
        flag = f"--{self.name.replace('_', '-')}"
        if self.default is True or (self.default is None and bool in _alternatives(self.hint)):
            return (f"{flag}/--no-{flag[2:]}",)
        return dict.fromkeys((SHORT.get(self.name, flag), flag))

    def _form(self) -> dict[str, Any]:
        """Return the arguments of `click.option` that follow from the type and the metadata."""
        return self._of_type() | {name: value for name, value in self.shown.items() if name not in MINE}

    def _of_type(self) -> dict[str, Any]:
        parts, shown = _alternatives(self.hint), self.shown
        of_many = [get_args(part)[0] for part in parts if _is(part, Iterable) and get_args(part)]
        metavar = shown.get("metavar")
        complete = getattr(groups, shown["completes"]) if "completes" in shown else None
        if bool in parts:
            return {"is_flag": True}
        if any(_is(part, Mapping) for part in parts):
            return {"multiple": True, "type": Assignment()}
        if names := shown.get("names") or [name for one in of_many for name in _names(one)]:
            return {"cls": Several, "metavar": f"{'|'.join(names)}[,...]", "shell_complete": partial(completed, names)}
        if names := [name for part in parts for name in _names(part)]:
            metavar = metavar or ("|".join(names) if not shown.get("brackets", True) else None)
            return {"type": click.Choice(names), "metavar": metavar}
        if (metavar or "").endswith("...]") or (of_many and int in parts):  # as `icy.config.settings.Numbers`
            return {"cls": Several, "metavar": metavar or "N[,N...]"}
        value = _value(of_many or parts, shown)
        return {"multiple": bool(of_many), "metavar": metavar, "type": value, "shell_complete": complete}


def fields_of(kind: Any) -> dict[str, Declared]:
    """Return the fields of a dataclass by name; its docstring describes each field under "Attributes:"."""
    hints, texts = typing.get_type_hints(kind, include_extras=True), described(kind)
    old = getattr(kind, "old_names", {})
    found = {}
    for field in dataclasses.fields(kind):
        names = [] if "flags" in field.metadata else [name for name, new in old.items() if new == field.name]
        default = field.default if field.default_factory is dataclasses.MISSING else None
        shown = {key: value for key, value in field.metadata.items() if key not in OF_SETTINGS}
        found[field.name] = Declared.of(
            *(field.name, hints[field.name], default, texts.get(field.name, ""), shown),
            old=[f"--{name.replace('_', '-')}" for name in names],
        )
    return found


def request_options(request: type, first: Iterable[str] = (), without: Iterable[str] = (), **help: str) -> Decorator:
    """Return an option per field of a request, in the order of the fields; the fields of RUNNING come last.

    Args:
        request: the class of requests.
        first: fields that come first, in this order.
        without: fields that have no option.
        **help: texts that replace the fields' descriptions.
    """
    options = fields_of(request)
    names = dict.fromkeys((*first, *(name for name in options if name not in RUNNING), *RUNNING))
    help["rerun"] = "; ".join(f"{name}: {what}" for name, what in RERUN.items()) + "."
    return together(*(options[name].option(help=help.get(name, "")) for name in names if name not in without))


# -- commands, made of functions ---------------------------------------------------------------------------------------


def command(name: str, short_help: str | None = None, **how: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that makes a command of a function.

    Parameters by position become arguments, the others options, each with its type and default. A parameter whose type
    is a dataclass has an option per field. A parameter with a decorator in its Annotated type has that decorator's
    options, and gets a dictionary of those that the user gave. The docstring has the help; under "Args:", that of each
    option; and below, as from "Examples:", the end of the help.

    Args:
        name: name of the command.
        short_help: its line in the list of a group; by default the first sentence of the docstring.
        **how: further arguments of `click.Command`.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        text, texts, end = groups.parts_of(inspect.getdoc(function) or "")
        hints = typing.get_type_hints(function, include_extras=True)
        taken: dict[str, tuple[Any, list[click.Parameter]]] = {}
        for parameter in inspect.signature(function).parameters.values():
            default = dataclasses.MISSING if parameter.default is parameter.empty else parameter.default
            hint, declared = hints[parameter.name], texts.get(parameter.name, "")
            one = Declared.of(parameter.name, hint, default, declared, {})
            extra = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            decorators = [decorate for decorate in extra if callable(decorate)]
            if dataclasses.is_dataclass(one.hint):
                fields = fields_of(one.hint).values()
                decorators = [made for field in fields for made in (field.option(), *field.shown.get("also", ()))]
            elif not decorators:
                by_place = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
                decorators = [one.argument() if by_place else one.option(), *one.shown.get("also", ())]
            taken[parameter.name] = one.hint, parameters_of(*decorators)

        @click.pass_context
        def run(ctx: click.Context, /, **given: Any) -> Any:
            arguments = {}
            for name, (hint, own) in taken.items():
                values = {str(p.name): given.pop(str(p.name)) for p in own if p.expose_value}
                if dataclasses.is_dataclass(hint):
                    arguments[name] = hint(**values)  # type: ignore[operator]
                else:
                    arguments[name] = values[name] if name in values else given_by_user(ctx, values)
            return function(**arguments)

        parameters = [*(p for _, own in taken.values() for p in own), *parameters_of(lambda _: function)]
        return click.Command(name, callback=run, params=parameters, help=text, epilog=end, short_help=short_help, **how)

    return make


def group(name: str, commands: Iterable[click.Command]) -> Callable[[Callable[..., Any]], click.Group]:
    """Return a decorator that makes a group of commands; the docstring of the function has its help and its end."""

    def make(function: Callable[..., Any]) -> click.Group:
        text, _, end = groups.parts_of(inspect.getdoc(function) or "")
        return groups.SuggestingGroup(name, {str(one.name): one for one in commands}, help=text, epilog=end)

    return make


def parameters_of(*decorators: Decorator) -> list[click.Parameter]:
    """Return the arguments and options that some decorators add."""

    def holder() -> None: ...

    found: Any = holder
    for decorate in reversed(decorators):
        found = decorate(found)
    return list(reversed(getattr(found, "__click_params__", [])))


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
        return FilePath()
    return str if str in parts else next((number for number in (float, int) if number in parts), str)


def completed(names: Iterable[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that complete the last name in a list."""
    begun, comma, last = incomplete.rpartition(",")
    return [f"{begun}{comma}{name}" for name in names if name.startswith(last)]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def together(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(options):
            function = add(function)
        return function

    return decorate


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


# -- options that several commands share -------------------------------------------------------------------------------


plugin_option: Decorator = click.option(
    "--plugin",
    multiple=True,
    type=FilePath(),
    metavar="FILE",
    help="A Python file that registers models or grammars; repeatable.",
    expose_value=False,
    callback=lambda ctx, parameter, files: registry.load_files(files),
)


def _draw_in(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    """Draw all plots of a command in a style, unless a function names another."""
    if name is not None:
        ctx.with_resource(plot_style(name))


STYLE: dict[str, Any] = {
    "type": click.Choice([*STYLES]),
    "help": "Sizes and fonts of plots, for a paper or for slides.",
}
_style: Decorator = click.option("--style", expose_value=False, callback=_draw_in, **STYLE)

FILE: dict[str, Any] = {"metavar": "FILE", "type": FilePath()}
OUT = {**FILE, "flags": ("-o", "--out"), "cls": Renamed, "old": ("--save",)}  # --save is the old name
PLOT = {**FILE, "cls": Renamed, "also": (_style,), "callback": lambda ctx, parameter, given: checked_plot(given)}
PlotFile = Annotated[Path | None, PLOT]  # of a command that can also draw


def written(what: str, suffixes: Iterable[str], **more: Any) -> dict[str, Any]:
    """Return the metadata of the option -o/--out whose file is checked.

    Args:
        what: as for `checked_file`.
        suffixes: as for `checked_file`.
        **more: further metadata.
    """

    def checked(ctx: click.Context, parameter: click.Parameter, given: str | None) -> Path | None:
        return None if given is None else checked_file(given, suffixes, what)

    return {**OUT, "callback": checked, **more}


Paths = Annotated[tuple[str, ...], {"type": FilePath()}]

_FORMAT = {"flags": ("--format",), "help": "Output format."}
Format = Annotated[str, _FORMAT, {"type": click.Choice(FORMATS)}]
ListFormat = Annotated[str, _FORMAT, {"type": click.Choice(LIST_FORMATS)}]
Spread = Annotated[str, {"type": click.Choice(SPREADS), "help": "Spread over seeds."}]
Quiet = Annotated[bool, {"flags": ("--quiet", "-q"), "help": "Print no progress and no remarks."}]
Verbose = Annotated[
    int,
    {"flags": ("--verbose", "-v"), "count": True, "type": None, "show_default": False},
    {"help": "Print how each model is stacked and why; -vv for the whole log."},
]


@dataclasses.dataclass(frozen=True)
class TableOutput:
    """How a command prints its tables. It also shows the log, and no progress if it is quiet."""

    format_: Format = "table"
    spread: Spread = "sd"
    quiet: Quiet = False

    def __post_init__(self) -> None:
        set_up_log(self.quiet)

    def print(self, *tables: BiasTable) -> None:
        """Print tables, one below the other."""
        print_tables(tables, self.format_)


@dataclasses.dataclass(frozen=True)
class PaperOutput(TableOutput):
    """How a command prints its tables, also for papers.

    Attributes:
        caption: caption that replaces the title; LaTeX if it has a backslash or a dollar sign.
        no_footnotes: no notes below the table.
    """

    caption: str = option("", metavar="TEXT")
    label: str = option("", metavar="NAME", help="Label in LaTeX.  [default: short, as in tab:acquire-5x10-soft]")
    no_footnotes: bool = False

    def for_paper(self, *tables: BiasTable) -> list[BiasTable]:
        """Return tables with the caption, the label and the footnotes of the options.

        Raises:
            InvalidSettingError: several tables would have one caption or label.
        """
        if len(tables) > 1 and (self.caption or self.label):
            raise InvalidSettingError(
                f"--caption and --label need exactly one table, not {len(tables)}: choose one, as in "
                "--where protocol=acquire."
            )
        look: dict[str, Any] = {"caption": self.caption, "label": self.label, "footnotes": not self.no_footnotes}
        return [dataclasses.replace(table, **look) for table in tables]

    def print(self, *tables: BiasTable) -> None:
        """Print tables, one below the other."""
        super().print(*self.for_paper(*tables))


@dataclasses.dataclass(frozen=True)
class RowsOutput(PaperOutput):
    """How a command prints and writes a measurement.

    Attributes:
        out: write the rows behind the table, as csv or parquet.
    """

    out: Annotated[Path | None, written("Rows are", FILES)] = None

    def show(self, found: Measurement) -> None:
        """Print the table of a measurement, and write its rows to the file that was asked for."""
        self.print(found.bias_table(self.spread))
        self.write(found.rows)

    def write(self, rows: pd.DataFrame) -> None:
        """Write rows to the file that was asked for."""
        if self.out is not None:
            path = save_rows(rows, self.out)
            if not self.quiet:
                note(f"Written: {path}.")


@dataclasses.dataclass(frozen=True)
class LanguageSizes:
    """The sizes of languages.

    Attributes:
        meanings: attributes x values; or the sizes of each, 10,4,2.
        vocab_size: number of tokens, V.
        word_length: tokens per word, w; or 1-4 for words of 1 to 4 tokens.
        draws: generators of languages: icy's, or as in the authors' program (Perkins21, Icy22).
    """

    meanings: str = option("5x10", metavar="AxK|K,K,...")
    vocab_size: int = 4
    word_length: str = option("4", metavar="w|w-w")
    draws: DrawsName = "icy"


Grammar = Annotated[str, {"completes": "grammars"}]
Permutations = Annotated[
    int | None,
    {"minimum": 1, "metavar": "M"},
    {"help": "Show each metric's chance level and p-value, from M permutations of the messages, such as 1000."},
]


ASSIGNMENTS: dict[str, Any] = {  # their names are different
    "multiple": True,
    "type": Assignment(),
    "metavar": "NAME=VALUE",
    "callback": lambda ctx, parameter, given: assigned(parameter.opts[0], given),
}
WHERE: dict[str, Any] = {**ASSIGNMENTS, "callback": lambda ctx, parameter, given: choice_of(given)}


def agents_where(example: str) -> dict[str, Any]:
    """Return the metadata of the option --where of commands that play with trained agents."""
    return {**WHERE, "help": f"Use only matching trained agents of a folder, as in seed=124 or {example}; repeatable."}


@dataclasses.dataclass(frozen=True)
class Selection:
    """Which results a command uses (see `icy.records.load.select`).

    Attributes:
        model: use only these models: names, wildcards; repeatable.
        grammar: use only these grammars: names, wildcards; repeatable.
        where: use only rows with this value in the long table, as in representation=gumb, or of this option, as in
            senders=3; repeatable.
        measure: measure for tables without a measure column: ratio to concat's updates, accuracy, or accuracy on
            held-out meanings.
    """

    model: tuple[str, ...] = option((), flags=("--model", "-m"), metavar="NAME")
    grammar: tuple[str, ...] = option((), flags=("--grammar", "-g"), metavar="NAME")
    # A model may be called null, and a grammar 1e5, so that all values are texts.
    where: Fields = option((), **{**WHERE, "type": Assignment(plain=True), "metavar": "COLUMN=VALUE"})
    measure: str | None = option(None, type=click.Choice(MEASURES))

    def read(self, results: Sequence[str]) -> Results:
        """Read results from folders or files, by default the folder icy-results, and return the selected ones."""
        from icy.experiments.results import read_results
        from icy.records.load import select

        found = read_results(results or ["icy-results"], self.measure)
        chosen: Results = select(found, self.model, self.grammar, self.where)
        return chosen
