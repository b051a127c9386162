"""Metrics of several languages: of files, of the senders in results, and of grammars over seeds."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icy.config.settings import OPEN
from icy.core.checks import number_or_text, seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError, StoreError, quoted
from icy.core.registry import registry
from icy.core.streams import DrawsName
from icy.core.surroundings import log_level, standard_state
from icy.core.text import listed
from icy.grammars import expand_grammars, make_language
from icy.languages.meanings import TABLES
from icy.languages.names import short_name
from icy.languages.readers import read_table
from icy.metrics import Table, cbm_by_sample_size, evaluate
from icy.metrics.evaluation import DEFAULT_METRICS, Conventions, values_by_chance
from icy.metrics.topographic.topsim import PAIRS
from icy.records.long_table import ROW, to_long
from icy.records.pack import is_pack
from icy.records.store import RECORDS

from .measuring import Finished, Measurement
from .results import ProbeResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from icy.analysis.tables.printed_table import BiasTable
    from icy.languages.frequencies import Frequencies
    from icy.languages.language import Language
    from icy.records.record import Record

AUTO = "auto"  # pairs: all of few rows, and drawn pairs of many
EXACT_ROWS = 20_000  # limit for comparing all pairs by default, which takes seconds
DRAWN_PAIRS = 1_000_000  # above this limit; the standard error is then at most about 0.001
STARTED = "V includes the start symbol, which the agents used; train them with --symbols V to exclude it"
SUFFIXES = (*TABLES, ".npz", ".npy", ".pt", ".pth", ".ndjson", ".msg")  # of files, also of missing files
log = logging.getLogger(__name__)


# -- measurements ------------------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class LanguageScores(Measurement):
    """Metrics of languages; `parts` has the source of each.

    Attributes:
        metrics: names of the metrics.
        conventions: arguments for single metrics, by name.
        pairs: pairs that topsim compares.
        how: further arguments of `icy.metrics.evaluate`.
        by_chance: values of biased metrics with messages assigned at random, by metric and language.
        started: whether a language has the start symbol.
    """

    parts: Sequence[MetricSource]
    metrics: Sequence[str]
    conventions: Conventions
    pairs: int | str
    how: dict[str, Any]
    by_chance: dict[str, dict[str, list[float]]] = field(default_factory=dict, init=False)
    started: bool = field(default=False, init=False)

    noun = "language"

    def measure_part(self, part: MetricSource) -> pd.DataFrame:
        """Return the row of a language."""
        table = part.table()
        conventions = _with_pairs(self.conventions, self.metrics, self.pairs, table)
        with log_level(logging.ERROR, "icy.metrics.evaluation"):  # notes list the metrics that cannot score a table
            row = evaluate(table, metrics=self.metrics, conventions=conventions, **self.how)
        self.started |= _has_start(part.record, table)
        # Permutations show the bias too.
        chance = {} if self.how["permutations"] else values_by_chance(table, self.metrics, conventions)
        for name, value in chance.items():
            if row[name][0] != value:  # if equal, it is so for any meanings of the messages, as a note says
                self.by_chance.setdefault(name, {}).setdefault(part.name, []).append(value)
        return row.assign(name=part.name, seed=part.seed)

    @property
    def bias(self) -> list[str]:
        """One sentence per metric that is biased on these small tables, with its bias on each."""
        from icy.analysis.order import in_order

        said = [STARTED] if self.started else []
        for metric, of_each in self.by_chance.items():
            means = {name: sum(found) / len(found) for name, found in of_each.items()}
            values = listed([f"{means[name]:.2f} for {name}" for name in in_order(list(means))])
            said.append(
                f"{metric} is biased on so few rows: with messages assigned to meanings at random it is {values}"
            )
        return said

    def bias_table(self, spread: str = "sd") -> BiasTable:
        """Return a table with a row per language, with notes on undefined values, p-values and bias."""
        from icy.analysis.tables.by_setting import metrics_table

        return metrics_table(self.rows, self.metrics, spread, [*_notes(self.frames), *self.bias])

    def plot(self) -> Figure:
        """Draw the values in the form of Icy22 figure 3."""
        from icy.analysis.plots.metric_bars import plot_metrics

        return plot_metrics(self.rows, self.metrics)


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


def _with_pairs(
    chosen: Conventions, names: Sequence[str], pairs: int | str, table: Table
) -> dict[str, dict[str, object]]:
    """Return the conventions, including the pairs of topsim and the concepts of CBM, which depend on the table."""
    own = {metric: dict(of_one) for metric, of_one in chosen.items()}
    if table.phrases and "cbm" in names:
        own["cbm"] = {"concepts": "items", **own.get("cbm", {})}
    if "topsim" not in names:
        return own
    if pairs == AUTO:
        which: int | str = "all" if len(table) <= EXACT_ROWS else DRAWN_PAIRS
    else:
        which = number_or_text(pairs)
        if isinstance(which, str) and which not in PAIRS:
            raise InvalidSettingError(
                f"--pairs must be auto, {', '.join(PAIRS)} or a number, not {quoted(str(pairs))}."
            )
    own["topsim"] = {"pairs": which, **own.get("topsim", {})}
    return own


@standard_state()
def measure_languages(
    sources: str | Path | Iterable[str | Path],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    conventions: Conventions | None = None,
    pairs: int | str = AUTO,
    as_reported: bool = False,
    errors: str | None = None,
    resamples: int = 100,
    permutations: int | None = None,
    finished: Finished | None = None,
    **languages: Any,
) -> LanguageScores:
    """Measure how compositional several languages are: of files, of the senders in results, or of grammars over seeds.

    `icy.metrics.evaluate` measures one language.

    Args:
        sources: files of languages or of tables, results folders or packs with saved senders or emerged languages, or
            grammars by name, chain or wildcard.
        metrics: names or wildcards; `icy list metrics` lists them.
        conventions: arguments for single metrics, by name: {"topsim": {"message": "hamming"}}.
        pairs: pairs that topsim compares: "all", "ordered", "published", a number to draw, or "auto", which is all
            pairs of up to 20,000 rows and 1,000,000 drawn pairs above.
        as_reported: compute the topsim of end-to-end runs as in their table: with its conventions, on the meanings of
            the last evaluation.
        errors: "bootstrap" estimates a standard error of every metric.
        resamples: number of bootstrap resamples.
        permutations: number of permutations of the messages for a test of every metric; None for no test.
        finished: callback, called with the rows at the end, also after an interruption or an error.
        **languages: `meanings`, `vocab_size`, `word_length`, `draws` and `seeds` of grammars, by default as in
            `icy metrics`; `eos`, the token that ends a message; and the options of `icy.metrics.read_table` for files.

    Returns:
        The values. `rows` has a row per language and seed, with the columns of `icy.metrics.evaluate`; `table()` a row
        per language, with notes on undefined and biased values. `plot()` draws them.

    Raises:
        IcyError: unknown names, unreadable files, or arguments that do not fit.

    Example:
        >>> import icy
        >>> scores = icy.measure_languages(["concat", "hol"], "topsim", meanings="2x3", seeds=2)
        >>> scores.rows[["name", "seed", "rows"]].head(3).to_numpy().tolist()
        [['concat', 123, 9], ['concat', 124, 9], ['hol', 123, 9]]
    """
    names, chosen = [entry.name for entry in registry.match(metrics, "metric")], conventions or {}
    parts = metric_sources(sources, **languages)
    if as_reported:
        parts, chosen = _as_reported(parts, names, chosen)
    how = {"errors": errors, "resamples": resamples, "permutations": permutations}
    return LanguageScores(rename_duplicates(parts), names, chosen, pairs, how).measure(finished)


def measure_sample_sizes(
    sources: str | Path | Iterable[str | Path], *, conventions: Conventions | None = None, **languages: Any
) -> pd.DataFrame:
    """Measure concept best matching of several languages by the number of samples (CBM24 figure 4).

    Args:
        sources: as for `measure_languages`.
        conventions: arguments of `icy.metrics.cbm_by_sample_size`, as {"cbm": {"segment": 100}}.
        **languages: as for `measure_languages`.

    Returns:
        Two rows per language, seed and segment, with the columns of `icy.metrics.cbm_by_sample_size`, `language`, and
        `language_seed` if a language has one.

    Raises:
        IcyError: as for `measure_languages`.

    Example:
        >>> import icy
        >>> sizes = icy.measure_sample_sizes("concat", conventions={"cbm": {"segment": 64}}, meanings="3x4", seeds=1)
        >>> sizes[["language", "drawn"]].to_numpy().tolist()
        [['concat', 64], ['concat', 64]]
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for source in rename_duplicates(metric_sources(sources, **languages)):
        table = source.table()
        own: Any = _with_pairs(conventions or {}, ["cbm"], AUTO, table).get("cbm", {})
        sizes = cbm_by_sample_size(table, **own)
        frames.append(sizes.assign(language=source.name, language_seed=-1 if source.seed is None else source.seed))
    rows = pd.concat(frames, ignore_index=True)
    if rows["language_seed"].eq(-1).all():
        rows = rows.drop(columns="language_seed")
    first = [name for name in ("language", "language_seed") if name in rows]
    return rows[[*first, *rows.columns.difference(first, sort=False)]]


# -- tables to score ---------------------------------------------------------------------------------------------------


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


def metric_sources(
    sources: str | Path | Iterable[str | Path],
    *,
    meanings: str = "5x10",
    vocab_size: int = 4,
    word_length: int | str = 4,
    draws: DrawsName = "icy",
    seeds: int | str | Iterable[int] = 3,
    eos: str | None = None,
    **reading: Any,
) -> list[MetricSource]:
    """Return the tables of some files, results and grammars; the log has how the columns of files are read.

    Arguments as for `measure_languages`.
    """
    found = []
    for name in dict.fromkeys(map(str, [sources] if isinstance(sources, str | Path) else sources)):
        path = Path(name)
        has_records = (path / RECORDS).is_dir() or is_pack(path)
        if reading and (has_records or not path.exists()):
            flag = "--" + next(iter(reading)).replace("_", "-")
            raise InvalidSettingError(f"{flag} is an option for reading files, and '{name}' is not a file.")
        if has_records:
            found += _spoken(path, eos)
        elif path.exists() or path.suffix.lower() in SUFFIXES:
            table = read_table(path, **reading, **({} if eos is None else {"eos": eos}))
            log.info("%s: %s.", path.name, table.read_as)
            found.append(MetricSource(table.name, None, partial(Table.of, table), name))
        elif "/" in name:
            raise StoreError(f"'{name}' is not a readable file or a grammar.")
        else:
            grammars: dict[str, None] = {}
            for side in ("receiver", "sender"):
                with contextlib.suppress(IncompatibleError):  # this side cannot use any of them
                    grammars |= dict.fromkeys(expand_grammars(name, side))
            for grammar, seed in product(grammars, seed_list(seeds)):
                make = partial(make_language, grammar, meanings, vocab_size, word_length, seed, draws=draws)
                found.append(MetricSource(grammar, seed, partial(_table_of, make, eos)))
    return found


def _table_of(make: Callable[[], Language | Table], eos: str | None) -> Table:
    return Table.of(make(), eos=eos)


def _spoken(path: Path, eos: str | None) -> list[MetricSource]:
    """Return the languages of the senders in a results folder or a pack; print which meanings are left out."""
    result = ProbeResult.load(path)
    found = result.languages()
    if not found:
        raise StoreError(f"{path} has no languages. Senders have them after --keep-models; end-to-end runs always do.")
    frequencies = [result.frequencies(record) for record, _ in found]
    tables = dict.fromkeys(short_name(r["config"]["existing"]) for r, _ in found if "existing" in r["config"])
    if tables:
        log.info("%s: only the meanings that exist are measured, those in %s.", path.name, listed(list(tables)))
    names = _row_names([record for record, _ in found])
    return [
        MetricSource(name, record["seed"], partial(_table_of, make, eos), str(path), record, drawn)
        for name, (record, make), drawn in zip(names, found, frequencies, strict=True)
    ]


def _as_reported(
    todo: Sequence[MetricSource], names: Sequence[str], chosen: Mapping[str, Mapping[str, object]]
) -> tuple[list[MetricSource], dict[str, dict[str, object]]]:
    """Return the tables behind the topsim of end-to-end runs, and its conventions.

    Raises:
        InvalidSettingError: other tables or metrics are requested, or conventions of topsim are given.
    """
    from icy.training.pair_game import reported_meanings
    from icy.training.pair_settings import pair_conventions

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


def _has_start(record: Record | None, table: Table) -> bool:
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
