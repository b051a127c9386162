"""Dots of the differences between two results, their bounds and their intervals."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from icy.analysis import compare
from icy.analysis.plots.error_bars import differences
from icy.core.errors import InvalidSettingError
from tests.analysis.tables.test_differences import ratios

EASY = {"rot": [2.0, 4.0, 2.0], "perm": [1.0, 1.1, 1.2]}
CUT = {"rot": [20.0, 20.0, 20.0], "perm": [1.2, 1.1, 1.4]}


def marked(ax: Axes, mark: str, hollow: bool = False) -> list[Line2D]:
    """Marks of one shape that are hollow, or filled."""
    return [one for one in ax.lines if one.get_marker() == mark and (one.get_markerfacecolor() == "white") == hollow]


def row_of(ax: Axes, grammar: str) -> int:
    """The row of a grammar, counted from the top."""
    return [label.get_text().rpartition(", ")[2] for label in ax.get_yticklabels()].index(grammar)


@pytest.mark.parametrize(("first", "second", "mark"), [(CUT, EASY, "<"), (EASY, CUT, ">")])
def test_bounds_are_hollow_arrows_that_point_further_on(
    first: dict[str, list[float]], second: dict[str, list[float]], mark: str
) -> None:
    found = compare(ratios(first, cut=True), ratios(second, cut=True))
    effects = found.cells.set_index("grammar")["effect"]
    figure = differences(found)
    (ax,) = figure.axes
    (bound,), (dot,) = marked(ax, mark, hollow=True), marked(ax, "o")
    assert (bound.get_xdata()[0], bound.get_ydata()[0]) == (pytest.approx(effects["rot"]), row_of(ax, "rot"))
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (pytest.approx(effects["perm"]), row_of(ax, "perm"))
    assert "a bound: further that way" in [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_without_bounds_the_legend_has_none() -> None:
    figure = differences(compare(ratios(EASY), ratios({g: [v * 1.5 for v in found] for g, found in EASY.items()})))
    assert not any("bound" in text.get_text() for legend in figure.legends for text in legend.get_texts())


def test_an_interval_beyond_the_axis_ends_in_an_arrow() -> None:
    wide = {"rot": [1.0, 8.0], "perm": [1.0, 1.1]}
    found = compare(ratios({"rot": [1.0, 1.0], "perm": [1.0, 1.0]}), ratios(wide))
    cell = found.cells.set_index("grammar").loc["rot"]
    (ax,) = differences(found).axes
    low, high = ax.get_xlim()
    assert cell["low"] < low < high < cell["high"]
    for mark, end in (("<", low), (">", high)):
        (arrow,) = [one for one in marked(ax, mark) if one.get_ydata()[0] == row_of(ax, "rot")]
        assert arrow.get_xdata()[0] == end


def test_ratios_and_accuracies_have_a_panel_each() -> None:
    accuracies = ratios({"rot": [0.5, 0.6, 0.7]}).assign(measure="accuracy", protocol="budget")
    first, second = (pd.concat([ratios(EASY), accuracies.assign(value=value)]) for value in (0.5, [0.7, 0.7, 0.9]))
    figure = differences(compare(first, second))
    scales = {ax.get_xlabel().split(",")[0].split(";")[0]: ax.get_xscale() for ax in figure.axes}
    assert scales == {"second - first": "linear", "second / first": "log"}


def test_results_without_anything_to_draw_are_errors() -> None:
    hol = ratios({"hol": [20.0, 20.0, 20.0]}, cut=True)
    with pytest.raises(InvalidSettingError, match="every cell was cut in both results"):
        differences(compare(hol, hol))
