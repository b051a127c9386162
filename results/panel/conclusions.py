"""Conclusions of the panel, and their effects under each setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from icy.analysis.statistics import holm, power_of
from icy.core.text import listed
from results.estimates import student_interval
from results.panel.orders import ALL, ALPHA, DEFAULT, MODELS, POWER, RECEIVERS, SENDERS, Cube, Panel

HOLDS = "holds under all"
SIDES = {"above 1": 1, "below 1": -1}


@dataclass(frozen=True)
class Conclusion:
    """A difference of two groups of cells in the logarithm of ratios or of updates.

    Attributes:
        text: name, with the larger group before the smaller group.
        over: models and grammars of the larger group.
        under: models and grammars of the smaller group.
        updates: whether updates are compared instead of ratios to concat's.
    """

    text: str
    over: tuple[Sequence[str], Sequence[str]]
    under: tuple[Sequence[str], Sequence[str]]
    updates: bool = False

    def of(self, cube: Cube) -> Cube:
        """Return the difference for every seed."""
        base = cube[:, :1] if not self.updates else np.zeros_like(cube[:, :1])
        values = cube - base
        sides = []
        for models, grammars in (self.over, self.under):
            rows, columns = [MODELS.index(name) for name in models], [ALL.index(name) for name in grammars]
            sides.append(values[np.ix_(rows, columns)].mean((0, 1)))
        found: Cube = sides[0] - sides[1]
        return found


FC_SENDER, RNN_SENDER, GRU_SENDER, HIER_SENDER = SENDERS
FC_RECEIVER, CNN_RECEIVER, RNN_RECEIVER, GRU_RECEIVER = RECEIVERS
RNN_SENDERS, RNN_RECEIVERS = (RNN_SENDER, GRU_SENDER), (RNN_RECEIVER, GRU_RECEIVER)


def _models(text: str, over: Sequence[str], under: Sequence[str], grammar: str, updates: bool = False) -> Conclusion:
    """Return the conclusion that models `over` need more than models `under` for a grammar."""
    measure = f"{grammar}, updates" if updates else grammar
    return Conclusion(f"{text}: {measure}", (over, (grammar,)), (under, (grammar,)), updates)


def _grammars(text: str, models: Sequence[str], over: str, under: str) -> Conclusion:
    """Return the conclusion that models need more for the grammar `over` than for `under`."""
    return Conclusion(f"{text}: {over} > {under}", (models, (over,)), (models, (under,)))


HARD = ("shufdet", "rot", "pairsum")
CONCLUSIONS = (
    *(_models("senders, FC2L > recurrent", (FC_SENDER,), RNN_SENDERS, grammar) for grammar in HARD),
    *(_models("senders, FC2L > recurrent", (FC_SENDER,), RNN_SENDERS, grammar, True) for grammar in HARD),
    *(_models("receivers, FC2L > recurrent", (FC_RECEIVER,), RNN_RECEIVERS, grammar) for grammar in HARD),
    *(_models("receivers, FC2L > recurrent", (FC_RECEIVER,), RNN_RECEIVERS, grammar, True) for grammar in HARD),
    _models("receivers, CNN > recurrent", (CNN_RECEIVER,), RNN_RECEIVERS, "proj"),
    _models("recurrent, receivers > senders", RNN_RECEIVERS, RNN_SENDERS, "proj"),
    _models("recurrent, receivers > senders", RNN_RECEIVERS, RNN_SENDERS, "rot"),
    _models("senders, RNN > GRU", (RNN_SENDER,), (GRU_SENDER,), "rot"),
    _models("senders, RNN > GRU", (RNN_SENDER,), (GRU_SENDER,), "shufdet"),
    _models("senders, RNNZero > HierZero", (RNN_SENDER,), (HIER_SENDER,), "rot"),
    _models("receivers, RNN > GRU", (RNN_RECEIVER,), (GRU_RECEIVER,), "rot"),
    _grammars("recurrent senders", RNN_SENDERS, "perm", "concat"),
    _grammars("recurrent senders", RNN_SENDERS, "rot", "shufdet"),
    _grammars("recurrent receivers", RNN_RECEIVERS, "proj", "rot"),
    _grammars("recurrent receivers", RNN_RECEIVERS, "pairsum", "rot"),
)


@dataclass(frozen=True)
class Effect:
    """The effect size of a conclusion under a setting.

    Attributes:
        factor: geometric mean over seeds.
        low: lower end of the 95 % interval of `factor`, by Student's t.
        high: upper end of the interval.
        change: the factor divided by the default's factor.
        p: p-value of the change, by a paired t-test over seeds; `effects` corrects it for all tests.
    """

    factor: float
    low: float
    high: float
    change: float = 1.0
    p: float = math.nan

    @property
    def sign(self) -> int:
        """1 or -1 if the interval is above or below 1, else 0."""
        return 1 if self.low > 1 else -1 if self.high < 1 else 0


def effects(panel: Panel) -> dict[str, dict[str, Effect]]:
    """Return the effect of each conclusion under each setting; Holm's method corrects the p-values over all tests."""
    found: dict[str, dict[str, Effect]] = {}
    for one in CONCLUSIONS:
        for setting in panel.cubes:
            before, after = (one.of(cube) for cube in panel.both(setting))
            ends = [math.exp(value) for value in student_interval(after)]
            p = math.nan if setting == DEFAULT else float(scipy.stats.ttest_rel(after, before).pvalue)
            found.setdefault(one.text, {})[setting] = Effect(*ends, math.exp((after - before).mean()), p)
    flat = [(text, setting) for text, row in found.items() for setting in row]
    corrected = holm([found[text][setting].p for text, setting in flat])
    for (text, setting), p in zip(flat, corrected, strict=True):
        old = found[text][setting]
        found[text][setting] = Effect(old.factor, old.low, old.high, old.change, p)
    return found


def verdict(row: Mapping[str, Effect]) -> str:
    """Return a text on whether a conclusion holds, is reversed or is not shown under other settings."""
    base = row[DEFAULT].sign
    if not base:
        sides = {side: [name for name, effect in row.items() if effect.sign == sign] for side, sign in SIDES.items()}
        text = "; ".join(f"{side} under {listed(names)}" for side, names in sides.items() if names)
        return f"not shown by default; {text}" if text else "not shown under any setting"
    reversed_ = [name for name, effect in row.items() if effect.sign == -base]
    open_ = [name for name, effect in row.items() if not effect.sign]
    if not reversed_ and not open_:
        return HOLDS
    parts = [f"reversed under {listed(reversed_)}"] * bool(reversed_) + [f"not shown under {listed(open_)}"] * bool(
        open_
    )
    return "; ".join(parts)


def resolvable(spread: float, count: int) -> float:
    """Return the smallest factor that a paired t-test over `count` seeds finds with a power of 80 %."""
    effect = scipy.optimize.brentq(lambda size: power_of(count, size, ALPHA) - POWER, 0.0, 20.0)
    return math.exp(effect * spread)
