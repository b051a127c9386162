"""Select parts of results by model, grammar or column."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError, unknown
from icy.core.registry import canonical
from icy.core.text import words
from icy.core.types import Options
from icy.languages.names import short_name

from .load import Results, long_of, records_in
from .long_table import ROW, column_of

if TYPE_CHECKING:
    import pandas as pd

    from .load import Column

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
        fits = [n for n, forms in names.items() if any(_fits(f.lower(), p) for f in forms for p in wanted)]
        if not fits and pattern != "all":
            shortest = [forms[0] if "/" in pattern else forms[-1] for forms in names.values()]
            raise unknown(what, pattern, list(dict.fromkeys(shortest)))
        matches += fits or list(names)
    return matches


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name is or matches a pattern; brackets in names of models are not wildcards."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def _equal(long: pd.DataFrame, column: str, value: object) -> pd.Series[bool]:
    values = _values(long, column_of(column, long))
    if (whole := _equal_to(values, value)).any():
        return whole  # for example the text of settings, which has commas
    each = {part: _equal_to(values, part) for part in words(value) or [str(value)]}
    for part, equal in each.items():
        if not equal.any():
            known = sorted(set(values.dropna().astype(str)))
            raise unknown(f"{column.replace('_', ' ')} in these results", part, known)
    return reduce(or_, each.values(), whole)


def _values(long: pd.DataFrame, column: str) -> Column:
    """Return a column of the long table, or the values of a setting in the column `options`, missing where it has none.

    Raises:
        UnknownNameError: no column and no setting has this name.
    """
    import pandas as pd

    if column in long:
        return long[column]
    options = long["options"].astype(str) if "options" in long else pd.Series("", index=long.index)
    found = options.str.extract(rf"(?:^|, ){re.escape(column)}=(.*?)(?=, \w+=|$)", expand=False)
    if found.isna().all():
        raise unknown("column of results", column, [name for name in (*ROW, "role", "seed", "measure") if name in long])
    return found


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
