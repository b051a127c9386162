"""`icy metrics`: measure how compositional languages are, given as files or as names of grammars."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import numpy as np

from icy.cli.exit_codes import Interrupted
from icy.cli.options import (
    Assignment,
    Assignments,
    Draws,
    MeaningsText,
    OutFile,
    Permutations,
    PlotFile,
    PluginFiles,
    Quiet,
    Several,
    Spread,
    TableFormat,
    VocabSize,
    WordLength,
    assigned,
    command,
)
from icy.cli.output import (
    checked_plot,
    checked_rows_file,
    joined,
    note,
    print_rows,
    print_table,
    save_figure,
    write_rows,
)
from icy.cli.session import set_up_log
from icy.config.settings import OPEN
from icy.config.specs import option
from icy.core.checks import number_or_text, seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError, StoreError, quoted
from icy.core.progress import silence, track
from icy.core.registry import registry
from icy.core.surroundings import log_level
from icy.core.text import listed, words
from icy.grammars import expand_grammars, make_language
from icy.languages.meanings import TABLES
from icy.languages.names import short_name
from icy.languages.readers import read_table
from icy.languages.rule import MISSING
from icy.metrics import Table, cbm_by_sample_size, evaluate
from icy.metrics.evaluation import DEFAULT_METRICS, ERRORS, Conventions, values_by_chance
from icy.metrics.topographic.topsim import PAIRS
from icy.records.long_table import ROW, to_long
from icy.records.pack import is_pack
from icy.records.store import RECORDS

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable
    from icy.languages.frequencies import Frequencies
    from icy.records.record import Record


EXACT_ROWS = 20_000  # limit for comparing all pairs by default, which takes seconds
DRAWN_PAIRS = 1_000_000  # above this limit; the standard error is then at most about 0.001

STARTED = "V includes the start symbol, which the agents used; train them with --symbols V to exclude it"


@dataclass(frozen=True)
class FromGrammars:
    """The languages of a grammar.

    Attributes:
        seeds: number of seeds, from 123; or a list (1,2, 123-127).
    """

    meanings: MeaningsText = "5x10"
    vocab_size: VocabSize = 4
    word_length: WordLength = "4"
    draws: Draws = "icy"
    seeds: int | str = option(3, cls=Several)


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

    meaning_columns: str | None = option(None, cls=Several, metavar="A,B,...")
    message_columns: str | None = option(None, cls=Several, metavar="C,...")
    tokens: str | None = option(None, metavar="letters|spaces|whole|SEPARATOR")
    eos: str | None = option(None, metavar="TOKEN")
    start: str | None = option(None, metavar="TOKEN")
    pad: str | None = option(None, metavar="TOKEN")
    one_hot: str | None = option(None, cls=Several, metavar="K|K,L,...|no")
    weights: str | None = option(None, metavar="COLUMN")
    argmax: bool | None = None
    missing: str | None = option(None, type=click.Choice(MISSING))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the reader that are given."""
        chosen: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        for name in ("meaning_columns", "message_columns"):
            if name in chosen:
                chosen[name] = words(chosen[name])
        if (sizes := str(chosen.get("one_hot", "no"))) != "no":
            if not re.fullmatch(r"[0-9]+(,[0-9]+)*", sizes):
                raise InvalidSettingError(
                    "--one-hot must be a number of values, a list of numbers such as 4,3,2, or no; not "
                    f"{quoted(sizes)}."
                )
            numbers = [int(size) for size in sizes.split(",")]
            chosen["one_hot"] = numbers[0] if len(numbers) == 1 else numbers
        if chosen.get("pad", "0").lower() in ("", "nan"):
            chosen["pad"] = ""
        return chosen


@command("metrics")
def metrics_command(
    sources: Annotated[tuple[str, ...], {"metavar": "FILE|RESULTS|GRAMMAR...", "completes": "files_and_grammars"}],
    *,
    metric: Annotated[
        tuple[str, ...], {"flags": ("--metric", "-m"), "metavar": "NAME", "completes": "metrics"}
    ] = DEFAULT_METRICS,
    conventions: Annotated[
        Assignments,
        {"flags": ("--set",), "multiple": True, "type": Assignment(), "metavar": "METRIC.CONVENTION=VALUE"},
    ] = (),
    pairs: Annotated[str, {"metavar": "auto|all|ordered|published|NUMBER"}] = "auto",
    as_reported: bool = False,
    by_sample_size: bool = False,
    errors: Annotated[str | None, {"type": click.Choice(ERRORS)}] = None,
    resamples: Annotated[int, {"minimum": 2}] = 100,
    permutations: Permutations = None,
    drawn: FromGrammars,
    read: FromFiles,
    format_: TableFormat = "table",
    spread: Spread = "sd",
    plot: PlotFile = None,
    out: OutFile = None,
    plugin: PluginFiles = (),
    quiet: Quiet = False,
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
        out: write a row per language and seed, as csv or parquet.

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
    set_up_log(quiet)
    # No warnings: the notes below the results list metrics that cannot score a table.
    click.get_current_context().with_resource(log_level(logging.ERROR, "icy.metrics.evaluation"))
    registry.load_files(plugin)
    figure, target = checked_plot(plot), checked_rows_file(out)
    names = [entry.name for entry in registry.match(metric, "metric")]
    chosen = _conventions(conventions, ["cbm"] if by_sample_size else names)
    if by_sample_size:
        if tuple(names) not in (("cbm",), DEFAULT_METRICS):
            raise InvalidSettingError("--by-sample-size only supports cbm: give `--metric cbm` and no other metric.")
        others = {"plot": plot, "permutations": permutations, "errors": errors, "as-reported": as_reported}
        if idle := [name for name, value in others.items() if value]:
            raise InvalidSettingError(f"--{idle[0]} has no effect with --by-sample-size; leave it out.")
    todo = [source for name in dict.fromkeys(sources) for source in metric_sources(name, drawn, read, quiet)]
    if as_reported:
        todo, chosen = as_reported_sources(todo, names, chosen)
    todo = rename_duplicates(todo)
    if by_sample_size:
        rows = _sample_sizes(todo, chosen, pairs)
        shown = rows.map(lambda value: f"{value:.3f}" if isinstance(value, float) else str(value))
        print_rows([str(name).replace("_", " ") for name in rows], shown.to_numpy().tolist(), format_)
        write_rows(rows, target, quiet)
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


def _sample_sizes(todo: Sequence[MetricSource], chosen: Conventions, pairs: str) -> pd.DataFrame:
    """Return cbm of each language, for each segment of rows and for all rows up to its end."""
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for source in todo:
        table = source.table()
        own: Any = _with_pairs(chosen, ["cbm"], pairs, table).get("cbm", {})
        sizes = cbm_by_sample_size(table, **own)
        frames.append(sizes.assign(language=source.name, language_seed=-1 if source.seed is None else source.seed))
    rows = pd.concat(frames, ignore_index=True)
    if rows["language_seed"].eq(-1).all():
        rows = rows.drop(columns="language_seed")
    first = [name for name in ("language", "language_seed") if name in rows]
    return rows[[*first, *rows.columns.difference(first, sort=False)]]


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


# -- tables to score: from files, from results, and from grammars over seeds -------------------------------------------

SUFFIXES = (*TABLES, ".npz", ".npy", ".pt", ".pth", ".ndjson", ".msg")  # of files, also of missing files


@dataclass(frozen=True)
class MetricSource:
    """A table to score.

    Attributes:
        name: name of its row.
        seed: seed of a replicate; None for a file.
        table: function that builds the table.
        place: file or results with the table; "" for the language of a grammar.
        record: record of a sender or a pair, if the table comes from results.
        frequencies: which meanings exist in these results, and how often each was drawn; None if all are equally
            frequent.
    """

    name: str
    seed: int | None
    table: Callable[[], Table]
    place: str = ""
    record: Record | None = None
    frequencies: Frequencies | None = None


def metric_sources(name: str, drawn: FromGrammars, read: FromFiles, quiet: bool) -> list[MetricSource]:
    """Return the tables of an argument; for a file, print how its columns are read."""
    path = Path(name)
    has_records = (path / RECORDS).is_dir() or is_pack(path)
    given = read.arguments()
    others = [argument for argument in given if argument != "eos"]
    if others and (has_records or not path.exists()):
        flag = "--" + others[0].replace("_", "-")
        raise InvalidSettingError(f"{flag} is an option for reading files, and '{name}' is not a file.")
    if has_records:
        return _spoken(path, read.eos, quiet)
    if path.exists() or path.suffix.lower() in SUFFIXES:
        table = read_table(path, **given)
        if not quiet:
            note(f"{path.name}: {table.read_as}.")
        return [MetricSource(table.name, None, lambda: table, name)]
    if "/" in name:
        raise StoreError(f"'{name}' is not a readable file or a grammar.")
    sizes = drawn.meanings, drawn.vocab_size, drawn.word_length
    grammars: dict[str, None] = {}
    for side in ("receiver", "sender"):
        with contextlib.suppress(IncompatibleError):  # this side cannot use any of them
            grammars |= dict.fromkeys(expand_grammars(name, side))
    make = partial(make_language, draws=drawn.draws)
    return [
        MetricSource(grammar, seed, lambda g=grammar, s=seed: Table.of(make(g, *sizes, s), eos=read.eos))  # type: ignore[misc]
        for grammar in grammars
        for seed in seed_list(drawn.seeds)
    ]


def _spoken(path: Path, eos: str | None, quiet: bool) -> list[MetricSource]:
    """Return the languages of the senders in a results folder or a pack; print which meanings are left out."""
    from icy.experiments.results import ProbeResult

    result = ProbeResult.load(path)
    found = result.languages()
    if not found:
        raise StoreError(f"{path} has no languages. Senders have them after --keep-models; end-to-end runs always do.")
    frequencies = [result.frequencies(record) for record, _ in found]
    tables = dict.fromkeys(short_name(r["config"]["existing"]) for r, _ in found if "existing" in r["config"])
    if tables and not quiet:
        note(f"{path.name}: only the meanings that exist are measured, those in {listed(list(tables))}.")
    names = _row_names([record for record, _ in found])
    return [
        MetricSource(name, record["seed"], lambda m=make: Table.of(m(), eos=eos), str(path), record, drawn)  # type: ignore[misc]
        for name, (record, make), drawn in zip(names, found, frequencies, strict=True)
    ]


def as_reported_sources(
    todo: Sequence[MetricSource], names: Sequence[str], chosen: Mapping[str, Mapping[str, object]]
) -> tuple[list[MetricSource], dict[str, dict[str, object]]]:
    """Return the tables behind the topsim of end-to-end runs, and its conventions.

    Raises:
        InvalidSettingError: other tables or metrics are requested, or conventions of topsim are given.
    """
    from icy.training.pair_game import reported_meanings
    from icy.training.pair_job import pair_conventions

    pairs = [source for source in todo if source.record is not None and source.record["side"] == "pair"]
    if len(pairs) < len(todo) or list(names) != ["topsim"] or chosen:
        raise InvalidSettingError(
            "--as-reported computes the topsim of end-to-end runs: give their results folder and only `-m topsim`."
        )

    def compared(source: MetricSource) -> Table:
        assert source.record is not None
        numbers, drawn = reported_meanings(source.record, source.frequencies), source.frequencies
        rows = numbers if drawn is None or drawn.numbers is None else np.searchsorted(drawn.numbers, numbers)
        return source.table().rows(rows)

    conventions: dict[str, dict[str, object]] = {metric: {**of_one} for metric, of_one in pair_conventions({}).items()}
    return [replace(source, table=partial(compared, source)) for source in pairs], conventions


def has_start(record: Record | None, table: Table) -> bool:
    """Return whether a record's senders could use the start symbol, and did."""
    return record is not None and record["representation"] in OPEN and table.vocab_size > record["vocab_size"]


def rename_duplicates(sources: Sequence[MetricSource]) -> list[MetricSource]:
    """Rename tables if several places have a table of the same name: rows are means over seeds."""
    places: dict[str, set[str]] = {}
    for source in sources:
        places.setdefault(source.name, set()).add(source.place)

    def named(source: MetricSource) -> str:
        if len(places[source.name]) == 1 or not source.place:
            return source.name
        return source.place if source.seed is None else f"{source.name} of {source.place}"

    return [replace(source, name=named(source)) for source in sources]


def _row_names(records: Sequence[Record]) -> list[str]:
    """Return model and grammar, and further values that distinguish records with the same model and grammar."""
    from icy.analysis.order import LETTERS, text_of, without_hashes

    def shown(column: str, value: object) -> str:
        """Return a value as the end of a name: a text as it is, a number with the name of its column."""
        if (text := text_of(value)) == "-":
            return ""
        return f" {text}" if isinstance(value, str) else f" {LETTERS.get(column, column)}={text}"

    long = to_long(records)
    names = long["model"].str.rpartition("/")[2] + " " + long["grammar"]
    for _, alike in without_hashes(long).groupby(names):
        for column in ROW:
            if alike[column].astype(str).nunique() > 1:
                names[alike.index] += alike[column].map(partial(shown, column))
    return list(names)
