"""Dots of acquisition ratios."""

from __future__ import annotations

import pytest

from icy.analysis import plots, style
from icy.analysis.figures import ShownFigure
from icy.experiments.results import ProbeResult
from tests.analysis.plots.helpers import GRAMMARS, MODELS, acquire, arrows, geometric, record, texts


def test_ratios_are_dots_on_a_logarithmic_axis() -> None:
    result = acquire()
    (ax,) = plots.ratios(result).axes
    assert ax.get_xscale() == "log"
    marks = [line for line in ax.lines if line.get_marker() in {look.marker for look in style.GRAMMARS.values()}]
    assert len(marks) == len(MODELS) * (len(GRAMMARS) - 1)
    for row, model in enumerate(MODELS):
        found = {line.get_marker(): line for line in marks if round(line.get_ydata()[0]) == row}
        for grammar, mean in geometric(result, model).loc[list(GRAMMARS[1:])].items():
            assert found[style.GRAMMARS[str(grammar)].marker].get_xdata()[0] == pytest.approx(mean)


def test_cut_ratios_are_hollow_with_an_arrow() -> None:
    (ax,) = plots.ratios(acquire()).axes
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert {line.get_marker() for line in hollow} == {style.GRAMMARS[g].marker for g in ("rot", "hol")}
    assert len(hollow) == len(arrows(ax)) == 4
    assert {arrow.xyann for arrow in arrows(ax)} == {(9, 0)}  # points to the right
    assert "cap" in texts(ax)


def test_an_error_bar_that_leaves_the_axis_has_an_arrow_and_a_note() -> None:
    about = {"protocol": "acquire", "measure": "ratio", "accuracy": 0.8, "baseline_steps": 100, "target": 0.8,
             "cap": 20}  # fmt: skip
    steps = {"rot": (100, 900), "perm": (200, 210)}
    two = [record(MODELS[0], g, seed, steps=n, **about) for g in steps for seed, n in enumerate(steps[g])]
    figure = plots.ratios(ProbeResult(two), spread="ci95")
    assert isinstance(figure, ShownFigure)
    (down,) = arrows(figure.axes[0])
    assert down.xy[0] == pytest.approx(figure.axes[0].get_xlim()[0])
    assert "Arrow at the end of the axis: the error bar is longer." in figure.caption
    assert "; 2 seeds." in figure.caption
    assert not arrows(plots.ratios(ProbeResult(two), spread="sem").axes[0])
