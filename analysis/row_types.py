"""Common types of rows and of their values, for tables, plots and published results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

Facts: TypeAlias = dict[str, Any]  # values of several types by name: arguments, or the parts of a JSON object
Row: TypeAlias = Mapping[Any, Any]  # values of a row by column, as in `DataFrame.to_dict("records")`
Series: TypeAlias = "pd.Series[Any]"  # a row or a column of a DataFrame
SortKey: TypeAlias = tuple[Any, ...]
