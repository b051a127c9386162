"""Published metrics of grammars, compared with the same metrics of icy's languages."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from icy.analysis.row_types import Row
from icy.grammars import make_language

from .verdicts import judge_runs


def judge_languages(reference: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Compute the residual entropy of icy's languages, and compare it with published cells; see `judge_cells`.

    Each cell is measured on the languages of its grammar, one per seed.

    Args:
        reference: rows of `icy.analysis.published`.
        seeds: seeds of the languages.

    Returns:
        The table of `icy.analysis.literature.verdicts.judge_cells`: the column `representation` holds the space, and
        `model` the search method.
    """
    cells = reference.rename(columns={"search": "model"}).assign(representation=reference["meanings"])
    return judge_runs(cells, [_values(cell, seeds) for cell in reference.to_dict("records")])


def _values(cell: Row, seeds: Sequence[int]) -> pd.DataFrame:
    """Return the metric of a cell for each seed."""
    from icy.metrics import residual_entropy

    sizes = cell["meanings"], int(cell["vocab_size"]), int(cell["word_length"])
    options = {"search": cell["search"], "normalised": bool(cell["normalised"])}
    values = [residual_entropy(make_language(cell["grammar"], *sizes, seed), **options).value for seed in seeds]
    return pd.DataFrame({"value": values, "failed": False})
