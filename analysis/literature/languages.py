"""Published metrics of grammars: how the same metrics of icy's languages compare with the printed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from icy.grammars import make_language

from .agreement import NAMES, with_distance
from .verdicts import COLUMNS, verdict_of, with_verdicts


def judged_languages(wanted: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Measure published cells of residual entropy again, and judge each; see `icy.analysis.literature.verdicts.judged`.

    Each cell is measured on the languages of its grammar, one per seed.

    Args:
        wanted: rows of `icy.analysis.published`.
        seeds: of the languages.

    Returns:
        As `judged`, with the space in the place of `representation` and the search in that of the model.
    """
    cells = wanted.rename(columns={**NAMES, "search": "model"})
    found = [_measured(cell, seeds) for cell in wanted.to_dict("records")]
    cells = cells.assign(**{name: [one[name] for one in found] for name in found[0]})
    cells = with_distance(cells.assign(representation=cells["meanings"], side="pair", hidden_size=128, cut=0))
    verdicts = [verdict_of(cell) for _, cell in cells.iterrows()]
    return with_verdicts(cells, verdicts)[COLUMNS].reset_index(drop=True)


def _measured(cell: dict[Any, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """Return mean and standard error over seeds of the metric of a cell."""
    from icy.metrics import residual_entropy

    sizes = cell["meanings"], int(cell["vocab_size"]), int(cell["word_length"])
    how = {"search": cell["search"], "normalised": bool(cell["normalised"])}
    values = pd.Series([residual_entropy(make_language(cell["grammar"], *sizes, seed), **how).value for seed in seeds])
    counts = {"seeds": len(values), "failed": 0, "tried": len(values)}
    return {"icy": values.mean(), "icy_error": values.sem(), **counts}
