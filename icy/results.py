"""Results of probes: a list of records with the tables that are made of it."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from icy.errors import InvalidSettingError, StoreError, listed
from icy.long_table import to_long
from icy.store import Record, Store, config_text, newest, write_atomically

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables import BiasTable

log = logging.getLogger(__name__)
MOST_NAMED = 5  # results in a warning


def write_tables(store: Store) -> list[Path]:
    """Rebuild results.csv and results.parquet from a store's records, a row each; returns their paths.

    Raises:
        StoreError: they cannot be written.
    """
    table = to_long(store.records())
    csv, parquet = store.folder / "results.csv", store.folder / "results.parquet"
    write_atomically(csv, table.to_csv(index=False).encode())
    write_atomically(parquet, table.to_parquet(index=False))
    return [csv, parquet]


@dataclass(frozen=True, repr=False)
class ProbeResult:
    """What a probe measured.

    In a notebook it shows itself as a table. Two results add up to one with the rows of both.

    Attributes:
        records: one per replicate, as filed in the results folder.
        paths: the files written.

    Example:
        >>> import icy, tempfile
        >>> result = icy.probe("sender/FC2L", "perm", meanings="2x3", word_length=2, seeds=1,
        ...                    target=0.5, workers=1, out=tempfile.mkdtemp())
        >>> sorted(result.to_dataframe()["grammar"])
        ['concat', 'perm']
    """

    records: Sequence[Record] = field(repr=False)
    paths: Sequence[Path] = ()

    def to_dataframe(self, format: Literal["long", "wide"] = "long") -> pd.DataFrame:
        """The results as a DataFrame.

        Args:
            format: "long", a row per replicate, for analysis; "wide", a row per model and a pair of columns (mean,
                spread) per grammar, for reading.

        Raises:
            InvalidSettingError: another format.
        """
        if format == "long":
            return to_long(self.records)
        if format == "wide":
            return self.bias_table().to_dataframe()
        raise InvalidSettingError(f"The format of a DataFrame is 'long' or 'wide', not '{format}'.")

    def table(self, format: str = "text", spread: str = "sd", **options: Any) -> str:
        """The bias table as text: one row per model, one column per grammar.

        Args:
            format: "text", "markdown", "latex", "csv", "json" or "html".
            spread: "sd" over seeds, "sem" its standard error, or "ci95", 1.96 standard errors.
            **options: by, sort, compare and others, as of `icy.analysis.bias_table`.

        Raises:
            InvalidSettingError: another format or spread.
        """
        if format == "json":
            return json.dumps([without_nan(r) for r in self.records], indent=1)
        return self.bias_table(spread, **options).render(format)

    def bias_table(self, spread: str = "sd", **options: Any) -> BiasTable:
        """The table, to be printed in any way; options as of `icy.analysis.bias_table`."""
        from icy.analysis.tables import bias_table

        return bias_table(to_long(self.records), spread, **options)

    def _repr_html_(self) -> str:
        return self.table("html")

    def __repr__(self) -> str:
        return self.table()

    def __add__(self, other: ProbeResult) -> ProbeResult:
        """Both results in one; what is in both is kept once, from the right-hand side.

        Of a model or a grammar that was edited in between, only what its newest version measured is kept, with a
        warning.
        """
        if not isinstance(other, ProbeResult):
            return NotImplemented
        records = _comparable([*self.records, *other.records])
        return replace(self, records=records, paths=list(dict.fromkeys((*self.paths, *other.paths))))

    @property
    def failures(self) -> list[Record]:
        """The records without a result."""
        return [r for r in self.records if r["failed"]]

    def save(self, path: str | Path) -> Path:
        """Write the records to one .json file, from which `load` restores this result.

        Raises:
            StoreError: it cannot be written, or has another suffix.
        """
        path = Path(path)
        if path.suffix != ".json":
            raise StoreError(f"A result is saved as .json, not as '{path.name}'; tables come from to_dataframe().")
        write_atomically(path, json.dumps({"icy result": 1, "records": list(self.records)}, indent=1).encode())
        return path

    @classmethod
    def load(cls, path: str | Path) -> ProbeResult:
        """A result from a file that `save` wrote, or everything in a results folder.

        Raises:
            StoreError: there is no such file or folder, or it holds no results.
        """
        path = Path(path)
        if path.is_dir():
            records = _comparable(Store(path).all_records())
            if not records:
                raise StoreError(f"The folder {path} holds no results; `icy probe ... -o {path}` makes some.")
            return cls(records)
        try:
            return cls(json.loads(path.read_text())["records"], [path])
        except FileNotFoundError as error:
            raise StoreError(f"There is no file or folder {path}.") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} is not a saved result, as `save` writes it, nor a results folder, nor a long table."
            ) from error


def _comparable(records: Sequence[Record]) -> list[Record]:
    """The newest of some records; what is missing from them because a version is older, is told."""
    kept = newest(records)
    configs = {config_text(record["config"]) for record in kept}
    older = [record for record in records if config_text(record["config"]) not in configs]
    if older:
        names = list(dict.fromkeys(f"{record['model']} on {record['grammar']}" for record in older))
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        shown = listed([*names[:MOST_NAMED], *more])
        log.warning("Left out, as of another version of the model, grammar or protocol: %s.", shown)
    return kept


def without_nan(value: Any) -> Any:
    """The same with None for NaN, which JSON has no word for."""
    if isinstance(value, dict):
        return {k: without_nan(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
