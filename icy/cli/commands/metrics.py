"""`icy metrics`: measure how compositional languages are, given as files or as names of grammars."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import click

from icy.cli import options
from icy.cli.output import note, print_rows, save_figure
from icy.config.requests import option
from icy.core.errors import InvalidSettingError, quoted
from icy.core.registry import registry
from icy.core.surroundings import log_level
from icy.core.text import several, words
from icy.core.types import Fields
from icy.experiments import languages
from icy.languages.rule import MISSING
from icy.metrics.evaluation import DEFAULT_METRICS, ERRORS


@dataclass(frozen=True)
class FromGrammars(options.LanguageSizes):
    """The languages of a grammar.

    Attributes:
        seeds: number of seeds, from 123; or a list (1,2, 123-127).
    """

    seeds: int | str = option(3, cls=options.Several)


@dataclass(frozen=True)
class FromFiles:
    """How to read a file; None to detect it.

    Attributes:
        meaning_columns: columns, fields or keys with attribute values.
        message_columns: column with messages, or several with one token each.
        tokens: how to divide texts into tokens; by default icy detects it.
        eos: token that ends a message; by default only that of icy's languages.
        start: token that begins every message and is dropped.
        pad: token that pads messages; nan for missing values.
        one_hot: number of values of each attribute, for meanings that are one-hot vectors.
        weights: column with the number of times each row counts.
        argmax: whether messages are vectors of scores, as argmax tokens.
        missing: treatment of rows with missing values.  [default: refuse]
    """

    meaning_columns: str | None = option(None, cls=options.Several, metavar="A,B,...")
    message_columns: str | None = option(None, cls=options.Several, metavar="C,...")
    tokens: str | None = option(None, metavar="letters|spaces|whole|SEPARATOR")
    eos: str | None = option(None, metavar="TOKEN")
    start: str | None = option(None, metavar="TOKEN")
    pad: str | None = option(None, metavar="TOKEN")
    one_hot: str | None = option(None, cls=options.Several, metavar="K|K,L,...|no")
    weights: str | None = option(None, metavar="COLUMN")
    argmax: bool | None = None
    missing: str | None = option(None, type=click.Choice(MISSING))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the reader that are given."""
        chosen: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        for name in ("meaning_columns", "message_columns"):
            if name in chosen:
                chosen[name] = words(chosen[name])
        if (sizes := several(chosen.get("one_hot", "no"))) != ["no"]:
            if not all(isinstance(size, int) for size in sizes):
                raise InvalidSettingError(
                    "--one-hot must be a number of values, a list of numbers such as 4,3,2, or no; not "
                    f"{quoted(str(chosen['one_hot']))}."
                )
            chosen["one_hot"] = sizes[0] if len(sizes) == 1 else sizes
        if chosen.get("pad", "0").lower() in ("", "nan"):
            chosen["pad"] = ""
        return chosen


CONVENTIONS = {**options.ASSIGNMENTS, "flags": ("--set",), "metavar": "METRIC.CONVENTION=VALUE"}


@options.command("metrics")
@options.plugin_option
def metrics_command(
    sources: Annotated[tuple[str, ...], {"metavar": "FILE|RESULTS|GRAMMAR...", "completes": "files_and_grammars"}],
    *,
    metric: Annotated[
        tuple[str, ...], {"flags": ("--metric", "-m"), "metavar": "NAME", "completes": "metrics"}
    ] = DEFAULT_METRICS,
    conventions: Annotated[Fields | None, CONVENTIONS] = None,
    pairs: Annotated[str, {"metavar": "auto|all|ordered|published|NUMBER"}] = "auto",
    as_reported: bool = False,
    by_sample_size: bool = False,
    errors: Annotated[str | None, {"type": click.Choice(ERRORS)}] = None,
    resamples: Annotated[int, {"minimum": 2}] = 100,
    permutations: options.Permutations = None,
    drawn: FromGrammars,
    read: FromFiles,
    plot: options.PlotFile = None,
    output: options.RowsOutput,
) -> None:
    """Measure how compositional languages are: from files, or for grammars over seeds.

    A FILE is a language saved by icy, your own table (csv, tsv, parquet, feather, npz), JSON or JSON lines, tensors of
    PyTorch, or interactions or logs of EGG. RESULTS is a folder or pack with languages of games and end-to-end runs,
    and of saved senders (--keep-models). Any other argument is the name of a GRAMMAR, a chain or a pattern.

    Args:
        metric: metrics by name or pattern: topsim,posdis, or all; repeatable.
        conventions: set a convention, as in topsim.message=hamming; repeatable.
        pairs: pairs that topsim compares; auto: all up to 20000 rows, 1000000 drawn pairs above.
        as_reported: compute topsim of end-to-end runs as in their table: with its conventions, on the meanings of the
            last evaluation.
        by_sample_size: show cbm by the number of samples, as CBM24 figure 4: for segments of 100 rows (--set
            cbm.segment=N) and for all rows up to the end of each segment.
        errors: estimate a standard error for every metric, not only sampled ones.
        resamples: number of bootstrap resamples.
        plot: plot the values in the form of Icy22 figure 3.

    Examples:
      icy metrics shufdet --meanings 5x10 --seeds 5
      icy metrics all --meanings 3x5 --plot grammars.png
      icy metrics mine.csv --metric topsim --metric cbm --set topsim.message=hamming
      icy metrics interactions/epoch_50 --eos 0 --one-hot 10
      icy metrics concat rot --pairs all --format latex
      icy metrics kept
      icy metrics games --by-sample-size

    Your own table has one line per message: columns of attribute values, and a column `message` of letters (abba) or of
    tokens separated by spaces (12 7 0). Every row of a file counts; meanings may be missing or occur many times.
    icy prints how it reads a file, and refuses a file that it could read in two ways.
    """
    if not output.quiet:  # how files are read
        click.get_current_context().with_resource(log_level(logging.INFO, languages.__name__))
    names = [entry.name for entry in registry.match(metric, "metric")]
    chosen = _conventions(conventions or {}, ["cbm"] if by_sample_size else names)
    given = {**vars(drawn), **read.arguments()}
    if by_sample_size:
        if tuple(names) not in (("cbm",), DEFAULT_METRICS):
            raise InvalidSettingError("--by-sample-size only supports cbm: give `--metric cbm` and no other metric.")
        others = {"plot": plot, "permutations": permutations, "errors": errors, "as-reported": as_reported}
        if idle := [name for name, value in others.items() if value]:
            raise InvalidSettingError(f"--{idle[0]} has no effect with --by-sample-size; leave it out.")
        rows = languages.measure_sample_sizes(sources, conventions=chosen, **given)
        shown = rows.map(lambda value: f"{value:.3f}" if isinstance(value, float) else str(value))
        print_rows([str(name).replace("_", " ") for name in rows], shown.to_numpy().tolist(), output.format_)
        output.write(rows)
        return
    how: dict[str, Any] = {"errors": errors, "resamples": resamples, "permutations": permutations}
    how |= {"pairs": pairs, "as_reported": as_reported, "finished": output.show}
    found = languages.measure_languages(sources, names, conventions=chosen, **how, **given)
    if output.format_ in ("csv", "json") and not output.quiet:  # these formats have no room for it
        for sentence in found.bias:
            note(sentence)
    if plot is not None:
        save_figure(found.plot(), plot, output.quiet)


def _conventions(given: Fields, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the METRIC.CONVENTION=VALUE assignments by metric; with a single metric, its name may be left out."""
    chosen: dict[str, dict[str, object]] = {}
    for name, value in given.items():
        metric, dot, convention = name.partition(".")
        if not dot and len(names) == 1:
            metric, convention = names[0], name
        elif not dot:
            raise InvalidSettingError(f"Name the metric of the convention '{name}', as in topsim.{name}=...")
        chosen.setdefault(metric, {})[convention] = value
    return chosen
