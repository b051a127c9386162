"""The atlas as findings.py reads it: one setting at a time, models by side and family, means over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

import icy
from icy.analysis import style
from icy.analysis.cells import LEAST_RATIO

LARGE, SMALL = "5x10", "3x4"  # the papers' space, and that of `icy probe --quick`
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum", "hol")
FAMILIES = {
    "fully connected": ("FC",),
    "convolution": ("CNN",),
    "recurrent": ("RNNZero", "RNNAutoReg", "RNN"),
    "hierarchical (HU-RNN)": ("HierZero", "HierAutoReg", "Hier"),
    "attention": ("Transformer", "TransDecSoft"),
}
HIERARCHIES = (("HierZero", "RNNZero"), ("HierAutoReg", "RNNAutoReg"), ("Hier", "RNN1L"))  # with one, and without
ARCHITECTURES = ("RNNZero", "RNNZero2L", "RNNAutoReg", "RNNAutoReg2L", "HierZero", "HierAutoReg")
CELLS = ("RNN", "GRU", "LSTM", "dgsend")
SEQUENCE = ("recurrent", "hierarchical (HU-RNN)")  # families that take a message token by token
SIDES = ("sender", "receiver")
Means = pd.DataFrame  # a row per model, a column per grammar: means over seeds, of ratios of their logarithms


def probes(meanings: str = LARGE, representation: str = "soft", protocol: str = "acquire") -> pd.DataFrame:
    """Return the atlas's results of models that learn by gradient, and of ratios the logarithm.

    All are of one setting of training, that in which the atlas has most models.
    """
    long = icy.atlas().to_dataframe()
    same = long["representation"].eq(representation) & long["meanings"].eq(meanings) & long["protocol"].eq(protocol)
    good = long[same & ~long["failed"].astype(bool) & long["parameters"].gt(0)]
    settings = good["settings"].fillna("")
    good = good[settings.eq(good.groupby(settings)["model"].nunique().idxmax())]
    return good.assign(log=np.log(good["value"].clip(lower=LEAST_RATIO)), family=good["model"].map(family_of))


def family_of(model: str) -> str:
    """Return the family of a model, a key of FAMILIES."""
    name = style.family(model)
    return next(family for family, names in FAMILIES.items() if name in names)


def table_of(long: pd.DataFrame, grammars: Sequence[str] = GRAMMARS, column: str = "log") -> Means:
    """Return means over seeds of the models that have all of some grammars."""
    return long.pivot_table(index="model", columns="grammar", values=column)[list(grammars)].dropna()


def of_side(table: Means, side: str) -> Means:
    """Return the rows of senders, or of receivers."""
    return table[table.index.str.startswith(f"{side}/")]


def of_families(table: Means, *families: str) -> Means:
    """Return the rows of models of some families."""
    return table[table.index.map(family_of).isin(families)]
