"""Bars, ratios as dots, and differences of two results."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from icy.analysis import compare, plots, style
from icy.analysis.figures import ShownFigure
from icy.analysis.plots.error_bars import differences
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from tests.analysis.plots.helpers import (
    GRAMMARS,
    MODELS,
    acquire,
    all_text,
    arrows,
    budget,
    geometric,
    means,
    record,
    texts,
)
from tests.analysis.tables.test_paired import ratios

# -- bars --------------------------------------------------------------------------------------------------------------


def test_bars_of_few_models_stand_in_groups() -> None:
    result = budget()
    (ax,) = plots.bars(result).axes
    expected = means(result, MODELS[1]).loc[list(GRAMMARS)]
    bars = [container for container in ax.containers if isinstance(container, BarContainer)]
    np.testing.assert_allclose([bar.get_height() for bar in bars[-1]], expected["mean"])
    assert [label.get_text() for label in ax.get_xticklabels()] == list(GRAMMARS)
    segments = ax.containers[-1].lines[2][0].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose([s[1][1] - s[0][1] for s in segments], 2 * expected["std"], rtol=1e-6)
    hatches = {bar.get_hatch() for container in bars for bar in container}
    assert len(hatches) == 2  # for print without colours


@pytest.mark.slow
def test_bars_of_many_models_have_a_panel_per_grammar() -> None:
    models = [f"sender/RNNZero:{cell}" for cell in "ABCDEF"]
    result = budget(models)
    axes = plots.bars(result).axes
    assert [ax.get_title() for ax in axes] == list(GRAMMARS)
    for ax, grammar in zip(axes, GRAMMARS, strict=True):
        expected = [means(result, model).loc[grammar, "mean"] for model in models]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected)
    forced = plots.bars(budget(), by="grammar")
    assert len(forced.axes) == len(GRAMMARS)


def test_bars_of_ratios_start_at_concat() -> None:
    result = acquire()
    (ax,) = plots.bars(result).axes
    assert ax.get_yscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == list(GRAMMARS[1:])
    expected = geometric(result, MODELS[0]).loc[list(GRAMMARS[1:])]
    first = ax.patches[: len(expected)]
    assert {bar.get_y() for bar in first} == {1.0}
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in first], expected)
    assert len(arrows(ax)) == 4


def test_bars_mark_missing_cells() -> None:
    records = [r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")]
    figure = plots.bars(ProbeResult(records))
    assert texts(figure.axes[0]) == ["–"]
    assert "– not measured" in all_text(figure)


@pytest.mark.parametrize(
    ("spread", "factor"), [("sd", 1), ("sem", 1 / math.sqrt(3)), ("ci95", 4.302653 / math.sqrt(3))]
)
def test_spreads_equal_the_table(spread: str, factor: float) -> None:
    result = budget(MODELS[:1], seeds=3)
    container = plots.bars(result, spread=spread).axes[0].containers[-1]
    low, high = container.lines[2][0].get_segments()[0][:, 1]  # type: ignore[attr-defined]
    assert (high - low) / 2 == pytest.approx(0.02 * factor)


# -- dots of acquisition ratios ----------------------------------------------------------------------------------------


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


# -- dots of the differences between two results, their bounds and their intervals -------------------------------------


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
