"""Labels that do not overlap."""

from __future__ import annotations

from matplotlib.figure import Figure

from icy.analysis.plots.panels import place_labels


def test_labels_at_one_place_are_set_apart() -> None:
    ax = Figure(figsize=(4, 3)).subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    found = place_labels(ax, [(0.5, 0.5)] * 6, ["a name"] * 6)
    assert len({text.xyann for text in found}) == 6
