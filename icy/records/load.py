"""Loading results from results folders, saved files, long tables or the atlas."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from icy.config.protocols import PROTOCOLS, EndToEndProtocol
from icy.core.checks import LARGEST_RATIO, LARGEST_SEED
from icy.core.csv_files import read_csv_table
from icy.core.errors import InvalidSettingError, StoreError
from icy.core.escapes import in_a_line
from icy.core.registry import SIDES
from icy.core.text import counted, listed

from .kinds import kind_name
from .long_table import EXTRA, LONG, NUMBERS, ROW, TEXTS, WHOLE, to_long
from .pack import Pack, is_pack, saved_records
from .record import HasRecords, Record, config_text
from .store import Store
from .versions import newest

if TYPE_CHECKING:
    import pandas as pd

    Column: TypeAlias = pd.Series[Any]

log = logging.getLogger(__name__)
Results: TypeAlias = "HasRecords | Sequence[Record] | pd.DataFrame | str | Path"
TEXT_TABLES = (".csv", ".tsv")
TABLES = (*TEXT_TABLES, ".parquet")
ATLAS = "atlas"  # the name of the atlas that comes with icy, in place of a path
ATLAS_FILE = Path(__file__).parents[1] / "analysis" / "data" / "atlas.parquet"
MEASURES = ("ratio", "accuracy", "held_out")  # of a value: to concat's steps, or of answers, or of unseen meanings
NEEDED = ("model", "grammar", "seed", "value")
REPLICATE = [*ROW, "grammar", "seed"]  # what no two rows of a long table share
SAME = 1e-9  # two readings of one number
WORDS = {**dict.fromkeys(("true", "yes", "1", "1.0"), True), **dict.fromkeys(("false", "no", "0", "0.0", ""), False)}
NONE = "There are no results here; `icy probe` makes some."
MOST_NAMED = 5  # results in a warning


def read_long(path: str | Path) -> pd.DataFrame:
    """Read the results of one place in long form, a row per replicate. Errors as for `load_records`."""
    return long_of(read_any(path))


def read_any(path: str | Path) -> list[Record] | pd.DataFrame:
    """Read one place: records, or a long table that was made from some. Errors as for `load_records`."""
    if not str(path).strip():  # else it would be the current folder
        raise StoreError("The place of results is a folder or a file, not ''.")
    path = ATLAS_FILE if str(path) == ATLAS and not Path(path).exists() else Path(path)
    table = path.suffix.lower() in TABLES and not path.is_dir() and not is_pack(path)
    return _table(path) if table else load_records(path)


def load_records(path: str | Path) -> list[Record]:
    """Load the records of a results folder, of a pack, or of a file that `ProbeResult.save` wrote.

    Of a model, grammar or protocol with several versions one is kept, with a warning (`newest`). What is no readable
    record is left out, with a warning.

    Raises:
        StoreError: there is no such file or folder, or it holds no results.
    """
    path = Path(path)
    if path.is_dir():
        records = comparable(Store(path).all_records())
        if not records:
            raise StoreError(f"The folder {path} holds no results; `icy probe ... -o {path}` makes some.")
        return records
    if is_pack(path):
        return comparable(Pack.read(path).records)
    try:
        found = saved_records(path)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file or folder {path}.") from error
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} is not a saved result, as `save` writes it, nor a results folder, nor a long table."
        ) from error
    if not found:
        raise StoreError(f"The file {path} holds no results.")
    return found


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return read_csv_table(path, TEXTS) if path.suffix.lower() in TEXT_TABLES else pd.read_parquet(path)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {path}.") from error
    except (OSError, ValueError) as error:  # pandas' and pyarrow's own errors are of these
        first_line = str(error).partition("\n")[0]
        raise StoreError(f"{path} is no table that can be read ({in_a_line(first_line)}).") from error


def long_of(results: Results, empty: bool = False) -> pd.DataFrame:
    """Return results in long form with all of its columns, whatever version of icy wrote them.

    Args:
        results: a ProbeResult, a long table, or where they are kept.
        empty: whether there may be none.

    Raises:
        InvalidSettingError: a table that is none of results, or one without rows that may not be so.
    """
    if isinstance(results, str | Path):
        return read_long(results)
    records = records_in(results)
    table: Any = results if records is None else to_long(records)
    if not hasattr(table, "columns"):
        raise InvalidSettingError(f"Results are a ProbeResult, a long table, or where they are kept; not {results!r}.")
    if missing := [name for name in NEEDED if name not in table]:
        raise InvalidSettingError(
            f"This is no long table of results, which has a row per model, grammar and seed: it lacks the column "
            f"{', '.join(missing)}; ProbeResult.to_dataframe('long') makes one, and icy writes results.parquet."
        )
    if not len(table) and not empty:
        raise InvalidSettingError(NONE)
    return _once(_completed(table)) if records is None else table


def records_in(results: Results) -> Sequence[Record] | None:
    """Return the records that results hold; None for a long table."""
    if isinstance(results, HasRecords):
        return results.records
    return results if isinstance(results, list | tuple) else None


def _once(table: pd.DataFrame) -> pd.DataFrame:
    """Drop duplicate rows of a long table.

    Raises:
        InvalidSettingError: one replicate has two values.
    """
    if not table.duplicated(REPLICATE).any():
        return table
    numbers = ["value", *EXTRA]
    several = table[table.duplicated(REPLICATE, keep=False) & ~table["failed"]]
    values = several.groupby(REPLICATE, dropna=False)[numbers]
    if len(differ := several[(values.transform("max") - values.transform("min") > SAME).any(axis=1)]):
        first = differ.iloc[0]
        raise InvalidSettingError(
            f"This table has two values of {first['model']} on {first['grammar']} with seed {first['seed']}; leave one "
            "of them out, or tell them apart: by the name of the model, or by what stands in the column `options`."
        )
    return last_of_each(table.reset_index(drop=True))


def last_of_each(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the last row of each replicate; a result wins over a failure."""
    ordered = table.sort_values("failed", ascending=False, kind="stable")
    return ordered[~ordered.duplicated(REPLICATE, keep="last")].sort_index()


def _completed(table: pd.DataFrame) -> pd.DataFrame:
    """Complete a table of a file or an older version to the columns and types of `to_long`.

    Raises:
        InvalidSettingError: a text where a number or a yes or no belongs.
    """
    whole = table.reindex(columns=list(dict.fromkeys([*LONG, *table.columns])))
    for name in ("settings", "options", "conventions"):
        whole[name] = whole[name].astype(object).where(whole[name].notna(), "")
    for name in ("split", "pretrain_representation", "error"):  # a column of nothing is read as numbers
        whole[name] = whole[name].astype(object).where(whole[name].notna(), None)
    for name in ("cut", "failed"):
        if whole[name].dtype == bool:
            continue
        text = whole[name].astype(object).where(whole[name].notna(), "").astype(str)
        whole[name] = _checked(whole[name], text.str.strip().str.lower().map(WORDS))
    for name in NUMBERS:
        whole[name] = _numeric(whole[name])
    for name in WHOLE:
        whole[name] = _whole(whole[name])
    bare = ~whole["model"].astype(str).str.contains("/") & whole["side"].isin(SIDES)
    whole["model"] = whole["model"].mask(bare, whole["side"].astype(str) + "/" + whole["model"].astype(str))
    whole["side"] = whole["side"].astype(object).fillna(whole["model"].astype(str).str.replace(r"/.*", "", regex=True))
    whole["measure"] = _measures(whole)
    _require_possible(whole)
    kinds = whole["side"].eq("pair").map({True: kind_name("pair"), False: kind_name("")})
    whole["kind"] = whole["kind"].astype(object).fillna(kinds)
    return whole


def _measures(table: pd.DataFrame) -> Column:
    """Return what each value is: as the column says, else what the protocol of the row measures.

    Raises:
        InvalidSettingError: neither is there, so that a value may be anything.
    """
    known = _said_measures(table)
    known = known.where(known.notna(), table["side"].eq("pair").map({True: EndToEndProtocol.measure, False: None}))
    if known.isna().any() and len(table):
        rows = f"{int(known.isna().sum())} of its {len(table)} rows" if known.notna().any() else "this table"
        raise InvalidSettingError(
            f"What are the values of {rows}: {listed(MEASURES, 'or')}? Say so in a column `measure` (`protocol` tells "
            f'too); in Python, table.assign(measure="{MEASURES[0]}"); for `icy table` and `icy plot` also by --measure.'
        )
    return known


def _said_measures(table: pd.DataFrame) -> Column:
    """Return what each value is as far as the columns `measure` and `protocol` tell."""
    columns = table.reindex(columns=["measure", "protocol"]).astype(object)
    by_protocol = {name: protocol.measure for name, protocol in PROTOCOLS.items()}
    said = columns["measure"].where(columns["measure"].ne(""), None)
    return said.where(said.notna(), columns["protocol"].map(by_protocol))


def with_measure(found: list[Record] | pd.DataFrame, measure: str) -> list[Record] | pd.DataFrame:
    """Return what `read_any` read, with what its values are where a long table does not say so."""
    return found if isinstance(found, list) else found.assign(measure=_said_measures(found).fillna(measure))


def _numeric(column: Column) -> Column:
    import pandas as pd

    if column.dtype == float:
        return column
    return _checked(column, pd.to_numeric(column, errors="coerce")).astype(float)


def _whole(column: Column) -> Column:
    import pandas as pd

    if column.dtype == "Int64":
        return column
    read = _checked(column, pd.to_numeric(column, errors="coerce"))
    if len(wrong := read[read.notna() & (read % 1).ne(0).fillna(False).astype(bool)]):  # infinity too
        raise InvalidSettingError(f"In the column {column.name} of this table stands {wrong.iloc[0]}, no whole number.")
    known = read.dropna()
    real = pd.api.types.is_float_dtype(known)  # which does not hold the largest number itself
    if len(large := known[known.abs() >= 2.0**63 if real else known > LARGEST_SEED]):
        raise InvalidSettingError(
            f"The column {column.name} of this table has {column[large.index[0]]}, which is too large; the largest "
            f"whole number in a table is {LARGEST_SEED}."
        )
    return read.astype("Int64")


def _require_possible(table: pd.DataFrame) -> None:
    """Raise if a value cannot be a result: an infinite one, or a ratio below 0 or larger than any training takes.

    Raises:
        InvalidSettingError: there is one, of a run that did not fail.
    """
    values = table["value"].where(~table["failed"].astype(bool))
    ratios = values.where(table["measure"].eq("ratio"))
    faults = {
        "infinite": values.abs().eq(math.inf),
        "a ratio below 0": ratios.lt(0),
        f"a ratio above {LARGEST_RATIO:g}": ratios.gt(LARGEST_RATIO),
    }
    for what, wrong in faults.items():
        if wrong.any():
            first = table[wrong].iloc[0]
            raise InvalidSettingError(
                f"{counted(int(wrong.sum()), 'value')} cannot be: that of {first['model']} on {first['grammar']}, seed "
                f"{first['seed']}, is {first['value']:g}, {what}; correct it in the table, or leave it out."
            )


def _checked(column: Column, read: Column) -> Column:
    """Return a parsed column; raise if a value could not be parsed."""
    wrong = column[read.isna() & column.notna()]
    if len(wrong):
        kind = "yes or no" if column.name in ("cut", "failed") else "a number"
        raise InvalidSettingError(f"In the column {column.name} of this table stands '{wrong.iloc[0]}', not {kind}.")
    return read


def comparable(records: Sequence[Record]) -> list[Record]:
    """Return the newest of some records; warn of those left out because of an older version."""
    kept = newest(records)
    configs = {config_text(record["config"]) for record in kept}
    older = [record for record in records if config_text(record["config"]) not in configs]
    if older:
        names = list(dict.fromkeys(f"{record['model']} on {record['grammar']}" for record in older))
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        shown = listed([*names[:MOST_NAMED], *more])
        log.warning("Left out, as of another version of the model, grammar or protocol: %s.", shown)
    return kept
