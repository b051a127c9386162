"""Results: records, and tables of them."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.importing import load_object
from icy.core.processes import scratch_folder
from icy.core.text import counted, listed
from icy.core.types import Fields
from icy.languages.frequencies import Frequencies, read_meanings
from icy.languages.language import Language
from icy.languages.names import meanings_file, short_name
from icy.languages.table import Table
from icy.records.kinds import JobKind, job_kind, kind_of, kind_of_rows
from icy.records.load import Results, comparable, last_of_each, load_records, long_of, read_any, with_measure
from icy.records.long_table import game_curves, to_long
from icy.records.pack import file_in, is_pack
from icy.records.record import Record, as_json, model_file, spoken_file
from icy.records.saved_models import KEY, choices, facts_of, match_facts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from torch.nn import Module

    from icy.analysis.tables.printed_table import BiasTable


MOST_NAMED = 5  # most replicates that an error lists


def saved_model(record: Record, content: bytes) -> Module:
    """Return the trained model of a record.

    Args:
        record: record of the replicate.
        content: content of its file of weights.

    Raises:
        StoreError: the file is damaged, or the model has changed since training.
    """
    from icy.training.weights import unpack_weights  # imports torch

    return cast("Module", load_object(kind_of(record).model)(record, unpack_weights(content)))


def _replicate(record: Record) -> str:
    return f"{record['model']} on {record['grammar']} with seed {record['seed']}"


def _named(records: Sequence[Record], grammar: str, seed: int | None, model: str | None) -> list[Record]:
    """Return the records of a grammar, seed and model. The grammar may be the short name of a language."""
    whole = any(record["grammar"] == grammar for record in records)

    def fits(record: Record) -> bool:
        names = (None, record["model"], record["model"].rpartition("/")[2])
        own = record["grammar"] if whole else short_name(record["grammar"])
        return own == grammar and seed in (None, record["seed"]) and model in names

    return [record for record in records if fits(record)]


def _with_typed_index(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an index for analysis: names as in the long table, and numbers where all values are."""
    import pandas as pd

    labels = table.index.to_frame(index=False).rename(columns=lambda name: str(name).replace(" ", "_"))
    for name in labels:
        numbers = pd.to_numeric(labels[name].replace("-", None), errors="coerce")
        if numbers.notna().eq(labels[name].ne("-")).all() and numbers.notna().any():
            labels[name] = numbers
    return table.set_axis(pd.MultiIndex.from_frame(labels))


def result_class(kinds: Sequence[str]) -> type[ProbeResult]:
    """Return the class of the results of some kinds of jobs."""
    own = job_kind(kinds[0]).result if len(kinds) == 1 else None
    return ProbeResult if own is None else cast("type[ProbeResult]", load_object(own))


def table_of(kind: JobKind, long: pd.DataFrame, spread: str, **options: Any) -> BiasTable:
    """Return the table of results of a kind of job; options as for `icy.analysis.bias_table` or `JobKind.table`."""
    from icy.analysis.tables.bias import bias_table

    if kind.table is not None:
        return cast("BiasTable", load_object(kind.table)(long, spread, **options))
    return counting(bias_table(long, spread, **options), kind.counted)


def counting(table: BiasTable, unit: str) -> BiasTable:
    """Return a table with another word for what replicates are measured in, in place of "updates"."""

    def said(text: str) -> str:
        return re.sub(r"\bupdates\b", unit, text)

    labels, notes = [*map(said, table.labels)], [*map(said, table.notes)]
    below = {said(label): line for label, line in table.below.items()}
    return replace(table, title=said(table.title), labels=labels, notes=notes, below=below)


@dataclass(frozen=True, repr=False)
class ProbeResult:
    """Results of a probe, or of any other run.

    A notebook displays a table. The sum of two results (`+`) has the rows of both.

    Attributes:
        records: a record per replicate, as in the results folder.
        paths: the files written.
        folder: the results folder, or the pack, where the files of the records are.

    Example:
        >>> import icy, tempfile
        >>> result = icy.probe("sender/FC2L", "perm", meanings="2x3", word_length=2, seeds=1,
        ...                    target=0.5, workers=1, out=tempfile.mkdtemp())
        >>> sorted(result.to_dataframe()["grammar"])
        ['concat', 'perm']
    """

    kind: ClassVar[str] = "probe"  # kind of job that determines the table if there are no results, or several kinds

    records: Sequence[Record] = field(repr=False)
    paths: Sequence[Path] = ()
    folder: Path | None = None

    def to_dataframe(self, format: Literal["long", "wide"] = "long") -> pd.DataFrame:
        """Return the results as a DataFrame.

        Args:
            format: "long", a row per replicate, for analysis; "wide", a row per model and setting, for reading, with
                columns for every grammar: "mean", "spread", "seeds" and more. The index of "wide" has the model and
                each column of the long table that varies between its rows, such as representation and hidden_size;
                `reset_index()` turns the index into columns.

        Raises:
            InvalidSettingError: an unknown format.
        """
        if format == "long":
            return to_long(self.records)
        if format == "wide":
            return _with_typed_index(self.whole_table().to_dataframe())
        raise InvalidSettingError(f"The format of a DataFrame is 'long' or 'wide', not '{format}'.")

    def table(self, format: str = "text", spread: str = "sd", **options: Any) -> str:
        """Return the bias table as text: one row per model, one column per grammar.

        Different kinds of jobs or protocols have different measures, so each has a table of its own; csv has one table.

        Args:
            format: "text", "markdown", "latex", "csv", "json" or "html".
            spread: "sd" over seeds, "sem" the standard error, or "ci95", half the 95 % interval (Student's t; of
                ratios, its factor around the geometric mean).
            **options: by, sort, compare and others, as for `icy.analysis.bias_table`.

        Raises:
            InvalidSettingError: another format or spread.
        """
        if format == "json":
            named = [{**as_json(r), "conventions": kind_of(r).conventions_of(r["config"])} for r in self.records]
            return json.dumps(named, indent=1)
        parts = self.parts() if format != "csv" else []
        if len(parts) > 1:
            return "\n\n".join(part.table(format, spread, **options) for part in parts)
        return self.whole_table(spread, **options).render(format)

    def parts(self) -> list[ProbeResult]:
        """Split the results by kind of job and protocol, because their measures differ."""
        parts: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            parts.setdefault((kind_of(record).name, record.get("protocol", "")), []).append(record)
        return [replace(self, records=records) for records in parts.values()]

    def bias_table(self, spread: str = "sd", **options: Any) -> BiasTable:
        """Return the table as an object; options as for `icy.analysis.bias_table`.

        Args:
            spread: "sd" over seeds, "sem" the standard error, or "ci95", half the 95 % interval (Student's t; of
                ratios, its factor around the geometric mean).
            **options: by, sort, compare and others, as for `icy.analysis.bias_table`.

        Raises:
            InvalidSettingError: the results are of several kinds of jobs or protocols, which have different measures.
        """
        if len(parts := self.parts()) > 1:
            protocols = listed([part.records[0].get("protocol", part.kind) for part in parts])
            raise InvalidSettingError(
                f"These are results of {protocols}, which have different measures: split them with `parts()`."
            )
        return self.whole_table(spread, **options)

    def whole_table(self, spread: str = "sd", **options: Any) -> BiasTable:
        """Return one table of all results, even if their measures differ, as in csv; options as for `bias_table`.

        Args:
            spread: as for `bias_table`.
            **options: as for `bias_table`.
        """
        long = to_long(self.records)
        return table_of(kind_of_rows(long, self.kind), long, spread, **options)

    def differences(self, other: Any = "each", spread: str = "sd", **options: Any) -> BiasTable:
        """Return the table of differences seed by seed, with tests; arguments as for `icy.analysis.difference_table`.

        Args:
            other: other results; or the name of a model in these results, to compare the other models with; or "each",
                for all pairs of models.
            spread: spread of the differences over seeds.
            **options: name, by, sort and decimals.
        """
        from icy.analysis.tables.bias import difference_table

        return difference_table(self, other, spread=spread, **options)

    def _repr_html_(self) -> str:
        return self.table("html")

    def __repr__(self) -> str:
        return self.table()

    def __add__(self, other: ProbeResult) -> ProbeResult:
        """Join two results. If both have a record of a replicate, the record of the right-hand result is kept.

        If a model or a grammar has several versions, only results of the newest are kept, with a warning.
        """
        if not isinstance(other, ProbeResult):
            return NotImplemented
        records = comparable([*self.records, *other.records])
        return replace(self, records=records, paths=list(dict.fromkeys((*self.paths, *other.paths))))

    @classmethod
    def collect(cls, records: Sequence[Record], paths: Sequence[Path], folder: Path) -> Self:
        """Return the results of a run: its records, the tables written, and the results folder.

        Args:
            records: a record per replicate.
            paths: the files written.
            folder: the results folder.
        """
        return cls(records, paths, folder)

    def model(self, grammar: str, seed: int | None = None, model: str | None = None, **where: Any) -> Module:
        """Return the trained model of a replicate, in evaluation mode; for a pair, both sides in one module.

        The weights are exactly the weights at the end of training.

        Args:
            grammar: grammar of the training; for a pair from scratch, "none".
            seed: seed of the training; by default the lowest, if the matching replicates differ only in the seed.
            model: name of the model, with or without its side; needed if there are several models.
            **where: other fields that select the replicate, by the names of records and of settings: hidden_size=64,
                representation="gumb", protocol="budget", learning_rate=0.002.

        Raises:
            StoreError: no replicate matches, or several match (the message lists them); the model was not saved, or
                its code has changed since training.
            UnknownNameError: these results do not have a field of this name.

        Example:
            >>> import icy, tempfile
            >>> result = icy.probe("sender/FC2L", "perm", quick=True, seeds=1, keep_models=True, out=tempfile.mkdtemp())
            >>> result.model("perm").training
            False
        """
        record = self._find("result for", [r for r in self.records if not r["failed"]], grammar, seed, model, where)
        place = model_file(record)
        if place is None:
            raise StoreError(f"The model of {_replicate(record)} was not saved: train it with keep_models=True.")
        return saved_model(record, self.content(place))

    def languages(self) -> list[tuple[Record, Callable[[], Language | Table]]]:
        """Return the languages of senders: of saved senders, and the languages that emerged in games.

        Each item is a record and a function that computes its language, since a greedy message for every meaning takes
        time. If not all meanings exist, the function returns a table of the messages of existing meanings.
        For multi-target games, it returns a table of the messages in some turns.
        """
        languages: list[tuple[Record, Callable[[], Language | Table]]] = []
        for record in self.records:
            if record["failed"]:
                continue
            if record.get("language"):
                in_turns = Path(record["language"]).suffix == ".jsonl"
                make = partial(self._said, record) if in_turns else self._existing(record, self._emerged)
                languages.append((record, make))
            elif record["side"] == "sender" and model_file(record) is not None:
                languages.append((record, self._existing(record, self._spoken)))
        return languages

    def frequencies(self, record: Record) -> Frequencies | None:
        """Return which meanings exist in a run, and how often each was drawn; None if all are equally frequent.

        Args:
            record: a record of these results.

        Raises:
            StoreError: the table of meanings has been removed from the results.
        """
        name, law = (record["config"].get(option, "") for option in ("existing", "frequencies"))
        if not name:
            return Frequencies(law) if law else None
        with self._copied(meanings_file(name)) as file:
            return read_meanings(file)[1].with_law(law)

    def _existing(self, record: Record, make: Callable[[Record], Language]) -> Callable[[], Language | Table]:
        """Return a function that makes the language of a record, restricted to its meanings if only some exist."""

        def restricted() -> Language | Table:
            frequencies = self.frequencies(record)
            if frequencies is None or frequencies.numbers is None:
                return make(record)
            return Table.of(make(record)).rows(frequencies.numbers)

        return restricted

    def _spoken(self, record: Record) -> Language:
        from icy.training.task_models import spoken  # imports torch

        return spoken(record, saved_model(record, self.content(str(model_file(record)))))

    def _emerged(self, record: Record, place: str | None = None) -> Language:
        with self._copied(place or record["language"]) as file:
            return Language.load(file)

    def _said(self, record: Record) -> Table:
        from icy.metrics import read_table

        with self._copied(record["language"]) as file:
            return read_table(file)

    @contextlib.contextmanager
    def _copied(self, place: str) -> Iterator[Path]:
        """Yield the path of a temporary copy of a record's file, because a file in a pack has no path."""
        content, folder = self.content(place), scratch_folder("language")
        try:
            copy = folder / Path(place).name
            copy.write_bytes(content)
            yield copy
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _find(
        self,
        what: str,
        records: Sequence[Record],
        grammar: str,
        seed: int | None,
        model: str | None,
        where: Fields,
    ) -> Record:
        """Return the record that matches.

        Raises:
            StoreError: no record matches, or several match that differ in more than the seed.
            UnknownNameError: the records do not have a field of this name.
        """
        named = _named(records, grammar, seed, model)
        if not named:
            query = f"'{grammar}'" + ("" if seed is None else f" with seed {seed}") + (f" of {model}" if model else "")
            available = listed(list(dict.fromkeys(map(_replicate, records)))[:MOST_NAMED]) or "nothing"
            raise StoreError(f"There is no {what} {query}; there is {available}.")
        place = "these results" if self.folder is None else str(self.folder)
        fits = list(compress(named, match_facts(place, what.partition(" ")[0], [facts_of(r) for r in named], where)))
        seeds = {r["seed"] for r in fits}
        names, values = choices(fits, ["seed"])
        if len(fits) > 1 and (names != [KEY] or len(seeds) < len(fits)):
            models = {r["model"] for r in fits}
            alike = [f"of {min(models)}"] * (len(models) == 1) + [f"on {fits[0]['grammar']}"]
            alike += [f"with seed {min(seeds)}"] * (len(seeds) == 1)
            example = f"{names[0]}={facts_of(fits[0])[names[0]]!r}"
            raise StoreError(f"There are {len(fits)} {' '.join(alike)}: select by {values}, as in {example}.")
        return min(fits, key=lambda record: record["seed"])

    def content(self, place: str) -> bytes:
        """Return a file that belongs to a record, by its path in the results folder.

        Args:
            place: path of the file in the results folder or pack.

        Raises:
            StoreError: the file has been removed, or these results are not of one folder.
        """
        if self.folder is None:
            raise StoreError(f"These results are not of one folder, so {place} is not known: load one folder or pack.")
        return file_in(self.folder, place)

    @property
    def failures(self) -> list[Record]:
        """Records without a result."""
        return [r for r in self.records if r["failed"]]

    def save(self, path: str | Path) -> Path:
        """Write the records to one .json file, which `load` reads.

        Args:
            path: path of the .json file.

        Raises:
            StoreError: the file cannot be written, or has another suffix.
        """
        path = Path(path)
        if path.suffix != ".json":
            raise StoreError(f"A result is saved as .json, not as '{path.name}'; tables come from to_dataframe().")
        write_atomically(path, json.dumps({"icy result": 1, "records": list(self.records)}, indent=1).encode())
        return path

    @classmethod
    def load(cls, path: str | Path) -> ProbeResult:
        """Load a result from a file that `save` wrote, or everything in a results folder.

        Args:
            path: path of the results folder, the pack, or the file.

        Raises:
            StoreError: the file or folder does not exist, or holds no results.
        """
        path = Path(path)
        return cls(load_records(path), [] if path.is_dir() else [path], _folder_of(path))


@dataclass(frozen=True, repr=False)
class EndToEndResult(ProbeResult):
    """Results of an end-to-end run: a ProbeResult with curves and the languages that emerged.

    Attributes:
        records: a record per replicate, as in the results folder.
        paths: the files written.
        folder: the results folder, or the pack, where the files of the records are.
    """

    kind = "e2e"

    def curves(self) -> pd.DataFrame:
        """Return the learning curves: a row per pair and evaluation, with the updates so far in `steps`.

        Row 0 of a pair (`steps` is 0) is the pair before its game: untrained, or after its pre-training.

        Returns:
            The columns that describe a run (model, sizes, representation, preset and settings, grammar, seed), then
            `steps`, `accuracy` and `loss` of the game, `sender_accuracy` and `receiver_accuracy` on the language of
            pre-training (NaN from scratch), `topsim` of the sender's messages, `conventions` of topsim, as JSON, and
            `mean_length` if messages may end early.
        """
        return game_curves(self.records)

    def plot(self) -> Figure:
        """Plot the curves in the style of Icy22 figure 7."""
        from icy.analysis.plots.learning_curves import e2e

        return e2e(self)

    def language(
        self, grammar: str = SCRATCH, seed: int | None = None, model: str | None = None, sender: int = 1, **where: Any
    ) -> Language:
        """Return the language that emerged in a run: the sender's greedy message for every meaning.

        Args:
            grammar: grammar of pre-training; "none" for a run from scratch.
            seed: seed of the run; by default the lowest, if the matching runs differ only in the seed.
            model: the pair, as in "HierZero:GRU+Hier:GRU"; needed if there are several pairs.
            sender: number of the sender of a population, from 1.
            **where: other fields that select the run, by the names of records and of settings:
                representation="gumb", steps=5000.

        Raises:
            StoreError: no run matches, or several match (the message lists them); or the language is not on file.
            UnknownNameError: these results do not have a field of this name.
        """
        spoken = [r for r in self.records if r.get("language") and not r["failed"]]
        record = self._find("language of", spoken, grammar, seed, model, where)
        count = record.get("senders", 1)
        if not 1 <= sender <= count:
            raise StoreError(f"Sender {sender} does not exist: this run has {counted(count, 'sender')}.")
        return self._emerged(record, None if sender == 1 else spoken_file(record["key"], sender - 1))

    @classmethod
    def load(cls, path: str | Path) -> EndToEndResult:
        """Load the end-to-end runs of a results folder, or of a file that `save` wrote in one.

        Args:
            path: path of the results folder, the pack, or the file.

        Raises:
            StoreError: the file or folder does not exist, or holds no end-to-end runs.
        """
        path = Path(path)
        found = ProbeResult.load(path)
        records = [r for r in found.records if kind_of(r).name == cls.kind]
        if not records:
            raise StoreError(f"{path} holds no end-to-end runs.")
        return cls(records, found.paths, found.folder)


def _folder_of(path: Path) -> Path:
    """Return the results folder or pack where the files of the records in a path are."""
    return path if path.is_dir() or is_pack(path) else path.parent


def load(path: str | Path) -> ProbeResult | pd.DataFrame:
    """Load any results of icy, whatever command made them.

    Args:
        path: a results folder, a pack, a file of `ProbeResult.save`, a long table (.csv, .tsv or .parquet), or "atlas".

    Returns:
        The result object that the run returned: an EndToEndResult if all results are of end-to-end runs, else a
        ProbeResult. For a long table or the atlas, a DataFrame with a row per replicate and all columns, since a table
        has no curves and no trained models.

    Raises:
        StoreError: the file or folder does not exist, or holds no results.
        InvalidSettingError: the table is not a table of results.

    Example:
        >>> import icy
        >>> icy.load("atlas")["role"].unique().tolist()
        ['sender', 'receiver']
    """
    found = read_any(path)
    if not isinstance(found, list):
        return long_of(found)
    path, kinds = Path(path), list(dict.fromkeys(kind_of(record).name for record in found))
    return result_class(kinds)(found, [] if path.is_dir() else [path], _folder_of(path))


def read_results(paths: Sequence[str | Path], measure: str | None = None) -> Results:
    """Read and join the results of several paths. Of duplicate rows, the last is kept.

    Args:
        paths: results folders, files of `ProbeResult.save`, long tables (.csv, .parquet), or "atlas".
        measure: measure of long tables without a column "measure": "ratio", "accuracy" or "held_out".

    Returns:
        A ProbeResult, which knows the files of its records if there is one path; or a long table, which holds no
        curves, if one of the paths is a table.

    Raises:
        StoreError: a file or folder does not exist, or holds no results.
        InvalidSettingError: a long table does not name its measure.
    """
    found = [read_any(path) for path in paths]
    if measure is not None:
        found = [with_measure(part, measure) for part in found]
    results = [ProbeResult(part) for part in found if isinstance(part, list)]
    if len(results) == len(found):
        folder = _folder_of(Path(paths[0])) if len(paths) == 1 else None
        return replace(sum(results[1:], start=results[0]), folder=folder)
    import pandas as pd

    joined = pd.concat([long_of(part) for part in found], ignore_index=True)
    return last_of_each(joined).reset_index(drop=True)
