"""The order of grammars from easy to hard, for people and for senders: Kendall's tau of accuracies and ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy  # loads its parts on first use

from icy.analysis.order import in_order
from icy.analysis.row_types import Series
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError

PEOPLE = ("published", "human")  # kinds of agents that senders are compared with
LEAST_GRAMMARS = 3  # least number of grammars for a comparison of orders


def acquisition_order(report: pd.DataFrame, long: pd.DataFrame) -> pd.DataFrame:
    """Compare senders with people by their order of grammars, from easy to hard.

    Ratios are of larger languages than people learn, and are not accuracies, so only orders are compared. Kendall's
    tau-b is 1 if senders need more updates for the grammars on which people are less accurate, and -1 if they need
    fewer. Over five grammars, 1 in 60 pairs of random orders has a tau of 1 or of -1.

    Args:
        report: report of `icy.analysis.tables.study.study_report`, with people in it.
        long: a long table of senders under the protocol `acquire`, as `icy probe` saves it.

    Returns:
        A row per sender: `sender`, the mean ratio to concat on each grammar, and a column `tau AGENT, DATASET` for each
        group of people.

    Raises:
        InvalidSettingError: the report has no people, or the table no ratios of senders for their grammars.
    """
    people = {
        f"tau {agent}, {dataset}": part.groupby("grammar")["accuracy"].mean()
        for (agent, dataset), part in report[report["agent_kind"].isin(PEOPLE)].groupby(
            ["agent", "dataset"], sort=False
        )
    }
    if not people:
        raise InvalidSettingError("The report has no people to compare senders with; add --rows or --published.")
    ratios = _ratios(long, {str(grammar) for accuracy in people.values() for grammar in accuracy.index})
    grammars = in_order({grammar for found in ratios.values() for grammar in found})
    rows = [
        {
            "sender": name,
            **{grammar: found.get(grammar, math.nan) for grammar in grammars},
            **{label: order_tau(_by_name(accuracy), found) for label, accuracy in people.items()},
        }
        for name, found in ratios.items()
    ]
    return pd.DataFrame(rows)


def _ratios(long: pd.DataFrame, grammars: set[str]) -> dict[str, dict[str, float]]:
    """Return the mean ratios of senders to concat by grammar; the ratio of concat is 1.

    Raises:
        InvalidSettingError: the table has no ratios of senders on these grammars.
    """
    chosen = long[
        long["grammar"].isin(grammars) & (long["grammar"] != BASELINE) & long["model"].str.startswith("sender/")
    ]
    chosen = chosen[(chosen["measure"] == "ratio") & ~chosen["failed"].astype(bool)]
    if chosen.empty:
        raise InvalidSettingError(
            "These results have no acquisition ratios of senders for the grammars that people learned; "
            "`icy probe --protocol acquire` measures them."
        )
    means = chosen.groupby(["model", "grammar"], sort=False)["value"].mean()
    return {
        str(name).removeprefix("sender/"): {BASELINE: 1.0, **_by_name(part.droplevel("model"))}
        for name, part in means.groupby("model", sort=False)
    }


def _by_name(values: Series) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()}


def order_tau(accuracy: Mapping[str, float], ratio: Mapping[str, float]) -> float:
    """Return Kendall's tau-b of two orders of grammars; NaN for fewer than three grammars, or if all are tied.

    Args:
        accuracy: accuracies by grammar; high for an easy grammar.
        ratio: ratios by grammar; low for an easy grammar.

    Example:
        >>> round(order_tau({"concat": 0.6, "perm": 0.2, "rot": 0.0}, {"concat": 1.0, "perm": 1.1, "rot": 4.0}), 6)
        1.0
    """
    shared = [grammar for grammar in accuracy if grammar in ratio]
    if len(shared) < LEAST_GRAMMARS:
        return math.nan
    ours, theirs = (np.array([found[grammar] for grammar in shared]) for found in (accuracy, ratio))
    return float(scipy.stats.kendalltau(ours, -theirs).statistic)
