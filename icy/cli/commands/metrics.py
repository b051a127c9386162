"""`icy metrics`: measure how compositional languages are, given as files or as names of grammars."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from icy.cli import groups
from icy.cli.exit_codes import Interrupted
from icy.cli.groups import command
from icy.cli.metric_sources import MetricSource, as_reported_sources, has_start, metric_sources, rename_duplicates
from icy.cli.options import (
    DRAWS,
    FORMATS,
    MEANINGS,
    SPREADS,
    WORD_LENGTH,
    Assignment,
    Assignments,
    Several,
    assigned,
    file_option,
    permutations_option,
    plot_option,
    plugin_files,
    together,
)
from icy.cli.output import (
    checked_plot,
    checked_rows_file,
    joined,
    note,
    paper_options,
    print_rows,
    print_table,
    save_figure,
    stderr,
    write_rows,
)
from icy.cli.session import set_up_log
from icy.core.checks import number_or_text
from icy.core.errors import InvalidSettingError, quoted
from icy.core.progress import silence, track
from icy.core.registry import registry
from icy.core.streams import DrawsName
from icy.core.surroundings import log_level
from icy.core.text import listed
from icy.languages.rule import MISSING
from icy.metrics import Table, cbm_by_sample_size, evaluate
from icy.metrics.evaluation import DEFAULT_METRICS, ERRORS, Conventions, values_by_chance
from icy.metrics.topographic.topsim import PAIRS

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable


# -- `icy metrics --by-sample-size`: concept best matching by the number of samples ------------------------------------


METRIC = "cbm"


def require_cbm(names: Sequence[str], others: Mapping[str, object]) -> None:
    """Check that the only metric is cbm, and that no option without effect is given.

    Args:
        names: names of the metrics; the default metrics are accepted, and only cbm is measured.
        others: values of options without effect, by name; false values for options that are not given.

    Raises:
        InvalidSettingError: another metric, or an option without effect.
    """
    if tuple(names) not in ((METRIC,), DEFAULT_METRICS):
        raise InvalidSettingError("--by-sample-size only supports cbm: give `--metric cbm` and no other metric.")
    if given := [name for name, value in others.items() if value]:
        raise InvalidSettingError(f"--{given[0]} has no effect with --by-sample-size; leave it out.")


def show_sample_sizes(
    tables: Iterable[tuple[str, int | None, Table, Mapping[str, Any]]], format_: str, target: Path | None, quiet: bool
) -> None:
    """Print cbm for each segment of rows and for all rows up to its end, and write the scores to a file.

    Args:
        tables: for each language its name, its seed, its table and the arguments of `cbm_by_sample_size`.
        format_: format of the output.
        target: a csv or parquet file, or None.
        quiet: if true, no line about the file is printed.

    Raises:
        InvalidSettingError: fewer rows than one segment, or an error of cbm.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for name, seed, table, conventions in tables:
        sizes = cbm_by_sample_size(table, **conventions)
        frames.append(sizes.assign(language=name, language_seed=-1 if seed is None else seed))
    rows = pd.concat(frames, ignore_index=True)
    if rows["language_seed"].eq(-1).all():
        rows = rows.drop(columns="language_seed")
    first = [name for name in ("language", "language_seed") if name in rows]
    rows = rows[[*first, *rows.columns.difference(first, sort=False)]]
    shown = rows.map(lambda value: f"{value:.3f}" if isinstance(value, float) else str(value))
    print_rows([str(name).replace("_", " ") for name in rows], shown.to_numpy().tolist(), format_)
    write_rows(rows, target, quiet)


EXACT_ROWS = 20_000  # limit for comparing all pairs by default, which takes seconds
DRAWN_PAIRS = 1_000_000  # above this limit; the standard error is then at most about 0.001

STARTED = "V includes the start symbol, which the agents used; train them with --symbols V to exclude it"

EPILOG = """\b
Examples:
  icy metrics shufdet --meanings 5x10 --seeds 5
  icy metrics all --meanings 3x5 --plot grammars.png
  icy metrics mine.csv --metric topsim --metric cbm --set topsim.message=hamming
  icy metrics interactions/epoch_50 --eos 0 --one-hot 10
  icy metrics concat rot --pairs all --format latex
  icy metrics kept
  icy metrics games --by-sample-size

\b
Your own table has one line per message: columns of attribute values, and a column `message` of letters (abba) or of
tokens separated by spaces (12 7 0). Every row of a file counts; meanings may be missing or occur many times.
icy prints how it reads a file, and refuses a file that it could read in two ways.
"""

FROM_FILES = together(
    click.option(
        "--meaning-columns", cls=Several, metavar="A,B,...", help="Columns, fields or keys with attribute values."
    ),
    click.option(
        "--message-columns", cls=Several, metavar="C,...", help="Column with messages, or several with one token each."
    ),
    click.option(
        "--tokens",
        metavar="letters|spaces|whole|SEPARATOR",
        help="How to divide texts into tokens; by default icy detects it.",
    ),
    click.option("--eos", metavar="TOKEN", help="Token that ends a message; by default only that of icy's languages."),
    click.option("--start", metavar="TOKEN", help="Token that begins every message and is dropped."),
    click.option("--pad", metavar="TOKEN", help="Token that pads messages; nan for missing values."),
    click.option(
        "--one-hot",
        cls=Several,
        metavar="K|K,L,...|no",
        help="Number of values of each attribute, for meanings that are one-hot vectors.",
    ),
    click.option("--weights", metavar="COLUMN", help="Column with the number of times each row counts."),
    click.option(
        "--argmax/--no-argmax", default=None, help="Whether messages are vectors of scores, as argmax tokens."
    ),
    click.option(
        "--missing", type=click.Choice(MISSING), help="Treatment of rows with missing values.  [default: refuse]"
    ),
)
FROM_GRAMMARS = together(
    click.option("--meanings", default="5x10", show_default=True, **MEANINGS),
    click.option("--vocab-size", type=int, default=4, show_default=True, help="Number of tokens, V."),
    click.option("--word-length", metavar="w|w-w", default="4", show_default=True, help=WORD_LENGTH),
    click.option("--draws", type=click.Choice(get_args(DrawsName)), default="icy", show_default=True, help=DRAWS),
    click.option(
        "--seeds",
        cls=Several,
        default=3,
        show_default=True,
        help="Number of seeds, from 123; or a list (1,2, 123-127).",
    ),
)
MEASURED = together(
    click.option(
        "--metric",
        "-m",
        "metric",
        multiple=True,
        default=DEFAULT_METRICS,
        show_default=True,
        metavar="NAME",
        shell_complete=groups.metrics,
        help="Metrics by name or pattern: topsim,posdis, or all; repeatable.",
    ),
    click.option(
        "--set",
        "conventions",
        multiple=True,
        type=Assignment(),
        metavar="METRIC.CONVENTION=VALUE",
        help="Set a convention, as in topsim.message=hamming; repeatable.",
    ),
    click.option(
        "--pairs",
        default="auto",
        show_default=True,
        metavar="auto|all|ordered|published|NUMBER",
        help=f"Pairs that topsim compares; auto: all up to {EXACT_ROWS} rows, {DRAWN_PAIRS} drawn pairs above.",
    ),
    click.option(
        "--as-reported",
        is_flag=True,
        help="Compute topsim of end-to-end runs as in their table: with its conventions, on the meanings of the last "
        "evaluation.",
    ),
    click.option(
        "--by-sample-size",
        is_flag=True,
        help="Show cbm by the number of samples, as CBM24 figure 4: for segments of 100 rows (--set cbm.segment=N) and "
        "for all rows up to the end of each segment.",
    ),
    click.option(
        "--errors", type=click.Choice(ERRORS), help="Estimate a standard error for every metric, not only sampled ones."
    ),
    click.option(
        "--resamples", type=click.IntRange(min=2), default=100, show_default=True, help="Number of bootstrap resamples."
    ),
    permutations_option,
)
OUTPUT_OPTIONS = together(
    paper_options,
    click.option(
        "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format."
    ),
    click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds."),
    plot_option("Plot the values in the form of Icy22 figure 3."),
    file_option("Write a row per language and seed, as csv or parquet."),
    plugin_files,
    click.option("--quiet", "-q", is_flag=True, help="Print no progress and no remarks."),
)


@command("metrics", epilog=EPILOG)
@click.argument(
    "sources", metavar="FILE|RESULTS|GRAMMAR...", nargs=-1, required=True, shell_complete=groups.files_and_grammars
)
@MEASURED
@FROM_GRAMMARS
@FROM_FILES
@OUTPUT_OPTIONS
def metrics_command(
    sources: tuple[str, ...],
    metric: tuple[str, ...],
    conventions: Assignments,
    pairs: str,
    as_reported: bool,
    by_sample_size: bool,
    errors: str | None,
    resamples: int,
    permutations: int | None,
    format_: str,
    spread: str,
    plot: str | None,
    out: str | None,
    plugin: tuple[str, ...],
    quiet: bool,
    **given: object,
) -> None:
    """Measure how compositional languages are: from files, or for grammars over seeds.

    A FILE is a language saved by icy, your own table (csv, tsv, parquet, feather, npz), JSON or JSON lines, tensors of
    PyTorch, or interactions or logs of EGG. RESULTS is a folder or pack with languages of games and end-to-end runs,
    and of saved senders (--keep-models). Any other argument is the name of a GRAMMAR, a chain or a pattern.
    """
    set_up_log(stderr(), quiet, 0)
    # No warnings: the notes below the results list metrics that cannot score a table.
    click.get_current_context().with_resource(log_level(logging.ERROR, "icy.metrics.evaluation"))
    registry.load_files(plugin)
    figure, target = None if plot is None else checked_plot(plot), checked_rows_file(out)
    names = [entry.name for entry in registry.match(metric, "metric")]
    chosen = _conventions(conventions, ["cbm"] if by_sample_size else names)
    if by_sample_size:
        require_cbm(names, {"plot": plot, "permutations": permutations, "errors": errors, "as-reported": as_reported})
    todo = [source for name in dict.fromkeys(sources) for source in metric_sources(name, given, quiet)]
    if as_reported:
        todo, chosen = as_reported_sources(todo, names, chosen)
    todo = rename_duplicates(todo)
    if by_sample_size:
        read = ((source.name, source.seed, source.table()) for source in todo)
        every = ((*one, _with_pairs(chosen, ["cbm"], pairs, one[2]).get("cbm", {})) for one in read)
        show_sample_sizes(every, format_, target, quiet)
        return
    values = _Values(names)
    try:
        values.measure(todo, chosen, pairs, quiet, errors=errors, resamples=resamples, permutations=permutations)
    except KeyboardInterrupt:
        if values.rows:
            print_table(values.table(spread), format_)
        raise Interrupted(f"{len(values.rows)} of {len(todo)} languages are measured.") from None
    bias = values.bias()
    print_table(values.table(spread, bias), format_)
    if format_ in ("csv", "json") and not quiet:  # these formats have no room for it
        for sentence in bias:
            note(sentence)
    values.write(target, figure, quiet)


def _conventions(given: Assignments, names: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the METRIC.CONVENTION=VALUE assignments by metric; with a single metric, its name may be left out."""
    chosen: dict[str, dict[str, object]] = {}
    for name, value in assigned("--set", given).items():
        metric, dot, convention = name.partition(".")
        if not dot and len(names) == 1:
            metric, convention = names[0], name
        elif not dot:
            raise InvalidSettingError(f"Name the metric of the convention '{name}', as in topsim.{name}=...")
        chosen.setdefault(metric, {})[convention] = value
    return chosen


def _with_pairs(chosen: Conventions, names: Sequence[str], pairs: str, table: Table) -> dict[str, dict[str, object]]:
    """Return the conventions, including the pairs of topsim and the concepts of CBM, which depend on the table."""
    own = {metric: dict(of_one) for metric, of_one in chosen.items()}
    if table.phrases and "cbm" in names:
        own["cbm"] = {"concepts": "items", **own.get("cbm", {})}
    if "topsim" not in names:
        return own
    if pairs == "auto":
        which: int | str = "all" if len(table) <= EXACT_ROWS else DRAWN_PAIRS
    else:
        which = number_or_text(pairs)
        if isinstance(which, str) and which not in PAIRS:
            raise InvalidSettingError(f"--pairs must be auto, {', '.join(PAIRS)} or a number, not {quoted(pairs)}.")
    own["topsim"] = {"pairs": which, **own.get("topsim", {})}
    return own


# -- output ------------------------------------------------------------------------------------------------------------


@dataclass
class _Values:
    """Values of the languages that are measured so far.

    Attributes:
        names: the metrics.
        rows: a row per language and seed.
        by_chance: values of biased metrics with messages assigned at random, by metric and language.
        started: whether a language has the start symbol.
    """

    names: Sequence[str]
    rows: list[pd.DataFrame] = field(default_factory=list)
    by_chance: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    started: bool = False

    def measure(self, todo: Sequence[MetricSource], chosen: Conventions, pairs: str, quiet: bool, **how: Any) -> None:
        """Measure languages with the conventions `chosen`; `how` has further arguments of `icy.metrics.evaluate`."""
        with silence(quiet):
            for source in track(todo, "languages"):
                table = source.table()
                own = _with_pairs(chosen, self.names, pairs, table)
                row = evaluate(table, metrics=self.names, conventions=own, **how)
                self.rows.append(row.assign(name=source.name, seed=source.seed))
                self.started |= has_start(source.record, table)
                # Permutations show the bias too.
                chance = {} if how["permutations"] else values_by_chance(table, self.names, own)
                for name, value in chance.items():
                    if row[name][0] != value:  # if equal, it is so for any meanings of the messages, as a note says
                        self.by_chance.setdefault(name, {}).setdefault(source.name, []).append(value)

    def bias(self) -> list[str]:
        """Return one sentence per metric that is biased on these small tables, with its bias on each."""
        from icy.analysis.order import in_order

        said = [STARTED] if self.started else []
        for metric, of_each in self.by_chance.items():
            means = {name: sum(found) / len(found) for name, found in of_each.items()}
            values = listed([f"{means[name]:.2f} for {name}" for name in in_order(list(means))])
            said.append(
                f"{metric} is biased on so few rows: with messages assigned to meanings at random it is {values}"
            )
        return said

    def table(self, spread: str, bias: Sequence[str] = ()) -> BiasTable:
        """Return the printed table, with notes on undefined values, p-values and bias."""
        from icy.analysis.tables.by_setting import metrics_table

        return metrics_table(joined(self.rows), self.names, spread, [*_notes(self.rows), *bias])

    def write(self, target: Path | None, figure: Path | None, quiet: bool) -> None:
        """Write rows and plot to the files that the options name."""
        write_rows(joined(self.rows), target, quiet)
        if figure is not None:
            from icy.analysis.plots.metric_bars import plot_metrics

            save_figure(plot_metrics(joined(self.rows), self.names), figure, quiet)


def _notes(found: Sequence[pd.DataFrame]) -> list[str]:
    """Return the reasons for undefined values, and how p-values were computed."""
    sentences: dict[str, None] = {}
    for frame in found:
        for score in frame.attrs["scores"].values():
            sentences[f"{score.metric} of {frame['name'][0]} is undefined: {score.why}" if score.why else ""] = None
            if (test := score.by_chance) is not None and not test.why:
                which = "all" if test.exact else "random"
                sentences[
                    f"p of {score.metric}: {test.permutations} {which} permutations, one-sided: {test.alternative}"
                ] = None
    return [sentence for sentence in sentences if sentence]
