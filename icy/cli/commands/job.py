"""Commands of registered kinds of jobs, made from their specs."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import click

from icy.cli.options import SHOWN, Assignment, Decorator, SpecOptions, given_by_user, together
from icy.cli.session import Output, print_result, run_command
from icy.config.specs import RUNNING
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.records.kinds import JobKind


def job_command(kind: JobKind) -> click.Command:
    """Return the command of a kind of job: an option per field of its spec, and those of every command that trains.

    Args:
        kind: any registered kind.
    """
    spec = kind.load_spec()
    options = SpecOptions(spec)
    hints = typing.get_type_hints(spec)
    own = [field for field in dataclasses.fields(spec) if field.name not in RUNNING]

    @click.command(kind.name, help=kind.description)
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
            print_result(result, output.format_, output.spread)

        return run_command(ctx, make_plan(asked), output, show, asked.track)

    return command


def _option(options: SpecOptions, field: dataclasses.Field[Any], hint: Any) -> Decorator:
    """Return the option of a field, by the type that it is annotated with."""
    needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    if hint is bool:
        return options.option(field.name, is_flag=True)
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, type(int | str)) else (hint,)
    origins = {typing.get_origin(part) or part for part in parts}
    if any(isinstance(one, type) and issubclass(one, Mapping) for one in origins):
        return options.option(field.name, multiple=True, type=Assignment(), required=needed)
    if field.name == "seeds":
        return options.seeds()
    if any(isinstance(one, type) and one is not str and issubclass(one, Iterable) for one in origins):
        return options.option(field.name, multiple=True, required=needed)
    number = next((one for one in (float, int) if one in origins and str not in origins), str)
    return options.option(field.name, type=number, required=needed)
