"""The command line. Each command is imported on first use, so that help and lists appear at once."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from icy.core.errors import IcyError, UnknownNameError
from icy.core.processes import hides_interrupt, interrupt_text
from icy.version import __version__

from .exit_codes import Interrupted, exit_code, exit_code_of, interruptible, mend_streams, same_command
from .groups import LazyGroup, words_after

# name: (module, help)
COMMANDS = {
    "probe": ("training", "Measure which grammars a model learns easily."),
    "sweep": ("training", "Probe many models under many settings."),
    "search": ("search", "Search a space of models for those with wanted biases."),
    "e2e": ("training", "Train a sender and a receiver together."),
    "iterate": ("training", "Pass languages from learner to learner."),
    "context": ("context", "Measure which grammars a language model learns in context."),
    "learner": ("context", "Train a small network that learns languages in context."),
    "metrics": ("metrics", "Measure how compositional languages are."),
    "plot": ("results", "Draw results: heat maps, bars, curves and more."),
    "games": ("games", "Train and evaluate agents of multi-target games."),
    "s2b": ("s2b", "Play and measure meta-referential games."),
    "study": ("study", "Run the study with people, and simulate its players."),
    "report": ("results", "Write results as one HTML file."),
    "table": ("table", "Print results as a table, next to published or other results."),
    "compare": ("table", "Show the differences between two results, seed by seed."),
    "factors": ("factors", "Show which settings matter: shares of the variance of results."),
    "power": ("factors", "Compute the number of seeds that distinguishes two models."),
    "reproduce": ("reproduce", "Measure a published table again."),
    "pack": ("results", "Pack complete results into one file that icy can read and resume."),
    "atlas": ("results", "Show icy's measurements of its own models."),
    "list": ("list", "List models, grammars, metrics, players, protocols, cells, presets, jobs or published tables."),
    "show": ("list", "Show example messages of a grammar, and its facts."),
    "generate": ("list", "Write the language of a grammar to a file."),
    "check": ("check", "Check a plug-in against its contract."),
    "doctor": ("check", "Report versions, devices, memory and plug-ins."),
}

TRAINING = (
    "probe",
    "sweep",
    "search",
    "e2e",
    "iterate",
    "context",
    "learner",
    "reproduce",
    "train",
    "recall",
    "simulate",
    "acquire",
)


class Main(LazyGroup):
    """The command `icy`, with the commands of registered kinds of jobs."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        return super().get_command(ctx, cmd_name) or _registered_command(ctx, cmd_name)

    def unknown_command(self, ctx: click.Context, name: str) -> UnknownNameError:
        """Return the error for an unknown command, which may be of a plug-in."""
        from icy.core.registry import registry

        return UnknownNameError(f"{super().unknown_command(ctx, name)} {registry.plugin_hint('job')}")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the words as typed, for the advice on how to resume."""
        ctx.meta["icy.words"], ctx.meta["icy.began"] = list(args), time.monotonic()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Import and run a command. An interrupt before or after its training becomes a sentence, too."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            if isinstance(error, KeyboardInterrupt) and error.args and not interrupt_text(error):
                raise Interrupted(str(error)) from None
            expected = isinstance(error, (click.ClickException, click.exceptions.Exit, IcyError))
            words, kept = ctx.meta["icy.words"], interrupt_text(error)
            if expected or not hides_interrupt(error) or not (kept or {*words[:2]} & {*TRAINING}):
                raise
            kept = kept or ("nothing was trained" if "--dry-run" in words else "finished replicates are kept")
            raise Interrupted(f"{kept}. To continue, run the same command again: {same_command(ctx)}") from None

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command line. A user's mistake becomes a sentence, and the result an exit code."""

        def run() -> Any:
            return super(Main, self).main(*args, standalone_mode=False, **extra)  # type: ignore[call-overload]

        if not standalone_mode:
            return run()
        whole = not args and "args" not in extra  # then these words are the process's own
        if whole:
            mend_streams()
        with interruptible(whole):
            try:
                code = exit_code_of(run)
            except KeyboardInterrupt:  # after the command ended, as printed
                code = exit_code()
        return sys.exit(code)


def _registered_command(ctx: click.Context | None, name: str) -> click.Command | None:
    """Return the command of a kind of job that a plug-in registers, from a package or a --plugin file."""
    from icy.core.entry import JOB
    from icy.core.registry import registry

    for file in words_after(ctx.meta.get("icy.words", []) if ctx else [], "--plugin"):
        if file:
            registry.load_file(file)
    if registry.find(JOB, name) is None:
        return None
    from icy.records.kinds import job_kind

    from .session import job_command

    return job_command(job_kind(name))


@click.command(
    cls=Main,
    commands=COMMANDS,
    package=f"{__name__}.commands",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="icy", message="%(prog)s %(version)s")
def main() -> None:
    """Which composition functions does an architecture learn easily, and which are hard?

    icy makes artificial languages with known composition (grammars), trains sender and receiver architectures on
    them, and answers with a bias table: one row per model, one column per grammar.

    Examples:
      icy probe --model HierZero:GRU --grammar shufdet
      icy list models '*GRU'
      icy show rot --meanings 3x10

    Completion of commands, options and names, in bash (the same for zsh and fish):
      eval "$(_ICY_COMPLETE=bash_source icy)"
    """
