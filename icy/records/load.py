"""Load results from results folders, saved files, long tables or the atlas."""

from __future__ import annotations

import fnmatch
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from icy.config.protocols import PROTOCOLS
from icy.core.checks import LARGEST_RATIO, LARGEST_SEED, boolean_column, number_column, require_names
from icy.core.errors import InvalidSettingError, StoreError, unknown
from icy.core.files import read_csv_table
from icy.core.registry import SIDES, canonical
from icy.core.text import counted, in_a_line, listed, words
from icy.core.types import Options
from icy.languages.names import short_name

from .kinds import kind_name
from .long_table import EXTRA, LONG, NUMBERS, OLD_COLUMNS, ROW, TEXTS, WHOLE, column_of, option_columns, to_long
from .pack import Pack, is_pack, records_at
from .record import HasRecords, Record
from .versions import identity_of, newest

if TYPE_CHECKING:
    import pandas as pd

    Column: TypeAlias = pd.Series[Any]

log = logging.getLogger(__name__)
Results: TypeAlias = "HasRecords | Sequence[Record] | pd.DataFrame | str | Path"
TEXT_TABLES = (".csv", ".tsv")
TABLES = (*TEXT_TABLES, ".parquet")
ATLAS = "atlas"  # name of the atlas that comes with icy, used like a path
ATLAS_FILE = Path(__file__).parents[1] / "analysis" / "data" / "atlas.parquet"
MEASURES = ("ratio", "accuracy", "held_out")  # steps relative to concat; accuracy; accuracy on held-out meanings
NEEDED = ("model", "grammar", "seed", "value")
REPLICATE = [*ROW, "grammar", "seed"]  # columns that identify a row of a long table
SAME = 1e-9  # largest difference between two copies of one number
NONE = "No results found; `icy probe` makes some."
MOST_NAMED = 5  # most results named in a warning


def read_long(path: str | Path) -> pd.DataFrame:
    """Read the results of a folder or file in long form, a row per replicate. Errors as for `load_records`."""
    return long_of(read_any(path))


def read_any(path: str | Path) -> list[Record] | pd.DataFrame:
    """Read records or a long table from a folder or file. Errors as for `load_records`."""
    if not str(path).strip():  # Path('') is the current folder
        raise StoreError("The path of results must be a folder or a file, not ''.")
    path = ATLAS_FILE if str(path) == ATLAS and not Path(path).exists() else Path(path)
    table = path.suffix.lower() in TABLES and not path.is_dir() and not is_pack(path)
    return _table(path) if table else load_records(path)


def load_records(path: str | Path) -> list[Record]:
    """Load the records of a results folder, of a pack, or of a file that `ProbeResult.save` wrote.

    If a model, grammar or protocol has several versions, only one version is loaded, with a warning (`newest`).
    Unreadable records are left out, with a warning.

    Raises:
        StoreError: the file or folder does not exist, or has no results.
    """
    path = Path(path)
    if is_pack(path):
        return comparable(Pack.read(path).records)
    records = records_at(path)
    return comparable(records) if path.is_dir() else records


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        of_text = path.suffix.lower() in TEXT_TABLES
        return with_current_names(read_csv_table(path, TEXTS) if of_text else pd.read_parquet(path))
    except FileNotFoundError as error:
        raise StoreError(f"The file {path} does not exist.") from error
    except (OSError, ValueError) as error:  # also the errors of pandas and pyarrow
        first_line = str(error).partition("\n")[0]
        raise StoreError(f"{path} cannot be read as a table ({in_a_line(first_line)}).") from error


def with_current_names(table: pd.DataFrame) -> pd.DataFrame:
    """Rename the columns of a long table that icy 0.1 wrote (OLD_COLUMNS), with a warning."""
    old = {name: new for name, new in OLD_COLUMNS.items() if name in table and new not in table}
    if old:
        names = listed([f"{name} is now {new}" for name, new in old.items()])
        log.warning("This long table has old names of columns, which icy still reads: %s.", names)
    return table.rename(columns=old)


def long_of(results: Results, empty: bool = False) -> pd.DataFrame:
    """Return results in long form with all columns, also for results of older versions of icy.

    Args:
        results: a ProbeResult, a long table, or the path of a folder or file.
        empty: whether empty results are allowed.

    Raises:
        InvalidSettingError: the table is not a table of results; or it is empty, although `empty` is False.
    """
    if isinstance(results, str | Path):
        return read_long(results)
    records = records_in(results)
    table: Any = results if records is None else to_long(records)
    if not hasattr(table, "columns"):
        raise InvalidSettingError(f"Results must be a ProbeResult, a long table, or a path; not {results!r}.")
    if missing := [name for name in NEEDED if name not in table]:
        raise InvalidSettingError(
            f"This is not a long table of results, with a row per model, grammar and seed: it lacks the column "
            f"{', '.join(missing)}. Use ProbeResult.to_dataframe('long'), or the results.parquet of a results folder."
        )
    if not len(table) and not empty:
        raise InvalidSettingError(NONE)
    return _drop_duplicates(_complete_columns(table)) if records is None else table


def records_in(results: Results) -> Sequence[Record] | None:
    """Return the records of results; None for a long table."""
    if isinstance(results, HasRecords):
        return results.records
    return results if isinstance(results, list | tuple) else None


def _drop_duplicates(table: pd.DataFrame) -> pd.DataFrame:
    """Drop duplicate rows of a long table.

    Raises:
        InvalidSettingError: a replicate has two different values.
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
            "out, or distinguish them: by different names of the model, or by different text in the column `options`."
        )
    return last_of_each(table.reset_index(drop=True))


def last_of_each(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the last row of each replicate; prefer results to failures."""
    ordered = table.sort_values("failed", ascending=False, kind="stable")
    return ordered[~ordered.duplicated(REPLICATE, keep="last")].sort_index()


def _complete_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Complete a table from a file or an older version to the columns and types of `to_long`.

    Raises:
        InvalidSettingError: a column for numbers or for yes and no has other text, or a model or grammar is missing.
    """
    require_names(table[["model", "grammar"]].replace("", None), ["model", "grammar"])
    table = with_current_names(table)
    whole = table.reindex(columns=list(dict.fromkeys([*LONG, *table.columns])))
    for name in ("settings", "options", "conventions"):
        whole[name] = whole[name].astype(object).where(whole[name].notna(), "")
    for name in ("split", "pretrain_representation", "error"):  # pandas reads an empty column as numbers
        whole[name] = whole[name].astype(object).where(whole[name].notna(), None)
    for name in ("censored", "failed"):
        whole[name] = boolean_column(f"The column {name}", whole[name])
    for name in NUMBERS:
        whole[name] = number_column(f"The column {name}", whole[name])
    for name in WHOLE:
        whole[name] = _whole(whole[name])
    bare = ~whole["model"].astype(str).str.contains("/") & whole["role"].isin(SIDES)
    whole["model"] = whole["model"].mask(bare, whole["role"].astype(str) + "/" + whole["model"].astype(str))
    whole["role"] = whole["role"].astype(object).fillna(whole["model"].astype(str).str.replace(r"/.*", "", regex=True))
    whole["measure"] = _measures(whole)
    _require_possible(whole)
    kinds = whole["role"].eq("pair").map({True: kind_name("pair"), False: kind_name("")})
    whole["job_kind"] = whole["job_kind"].astype(object).fillna(kinds)
    return whole


def _measures(table: pd.DataFrame) -> Column:
    """Return the measure of each value: from the column `measure`, otherwise from the protocol of the row.

    Raises:
        InvalidSettingError: a row has neither, so that its measure is unknown.
    """
    known = _known_measures(table)
    known = known.where(known.notna(), table["role"].eq("pair").map({True: "accuracy", False: None}))
    if known.isna().any() and len(table):
        rows = f"{int(known.isna().sum())} of its {len(table)} rows" if known.notna().any() else "this table"
        raise InvalidSettingError(
            f"The measure of {rows} is unknown: {listed(MEASURES, 'or')}? Add a column `measure` or `protocol`; in "
            f'Python, table.assign(measure="{MEASURES[0]}"); for `icy table` and `icy plot`, use --measure.'
        )
    return known


def _known_measures(table: pd.DataFrame) -> Column:
    """Return the measure of each value from the columns `measure` and `protocol`; None if it is unknown."""
    columns = table.reindex(columns=["measure", "protocol"]).astype(object)
    by_protocol = {name: protocol.measure for name, protocol in PROTOCOLS.items()}
    measures = columns["measure"].where(columns["measure"].ne(""), None)
    return measures.where(measures.notna(), columns["protocol"].map(by_protocol))


def with_measure(results: list[Record] | pd.DataFrame, measure: str) -> list[Record] | pd.DataFrame:
    """Set unknown measures of a long table to `measure`; return records unchanged."""
    return results if isinstance(results, list) else results.assign(measure=_known_measures(results).fillna(measure))


def _whole(column: Column) -> Column:
    import pandas as pd

    if column.dtype in ("Int64", "int64") or column.isna().all():
        return column.astype("Int64")
    read = pd.to_numeric(column, errors="coerce")
    if len(wrong := column[read.isna() & column.notna()]):
        raise InvalidSettingError(f"The column {column.name} must hold numbers, not '{wrong.iloc[0]}'.")
    if len(wrong := read[read.notna() & (read % 1).ne(0).fillna(False).astype(bool)]):  # infinity too
        raise InvalidSettingError(f"The column {column.name} must hold whole numbers; this table has {wrong.iloc[0]}.")
    known = read.dropna()
    real = pd.api.types.is_float_dtype(known)  # floats cannot represent the largest number
    if len(large := known[known.abs() >= 2.0**63 if real else known > LARGEST_SEED]):
        raise InvalidSettingError(
            f"The column {column.name} of this table has {column[large.index[0]]}, which is too large; the largest "
            f"whole number in a table is {LARGEST_SEED}."
        )
    return read.astype("Int64")


def _require_possible(table: pd.DataFrame) -> None:
    """Require that values of successful runs are possible: finite, and ratios from 0 to LARGEST_RATIO.

    Raises:
        InvalidSettingError: a value is not possible.
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
                f"{counted(int(wrong.sum()), 'value')} cannot be right: the value of {first['model']} on "
                f"{first['grammar']}, seed {first['seed']}, is {first['value']:g}, {what}; correct it in the table, or "
                "leave it out."
            )


def comparable(records: Sequence[Record]) -> list[Record]:
    """Return the records of one version of each model, grammar and protocol, and warn about the others (see `newest`).

    A version is raised when numbers may change, so a mean over several versions would mix different measurements.
    """
    current = newest(records)
    shown = {*map(identity_of, current)}
    older = [record for record in records if identity_of(record) not in shown]
    if older:
        names = list(dict.fromkeys(f"{record['model']} on {record['grammar']}" for record in older))
        text = listed(names, most=MOST_NAMED)
        log.warning("Left out, because of another version of the model, grammar or protocol: %s.", text)
    return current


# -- select parts of results by model, grammar or column ---------------------------------------------------------------


NOTHING = ("", "none", "null", "nan", "na", "<na>")  # values that select rows without a value


def select(
    results: Results,
    models: Sequence[str] = (),
    grammars: Sequence[str] = (),
    where: Options | None = None,
) -> Any:
    """Select results. Return the same type as the input: a ProbeResult, records, or a long table.

    If models are named, the selected results are in the order of their names.

    Args:
        results: a ProbeResult or a long table.
        models: names or wildcards of models, with or without their side; empty selects all models.
        grammars: names or wildcards of grammars; empty selects all grammars.
        where: accepted values by column of the long table, by SYNONYMS of columns, or by setting in `options`.

    Raises:
        UnknownNameError: a pattern or value matches no results, or a column does not exist.
        InvalidSettingError: no result matches all choices.

    Example:
        >>> import pandas as pd
        >>> long = pd.DataFrame({"model": ["sender/FC1L", "sender/FC2L"], "grammar": "rot", "seed": 1, "value": 0.5})
        >>> long["measure"] = "accuracy"
        >>> list(select(long, models=["FC2*"])["model"])
        ['sender/FC2L']
    """
    import pandas as pd

    if records_in(results) and not (models or grammars or where):
        return results
    long = long_of(results)
    keep = pd.Series(True, index=long.index)
    names = {m: (m, m.rpartition("/")[2]) for m in dict.fromkeys(long["model"].astype(str))}
    selected = list(dict.fromkeys(_matching("model in these results", models, names)))
    keep &= long["model"].isin(selected)
    keep &= long["grammar"].isin(
        _matching("grammar in these results", grammars, {g: (g, short_name(g)) for g in sorted(set(long["grammar"]))})
    )
    for column, value in (where or {}).items():
        keep &= _equal(long, column, value)
    if not keep.any():
        raise InvalidSettingError("Each of these choices matches results, but no result matches all; leave one out.")
    places: list[int] = keep.to_numpy().nonzero()[0].tolist()
    if models:
        names_of = long["model"].astype(str).tolist()
        places.sort(key=lambda place: selected.index(names_of[place]))
    records = records_in(results)
    if records is None:
        return long.iloc[places]
    chosen = [records[place] for place in places]
    return replace(results, records=chosen) if is_dataclass(results) else chosen  # type: ignore[type-var]


def _matching(what: str, patterns: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names that match one of the patterns; all names if `patterns` is empty."""
    matches: list[str] = [] if patterns else list(names)
    for pattern in words(patterns):
        wanted = {pattern.lower(), canonical(pattern).lower()}
        fits = [
            name
            for name, forms in names.items()  # brackets in names of models are not wildcards
            if any(form.lower() == p or fnmatch.fnmatchcase(form.lower(), p) for form in forms for p in wanted)
        ]
        if not fits and pattern != "all":
            shortest = [forms[0] if "/" in pattern else forms[-1] for forms in names.values()]
            raise unknown(what, pattern, list(dict.fromkeys(shortest)))
        matches += fits or list(names)
    return matches


def _equal(long: pd.DataFrame, column: str, value: object) -> pd.Series[bool]:
    """Return a mask of the rows with a value, or one of several values, in a column or an option.

    Raises:
        UnknownNameError: no column and no option has this name, or no row has this value.
    """
    name = column_of(column, long)
    options = long if name in long else option_columns(long)
    if name not in options:
        raise unknown("column of results", name, [n for n in (*ROW, "role", "seed", "measure") if n in long])
    values = options[name]
    if (whole := _equal_to(values, value)).any():
        return whole  # for example the text of settings, which has commas
    each = {part: _equal_to(values, part) for part in words(value) or [str(value)]}
    for part, equal in each.items():
        if not equal.any():
            known = sorted(set(values.dropna().astype(str)))
            raise unknown(f"{column.replace('_', ' ')} in these results", part, known)
    return reduce(or_, each.values(), whole)


def _equal_to(values: Column, value: object) -> pd.Series[bool]:
    """Return a mask of the rows of a column with this value."""
    import pandas as pd

    text = str(value).lower()
    equal = values.notna() & values.astype(str).str.lower().eq(text)
    if pd.api.types.is_numeric_dtype(values):
        number = pd.to_numeric(pd.Series([value if isinstance(value, (int, float)) else text]), errors="coerce").iloc[0]
        equal |= values.eq(number).fillna(False).astype(bool)
    if not equal.any() and text in NOTHING:  # unless a name is 'none'
        equal = values.isna()
    return equal
