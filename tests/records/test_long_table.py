"""The long table, rebuilt from the records."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from icy.records.long_table import write_tables
from icy.records.store import Store


def test_tables_are_rebuilt_from_the_records(tiny: object, tiny_folder: Path) -> None:
    paths = write_tables(Store(tiny_folder))
    csv, parquet = pd.read_csv(paths[0]), pd.read_parquet(paths[1])
    assert len(csv) == len(parquet) == 6
    assert list(csv.columns) == list(parquet.columns)
    assert csv["value"].tolist() == parquet["value"].tolist()
