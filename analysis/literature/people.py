"""The people of Icy22 as rows of the study's table, with counts derived from the printed means."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from icy.analysis.people import NORMAL
from icy.analysis.row_types import Facts, Row
from icy.analysis.statistics import Values

from .catalogue import published

PUBLISHED = "published"
PEOPLE = "people (Icy22)"
STUDY_COLUMNS = (
    *("agent_kind", "agent", "protocol", "preset", "dataset", "grammar", "instance", "person", "metric", "split"),
    *("value", "items", "persons", "low", "high", "printed", "version", "pilot", "settings"),
)


def published_people() -> pd.DataFrame:
    """Return the published accuracies on held-out items, scores and minutes of people.

    The table has a row per dataset, grammar and metric.

    Accuracies are computed from counts. If several counts fit the printed numbers, `value` is their middle, and `low`
    and `high` are the smallest and the largest. `persons` is the number of games.

    Example:
        >>> people = published_people()
        >>> row = people[(people.dataset == "eng") & (people.grammar == "rot") & (people.metric == "exact")].iloc[0]
        >>> round(float(row["value"] * row["items"])), int(row["persons"]), str(row["printed"])
        (1, 21, '0.02±0.03')
    """
    tables = pd.concat([published(f"icy22/table{number}") for number in (21, 22)])
    return pd.DataFrame([_row(found) for found in tables.to_dict("records")], columns=list(STUDY_COLUMNS))


def published_draws(rows: pd.DataFrame, resamples: int, rng: np.random.Generator, share: float = 1.0) -> Values:
    """Draw mean accuracies of people from beta distributions of the printed mean and standard error.

    Args:
        rows: rows of `published_people` with the metric "exact".
        resamples: number of draws.
        rng: random generator.
        share: the share of the people that a mean is of. Half of the people have twice the variance.

    Returns:
        Draws [resample, row], 0 to 1.
    """
    means = rows["value"].to_numpy(float)
    errors = [float(str(text).partition("±")[2]) / NORMAL for text in rows["printed"]]
    sizes = [mean * (1 - mean) / (error**2 / share) - 1 for mean, error in zip(means, errors, strict=True)]
    draws = [rng.beta(m * n, (1 - m) * n, resamples) for m, n in zip(means, sizes, strict=True)]
    return np.stack(draws, 1)


def _row(cell: Row) -> Facts:
    exact = cell["measure"] == "acc_holdout"
    least, most = (cell[name] / cell["items"] if exact else math.nan for name in ("correct_min", "correct_max"))
    row = {
        "agent_kind": PUBLISHED,
        "agent": PEOPLE,
        "protocol": "played",
        "preset": PUBLISHED,
        "dataset": cell["dataset"],
        "grammar": cell["grammar"],
        "metric": "exact" if exact else cell["measure"],
        "split": "held-out" if exact else "game",
        "value": (least + most) / 2 if exact else cell["mean"],
        "items": cell["items"] if exact else math.nan,
        "persons": cell["n"],
        "low": least,
        "high": most,
        "printed": cell["printed"],
    }
    return {**dict.fromkeys(STUDY_COLUMNS), **row}
