"""Plot of the study: accuracy on held-out items by dataset and grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import style
from icy.analysis.literature.people import PUBLISHED
from icy.analysis.order import in_order
from icy.core.errors import InvalidSettingError

SPREAD = 0.72  # fraction of the width of a grammar over which the marks of agents are spread
PANEL_HEIGHT = 1.9  # inches
TITLE = "Secret Spy Codes: held-out items that are exactly right"


@style.with_own_settings
def draw_study(report: pd.DataFrame, title: str | None = None, width: float = style.WIDTH) -> Figure:
    """Draw accuracy on held-out items: a panel per dataset, a group per grammar, a mark per agent with its interval.

    Args:
        report: report of `icy.analysis.tables.study.study_report`.
        title: title; by default a description, "" for none.
        width: width of the figure, in inches.

    Raises:
        InvalidSettingError: the report is empty.
    """
    if not len(report):
        raise InvalidSettingError("Cannot draw an empty report.")
    named = report.assign(label=_labels(report))
    datasets = sorted(named["dataset"].unique(), reverse=True)
    figure = style.figure(width, PANEL_HEIGHT * len(datasets) + 0.5)
    axes = figure.subplots(len(datasets), 1, squeeze=False, sharex=True)[:, 0]
    looks = _looks(named)
    grammars = in_order(named["grammar"].unique())
    for ax, dataset in zip(axes, datasets, strict=True):
        _draw_dataset(ax, named[named["dataset"] == dataset], grammars, looks)
        style.name_block(ax, dataset)
    style.legend(figure, list(axes), True, [look.handle(label, line=False) for label, look in looks.items()])
    style.entitle(figure, list(axes), True, title, TITLE, _notes(named))
    return figure


def _labels(report: pd.DataFrame) -> list[str]:
    """Return labels of agents, with protocol and preset if these vary within a kind of agent."""
    labels = []
    for row in report.to_dict("records"):
        own = report[report["agent_kind"] == row["agent_kind"]]
        more = [str(row[name]) for name in ("protocol", "preset") if own[name].nunique() > 1]
        labels.append(f"{row['agent']} ({', '.join(more)})" if more else str(row["agent"]))
    return labels


def _looks(named: pd.DataFrame) -> dict[str, style.Look]:
    """Return the look of each agent: black for published people, hollow marks for further protocols and presets."""
    colors = [color for color in style.COLORS if color != "#000000"]
    found = {label: style.Look("#000000", marker="_") for label in named.loc[named["agent_kind"] == PUBLISHED, "label"]}
    others = named[named["agent_kind"] != PUBLISHED].drop_duplicates("label")
    agents, variants = (list(dict.fromkeys(keys)) for keys in (others["agent"], _variants(others)))
    for label, agent, variant in zip(others["label"], others["agent"], _variants(others), strict=True):
        i = agents.index(agent)
        color, marker = colors[i % len(colors)], style.MARKERS[i % len(style.MARKERS)]
        found[label] = style.Look(color, marker=marker, hollow=variant != variants[0])
    return found


def _variants(named: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(named["protocol"], named["preset"], strict=True))


def _draw_dataset(ax: Axes, part: pd.DataFrame, grammars: Sequence[str], looks: Mapping[str, style.Look]) -> None:
    offsets = dict(zip(looks, np.linspace(-SPREAD / 2, SPREAD / 2, max(2, len(looks))), strict=False))
    for row in part.to_dict("records"):
        look, x = looks[row["label"]], grammars.index(row["grammar"]) + offsets[row["label"]]
        mean, low, high = (100 * float(row[name]) for name in ("accuracy", "low", "high"))
        ax.plot([x, x], [low, high], color=look.color, linewidth=1.0, solid_capstyle="butt")
        size = 7 if look.marker == "_" else 4
        ax.plot(x, mean, look.marker, color=look.color, markerfacecolor=look.face, markersize=size, clip_on=False)
    for place in range(1, len(grammars)):
        ax.axvline(place - 0.5, color="#dddddd", linewidth=0.6)
    ax.set(xticks=range(len(grammars)), xticklabels=grammars, xlim=(-0.5, len(grammars) - 0.5), ylim=(0, 100))
    ax.set_ylabel("right, %")
    style.tidy(ax, "y")


def _notes(named: pd.DataFrame) -> list[str]:
    notes = ["lines: 95 % interval of the mean, by bootstrap of persons (of machines: instances)"]
    if (named["agent_kind"] == PUBLISHED).any():
        notes.append("people (Icy22): middle and range of the counts that fit the printed numbers")
    return notes
