"""Commands of registered kinds of jobs, made from their specs."""

from __future__ import annotations

import click

from icy.cli.groups import command as icy_command
from icy.cli.options import OUTPUT_OPTIONS, given_by_user, spec_options
from icy.cli.session import OutputOptions, print_by_protocol, run_command
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.records.kinds import JobKind


def job_command(kind: JobKind, name: str | None = None, epilog: str | None = None) -> click.Command:
    """Return the command of a kind of job: one option per field of its spec, and the options of every training command.

    Args:
        kind: any registered kind.
        name: name of the command in a group; by default the kind's name.
        epilog: end of its help, such as examples.
    """
    spec = kind.load_spec()

    @icy_command(name or kind.name, help=kind.description, epilog=epilog)
    @spec_options(spec)
    @OUTPUT_OPTIONS
    @click.pass_context
    def command(ctx: click.Context, /, **given: object) -> int:
        output = OutputOptions.take(given)
        request = spec.asked(**given_by_user(ctx, given))

        def show(result: ProbeResult) -> None:
            print_by_protocol(result, output.format_, output.spread)

        return run_command(ctx, make_plan(request), output, show, request.track)

    return command
