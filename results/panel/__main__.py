"""Does the order of models and grammars depend on the settings? `python -m results.panel [--train [--seeds 5]]`.

With --train, trains the rows of panel.toml that are missing in records.parquet, and resumes
interrupted runs. Without it, packs all records, and writes panel.md and panel.png.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from icy.analysis import style
from icy.analysis.statistics import holm, power_of
from icy.core.text import listed, markdown_table
from results.estimates import percentile_interval, print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, fill_template, read_options

HERE = Path(__file__).parent
PAGE, FIGURE, SWEEP, SCALED = (HERE / name for name in ("panel.md", "panel.png", "panel.toml", "scaled.py"))
RECORDS = RecordFolder(HERE)

SENDERS = ("sender/FC2L", "sender/RNNZero:RNN", "sender/RNNZero:GRU", "sender/HierZero:RNN")
RECEIVERS = ("receiver/FC2L", "receiver/CNN", "receiver/RNN1L:RNN", "receiver/RNN1L:GRU")
MODELS = (*SENDERS, *RECEIVERS)
GRAMMARS = ("perm", "shufdet", "proj", "rot", "pairsum")  # relative to concat
ALL = ("concat", *GRAMMARS)
DEFAULT = "default"
SETTINGS = {
    ("", "", 128): DEFAULT,
    ("learning_rate=0.003", "", 128): "rate ×3",
    ("learning_rate=0.000333", "", 128): "rate ×⅓",
    ("optimizer=rmsprop", "", 128): "RMSprop",
    ("batch_size=32", "", 128): "batch 32",
    ("batch_size=512", "", 128): "batch 512",
    ("", "scale=0.5", 128): "init ×½",
    ("", "scale=2.0", 128): "init ×2",
    ("", "", 64): "width 64",
    ("", "", 256): "width 256",
}
PAIRS = [*combinations(range(4), 2), *combinations(range(4, 8), 2)]  # of models of one side
RESAMPLES = 2000
LEAST = 1e-9  # smaller differences of mean taus are rounding errors
CUT = ["setting", "model", "grammar"]
POWER, ALPHA = 0.8, 0.05
HOLDS = "holds under all"
SIDES = {"above 1": 1, "below 1": -1}

Cube = NDArray[np.float64]  # logarithms of updates to the target: [model, grammar with concat first, seed]


# -- data --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """Logarithms of updates to the target per setting, and the runs that did not reach it.

    Attributes:
        cubes: cube of each setting, over the seeds that all models and grammars of the setting have.
        seeds: these seeds, by setting, in order.
        cut: setting, model and grammar of the runs that ended at the cap.
        runs: number of all runs.
        hours: total time of all runs, in hours.
    """

    cubes: Mapping[str, Cube]
    seeds: Mapping[str, Sequence[int]]
    cut: pd.DataFrame
    runs: int
    hours: float

    @property
    def default(self) -> Cube:
        """The cube of the default setting."""
        return self.cubes[DEFAULT]

    def both(self, setting: str) -> tuple[Cube, Cube]:
        """Return the cubes of the default setting and of another setting, over their common seeds."""
        shared = sorted({*self.seeds[DEFAULT]} & {*self.seeds[setting]})
        base, changed = (
            self.cubes[name][..., [list(self.seeds[name]).index(seed) for seed in shared]]
            for name in (DEFAULT, setting)
        )
        return base, changed


def read(long: pd.DataFrame) -> Panel:
    """Make the panel from records in long form. Settings with fewer than two complete seeds are left out."""
    good = long[~long["failed"].astype(bool)].copy()
    named = zip(good["settings"].fillna(""), good["options"].fillna(""), good["hidden_size"], strict=True)
    good["setting"] = [SETTINGS.get(key) for key in named]
    good["model"] = good["model"].str.replace("Scaled-", "")
    good["log"] = np.log(np.where(good["cut"].astype(bool), good["cap"] * good["baseline_crossing"], good["crossing"]))
    cubes, seeds, cut, place = {}, {}, [], pd.MultiIndex.from_product([MODELS, ALL], names=["model", "grammar"])
    for setting, rows in good.groupby("setting"):
        wide = rows.pivot_table(index=["model", "grammar"], columns="seed", values="log").reindex(place)
        whole = wide.dropna(axis=1)
        if whole.shape[1] >= 2:
            cubes[str(setting)] = whole.to_numpy().reshape(len(MODELS), len(ALL), -1)
            seeds[str(setting)] = list(whole.columns)
            cut.append(rows.loc[rows["cut"].astype(bool) & rows["seed"].isin(whole.columns), CUT])
    ordered = {name: cubes[name] for name in SETTINGS.values() if name in cubes}
    return Panel(ordered, seeds, pd.concat(cut, ignore_index=True), len(long), long["seconds"].sum() / 3600)


def ratios(cube: Cube) -> Cube:
    """Return logarithms of ratios to concat: [model, grammar, ...]."""
    return cube[:, 1:] - cube[:, :1]


# -- orders ------------------------------------------------------------------------------------------------------------


def tau_of_models(first: Cube, second: Cube) -> Cube:
    """Return Kendall's tau of two orders of models, over pairs of models of one side: [grammar]."""
    signs = [np.stack([np.sign(means[a] - means[b]) for a, b in PAIRS]) for means in (first, second)]
    product: Cube = (signs[0] * signs[1]).mean(0)
    return product


def tau_of_grammars(first: Cube, second: Cube) -> Cube:
    """Return Kendall's tau of two orders of grammars: [model]."""
    pairs = list(combinations(range(first.shape[1]), 2))
    signs = [np.stack([np.sign(means[:, a] - means[:, b]) for a, b in pairs]) for means in (first, second)]
    product: Cube = (signs[0] * signs[1]).mean(0)
    return product


Order = Callable[[Cube, Cube], Cube]
ORDERS: dict[str, tuple[Order, Callable[[Cube], Cube], Sequence[str]]] = {
    "models, by ratio": (tau_of_models, ratios, GRAMMARS),
    "models, by updates": (tau_of_models, lambda cube: cube, ALL),
    "grammars, by ratio": (tau_of_grammars, ratios, MODELS),
}


def resampled(cubes: Sequence[Cube], order: Order, rng: np.random.Generator, apart: bool = False) -> Cube:
    """Return taus of means of resampled seeds: [resample, item].

    Args:
        cubes: two cubes of the same seeds.
        order: function that returns tau.
        rng: random generator.
        apart: whether seeds are drawn separately for each cube.
    """
    count, found = cubes[0].shape[-1], []
    for _ in range(RESAMPLES):
        chosen = rng.integers(count, size=(2, count))
        found.append(order(cubes[0][..., chosen[0]].mean(-1), cubes[1][..., chosen[1 if apart else 0]].mean(-1)))
    return np.array(found)


@dataclass(frozen=True)
class Tau:
    """Kendall's tau between the orders under a setting and under the default, per item and as a mean.

    Attributes:
        items: value and ends of the interval for each model or grammar.
        mean: value and ends of the interval of the mean over items.
        expected: expected mean if the setting changes nothing, from pairs of samples of the default's seeds.
        least: 5 % quantile of the means of these pairs.
        p: share of these pairs with a mean that is at most the observed mean.
    """

    items: dict[str, tuple[float, float, float]]
    mean: tuple[float, float, float]
    expected: float
    least: float
    p: float


def tau(panel: Panel, setting: str, kind: str) -> Tau:
    """Compare the order of models or grammars under a setting with the order under the default."""
    order, of, names = ORDERS[kind]
    rng = np.random.default_rng(0)
    cubes = [of(cube) for cube in panel.both(setting)]
    values = order(*(cube.mean(-1) for cube in cubes))
    draws = resampled(cubes, order, rng)
    null = resampled([cubes[0], cubes[0]], order, rng, apart=True).mean(1)
    items = {name: (float(values[at]), *percentile_interval(draws[:, at])) for at, name in enumerate(names)}
    whole = (float(values.mean()), *percentile_interval(draws.mean(1)))
    p = float(1 + (null <= whole[0] + LEAST).sum()) / (1 + len(null))
    return Tau(items, whole, float(null.mean()), float(np.quantile(null, ALPHA)), p)


def least_change(panel: Panel, setting: str, kind: str) -> float:
    """Return the largest true mean tau (smallest change of order) that a test by `Tau.least` finds with 80 % power.

    The true orders are the default's means with normal shifts of growing size, independent for every model and grammar.
    The noise of seeds is the default's.
    """
    order, of, _ = ORDERS[kind]
    rng = np.random.default_rng(1)
    base = of(panel.both(setting)[0])
    least = tau(panel, setting, kind).least
    means, count = base.mean(-1), base.shape[-1]
    noise = base - means[..., None]
    best = math.nan
    for size in np.geomspace(0.02, 2, 25):
        true, found = [], []
        for _ in range(200):
            shifted = means + rng.normal(0, size, means.shape)
            true.append(order(means, shifted).mean())
            chosen = rng.integers(count, size=(2, count))
            ours, theirs = (
                part + noise[..., pick].mean(-1) for part, pick in zip((means, shifted), chosen, strict=True)
            )
            found.append(order(ours, theirs).mean() < least)
        if np.mean(found) >= POWER:
            return float(np.mean(true))
    return best


# -- conclusions -------------------------------------------------------------------------------------------------------


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


# -- page --------------------------------------------------------------------------------------------------------------


def draw(panel: Panel, results: Mapping[str, Mapping[str, Effect]], taus: Mapping[str, Mapping[str, Tau]]) -> None:
    """Draw the factor of every conclusion under every setting, and the taus of the orders."""
    settings = list(panel.cubes)
    figure = style.figure(7.2, 8.2)
    grid = figure.add_gridspec(2, 1, height_ratios=[len(CONCLUSIONS), 6])
    top, below = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    _cells(top, settings, results)
    for place, (kind, row) in enumerate(taus.items()):
        at = [settings.index(name) + (place - 1) * 0.18 for name in row]
        values = [one.mean for one in row.values()]
        colour = style.COLOURS[place]
        below.vlines(at, [v[1] for v in values], [v[2] for v in values], color=colour, linewidth=1.2)
        below.plot(at, [v[0] for v in values], style.MARKERS[place], color=colour, markersize=4, label=kind)
        below.hlines([one.expected for one in row.values()], [x - 0.08 for x in at], [x + 0.08 for x in at],
                     color=colour, linewidth=1)  # fmt: skip
    below.set(ylim=(-0.25, 1.05), xlim=(-0.5, len(settings) - 0.5), ylabel="Kendall's tau with the default")
    below.set_xticks(range(len(settings)), settings, rotation=style.TILT, ha="right", rotation_mode="anchor")
    below.axhline(0, color="black", linewidth=0.6)
    below.legend(fontsize=style.SMALL, frameon=False, loc="lower left", ncols=3)
    style.tidy(below, "y")
    figure.savefig(FIGURE, dpi=200, facecolor="white")


def _cells(ax: Axes, settings: Sequence[str], results: Mapping[str, Mapping[str, Effect]]) -> None:
    logs = [
        [math.log2(row[name].factor) if row[name].sign else math.nan for name in settings] for row in results.values()
    ]
    ax.imshow(np.array(logs), cmap="PuOr", norm=TwoSlopeNorm(0, -3, 3), aspect="auto")
    for y, row in enumerate(results.values()):
        base = row[DEFAULT].sign
        for x, name in enumerate(settings):
            one = row[name]
            shade = "white" if one.sign and abs(math.log2(one.factor)) > 1.6 else "black"
            text = f"{one.factor:.2g}" if one.factor < 10 else f"{one.factor:.0f}"
            text += "*" if one.p < ALPHA else ""
            ax.text(
                x, y, text if one.sign else f"({text})", ha="center", va="center", fontsize=style.SMALL, color=shade
            )
            if base and one.sign == -base:
                ax.add_patch(Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False, linewidth=1.8))
    ax.set_yticks(range(len(results)), list(results))
    ax.set_xticks(range(len(settings)), settings, rotation=style.TILT, ha="left", rotation_mode="anchor")
    ax.tick_params(labelsize=style.SMALL, length=0, labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)


def page(panel: Panel, results: Mapping[str, Mapping[str, Effect]], taus: Mapping[str, Mapping[str, Tau]]) -> str:
    """Return the text of the page."""
    shared = max(cube.shape[-1] for cube in panel.cubes.values())
    ends = [min, max]
    rows = [
        [
            text,
            print_estimate((row[DEFAULT].factor, row[DEFAULT].low, row[DEFAULT].high)),
            *(f"{effect.factor:.2f} ({name})" for name, effect in (end(row.items(), key=_size) for end in ends)),
            verdict(row),
        ]
        for text, row in results.items()
    ]
    orders = [
        [name, *(f"{print_estimate(taus[kind][name].mean)} [{taus[kind][name].expected:.2f}]" for kind in ORDERS)]
        for name in panel.cubes
        if name != DEFAULT
    ]
    return fill_template(
        PAGE,
        runs=f"{panel.runs:,}",
        made=describe_packs(RECORDS.pack),
        seeds=_seeds(panel, shared),
        cut=_cut(panel),
        hours=f"{panel.hours:.1f}",
        tests=len(CONCLUSIONS) * (len(panel.cubes) - 1),
        figure=FIGURE.name,
        summary=_summary(panel, results),
        conclusions=markdown_table(["conclusion", "default", "smallest", "largest", "verdict"], rows),
        orders=markdown_table(["setting", *ORDERS], orders),
        changed=_changed(taus),
        items="\n\n".join(_by_item(row, kind) for kind, row in taus.items()),
        power=_power(panel),
    )


def _seeds(panel: Panel, most: int) -> str:
    missing = [name for name in SETTINGS.values() if name not in panel.cubes]
    fewer = [f"{cube.shape[-1]} of {name}" for name, cube in panel.cubes.items() if cube.shape[-1] < most]
    text = f"There are {most} seeds of each setting{' except ' + listed(fewer) if fewer else ''}."
    return text + (f" Not measured yet: {listed(missing)}." if missing else "")


def _cut(panel: Panel) -> str:
    counts = {name: panel.cut[name].value_counts() for name in CUT}
    by = {name: listed([f"{count} {value}" for value, count in found.items()]) for name, found in counts.items()}
    if not len(panel.cut):
        return ""
    return (
        f"{len(panel.cut)} runs ended at the cap and count as the cap, so that factors with their models are bounds "
        f"(models: {by['model']}; grammars: {by['grammar']}; settings: {by['setting']})."
    )


def _summary(panel: Panel, results: Mapping[str, Mapping[str, Effect]]) -> str:
    shown = {text: row for text, row in results.items() if row[DEFAULT].sign}
    holds = [text for text, row in shown.items() if verdict(row) == HOLDS]
    turned = {
        text: [name for name, effect in row.items() if effect.sign == -row[DEFAULT].sign] for text, row in shown.items()
    }
    reversals = [f"{text} under {listed(names)}" for text, names in turned.items() if names]
    both = [text for text, row in results.items() if {1, -1} <= {effect.sign for effect in row.values()}]
    changed = [name for row in results.values() for name, effect in row.items() if effect.p < ALPHA]
    by = [f"{changed.count(name)} under {name}" for name in panel.cubes if name in changed]
    return " ".join(
        [
            f"Of {len(results)} conclusions, {len(shown)} are shown by default: the interval excludes 1. "
            f"{len(holds)} of these {len(shown)} are shown in the same direction under all of {len(panel.cubes)} "
            "settings.",
            f"Reversed: {'; '.join(reversals)}." if reversals else "None of them is reversed under any setting.",
            f"Above 1 under some setting and below 1 under another: {'; '.join(both) or 'none'}.",
            f"{len(changed)} of {len(results) * (len(panel.cubes) - 1)} factors differ significantly from the default's"
            + (f": {listed(by)}." if by else "."),
        ]
    )


def _changed(taus: Mapping[str, Mapping[str, Tau]]) -> str:
    places = [(kind, name) for kind, row in taus.items() for name in row]
    corrected = dict(zip(places, holm([taus[kind][name].p for kind, name in places]), strict=True))
    parts = []
    for kind, row in taus.items():
        lower = [name for name, one in row.items() if one.p < ALPHA]
        still = [name for name in lower if corrected[kind, name] < ALPHA]
        parts.append(
            f"Order of {kind}: p < 0.05 under {listed(lower) or 'no setting'}; after the correction, under "
            f"{listed(still) or 'no setting'}."
        )
    return " ".join(parts)


def _power(panel: Panel) -> str:
    count = panel.default.shape[-1]
    spreads = [resolvable(one.of(panel.default).std(ddof=1), count) for one in CONCLUSIONS]
    most = max((name for name in panel.cubes if name != DEFAULT), key=lambda name: panel.cubes[name].shape[-1])
    orders = [f"{least_change(panel, most, kind):.2f} ({kind})" for kind in ORDERS]
    return (
        f"With {count} seeds, a paired t-test at 5 % has a power of 80 % for a factor of {min(spreads):.2f} to "
        f"{max(spreads):.2f} (median {np.median(spreads):.2f}), depending on the conclusion; the spread over seeds is "
        f"that of the default. The test of orders at 5 %, with {panel.both(most)[0].shape[-1]} seeds, has a power of "
        f"80 % where the true mean tau is at most {listed(orders)}. Smaller changes of order would not be found."
    )


def _size(item: tuple[str, Effect]) -> float:
    return item[1].factor


def _by_item(row: Mapping[str, Tau], kind: str) -> str:
    names = list(next(iter(row.values())).items)
    cells = [[setting, *(print_estimate(one.items[name]) for name in names)] for setting, one in row.items()]
    return f"### Order of {kind}\n\n" + markdown_table(["setting", *names], cells)


def main() -> None:
    options = read_options(
        __doc__,
        train=(False, "train missing rows"),
        seeds=(int, "number of seeds, if fewer than the sweep has"),
    )
    if options.train:
        seeds = {} if options.seeds is None else {"seeds": options.seeds}
        RECORDS.sweep(SWEEP, plugin=str(SCALED), workers=1, **seeds)
        return
    RECORDS.update_pack()
    panel = read(RECORDS.long_table())
    found = effects(panel)
    taus = {kind: {name: tau(panel, name, kind) for name in panel.cubes if name != DEFAULT} for kind in ORDERS}
    draw(panel, found, taus)
    PAGE.write_text(page(panel, found, taus), encoding="utf-8")


if __name__ == "__main__":
    main()
