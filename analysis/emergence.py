"""Bias and emergence: how easily senders learn compositional grammars, and how compositional their own languages are.

A probe measures the ratio of a sender's updates for each grammar to its updates for concatenation. A game measures how
compositional the language is that the same sender develops with a receiver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from icy.analysis import style
from icy.analysis.order import COMPOSITIONAL, NOISE
from icy.core.checks import boolean_column
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError
from icy.records.load import Results, long_of

from .correlations import RankCorrelation, rank_correlation
from .picture import Panel, Picture, plot
from .table_cells import LEAST_RATIO, conventions_of

HOLISTIC = "hol"
EMERGED: Mapping[str, str] = {  # scores of emergent languages, and their labels
    "topsim": "topsim",
    "above_chance": "CBM above chance",
    "accuracy": "accuracy",
}
SETTING = {"role": "sender", "representation": "soft", "protocol": "acquire", "meanings": "3x4", "settings": ""}


def probed_senders(long: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of senders under `SETTING`, the setting with most models in the atlas."""
    same = pd.Series(True, index=long.index)
    for name, value in SETTING.items():
        same &= long[name].fillna("").eq(value)
    return long[same]


def sender_bias(probes: pd.DataFrame) -> pd.DataFrame:
    """Return the compositional bias of every sender.

    Args:
        probes: ratios to concat in long form, under one setting, such as `SETTING` in the atlas.

    Returns:
        A row per sender, indexed by name without the side. It has the mean logarithm of the ratio on each grammar;
        `bias`, the mean over noise grammars minus the mean over compositional grammars; `against_holistic`, the mean
        over holistic languages minus the mean over compositional grammars; and `bias_error` and
        `against_holistic_error`, their standard errors over seeds.

    Raises:
        InvalidSettingError: the probes have no ratios.
    """
    failed = boolean_column("Column failed", probes["failed"])
    good = probes[probes["measure"].eq("ratio") & ~failed & probes["grammar"].ne("concat")]
    if good.empty:
        raise InvalidSettingError("The bias of senders needs ratios to concat: use results of the protocol acquire.")
    logs = good.assign(
        log=np.log(good["value"].clip(lower=LEAST_RATIO)), model=good["model"].str.replace(r"^\w+/", "", regex=True)
    )
    each = logs.pivot_table(index=["model", "seed"], columns="grammar", values="log", aggfunc="mean")
    errors = _with_biases(each)[["bias", "against_holistic"]].groupby("model").sem().add_suffix("_error")
    return _with_biases(each.groupby("model").mean()).join(errors)


def _with_biases(logs: pd.DataFrame) -> pd.DataFrame:
    easy = logs[[name for name in COMPOSITIONAL if name in logs]].mean(axis=1)
    return logs.assign(
        bias=logs[[name for name in NOISE if name in logs]].mean(axis=1) - easy,
        against_holistic=logs[HOLISTIC] - easy if HOLISTIC in logs else np.nan,
    )


def emerged(games: Results) -> pd.DataFrame:
    """Return the mean scores, over seeds, of the languages that senders developed in games: a row per sender.

    Args:
        games: results of the kind of job "games" that differ only in the sender.

    Raises:
        InvalidSettingError: the results have no games, or two games of one sender.
    """
    long = long_of(games, empty=True)
    good = long[~long["failed"].astype(bool)] if len(long) else long
    if good.empty or "cbm_floor" not in good:
        raise InvalidSettingError("These results have no games; `icy games train` trains senders in games.")
    good = good.assign(sender=good["model"].str.partition("+")[0], above_chance=good["cbm"] - good["cbm_floor"])
    if good.duplicated(["sender", "grammar", "seed"]).any():
        raise InvalidSettingError("Some senders have several games, with different settings; choose one setting.")
    scores = list(EMERGED)
    means = good.groupby("sender")[scores].mean()
    spreads = good.groupby("sender")[scores].std().add_suffix("_sd")
    return means.join(spreads).assign(seeds=good.groupby("sender")["seed"].nunique())


@dataclass(frozen=True)
class Emergence:
    """Bias and emergence of some senders.

    Attributes:
        table: a row per sender with probes and games: the columns of `sender_bias` and of `emerged`.
        conventions: conventions of the metrics among the columns.
    """

    table: pd.DataFrame
    conventions: Mapping[str, Convention] = field(default_factory=dict)

    @classmethod
    def of(cls, probes: pd.DataFrame, games: Results) -> Emergence:
        """Join probes and games by sender; see `sender_bias` and `emerged`.

        Raises:
            InvalidSettingError: fewer than four senders have both probes and games.
        """
        table = sender_bias(probes).join(emerged(games), how="inner")
        if len(table) < 4:
            verb = "has" if len(table) == 1 else "have"
            raise InvalidSettingError(
                f"A correlation needs at least four senders; {len(table)} {verb} both probes and games."
            )
        return cls(table, conventions_of(long_of(games, empty=True), "games"))

    def heading(self, score: str) -> str:
        """Return the label of a score of emergent languages; for a metric, with its convention."""
        used = self.conventions.get("cbm" if score == "above_chance" else score)
        return EMERGED[score] if used is None else used.heading(EMERGED[score])

    def correlation(self, score: str, bias: str = "bias") -> RankCorrelation:
        """Return Spearman's correlation, over senders, between a bias and a score of their languages."""
        return rank_correlation(self.table[bias].to_numpy(float), self.table[score].to_numpy(float))

    def correlations(self, biases: Sequence[str] = ("bias", "against_holistic")) -> pd.DataFrame:
        """Return all correlations: `bias`, `score`, `spearman`, its interval (`low`, `high`), `p` and `senders`."""
        rows = []
        for bias in biases:
            for score in EMERGED:
                found = self.correlation(score, bias)
                rows.append([bias, score, found.value, found.low, found.high, found.p, found.pairs])
        return pd.DataFrame(rows, columns=["bias", "score", "spearman", "low", "high", "p", "senders"])


# -- bias of senders against the compositionality of their emergent languages ------------------------------------------


HEIGHT = 1.9  # inches
SCORES = ("topsim", "above_chance")  # both are 0 by chance
TITLE = "Do senders with a bias towards composition develop compositional languages?"


@plot
def plot_emergence(emergence: Emergence, bias: str = "bias", scores: Sequence[str] = SCORES) -> Picture:
    """Draw a panel per score: a point per sender (x: bias, y: score of the language), with the correlation.

    Senders of one family have the same mark. Error bars are standard errors over seeds. A dotted line is the value by
    chance.

    Args:
        emergence: biases of senders, and scores of their languages.
        bias: column on the x axis, "bias" or "against_holistic".
        scores: columns on the y axes.
        axes: axes to draw on, one per score; by default a new figure.

    Returns:
        The figure.
    """
    notes = [
        "error bars: standard error over seeds; dotted line: by chance",
        *(f"{emergence.heading(score)}: Spearman {emergence.correlation(score, bias)}" for score in scores),
    ]
    looks = style.model_looks(emergence.table.index.str.partition(":").get_level_values(0))
    panels = [
        Panel(partial(_senders, emergence.table, bias, score, looks), height=HEIGHT, grid="both",
              x="bias towards composition (log ratio)", y=emergence.heading(score))
        for score in scores
    ]  # fmt: skip
    legend = [look.handle(name, line=False) for name, look in looks.items()]
    return Picture(panels, TITLE, notes, legend, len(scores), grid={"sharex": True})


def _senders(table: pd.DataFrame, bias: str, score: str, looks: Mapping[str, style.Look], ax: Axes) -> None:
    """Draw a point per sender."""
    for name, look in looks.items():
        part = table[table.index.str.partition(":").get_level_values(0) == name]
        errors = part[f"{bias}_error"].fillna(0), (part[f"{score}_sd"] / np.sqrt(part["seeds"])).fillna(0)
        ax.errorbar(
            part[bias], part[score], xerr=errors[0], yerr=errors[1], fmt=look.marker, markersize=4, linewidth=0.7,
            color=look.color, markerfacecolor=look.face,
        )  # fmt: skip
    if score in SCORES:
        ax.axhline(0, **style.CHANCE)
