"""Panels and lines of a plot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from icy.analysis import plots
from icy.analysis.plots.panels import blocks, describe
from icy.analysis.statistics import student
from icy.analysis.tables.bias import bias_table
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from tests.analysis.plots.helpers import MODELS, acquire, all_text, budget, means, sized, texts
from tests.helpers import long as long_table


def test_labels_have_the_columns_that_differ() -> None:
    (block,) = blocks(long_of(sized()))
    assert [line.label for line in block.lines][:2] == ["FC2L, E=8", "FC2L, E=16"]
    assert [line.label for line in block.lines_over("hidden_size")] == ["FC2L", "HierZero:GRU"]


def test_labels_have_the_settings_in_which_panels_differ() -> None:
    table = pd.concat([
        long_table({"A": {"rot": [2.0]}}, **RATIO, hidden_size=8),
        long_table({"A": {"rot": [0.5]}}, protocol="budget", measure="accuracy", hidden_size=16),
    ])  # fmt: skip
    assert [(block.name, [line.label for line in block.lines]) for block in blocks(table)] == [
        ("acquire", ["A, E=8"]),
        ("budget", ["A, E=16"]),
    ]


RATIO = {"protocol": "acquire", "measure": "ratio", "cap": 20.0}


@pytest.mark.parametrize("values", [[2.0, 4.0, 3.0], [2.0, 3.0, 14.0], [1.0] * 30 + [20.0]])
def test_a_table_and_a_figure_have_the_same_interval_of_a_ratio(values: list[float]) -> None:
    """By Student's t on the log scale, around the geometric mean; error bars end at the cap."""
    table = long_table({"A": {"rot": values}}, **RATIO)
    ((line,),) = [block.lines for block in blocks(table)]
    cell = line.cell("rot", "ci95")
    assert cell is not None
    down, up = line.bar(cell)
    logs = pd.Series([math.log(v) for v in values])
    wide = student(len(logs) - 1) * logs.std() / math.sqrt(len(logs))
    middle, factor = math.exp(logs.mean()), math.exp(wide)
    assert (cell.center, cell.center - down) == pytest.approx((middle, middle / factor))
    assert cell.center + up == pytest.approx(min(middle * factor, 20))
    shown = bias_table(table, "ci95")
    text = f"{middle:.2f}×/{factor:.2f}"
    for name in ("text", "markdown", "html", "latex"):
        assert text.replace("×", r"$\times$" if name == "latex" else "×") in shown.render(name)
    facts = cell.to_dict()
    assert (facts["spread"], facts["low"]) == (None, pytest.approx(middle / factor))
    note = "geometric mean, times or divided by its 95 % interval (Student's t)"
    assert note in shown.notes
    assert any(one.startswith(note) for one in describe(table, "ci95")[1])
    sd = "geometric mean, times or divided by its geometric standard deviation over seeds"
    assert any(one.startswith(sd) for one in describe(table, "sd")[1])


@pytest.mark.parametrize("kind", ["bars", "ratios"])
def test_figures_show_the_centre_of_the_table(kind: str) -> None:
    table = long_table({"A": {"rot": [2.0, 3.0, 14.0], "hol": [20.0, 20.0, 20.0]}}, **RATIO)
    table["censored"] = table["grammar"].eq("hol")
    axes = getattr(plots, kind)(table, spread="ci95").axes[0]
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]  # not the shade of a Polygon
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    ends = {round(float(end), 3) for end in [*tops, *(x for line in axes.lines for x in line.get_xdata())]}
    assert {round(84 ** (1 / 3), 3), 20.0} <= ends
    assert bias_table(table, "ci95").groups()[0][1][0][-2:] == ["4.38×/12.81", "> 20†"]


def test_other_results_have_the_same_interval_of_a_ratio() -> None:
    table = long_table({"A": {"rot": [2.0, 3.0, 14.0]}}, **RATIO)
    ((_, lines),) = bias_table(table, "ci95", compare=table).groups()
    assert [line[-1] for line in lines[:2]] == ["4.38×/12.81", "4.38×/12.81 (+0.0)"]


@pytest.mark.slow
def test_ratios_of_coarse_checks_are_marked_and_noted() -> None:
    table = long_table({"CNN": {"rot": [1.0, 1.0], "hol": [8.0, 12.0]}}, **RATIO)
    table["resolution"] = table["grammar"].map({"rot": 0.5, "hol": 0.05})
    assert [text.get_text() for text in plots.heat(table, axes=Figure().subplots()).axes[0].texts] == [
        "~1.00\n×/1.00",
        "9.80\n×/1.33",
    ]
    assert "~" in [text.get_text() for ax in plots.bars(table).axes for text in ax.texts]
    note = "coarse evaluations: the ratio is uncertain by up to ±50%, more than it varies over seeds"
    assert f"~ {note}" in describe(table, "sd")[1]
    for kind in ("heat", "bars", "ratios"):
        assert f"~ {note}" in all_text(getattr(plots, kind)(table))
    assert texts(plots.ratios(table).axes[0]).count("~") == 1


# -- error bars --------------------------------------------------------------------------------------------------------


def often_cut() -> pd.DataFrame:
    """Noise with two of three seeds cut at 20: a mean of 16 with a deviation of 6.9."""
    long = long_of(acquire(seeds=3)).copy()
    noise = long["grammar"].isin(["rot", "proj", "pairsum"])
    value = long["seed"].map({123: 20.0, 124: 20.0, 125: 8.0})
    return long.assign(
        value=long["value"].mask(noise, value), censored=long["censored"].mask(noise, value.eq(20)).astype(bool)
    )


def ends_of_bars(kind: str, axis: int) -> list[float]:
    """Where the error bars of all panels end."""
    figure = plots.plot_function(kind)(often_cut())
    segments: list[Any] = []
    for ax in figure.axes:
        if kind == "tradeoff":
            segments += [line.get_xydata() for line in ax.lines if line.get_color() == "#d0d0d0"]
        for container in ax.containers:
            bars = getattr(container, "errorbar", container)
            segments += [segment for lines in bars.lines[2] for segment in lines.get_segments()] if bars else []
    return [float(np.max(np.asarray(segment)[:, axis])) for segment in segments if len(segment)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "axis"), [("bars", 1), ("ratios", 0), ("parameters", 1), ("tradeoff", 0)])
def test_no_error_bar_runs_past_the_cap(kind: str, axis: int) -> None:
    rot = means(often_cut(), MODELS[1], "std").loc["rot"]
    assert rot["mean"] + rot["std"] > 20  # it would, if it were drawn in full
    ends = ends_of_bars(kind, axis)
    assert len(ends) >= len(MODELS)
    assert max(ends) <= 20 + 1e-9


# -- values that have no place -----------------------------------------------------------------------------------------


KINDS = ("heat", "bars", "ratios", "tradeoff", "parameters")


def changed(result: ProbeResult, value: float) -> pd.DataFrame:
    long = long_of(result).copy()
    long.loc[long["grammar"].eq("perm"), "value"] = value
    return long


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("value", "what"), [(-0.5, "is -0.5, a ratio below 0"), (math.inf, "is inf, infinite")])
def test_ratios_that_no_axis_has_are_refused(kind: str, value: float, what: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"4 values cannot be right: .* on perm, seed 123, {what}"):
        plots.plot_function(kind)(changed(acquire(), value))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ratios"])
def test_negative_values_are_drawn_within_the_axes(kind: str) -> None:
    figure = plots.plot_function(kind)(changed(budget(), -0.5))
    figure.draw_without_rendering()
    if kind == "heat":
        assert figure.axes[0].images[0].get_clim()[0] == -0.5
    elif kind != "tradeoff":
        assert min(ax.get_ylim()[0] for ax in figure.axes) < -0.5
    with pytest.raises(InvalidSettingError, match="is inf, infinite"):
        plots.plot_function(kind)(changed(budget(), math.inf))


def test_a_failed_run_may_have_any_value() -> None:
    long = changed(acquire(), math.inf)
    plots.heat(long.assign(failed=long["grammar"].eq("perm")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "curves"])
def test_a_plot_that_has_no_room_says_so(kind: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"leave no room for the plot in a width of 1 inches: make it wider"):
        plots.plot_function(kind)(acquire(), width=1).draw_without_rendering()
