"""Results from wherever they were kept: results folders, saved results, and long tables."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icy.errors import InvalidSettingError, StoreError
from icy.long_table import LONG, WHOLE
from icy.results import ProbeResult

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
ATLAS = "atlas"


def read_long(path: str | Path) -> pd.DataFrame:
    """Results in long form, a row per replicate.

    Args:
        path: a results folder, a .json of `ProbeResult.save`, a long table as .csv or .parquet, or "atlas", the one
            that comes with icy.

    Raises:
        StoreError: there is no such file or folder, or it holds no results.
    """
    if str(path) == ATLAS and not Path(path).exists():
        from icy.analysis.atlas import shipped

        return shipped().to_dataframe()
    path = Path(path)
    if path.suffix.lower() not in TABLES or path.is_dir():
        return ProbeResult.load(path).to_dataframe()
    import pandas as pd

    try:
        table = pd.read_csv(path) if path.suffix.lower() == ".csv" else pd.read_parquet(path)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {path}.") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read as a table: {error}.") from error
    lacking = [name for name in ("model", "grammar", "seed", "measure", "value") if name not in table]
    if lacking:
        raise StoreError(f"{path} is no table of results: it has no column {', '.join(lacking)}.")
    table = table.reindex(columns=list(LONG))
    for name in ("settings", "options"):  # an empty text in a csv is read as nothing
        table[name] = table[name].astype(object).fillna("")
    for name in ("split", "pretrain_representation", "error"):  # and a column of nothing as numbers
        table[name] = table[name].astype(object).where(table[name].notna(), None)
    for name in ("failed", "cut"):
        table[name] = table[name].fillna(False).astype(bool)
    return table.astype(dict.fromkeys(WHOLE, "Int64"))


def read_all(paths: Iterable[str | Path]) -> pd.DataFrame:
    """The results of several places in one long table; what is in more than one, once, from the last."""
    import pandas as pd

    tables = [read_long(path) for path in paths]
    joined = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
    twice = joined["key"].notna() & joined["key"].duplicated(keep="last")
    return joined[~twice].reset_index(drop=True)


def selected(long: pd.DataFrame, **patterns: Sequence[str]) -> pd.DataFrame:
    """The rows of which each named column matches one of its wildcards; a column without wildcards is as it is.

    A model matches with its side or without.

    Raises:
        InvalidSettingError: none is left; the sentence says what there is.
    """
    for name, wanted in patterns.items():
        if not wanted:
            continue
        values = long[name].astype(str)
        bare = values.str.partition("/")[2].where(values.str.contains("/"), values)
        fits = [
            any(fnmatch.fnmatchcase(v.lower(), p.lower()) for v in pair for p in wanted)
            for pair in zip(values, bare, strict=True)
        ]
        if not any(fits):
            there = ", ".join(dict.fromkeys(values))
            raise InvalidSettingError(f"No result has the {name} {' or '.join(wanted)}; there are {there}.")
        long = long[fits]
    return long.reset_index(drop=True)
