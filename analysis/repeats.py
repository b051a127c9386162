"""Runs that repeat others, because they differ only in a factor that their model does not have."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from icy.core.text import counted, listed
from icy.records.long_table import EXTRA, ROW
from icy.training.same_networks import SAME_FOR_RECEIVERS

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
FACTORS = ("hidden_size", "representation")


def without_repeats(results: pd.DataFrame) -> pd.DataFrame:
    """Return a long table without rows that trained the network of another row, with a warning.

    A model without a hidden layer has the same number of parameters and the same results at every hidden size, and a
    receiver has the same results under several representations. Other tables are returned as they are.
    """
    if not {"model", "grammar", "seed", "parameters", "steps", *FACTORS} <= set(results):
        return results
    names = [name for name in (*ROW, "role", "grammar", "seed", "parameters", "steps", "value", "accuracy", *EXTRA)
             if name in results and name != "hidden_size"]  # fmt: skip
    facts = results[names].astype(object)
    receivers = results["model"].astype(str).str.startswith("receiver/")
    facts["representation"] = facts["representation"].mask(
        receivers & facts["representation"].isin(SAME_FOR_RECEIVERS), SAME_FOR_RECEIVERS[0]
    )
    repeated = facts.duplicated() & ~results.duplicated([*names, "hidden_size"])
    if repeated.any():
        log.warning(
            "%s of %s left out: they repeat other runs, as their hidden size or representation has no effect.",
            *(counted(int(repeated.sum()), "run"), listed(sorted(set(results["model"][repeated].astype(str))))),
        )
    return results[~repeated]
