"""`icy probe`: the main job at the command line."""

from __future__ import annotations

import dataclasses
import inspect
import logging
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from icy.planning import Plan, ProbeSpec, Row, make_plan
from icy.probing import run_plan
from icy.results import ProbeResult
from icy.splits import SPLITS
from icy.store import RERUN
from icy.training.protocols import PROTOCOLS
from icy.training.settings import ENGINES, PRESETS

from . import completion
from .display import LiveWatcher, PlainWatcher, ProgressWatcher, duration
from .errors import DONE, FAILED, Interrupted
from .options import Assignment, Decorator, Seeds
from .printing import note, print_rows, rich_table, stderr, stdout

if TYPE_CHECKING:
    from icy.analysis.tables import BiasTable
    from icy.estimating import Estimate

FORMATS = ("table", "markdown", "latex", "csv", "json")
SPREADS = ("sd", "sem", "ci95")  # of icy.analysis.tables, which is slow to import


EPILOG = """\b
Examples:
  icy probe --model HierZero:GRU --grammar shufdet
  icy probe -m 'HierZero:*' -m receiver/FC2L --seeds 5 -o bias
  icy probe -m FC1L --grammar rot --grammar rot+perm --quick
  icy probe -m RNNZero:LSTM --protocol budget --preset published --format latex
  icy probe -m FC2L -g all --protocol generalise --split combinations
  icy probe -m HierZero:GRU --hidden 64,128,256
  icy probe -m all --dry-run
  icy probe -m MyModel --plugin mine.py --option layers=3 --set learning_rate=0.002

\b
Concat is always trained, as the baseline. What has finished is kept in the results folder: after Ctrl-C, a crash,
or with more grammars or seeds, the same command trains only what is missing.
"""


def _described() -> dict[str, str]:
    """What ProbeSpec says of each of its attributes."""
    text = inspect.getdoc(ProbeSpec) or ""
    found = re.findall(r"^    (\w+): ((?:.*)(?:\n {8}.*)*)", text.partition("Attributes:")[2], re.MULTILINE)
    return {name: " ".join(description.split()) for name, description in found}


DESCRIPTIONS = _described()
FIELDS = {f.name: f for f in dataclasses.fields(ProbeSpec)}


def _spec_option(name: str, *flags: str, help: str = "", **more: Any) -> Decorator:
    """An option for a field of ProbeSpec, which has its default and says what it means."""
    default = FIELDS[name].default
    if default is dataclasses.MISSING or default == ():
        default = None
    if more.get("multiple") and default is not None:
        default = [default]
    flags = flags or (f"--{name.replace('_', '-')}",)
    shown = default is not None and default is not False
    return click.option(
        *flags, name, default=default, show_default=shown, help=_sentence(help or DESCRIPTIONS.get(name, "")), **more
    )


class Sizes(Seeds):
    """A hidden size, or several; `icy.planning.hidden_list` reads it."""

    name = "sizes"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _together(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


WHAT = _together(
    _spec_option(
        "model", "--model", "-m", multiple=True, required=True, metavar="NAME", shell_complete=completion.models
    ),
    _spec_option(
        "grammar",
        "--grammar",
        "-g",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.grammars,
        help='names, chains (rot+perm) or wildcards, repeatable; "all" is every grammar that the side can use.',
    ),
    _spec_option("protocol", type=click.Choice(list(PROTOCOLS)), metavar="|".join(PROTOCOLS)),
    _spec_option("meanings", metavar="AxK"),
    _spec_option("vocab_size", type=int, help="number of tokens, V."),
    _spec_option("word_length", type=int),
    _spec_option("seeds", type=Seeds(), help="how many, counted from 123 as in the papers, or which: 1,2 or 123-127."),
    _spec_option("target", type=float),
    _spec_option("cap", type=float),
    _spec_option("held_out", type=float),
    _spec_option("split", type=click.Choice(list(SPLITS)), metavar="|".join(SPLITS)),
    _spec_option(
        "hidden", type=Sizes(), metavar="E[,E...]", help="hidden size E, or several, each a row of its own: 64,128."
    ),
    _spec_option("representation", metavar="soft|gumb|discr"),
    _spec_option("preset", type=click.Choice(list(PRESETS)), metavar="|".join(PRESETS)),
    _spec_option("options", "--option", multiple=True, type=Assignment(), help="a further argument of the models."),
    _spec_option(
        "settings",
        "--set",
        multiple=True,
        type=Assignment(),
        help="a change to the preset's training settings, as in learning_rate=0.002.",
    ),
    _spec_option("quick", is_flag=True),
    _spec_option("plugin", multiple=True, type=click.Path(), metavar="FILE"),
)
HOW = _together(
    _spec_option("device"),
    _spec_option("workers", type=click.IntRange(min=1)),
    _spec_option("engine", type=click.Choice(ENGINES), metavar="|".join(ENGINES), help="how replicates are stacked."),
    _spec_option("out", "--out", "-o", type=click.Path(), metavar="FOLDER"),
    _spec_option(
        "rerun",
        type=click.Choice(list(RERUN)),
        metavar="|".join(RERUN),
        help="; ".join(f"{name}: {what}" for name, what in RERUN.items()) + ".",
    ),
)
SHOWN = _together(
    click.option("--dry-run", is_flag=True, help="Show what would be trained and an estimate of the time; do nothing."),
    click.option("--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True),
    click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Of the seeds."),
    click.option("--quiet", "-q", is_flag=True, help="No progress, no remarks."),
    click.option("--verbose", "-v", count=True, help="Say how each model is stacked, and why; -vv for all of the log."),
)


@click.command("probe", epilog=EPILOG)
@WHAT
@HOW
@SHOWN
@click.pass_context
def probe_command(
    ctx: click.Context, /, dry_run: bool, format_: str, spread: str, quiet: bool, verbose: int, **given: Any
) -> int:
    """Measure which grammars a model learns easily.

    Trains the model on every grammar, with several seeds, relative to concat; prints the bias table, and keeps all
    results in a folder.
    """
    console = stderr()
    _set_up_log(console, quiet, verbose)
    plan = make_plan(_spec(ctx, given))
    if dry_run:
        _print_plan(plan, format_, quiet)
        return DONE
    result = _run(ctx, plan, None if quiet else _watcher(console, verbose))
    _print_result(result, format_, spread)
    if not quiet:
        _print_remarks(plan, result)
    return _verdict(result)


def _spec(ctx: click.Context, given: Mapping[str, Any]) -> ProbeSpec:
    """The arguments that were given; all else is left to ProbeSpec."""
    chosen: dict[str, Any] = {
        name: dict(value) if name in ("options", "settings") else value
        for name, value in given.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    return ProbeSpec.asked(**chosen)


# -- running -----------------------------------------------------------------------------------------------------------


def _run(ctx: click.Context, plan: Plan, watcher: ProgressWatcher | None) -> ProbeResult:
    """Train what is missing, showing progress; Ctrl-C becomes a sentence."""
    started = time.time()
    try:
        if watcher is None or not plan.total:
            return run_plan(plan)
        with watcher.showing():
            return run_plan(plan, watcher)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_resume(plan, started, ctx)) from None


def _watcher(console: Console, verbose: int) -> ProgressWatcher:
    return (LiveWatcher if console.is_terminal else PlainWatcher)(console, engines=verbose > 0)


def _how_to_resume(plan: Plan, started: float, ctx: click.Context) -> str:
    total = sum(len(row.job.replicates) for row in plan.rows)
    return (
        f"Interrupted: {_finished(plan, started)} of {total} finished and kept in {plan.store.folder}. "
        f"To go on, run the same command again: {_same_command(ctx)}"
    )


def _finished(plan: Plan, started: float) -> int:
    """Replicates on file: those from before, and those filed since."""
    paths = [plan.store.path(row.job.key(r)) for row in plan.rows for r in row.missing]
    margin = 1.0  # second; file systems keep time less exactly than programs
    fresh = sum(path.exists() and path.stat().st_mtime >= started - margin for path in paths)
    return sum(len(row.filed) for row in plan.rows) + fresh


def _same_command(ctx: click.Context) -> str:
    """The command as typed, less `--rerun always`, which would repeat what has finished."""
    line = shlex.join(["icy", *ctx.find_root().meta["icy.words"]])
    return re.sub(r" --rerun[ =]always", "", line)


# -- afterwards --------------------------------------------------------------------------------------------------------


def _print_result(result: ProbeResult, format_: str, spread: str) -> None:
    console = stdout()
    if format_ != "table" or not console.is_terminal:
        click.echo(result.table("text" if format_ == "table" else format_, spread))
        return
    from icy.analysis.tables import bias_table
    from icy.long_table import to_long

    print_bias_table(bias_table(to_long(result.records), spread), console)


def print_bias_table(table: BiasTable, console: Console) -> None:
    """The bias table on a terminal: turned on its side, or cut into several, where it is too wide."""
    console.print(Text(table.title, style="bold"))
    head, *rows = table.texts()
    whole = [head, *rows]
    turned = [list(column) for column in zip(*whole, strict=True)]
    if _width(whole) <= console.width:
        blocks = [whole]
    elif _width(turned) <= console.width:
        blocks = [turned]
    else:
        blocks = _cut(whole, len(table.labels), console.width)
    for head, *body in blocks:
        console.print(rich_table(head, body, numbers=range(1, len(head))))
    for remark in table.notes:
        console.print(Text(remark, style="dim"))


def _width(lines: Sequence[Sequence[str]]) -> int:
    """Of a table as rich prints it: three spaces to a column."""
    return sum(max(map(len, column)) + 3 for column in zip(*lines, strict=True))


def _cut(lines: list[list[str]], labels: int, room: int) -> list[list[list[str]]]:
    """Several tables that each have the model and as many further columns as there is room for."""
    blocks: list[list[int]] = [[0]]
    for place in range(1, len(lines[0])):
        if len(blocks[-1]) > 1 and _width(_columns(lines, [*blocks[-1], place])) > room:
            blocks.append([0])
        blocks[-1].append(place)
    return [_columns(lines, block) for block in blocks]


def _columns(lines: list[list[str]], places: Sequence[int]) -> list[list[str]]:
    return [[line[i] for i in places] for line in lines]


def _print_remarks(plan: Plan, result: ProbeResult) -> None:
    total = sum(len(row.job.replicates) for row in plan.rows)
    folder = plan.store.folder
    if not plan.total:
        lacking = total - len(result.records)
        rest = f"; {lacking} not on file, since --rerun never" if lacking else ""
        note(f"Nothing to train: {len(result.records)} of {total} on file in {folder}{rest}.")
    elif result.paths:
        note(
            f"Written: {', '.join(str(path) for path in result.paths)}; one file per replicate in {folder / 'records'}."
        )
    if result.failures:
        note(
            f"{len(result.failures)} of {len(result.records)} replicates failed; "
            "the same command with --rerun failed tries them again."
        )


def _verdict(result: ProbeResult) -> int:
    return FAILED if result.failures else DONE


# -- before ------------------------------------------------------------------------------------------------------------

PLAN_HEADINGS = ["model", "hidden size", "parameters", "to train", "1000 updates", "in all"]
RAW_HEADINGS = [
    "model", "hidden_size", "parameters", "parameters_published", "to_train", "on_file", "grammars", "update_seconds",
    "least_seconds", "most_seconds",
]  # fmt: skip


def _print_plan(plan: Plan, format_: str, quiet: bool) -> None:
    """The rows of a plan, what each would take, and on what that estimate rests."""
    from icy.estimating import estimate  # imports torch

    if not quiet and plan.total:
        note("Timing a few updates of every model ...")
    estimates = {e.row.job.row: e for e in estimate(plan)}
    if format_ in ("csv", "json"):
        print_rows(RAW_HEADINGS, [_raw_cells(row, estimates.get(row.job.row)) for row in plan.rows], format_)
    else:
        lines = [PLAN_HEADINGS, *(_plan_cells(row, estimates.get(row.job.row)) for row in plan.rows)]
        if len(plan.hidden_sizes) == 1:
            lines = [[model, *rest] for model, _, *rest in lines]
        print_rows(lines[0], lines[1:], "markdown" if format_ == "latex" else format_)
    if not quiet:
        _explain_estimate(plan, list(estimates.values()))


def _grammars(row: Row) -> list[str]:
    return list(dict.fromkeys(r.grammar for r in row.job.replicates))


def _raw_cells(row: Row, found: Estimate | None) -> list[Any]:
    parameters, grammars = row.job.parameters, " ".join(_grammars(row))
    times = [found.update_seconds, found.least, found.most] if found else [None, None, None]
    counts = [parameters["true"], parameters["published"], len(row.missing), len(row.filed)]
    return [row.name, row.job.task.hidden_size, *counts, grammars, *times]


def _plan_cells(row: Row, found: Estimate | None) -> list[str]:
    true, published = row.job.parameters["true"], row.job.parameters["published"]
    count = f"{true}" if true == published else f"{true}/{published}"
    replicates = f"{len(row.missing)} of {len(row.job.replicates)}"
    times = [duration(1000 * found.update_seconds), _between(found.least, found.most)] if found else ["-", "-"]
    return [row.name, f"{row.job.task.hidden_size}", count, replicates, *times]


def _explain_estimate(plan: Plan, estimates: Sequence[Estimate]) -> None:
    for side, names in {row.job.task.side: _grammars(row) for row in plan.rows}.items():
        note(f"Grammars of a {side}: {', '.join(names)}.")
    if any(row.job.parameters["true"] != row.job.parameters["published"] for row in plan.rows):
        note("Parameters are the trained ones, and after the stroke the published count.")
    if not estimates:
        note(f"Nothing to train: {sum(len(row.filed) for row in plan.rows)} on file in {plan.store.folder}.")
        return
    least, most = sum(e.least for e in estimates), sum(e.most for e in estimates)
    assumed = ", ".join(dict.fromkeys(f"{e.concat_steps:.0f}" + " (on file)" * e.known for e in estimates))
    workers = f"{plan.workers} worker{'s' * (plan.workers > 1)}"
    note(f"{plan.total} replicates on {plan.device} with {workers}: {_between(least, most)}. Nothing was written.")
    note(
        f"This is an estimate. The time of 1000 updates is that of one replicate; the whole supposes that concat takes "
        f"{assumed} updates, and every other grammar from as many to {plan.rows[0].job.protocol.cap:g} times as many."
    )


def _between(least: float, most: float) -> str:
    low, high = duration(least), duration(most)
    return f"about {low}" if low == high else f"{low} to {high}"


# -- log ---------------------------------------------------------------------------------------------------------------


class _ConsoleLog(logging.Handler):
    """Prints icy's log above the progress display."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        style = "yellow" if record.levelno >= logging.WARNING else "dim"
        self._console.print(Text(record.getMessage(), style=style), soft_wrap=True)


def _set_up_log(console: Console, quiet: bool, verbose: int) -> None:
    log = logging.getLogger("icy")
    for handler in [h for h in log.handlers if isinstance(h, _ConsoleLog)]:
        log.removeHandler(handler)
    log.addHandler(_ConsoleLog(console))
    log.setLevel(logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
