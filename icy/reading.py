"""Results from wherever they were kept: results folders, saved results, long tables, the atlas; and parts of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from icy.errors import InvalidSettingError, StoreError, unknown
from icy.long_table import EXTRA, LONG, NUMBERS, ROW, WHOLE
from icy.registry import SIDES, canonical
from icy.results import ProbeResult

if TYPE_CHECKING:
    import pandas as pd

Results: TypeAlias = "ProbeResult | pd.DataFrame | str | Path"
TABLES = (".csv", ".parquet")
ATLAS = "atlas"  # the name of the atlas that comes with icy, in place of a path
ATLAS_FILE = Path(__file__).parent / "analysis" / "data" / "atlas.parquet"
NEEDED = ("model", "grammar", "seed", "value")
REPLICATE = [*ROW, "grammar", "seed"]  # what no two rows of a long table share
SAME = 1e-9  # two readings of one number
WORDS = {**dict.fromkeys(("true", "yes", "1", "1.0"), True), **dict.fromkeys(("false", "no", "0", "0.0", ""), False)}
NONE = "There are no results here; `icy probe` makes some."


def read_results(paths: Sequence[str | Path]) -> Results:
    """The results of several places as one; what is in more than one, once, from the last.

    Args:
        paths: results folders, files of `ProbeResult.save`, long tables (.csv, .parquet), or "atlas".

    Returns:
        A ProbeResult, or a long table where one of the places is a table, which holds no curves.

    Raises:
        StoreError: there is no such file or folder, or it holds no results.
    """
    found = [_read(path) for path in paths]
    results = [one for one in found if isinstance(one, ProbeResult)]
    if len(results) == len(found):
        return sum(results[1:], start=results[0])
    import pandas as pd

    joined = pd.concat([long_of(one) for one in found], ignore_index=True)
    return _last(joined).reset_index(drop=True)


def read_long(path: str | Path) -> pd.DataFrame:
    """The results of one place in long form, a row per replicate. Errors as for `read_results`."""
    return long_of(_read(path))


def _read(path: str | Path) -> Results:
    path = ATLAS_FILE if str(path) == ATLAS and not Path(path).exists() else Path(path)
    return _table(path) if path.suffix.lower() in TABLES and not path.is_dir() else ProbeResult.load(path)


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path) if path.suffix.lower() == ".csv" else pd.read_parquet(path)
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {path}.") from error
    except (OSError, ValueError) as error:  # pandas' and pyarrow's own errors are of these
        raise StoreError(f"{path} is no table that can be read ({str(error).partition(chr(10))[0]}).") from error


def long_of(results: Results, empty: bool = False) -> pd.DataFrame:
    """Results in long form, with every column of it, whatever version of icy wrote them.

    Args:
        results: a ProbeResult, a long table, or where they are kept.
        empty: whether there may be none.

    Raises:
        InvalidSettingError: a table that is none of results, or one without rows that may not be so.
    """
    if isinstance(results, str | Path):
        return read_long(results)
    table = results.to_dataframe("long") if isinstance(results, ProbeResult) else results
    if not hasattr(table, "columns"):
        raise InvalidSettingError(f"Results are a ProbeResult, a long table, or where they are kept; not {results!r}.")
    if missing := [name for name in NEEDED if name not in table]:
        raise InvalidSettingError(
            f"This is no long table of results, which has a row per model, grammar and seed: it lacks the column "
            f"{', '.join(missing)}; ProbeResult.to_dataframe('long') makes one, and icy writes results.parquet."
        )
    if not len(table) and not empty:
        raise InvalidSettingError(NONE)
    return table if isinstance(results, ProbeResult) else _once(_completed(table))


def _once(table: pd.DataFrame) -> pd.DataFrame:
    """A long table without lines that stand in it twice.

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
    return _last(table.reset_index(drop=True))


def _last(table: pd.DataFrame) -> pd.DataFrame:
    """Of each replicate the last row; a failure does not stand before a result."""
    ordered = table.sort_values("failed", ascending=False, kind="stable")
    return ordered[~ordered.duplicated(REPLICATE, keep="last")].sort_index()


def _completed(table: pd.DataFrame) -> pd.DataFrame:
    """A table from a file, or from an older version, with the columns and the types of `icy.long_table.to_long`.

    Raises:
        InvalidSettingError: a text where a number or a yes or no belongs.
    """
    whole = table.reindex(columns=list(dict.fromkeys([*LONG, *table.columns])))
    for name in ("settings", "options"):
        whole[name] = whole[name].astype(object).where(whole[name].notna(), "")
    for name in ("split", "pretrain_representation", "error"):  # a column of nothing is read as numbers
        whole[name] = whole[name].astype(object).where(whole[name].notna(), None)
    for name in ("cut", "failed"):
        text = whole[name].astype(object).where(whole[name].notna(), "").astype(str)
        whole[name] = _checked(whole[name], text.str.strip().str.lower().map(WORDS))
    for name in NUMBERS:
        whole[name] = _numeric(whole[name])
    for name in WHOLE:
        whole[name] = _whole(whole[name])
    bare = ~whole["model"].astype(str).str.contains("/") & whole["side"].isin(SIDES)
    whole["model"] = whole["model"].mask(bare, whole["side"].astype(str) + "/" + whole["model"].astype(str))
    whole["side"] = whole["side"].astype(object).fillna(whole["model"].astype(str).str.replace(r"/.*", "", regex=True))
    whole["measure"] = whole["measure"].astype(object).fillna("accuracy")
    return whole


def _numeric(column: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    return _checked(column, pd.to_numeric(column, errors="coerce")).astype(float)


def _whole(column: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    read = _checked(column, pd.to_numeric(column, errors="coerce"))
    if len(wrong := read[read.notna() & (read % 1).ne(0).fillna(False).astype(bool)]):  # infinity too
        raise InvalidSettingError(f"In the column {column.name} of this table stands {wrong.iloc[0]}, no whole number.")
    return read.astype("Int64")


def _checked(column: pd.Series[Any], read: pd.Series[Any]) -> pd.Series[Any]:
    """What was read of a column, if all could be that is there."""
    wrong = column[read.isna() & column.notna()]
    if len(wrong):
        kind = "yes or no" if column.name in ("cut", "failed") else "a number"
        raise InvalidSettingError(f"In the column {column.name} of this table stands '{wrong.iloc[0]}', not {kind}.")
    return read


def select(
    results: Results,
    models: Sequence[str] = (),
    grammars: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
) -> Any:
    """Some of the results: a ProbeResult of one, and else a long table.

    Args:
        results: a ProbeResult or a long table.
        models: names or wildcards of models, with or without their side; none are all.
        grammars: the same of grammars.
        where: columns of the long table and the value that each must have.

    Raises:
        UnknownNameError: a pattern or a value that fits nothing, or a column that there is not.
        InvalidSettingError: nothing fits all of them.

    Example:
        >>> import pandas as pd
        >>> long = pd.DataFrame({"model": ["sender/FC1L", "sender/FC2L"], "grammar": "rot", "seed": 1, "value": 0.5})
        >>> list(select(long, models=["FC2*"])["model"])
        ['sender/FC2L']
    """
    import pandas as pd

    long = long_of(results)
    keep = pd.Series(True, index=long.index)
    names = {m: (m, m.rpartition("/")[2]) for m in dict.fromkeys(long["model"].astype(str))}
    keep &= long["model"].isin(_matching("model in these results", models, names))
    keep &= long["grammar"].isin(
        _matching("grammar in these results", grammars, {g: (g,) for g in sorted(set(long["grammar"]))})
    )
    for column, value in (where or {}).items():
        keep &= _equal(long, column, value)
    if not keep.any():
        raise InvalidSettingError("Each of these choices fits some results, and all together none: leave one out.")
    if isinstance(results, ProbeResult):
        return replace(results, records=[r for r, kept in zip(results.records, keep, strict=True) if kept])
    return long[keep]


def _matching(what: str, patterns: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """The names that one of the patterns fits; all if there are none."""
    found: list[str] = [] if patterns else list(names)
    for pattern in patterns:
        wanted = {pattern.lower(), canonical(pattern).lower()}
        fit = [n for n, forms in names.items() if any(fnmatch.fnmatchcase(f.lower(), p) for f in forms for p in wanted)]
        if not fit and pattern != "all":
            shortest = [forms[0] if "/" in pattern else forms[-1] for forms in names.values()]
            raise unknown(what, pattern, list(dict.fromkeys(shortest)))
        found += fit or list(names)
    return found


def _equal(long: pd.DataFrame, column: str, value: Any) -> pd.Series[bool]:
    if column not in long:
        raise unknown("column of results", column, [name for name in (*ROW, "side", "seed", "measure") if name in long])
    import pandas as pd

    number = pd.to_numeric(pd.Series([value]), errors="coerce").iloc[0]
    values = long[column]
    equal = values.astype(str).str.lower().eq(str(value).lower())
    if pd.notna(number):
        equal |= pd.to_numeric(values, errors="coerce").eq(number).fillna(False).astype(bool)
    if not equal.any():
        raise unknown(f"{column.replace('_', ' ')} in these results", str(value), sorted(set(values.astype(str))))
    return equal
