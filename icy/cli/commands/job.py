"""Commands of registered kinds of jobs, made from their specs."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import click

from icy.cli.groups import command as icy_command
from icy.cli.options import SHOWN, Assignment, Decorator, Several, SpecOptions, given_by_user, together
from icy.cli.session import Output, print_by_protocol, run_command
from icy.config.specs import RUNNING
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.experiments.sweep_file import OPTIONS
from icy.records.kinds import JobKind

SHORT = {field: f"--{name}" for name, field in OPTIONS.items()}  # other flags of fields


def job_command(kind: JobKind, name: str | None = None, epilog: str | None = None) -> click.Command:
    """Return the command of a kind of job: an option per field of its spec, and those of every command that trains.

    Args:
        kind: any registered kind.
        name: of the command, where it stands in a group; by default that of the kind.
        epilog: of its help, such as examples.
    """
    spec = kind.load_spec()
    options = SpecOptions(spec)
    hints = typing.get_type_hints(spec)
    own = [field for field in dataclasses.fields(spec) if field.name not in RUNNING]

    @icy_command(name or kind.name, help=kind.description, epilog=epilog)
    @together(*(_option(options, field, hints[field.name]) for field in own))
    @options.option("quick", is_flag=True)
    @options.option("plugin", multiple=True, type=click.Path(), metavar="FILE")
    @options.running()
    @options.runner()
    @SHOWN
    @click.pass_context
    def command(ctx: click.Context, /, **given: Any) -> int:
        output = Output.take(given)
        asked = spec.asked(**given_by_user(ctx, given))

        def show(result: ProbeResult) -> None:
            print_by_protocol(result, output.format_, output.spread)

        return run_command(ctx, make_plan(asked), output, show, asked.track)

    return command


def _option(options: SpecOptions, field: dataclasses.Field[Any], hint: Any) -> Decorator:
    """Return the option of a field, by the type that it is annotated with."""
    needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    parts = tuple(part for part in parts if part is not type(None))
    if bool in parts:
        flag = f"--{field.name.replace('_', '-')}"
        return options.option(field.name, f"{flag}/--no-{flag[2:]}" if field.default is True else flag, is_flag=True)
    if any(_is(part, Mapping) for part in parts):
        flags = dict.fromkeys((SHORT.get(field.name, ""), f"--{field.name.replace('_', '-')}"))
        return options.option(field.name, *filter(None, flags), multiple=True, type=Assignment(), required=needed)
    if any(typing.get_origin(part) is Literal for part in parts):
        words = [str(word) for part in parts for word in typing.get_args(part)]
        return options.option(field.name, type=click.Choice(words), required=needed)
    many = [part for part in parts if part is not str and _is(part, Iterable)]
    if many and int in parts:  # one number, several, or text, as `icy.config.specs.Numbers`
        return options.option(field.name, cls=Several, metavar="N[,N...]", required=needed)
    of_one = next(iter(typing.get_args(many[0])), str) if many else None
    numbers = [one for one in (float, int) if one in ((of_one,) if many else parts)]
    value = numbers[0] if numbers and str not in parts else str
    return options.option(field.name, type=value, multiple=bool(many), required=needed)


def _is(hint: Any, base: type) -> bool:
    """Whether an annotation is a class derived from `base`, with or without arguments."""
    origin = typing.get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, base)
