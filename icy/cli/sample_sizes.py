"""`icy metrics --by-sample-size`: concept best matching by the number of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError
from icy.metrics import cbm_by_sample_size
from icy.metrics.evaluation import DEFAULT_METRICS

from .output import print_rows, write_rows

if TYPE_CHECKING:
    import pandas as pd

    from icy.metrics import Table

METRIC = "cbm"


def require_cbm(names: Sequence[str], others: Mapping[str, object]) -> None:
    """Check that the only metric is cbm, and that no option without effect is given.

    Args:
        names: names of the metrics; the default metrics are accepted, and only cbm is measured.
        others: values of options without effect, by name; false values for options that are not given.

    Raises:
        InvalidSettingError: another metric, or an option without effect.
    """
    if tuple(names) not in ((METRIC,), DEFAULT_METRICS):
        raise InvalidSettingError("--by-sample-size only supports cbm: give `--metric cbm` and no other metric.")
    if given := [name for name, value in others.items() if value]:
        raise InvalidSettingError(f"--{given[0]} has no effect with --by-sample-size; leave it out.")


def show_sample_sizes(
    tables: Iterable[tuple[str, int | None, Table, Mapping[str, Any]]], format_: str, target: Path | None, quiet: bool
) -> None:
    """Print cbm for each segment of rows and for all rows up to its end, and write the scores to a file.

    Args:
        tables: for each language its name, its seed, its table and the arguments of `cbm_by_sample_size`.
        format_: format of the output.
        target: a csv or parquet file, or None.
        quiet: if true, no line about the file is printed.

    Raises:
        InvalidSettingError: fewer rows than one segment, or an error of cbm.
    """
    import pandas as pd

    frames: list[pd.DataFrame] = []
    for name, seed, table, conventions in tables:
        sizes = cbm_by_sample_size(table, **conventions)
        frames.append(sizes.assign(language=name, language_seed=-1 if seed is None else seed))
    rows = pd.concat(frames, ignore_index=True)
    if rows["language_seed"].eq(-1).all():
        rows = rows.drop(columns="language_seed")
    first = [name for name in ("language", "language_seed") if name in rows]
    rows = rows[[*first, *rows.columns.difference(first, sort=False)]]
    shown = rows.map(lambda value: f"{value:.3f}" if isinstance(value, float) else str(value))
    print_rows([str(name).replace("_", " ") for name in rows], shown.to_numpy().tolist(), format_)
    write_rows(rows, target, quiet)
