"""`icy check`: run the contract of plug-ins, as small named checks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from icy.cli import groups
from icy.cli.exit_codes import DONE, FAILED
from icy.cli.groups import command
from icy.cli.options import REPRESENTATIONS, Several, plugin_option
from icy.cli.output import stdout
from icy.core.registry import SIDES, Entry
from icy.core.text import counted
from icy.models.creation import cannot_use
from icy.training.combinations import along

if TYPE_CHECKING:
    from icy.testing import CheckResult


SECONDS = 30  # for the checks of one plug-in, in all representations together, without --full

EPILOG = """\b
Examples:
  icy check sender/FC2L
  icy check MyModel --plugin mine.py
  icy check 'HierZero:*' rot --quiet
  icy check cell/GRU metric/topsim speaker/posdis
  icy check all --representation all --quiet --full

icy.testing.parametrize_with_checks makes each check a test of pytest.
"""


@command("check", epilog=EPILOG)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=groups.checkable)
@plugin_option
@click.option(
    "--representation",
    cls=Several,
    metavar=f"{'|'.join(REPRESENTATIONS)}|all[,...]",
    help="Representation in which models are trained; by default the first that each model supports.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only failures, and one line per name.")
@click.option(
    "--full",
    is_flag=True,
    help=f"Run all checks, even if they take more than {SECONDS} s for a name.",
)
def check_command(names: tuple[str, ...], representation: str | None, quiet: bool, full: bool) -> int:
    """Check that models, cells, grammars, metrics, players, text models, cores, worlds and perceptions keep their
    contract: shapes, seeds, gradients, and so on.

    Each check passes, fails with the reason, or is excused because it does not apply. Exits with 1 if any failed. The
    checks run on one thread. Without --full, the checks that remain after 30 s for a name are left out.
    """
    from icy.core.representations import get_representation  # imports torch
    from icy.testing.contracts import matching

    console = stdout()
    entries = matching(names)
    representations = along("representation", representation) if representation is not None else []
    for name in representations:
        get_representation(name)  # an unknown name is an error that lists the known names
    if len(entries) == 1 and not _used(entries[0], representations):
        raise cannot_use(entries[0], str(representation))
    passed = [_check(entry, _used(entry, representations), console, quiet, full) for entry in entries]
    return DONE if all(passed) else FAILED


def _used(entry: Entry, names: Sequence[str]) -> Sequence[str | None]:
    """Return the representations to check an entry in; None for the entry's own choice."""
    if entry.kind not in SIDES or not names:
        return [None]
    return [name.lower() for name in names if entry.works_with(name.lower())]


def _check(entry: Entry, used: Sequence[str | None], console: Console, quiet: bool, full: bool) -> bool:
    """Run and print the checks of one plug-in in some representations, and return whether all passed."""
    end, passed = time.monotonic() + SECONDS, True
    for number, representation in enumerate(used):
        left = (end - time.monotonic()) / (len(used) - number)  # equal shares of the remaining time
        passed &= _check_in(entry, representation, console, quiet, None if full else left)
    return passed


def _check_in(entry: Entry, representation: str | None, console: Console, quiet: bool, seconds: float | None) -> bool:
    """Run and print the checks of one plug-in in one representation, and return whether all passed."""
    from icy.testing import check
    from icy.testing.runner import message_or_reference

    failures: dict[str, str] = {}
    label = entry.qualified if representation is None else f"{entry.qualified} ({representation})"

    def report(result: CheckResult) -> None:
        message = result.message
        if not result.passed:
            failures[result.name] = message
            message = message_or_reference(failures, result.name)
        if not (quiet and result.passed):
            console.print(_line(result, message))

    if not quiet:
        console.print(Text.assemble((entry.qualified, "bold"), "  ", entry.description))
    with console.status("") as status:  # on a terminal

        def begin(name: str, number: int, count: int) -> None:
            status.update(Text(f"{label}: {name}, check {number} of {count}"))

        setting: dict[str, Any] = {} if representation is None else {"representation": representation}
        results = check(entry, raise_on_failure=False, report=report, begin=begin, seconds=seconds, **setting)
    console.print(_summary(label, results, seconds))
    return not failures


def _line(result: CheckResult, message: str) -> Text:
    word, style = ("pass", "green") if result.passed else ("FAIL", "bold red")
    if result.passed and result.excused:
        word, style = "skip", "yellow"
    line = Text.assemble("  ", (word, style), f"  {result.name}")
    return line.append(f"  {message}", style="dim" if result.passed else "") if message else line


def _summary(name: str, results: list[CheckResult], seconds: float | None) -> Text:
    """Return the result of all checks in a line, with the checks that were left out."""
    failed = sum(not r.passed for r in results)
    run = [r for r in results if not r.left_out]
    if failed:
        line = Text(f"{name} fails {failed} of {counted(len(run), 'check')}.", "bold red")
    elif not run:
        line = Text(f"{name} was not checked.", "yellow")
    else:
        line = Text(f"{name} keeps its contract: {counted(len(run), 'check')}.", "green")
    if len(run) == len(results):
        return line
    rest = results[len(run) :]
    left_out = f"{counted(len(rest), 'check')} from {rest[0].name} on left out after {seconds:.2g} s; --full runs them."
    return Text.assemble(line, " ", (left_out, "yellow"))
