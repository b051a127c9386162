"""`icy search`: search a space of models for those with wanted biases."""

from __future__ import annotations

from typing import Annotated, Any

import click

from icy.cli.exit_codes import DONE, FAILED
from icy.cli.options import command, request_options
from icy.cli.output import note, print_rows
from icy.cli.session import Output, print_plan
from icy.core.text import counted
from icy.experiments.requests import SearchRequest
from icy.experiments.search.result import MOST_SHOWN, SearchResult
from icy.experiments.search.search import first_plan, read_search, run_search
from icy.experiments.search.setup import SearchSetup, set_up
from icy.experiments.trackers import watching

FIRST = ("model", "side", "space", "minimize", "maximize", "trials", "sampler", "sampler_seed", "batch", "keep")
SECOND = ("finalists", "new_seeds", "larger", "baselines", "people", "instances", "winner")
SEARCH = request_options(
    SearchRequest,
    (*FIRST, *SECOND),
    without=("rungs", "word_seeds"),
    hidden="hidden size E, or several to choose from.",
)


@command("search")
def search_command(
    file: Annotated[str | None, {"type": click.Path()}] = None,
    *,
    chosen: Annotated[dict[str, Any], SEARCH],
    output: Output,
) -> int:
    """Search a space of models for those with wanted biases.

    Takes the options of `icy probe`, which hold for every trial. The command line overrides FILE.

    Examples:
      icy search -m 'sender/RNN*:GRU' --minimize ratio:shufdet --trials 10 -o found
      icy search -m FC2L --side sender --hidden 32,64,128 --minimize ratio:perm --minimize parameters -o found
      icy search search.toml --dry-run
      icy search search.toml

    A file in TOML (or YAML) holds the same options by name; each [[rungs]] has settings of its own:
      model = "sender/*:GRU"
      minimize = "ratio:shufdet"
      maximize = "ratio:hol"
      [[rungs]]
      meanings = "3x4"
      seeds = 1
      [[rungs]]
      meanings = "5x10"
      seeds = 3

    An objective is ratio:GRAMMAR, accuracy:GRAMMAR, updates, seconds, parameters or people, or a difference such as
    "ratio:hol - ratio:shufdet". After Ctrl-C or a crash, the same command continues with the same trials. The report is
    in search.md of the results folder, and the best model in winner.py, for --plugin.
    """
    setup = set_up(SearchRequest.asked(**{**(read_search(file) if file else {}), **chosen}))
    if output.dry_run:
        return _dry_run(setup, output)
    result = run_search(setup, lambda: watching(output.watcher(), setup.request.track, setup.request.out))
    _show(result, output)
    return DONE if any(trial.last.known for trial in result.trials) else FAILED


def _dry_run(setup: SearchSetup, output: Output) -> int:
    plan, trials = first_plan(setup)
    print_plan(plan, output.format_, output.quiet)
    if not output.quiet:
        rest = (
            f"These are the first {trials} of {counted(setup.trials, 'trial')}"
            if trials < setup.trials
            else "All trials"
        )
        note(f"{rest}, from a space of {counted(setup.space.size, 'combination')}.")
    return DONE


def _show(result: SearchResult, output: Output) -> None:
    whole = output.format_ in ("csv", "json")
    print_rows(*result.trial_table(None if whole else MOST_SHOWN), output.format_)
    if whole:
        return
    tables = [result.importance_table()] if any(result.importances) else []
    tables += [result.finalist_table()] if result.finalists else []
    for table in tables:
        click.echo()
        print_rows(*table, output.format_)
    if (first := result.trials[0]).last.problem and not any(trial.last.known for trial in result.trials):
        note(f"No trial has a value. Trial {first.number}: {first.last.problem}")
    if not output.quiet:
        note(f"Written: {', '.join(str(path) for path in result.paths)}.")
