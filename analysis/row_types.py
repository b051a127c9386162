"""Types of rows and of their values, which tables, plots and published results share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

Facts: TypeAlias = dict[str, Any]  # values of several types by name: arguments, or the parts of a JSON object
Row: TypeAlias = Mapping[Any, Any]  # values of a row by column, as `DataFrame.to_dict("records")` gives them
Series: TypeAlias = "pd.Series[Any]"  # a row or a column of a DataFrame
SortKey: TypeAlias = tuple[Any, ...]
