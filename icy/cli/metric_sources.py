"""Tables that `icy metrics` scores: from files, from results, and from grammars over seeds."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icy.cli.output import note
from icy.config.settings import OPEN
from icy.core.checks import seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError, StoreError, quoted
from icy.core.text import listed, words
from icy.grammars import expand_grammars, make_language
from icy.languages.meanings import TABLES
from icy.languages.names import short_name
from icy.languages.readers import read_table
from icy.metrics import Table
from icy.records.long_table import ROW, to_long
from icy.records.pack import is_pack
from icy.records.store import RECORDS

if TYPE_CHECKING:
    from icy.languages.frequencies import Frequencies
    from icy.records.record import Record


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


def metric_sources(name: str, given: Mapping[str, Any], quiet: bool) -> list[MetricSource]:
    """Return the tables of an argument; for a file, print how its columns are read."""
    path = Path(name)
    has_records = (path / RECORDS).is_dir() or is_pack(path)
    others = [option for option in _reading(given) if option != "eos"]
    if others and (has_records or not path.exists()):
        option = "--" + others[0].replace("_", "-")
        raise InvalidSettingError(f"{option} is an option for reading files, and '{name}' is not a file.")
    if has_records:
        return _spoken(path, given["eos"], quiet)
    if path.exists() or path.suffix.lower() in SUFFIXES:
        table = read_table(path, **_reading(given))
        if not quiet:
            note(f"{path.name}: {table.read_as}.")
        return [MetricSource(table.name, None, lambda: table, name)]
    if "/" in name:
        raise StoreError(f"'{name}' is not a readable file or a grammar.")
    sizes = given["meanings"], given["vocab_size"], given["word_length"]
    grammars: dict[str, None] = {}
    for side in ("receiver", "sender"):
        with contextlib.suppress(IncompatibleError):  # this side cannot use any of them
            grammars |= dict.fromkeys(expand_grammars(name, side))
    make = partial(make_language, draws=given["draws"])
    return [
        MetricSource(grammar, seed, lambda g=grammar, s=seed: Table.of(make(g, *sizes, s), eos=given["eos"]))  # type: ignore[misc]
        for grammar in grammars
        for seed in seed_list(given["seeds"])
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
    from icy.training.pair_game import reported_meanings  # imports torch
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


def _reading(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for columns, tokens and rows as arguments of the reader."""
    names = ("meaning_columns", "message_columns", "tokens", "eos", "start", "pad", "one_hot", "argmax", "missing")
    chosen = {name: given[name] for name in (*names, "weights") if given[name] is not None}
    for name in ("meaning_columns", "message_columns"):
        if name in chosen:
            chosen[name] = words(chosen[name])
    if (sizes := str(chosen.get("one_hot", "no"))) != "no":
        if not re.fullmatch(r"[0-9]+(,[0-9]+)*", sizes):
            raise InvalidSettingError(
                f"--one-hot must be a number of values, a list of numbers such as 4,3,2, or no; not {quoted(sizes)}."
            )
        numbers = [int(size) for size in sizes.split(",")]
        chosen["one_hot"] = numbers[0] if len(numbers) == 1 else numbers
    if chosen.get("pad", "0").lower() in ("", "nan"):
        chosen["pad"] = ""
    return chosen
