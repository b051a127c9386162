"""Placement of new models in the atlas: their ranks, and their neighbors in bias space."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from icy.analysis import style
from icy.analysis.order import Facts
from icy.analysis.picture import Panel, Picture, plot
from icy.analysis.plots.panels import ResultBlock, move_apart
from icy.analysis.statistics import CONFIDENCE, holm, t_test
from icy.analysis.table_cells import LEAST_RATIO
from icy.core.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


LISTED_NEIGHBORS, DRAWN_NEIGHBORS = 5, 3
MIN_SHARED = 2  # least number of shared grammars, without concat, for the distance of two models
AXIS_NAMES = {"ratio": "updates to the target, as a ratio to concat's", "accuracy": "accuracy"}  # by measure
TITLE = "How easily the models learn each grammar, among the models of the atlas"
DOT, DOTS_SPREAD = 3.2, 0.34  # size of a dot in points, and fraction of a column that dots may take on each side
RINGS = ("o", "s", "^")  # marks of neighbors
RING_STEP = 0.16  # distance of neighbors as a fraction of a column, so that marks of similar values do not overlap


@dataclass(frozen=True)
class Placement:
    """Ranks and nearest neighbors of new models among the models of an atlas. Notebooks show it as tables.

    Attributes:
        mine: means over seeds of the new models: a row per model, a column per grammar.
        others: means of the models of the atlas under the same setting, like `mine`.
        measure: "ratio", "accuracy" or "held_out".
        setting: the setting as text.
        atlas: name of the atlas.
        about: dates, versions and devices of the atlas (`Atlas.about`).
        cut: whether some ratios were cut at the cap; they are not corrected.
        cap: the cap of ratios; error bars end there.
        runs: runs of the new models: label, grammar, value and whether it was cut; None if unknown.
        other_runs: runs of the models of the atlas, like `runs`.
    """

    mine: pd.DataFrame
    others: pd.DataFrame
    measure: str
    setting: str
    atlas: str
    about: Facts
    cut: bool = False
    cap: float = math.inf
    runs: pd.DataFrame | None = None
    other_runs: pd.DataFrame | None = None

    @property
    def grammars(self) -> list[str]:
        """Grammars of the new models that the atlas also has, without concat."""
        return [g for g in self.mine.columns if g in self.others.columns and g != "concat"]

    @property
    def reference(self) -> tuple[str, float] | None:
        """The name and value of a line: concat for ratios, a guess for accuracies of senders; None if unknown."""
        if self.measure == "ratio":
            return "as fast as concat", 1.0
        chance = None if self.runs is None else ResultBlock("", self.measure, self.runs).chance
        return None if chance is None else ("accuracy of a guess", chance)

    def rest(self, name: str) -> pd.DataFrame:
        """Return the models of the atlas except the model of this name."""
        return self.others.drop(index=name, errors="ignore")

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Ranks of the new models: a row per model and grammar.

        Columns: `value`; `rank` (1: learns the grammar most easily; equal values share the better rank; missing if a
        run of the model was cut, because its true ratio is larger); `low` and `high`, the ranks that the seeds allow
        (95 %; t-tests of the model against each other one, with the variance of all models over seeds, and Holm's
        correction; missing with one seed each); `of`, the number of models including this model; and `median` of the
        atlas.
        """
        rows = []
        for name, values in self.mine.iterrows():
            for grammar in self.grammars:
                others = self.rest(str(name))[grammar].dropna()
                value = values[grammar]
                if pd.isna(value) or not len(others):
                    continue
                better = int((others < value).sum() if self.measure == "ratio" else (others > value).sum())
                is_cut, low, high = self._rank_ends(str(name), grammar)
                rank = None if is_cut else better + 1
                rows.append([name, grammar, float(value), rank, low, high, len(others) + 1, float(others.median())])
        table = pd.DataFrame(rows, columns=["model", "grammar", "value", "rank", "low", "high", "of", "median"])
        return table.astype(dict.fromkeys(("rank", "low", "high"), "Int64"))

    def _rank_ends(self, name: str, grammar: str) -> tuple[bool, int | None, int | None]:
        """Return whether a model was cut on a grammar, and its lowest and highest rank; None if these are unknown."""
        if self.runs is None or self.other_runs is None:
            return False, None, None
        parts = self.runs[self.runs["label"].eq(name)], self.other_runs[self.other_runs["label"].ne(name)]
        runs = pd.concat(parts)[lambda all_: all_["grammar"].eq(grammar) & all_["value"].notna()]
        ratio = self.measure == "ratio"
        y = np.log(runs["value"].clip(lower=LEAST_RATIO).astype(float)) if ratio else -runs["value"].astype(float)
        groups = y.groupby(runs["label"].to_numpy(), sort=False)
        cut = (runs["censored"].astype(bool) & ratio).groupby(runs["label"].to_numpy(), sort=False).any()
        means, seeds, squares = groups.mean(), groups.size(), groups.var(ddof=0).mul(groups.size())
        freedom = int((seeds - 1)[~cut].sum())
        if not freedom:
            return bool(cut[name]), None, None
        gaps = (means - means[name]).drop(name)
        errors = np.sqrt(squares[~cut].sum() / freedom * (1 / seeds.drop(name) + 1 / seeds[name]))
        significant = np.array(holm(t_test(gaps.to_numpy(), errors.to_numpy(), freedom).tolist())) < 1 - CONFIDENCE
        # The true ratio of a cut model is larger, so a cut model may always be worse.
        better = significant & (gaps < 0) & ~cut.drop(name)
        worse = significant & (gaps > 0) & (not cut[name])
        return bool(cut[name]), int(better.sum()) + 1, len(gaps) + 1 - int(worse.sum())

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        """The nearest models of the atlas in bias space: model, neighbor, distance, grammars.

        Rows are sorted by the number of grammars that they share with the model, then by distance, since a distance
        over few grammars is easily small.

        The distance is the root mean square, over shared grammars, of the difference in accuracy or in the binary
        logarithm of the ratio. A difference of 1 in the logarithm means twice as many steps.
        """
        rows = []
        for name in self.mine.index:
            own, rest = self._space(self.mine.loc[[name]]), self._space(self.rest(str(name)))
            gaps = rest - own.iloc[0]
            near = pd.DataFrame({"distance": np.sqrt((gaps**2).mean(axis=1)), "common": gaps.notna().sum(axis=1)})
            near = near[near["common"] >= max(1, min(MIN_SHARED, own.notna().sum(axis=1).iloc[0]))]
            near = near.sort_values(["common", "distance"], ascending=[False, True], kind="stable")
            nearest = near.index[:LISTED_NEIGHBORS]
            rows += [[name, row, near.at[row, "distance"], near.at[row, "common"]] for row in nearest]
        return pd.DataFrame(rows, columns=["model", "neighbour", "distance", "grammars"])

    def _space(self, table: pd.DataFrame) -> pd.DataFrame:
        values = table[self.grammars].astype(float)
        return values.clip(lower=LEAST_RATIO).apply(np.log2) if self.measure == "ratio" else values

    def centers(self, table: pd.DataFrame, runs: pd.DataFrame | None) -> pd.DataFrame:
        """Return the means that the figure draws: a row per grammar; geometric for ratios, if the runs are known."""
        if self.measure != "ratio" or runs is None:
            return table[self.grammars].T
        logs = pd.Series(np.log(runs["value"].clip(lower=LEAST_RATIO).astype(float)), index=runs.index)
        means: pd.DataFrame = logs.groupby([runs["grammar"], runs["label"]]).mean().unstack("label")
        return means.reindex(index=self.grammars, columns=table.index).apply(np.exp)

    def bars(self, name: str) -> list[tuple[float, float]]:
        """Return the lengths of the error bars of a new model, down and up, for each of `grammars`."""
        if self.runs is None:
            return [(0.0, 0.0)] * len(self.grammars)
        own, ratio = self.runs[self.runs["label"] == name], self.measure == "ratio"
        values = own["value"].astype(float)
        runs = (values.clip(lower=LEAST_RATIO).apply(np.log) if ratio else values).groupby(own["grammar"])
        center, spread = runs.mean().reindex(self.grammars), runs.std().reindex(self.grammars).fillna(0.0)
        low, high = center - spread, center + spread
        if ratio:
            center, low, high = (one.apply(np.exp) for one in (center, low, high))
            high = high.clip(upper=self.cap).clip(lower=center)
        return list(zip(center - low, high - center, strict=True))

    def plot(self, axes: Axes | None = None) -> Figure:
        """Draw a column per grammar, with a dot per model of the atlas and a large mark per new model."""
        return plot_placement(self, axes=axes)

    def _tables(self) -> list[tuple[str, pd.DataFrame]]:
        """Return tables of ranks and of neighbors for each new model, each with a title."""
        found = []
        for name in self.mine.index:
            ranks = self.ranks.query("model == @name").drop(columns="model")
            near = self.neighbors.query("model == @name").drop(columns="model")
            best = "fewest steps" if self.measure == "ratio" else "highest accuracy"
            among = f"{name} among {len(self.rest(str(name)))} of the {self.atlas}"
            found.append((f"{among}: {self.setting}; rank 1 is the {best}", ranks))
            of = "log2 of the ratios" if self.measure == "ratio" else "accuracies"
            found.append((f"Nearest in bias space (root mean square of {of})", near))
        return found

    def notes(self) -> list[str]:
        """Return notes on the runs of the atlas, on missing grammars, and on cut ratios."""
        about = self.about
        lacking = self.others[self.grammars].isna().sum()
        thin = [f"{g} ({len(self.others) - n} of {len(self.others)})" for g, n in lacking.items() if n]
        made = f"{self.atlas}: {counted(about['runs'], 'run')}, {' to '.join(dict.fromkeys(about['made']))}"
        notes = [made, *([f"not every model has every grammar: {', '.join(thin)}"] if thin else [])]
        return [*notes, *(["some ratios were cut: the true ratios are larger"] if self.cut else [])]

    def _notes_on_ranks(self) -> list[str]:
        known, lacking = self.ranks["low"].notna().any(), self.ranks["rank"].isna().any()
        return [
            *(["95 %: ranks that the seeds allow (t-tests against each model, Holm)"] if known else []),
            *(["-: no rank, because a run of the model was cut"] if lacking else []),
        ]

    def __repr__(self) -> str:
        parts = [f"{sentence}\n\n{_formatted(table).to_string(index=False)}" for sentence, table in self._tables()]
        return "\n\n".join([*parts, "\n".join([*self.notes(), *self._notes_on_ranks()])])

    def _repr_html_(self) -> str:
        found = [(html.escape(sentence), _formatted(table)) for sentence, table in self._tables()]
        parts = [f"<p>{sentence}</p>{table.to_html(index=False)}" for sentence, table in found]
        return "".join([*parts, *(f"<p>{html.escape(note)}</p>" for note in (*self.notes(), *self._notes_on_ranks()))])


def _formatted(table: pd.DataFrame) -> pd.DataFrame:
    shown = table.assign(**{n: table[n].map("{:.2f}".format) for n in ("value", "median", "distance") if n in table})
    if "rank" not in table:
        return shown
    ends = [
        "-" if pd.isna(low) else str(low) if low == high else f"{low}-{high}"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]
    ranks = table["rank"].astype(object).where(table["rank"].notna(), "-")
    return shown.assign(rank=ranks, low=ends).drop(columns="high").rename(columns={"low": "95 %"})


@plot
def plot_placement(placement: Placement) -> Picture:
    """Draw models of the atlas as gray dots, new models as large marks with error bars, neighbors as rings.

    Error bars are standard deviations over seeds.

    Args:
        placement: return value of `Atlas.place`.
        axes: axes to draw on; by default a new figure.

    Returns:
        The figure.
    """
    return _picture([placement])


@plot
def plot_placements(placements: Sequence[Placement]) -> Picture:
    """Draw placements in several settings, as of senders and of receivers, one below the other.

    Args:
        placements: return value of `Atlas.places`.

    Returns:
        The figure; for one placement as `plot_placement`.
    """
    return _picture(placements)


def _picture(placements: Sequence[Placement]) -> Picture:
    """Describe a panel per placement; the legends of several are in their panels."""
    several, first = len(placements) > 1, placements[0]
    panels = [
        Panel(partial(_panel, one, several), block=_among(one) * several, height=2.5 if several else 2.6, grid="y",
              y=AXIS_NAMES.get(one.measure, "accuracy on held-out meanings"), finish=partial(_dots, one))
        for one in placements
    ]  # fmt: skip
    widest = max(3, *(len(one.grammars) for one in placements))
    notes = [*([] if several else [_among(first)]), *_notes(first)]
    return Picture(panels, TITLE, notes, () if several else _handles(first), width=1.4 + 0.75 * widest + 1.9)


def _panel(placement: Placement, legend: bool, ax: Axes) -> None:
    names, log = placement.grammars, placement.measure == "ratio"
    mine = placement.centers(placement.mine, placement.runs)
    others = placement.centers(placement.others, placement.other_runs)
    for name, look in _looks(placement):
        errors = list(zip(*placement.bars(name), strict=True))
        ax.errorbar(range(len(names)), mine[name], yerr=errors, color=look.color, linestyle=look.dash,
                    linewidth=style.LINE, marker=look.marker, markersize=7, elinewidth=1.2, capsize=2,
                    zorder=4)  # fmt: skip
    for place, (name, look) in enumerate(_nearest(placement)):
        ax.plot(np.arange(len(names)) + RING_STEP * (place - 1), others[name], look.marker, color=look.color,
                markerfacecolor="white", markersize=6, markeredgewidth=1.3, zorder=5)  # fmt: skip
    if placement.reference is not None:
        ax.axhline(placement.reference[1], **style.CHANCE)
    ax.set_xticks(range(len(names)), names, fontsize=style.MEDIUM)
    ax.set_xlim(-0.6, len(names) - 0.4)
    values = others.loc[names].stack().to_numpy(float)  # of the dots, which are drawn last
    ax.plot([0] * len(values), values, linestyle="")
    if log:
        ax.set_yscale("log")
        style.ratio_axis(ax.yaxis, *ax.get_ylim())
    if legend:
        ax.legend(handles=_handles(placement), fontsize=style.SMALL, loc="center left", bbox_to_anchor=(1, 0.5),
                  frameon=False)  # fmt: skip


def _handles(placement: Placement) -> list[Line2D]:
    """Return the entries of the legend."""
    found = [look.handle(name, 7) for name, look in _looks(placement)]
    found += [look.handle(f"near: {name}", 6, line=False) for name, look in _nearest(placement)]
    found.append(style.Look(style.GRAY).handle("other models of the atlas", DOT, line=False))
    if placement.reference is not None:
        found.append(style.Look("black").handle(placement.reference[0], marker="", **style.CHANCE))
    return found


def _among(placement: Placement) -> str:
    """Return the number of models of the atlas, the setting, and the direction of the axis."""
    sides = f"{placement.mine.index[0].partition('/')[0]}s"
    direction = f"{'low' if placement.measure == 'ratio' else 'high'} is easily learned"
    return f"Among {len(placement.others)} {sides} of the {placement.atlas}: {placement.setting}; {direction}"


def _notes(placement: Placement) -> list[str]:
    several = any(any(bar) for name in placement.mine.index for bar in placement.bars(name))
    log = "geometric " if placement.measure == "ratio" else ""
    note = f"points: {log}means over seeds" + (f"; error bars: {log}standard deviation over seeds" if several else "")
    return [note, *placement.notes()]


def _looks(placement: Placement) -> list[tuple[str, style.Look]]:
    return list(style.model_looks([str(name) for name in placement.mine.index]).items())


def _nearest(placement: Placement) -> list[tuple[str, style.Look]]:
    """Return each nearest neighbor once: a ring in the color of the new model that it is near."""
    looks = dict(_looks(placement))
    found: dict[str, str] = {}
    near = placement.neighbors.groupby("model", sort=False).head(DRAWN_NEIGHBORS if len(looks) == 1 else 1)
    for model, name in near[["model", "neighbour"]].itertuples(index=False):
        if name not in looks:
            found.setdefault(str(name), "black" if len(looks) == 1 else looks[model].color)
    drawn = list(found.items())[:DRAWN_NEIGHBORS]
    return [
        (name, style.Look(color, marker=ring, hollow=True)) for (name, color), ring in zip(drawn, RINGS, strict=False)
    ]


def _dots(placement: Placement, ax: Axes) -> None:
    """Draw the models of the atlas; similar values are side by side."""
    others = placement.centers(placement.others, placement.other_runs).T
    for place, grammar in enumerate(placement.grammars):
        points = [(float(place), value) for value in sorted(others[grammar].dropna())]
        x = move_apart(ax, points, DOT, DOTS_SPREAD * ax.bbox.width / len(placement.grammars) * 72 / ax.figure.dpi)
        ax.plot(x, [y for _, y in points], "o", color=style.GRAY, alpha=0.55, markersize=DOT, markeredgewidth=0)
