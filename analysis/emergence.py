"""Bias and emergence: how easily senders learn composition, and how compositional the languages are that they invent.

A probe measures of a sender how many times as many updates each grammar takes as concatenation does. A game measures
how compositional the language is in which the same sender, with a receiver, comes to speak of its own accord.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from icy.analysis.plots.tradeoff_front import COMPOSITIONAL, NOISE
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError
from icy.records.load import Results, long_of

from .correlations import RankCorrelation, rank_correlation
from .metric_conventions import conventions_of
from .table_cells import LEAST_RATIO

HOLISTIC = "hol"
EMERGED: Mapping[str, str] = {  # scores of emerged languages, and what they are called
    "topsim": "topsim",
    "above_chance": "CBM above chance",
    "accuracy": "accuracy",
}
SETTING = {"side": "sender", "representation": "soft", "protocol": "acquire", "meanings": "3x4", "settings": ""}


def probed_senders(long: pd.DataFrame) -> pd.DataFrame:
    """Return the probes of senders in a long table that are under `SETTING`, in which the atlas has the most."""
    same = pd.Series(True, index=long.index)
    for name, value in SETTING.items():
        same &= long[name].fillna("").eq(value)
    return long[same]


def sender_bias(probes: pd.DataFrame) -> pd.DataFrame:
    """Return the bias of every sender towards composition.

    Args:
        probes: ratios to concat in long form, under one setting; those of the atlas have `SETTING`.

    Returns:
        A row per sender, by its name without the side: the mean logarithm of its ratio on each grammar; `bias`, the
        mean over noise grammars less that over compositional ones, which is larger where composition is easier; and
        `against_holistic`, the same of holistic languages.

    Raises:
        InvalidSettingError: these are no ratios.
    """
    good = probes[probes["measure"].eq("ratio") & ~probes["failed"].astype(bool) & probes["grammar"].ne("concat")]
    if good.empty:
        raise InvalidSettingError("The bias of senders is measured by ratios to concat: give results of acquire.")
    logs = good.assign(
        log=np.log(good["value"].clip(lower=LEAST_RATIO)), model=good["model"].str.replace(r"^\w+/", "", regex=True)
    )
    found = logs.pivot_table(index="model", columns="grammar", values="log", aggfunc="mean")
    of = {name: [g for g in grammars if g in found] for name, grammars in (("easy", COMPOSITIONAL), ("hard", NOISE))}
    easy = found[of["easy"]].mean(axis=1)
    return found.assign(
        bias=found[of["hard"]].mean(axis=1) - easy,
        against_holistic=found[HOLISTIC] - easy if HOLISTIC in found else np.nan,
    )


def emerged(games: Results) -> pd.DataFrame:
    """Return scores of the languages that emerged, means over seeds, a row per sender.

    Args:
        games: of the kind of job "games", which differ in the sender alone.

    Raises:
        InvalidSettingError: there are none, or two games of one sender.
    """
    long = long_of(games, empty=True)
    good = long[~long["failed"].astype(bool)] if len(long) else long
    if good.empty or "cbm_floor" not in good:
        raise InvalidSettingError("There are no results of games among these; `icy games train` makes some.")
    good = good.assign(sender=good["model"].str.partition("+")[0], above_chance=good["cbm"] - good["cbm_floor"])
    if good.duplicated(["sender", "grammar", "seed"]).any():
        raise InvalidSettingError("Some senders have several games here, which differ in more; choose among them.")
    scores = list(EMERGED)
    means = good.groupby("sender")[scores].mean()
    spreads = good.groupby("sender")[scores].std().add_suffix("_sd")
    return means.join(spreads).assign(seeds=good.groupby("sender")["seed"].nunique())


@dataclass(frozen=True)
class Emergence:
    """Bias and emergence of some senders.

    Attributes:
        table: a row per sender that was probed and has played: the columns of `sender_bias` and of `emerged`.
        conventions: of the metrics among its columns.
    """

    table: pd.DataFrame
    conventions: Mapping[str, Convention] = field(default_factory=dict)

    @classmethod
    def of(cls, probes: pd.DataFrame, games: Results) -> Emergence:
        """Join the two; see `sender_bias` and `emerged`.

        Raises:
            InvalidSettingError: fewer than four senders are in both.
        """
        table = sender_bias(probes).join(emerged(games), how="inner")
        if len(table) < 4:
            raise InvalidSettingError(f"A correlation takes four senders at least, and {len(table)} are in both.")
        return cls(table, conventions_of(long_of(games, empty=True), "games"))

    def heading(self, score: str) -> str:
        """Return the label of a score of emerged languages, with the convention of a metric."""
        used = self.conventions.get("cbm" if score == "above_chance" else score)
        return EMERGED[score] if used is None else used.heading(EMERGED[score])

    def correlation(self, score: str, bias: str = "bias") -> RankCorrelation:
        """Return Spearman's correlation over senders of a score of their languages with a bias."""
        return rank_correlation(self.table[bias].to_numpy(float), self.table[score].to_numpy(float))

    def correlations(self, biases: Sequence[str] = ("bias", "against_holistic")) -> pd.DataFrame:
        """Return all of them: `bias`, `score`, `spearman`, the ends `low` and `high` of the 95 % interval, and `p`."""
        rows = []
        for bias in biases:
            for score in EMERGED:
                found = self.correlation(score, bias)
                rows.append([bias, score, found.value, found.low, found.high, found.p, found.pairs])
        return pd.DataFrame(rows, columns=["bias", "score", "spearman", "low", "high", "p", "senders"])
