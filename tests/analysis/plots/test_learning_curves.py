"""Learning curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import icy
from icy.analysis import plots, style
from icy.experiments.results import ProbeResult
from tests.analysis.plots.helpers import GRAMMARS, MODELS, budget, overlapping, record

SHORT, LONG = [[0, 0.2], [50, 0.4], [100, 0.8]], [[0, 0.4], [50, 0.6], [100, 0.7], [150, 0.75], [200, 0.9]]


def curved(*curves: list[list[float]], **more: Any) -> ProbeResult:
    return ProbeResult([record(MODELS[0], "perm", 123 + i, curve=c, **more) for i, c in enumerate(curves)])


def band(ax: Axes) -> list[tuple[float, float]]:
    (path,) = ax.collections[0].get_paths()
    return sorted({(float(x), round(float(y), 6)) for x, y in path.vertices})


def test_curves_have_a_mean_and_a_band_as_far_as_all_seeds_go() -> None:
    (ax,) = plots.curves(curved(SHORT, LONG), spread="sem").axes
    mean = ax.lines[0]
    np.testing.assert_allclose(mean.get_xydata(), [(0, 0.3), (50, 0.5), (100, 0.75)])
    error = [0.1, 0.1, 0.05]
    limits = {(x, round(y + s * e, 6)) for (x, y), e in zip(mean.get_xydata(), error, strict=True) for s in (-1, 1)}
    assert set(band(ax)) == {(float(x), y) for x, y in limits}


def test_curves_beyond_the_mean_are_single_seeds_to_their_ends() -> None:
    ax = plots.curves(curved(SHORT, LONG)).axes[0]
    thin = [
        line
        for line in ax.lines
        if line.get_linewidth() < 1 and line.get_marker() == "None" and len(line.get_xdata()) > 1
    ]
    (tail,) = [line for line in thin if line.get_linestyle() == "-"]
    np.testing.assert_allclose(tail.get_xydata(), LONG[2:])
    ends = [line for line in ax.lines if line.get_marker() == style.GRAMMARS["perm"].marker]
    assert sorted(tuple(map(float, line.get_xydata()[0])) for line in ends) == [(100, 0.8), (200, 0.9)]


@pytest.mark.slow
def test_a_cut_run_ends_in_a_hollow_mark() -> None:
    for reason, hollow in (("cap", True), ("target", False)):
        ax = plots.curves(curved(SHORT, reason=reason, measure="ratio", protocol="acquire")).axes[0]
        (end,) = [line for line in ax.lines if line.get_marker() == "s"]
        assert (end.get_markerfacecolor() == "white") is hollow


def test_the_target_is_a_line() -> None:
    ax = plots.curves(curved(SHORT, target=0.8)).axes[0]
    assert [
        line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--" and len(line.get_xdata()) == 2
    ] == [0.8]


def test_curves_of_very_different_lengths_have_a_logarithmic_axis() -> None:
    longer = [[step, 0.5] for step in range(0, 2001, 50)]
    assert plots.curves(curved(SHORT, longer)).axes[0].get_xscale() == "symlog"
    assert plots.curves(curved(SHORT, LONG)).axes[0].get_xscale() == "linear"
    assert plots.curves(curved(SHORT, longer), log=False).axes[0].get_xscale() == "linear"


def test_a_panel_per_model_and_a_line_per_grammar() -> None:
    axes = plots.curves(budget()).axes
    assert [ax.get_title() for ax in axes] == ["FC2L", "HierZero:GRU"]
    named = [line for line in axes[0].lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in named] == list(GRAMMARS)
    assert len({(line.get_color(), line._unscaled_dash_pattern) for line in named}) == len(GRAMMARS)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_long_names_are_broken_into_lines() -> None:
    figure = plots.curves(budget([f"sender/AVeryLongFamilyName{i}:MultiHeadAttentionCell" for i in range(4)]))
    assert overlapping(figure) == []
    assert figure.axes[0].get_title() == "AVeryLongFamilyName0:\nMultiHeadAttentionCell"


def test_options_that_all_panels_share_are_a_note() -> None:
    runs = [record(MODELS[0], "perm", 123 + i, config={"settings": {}, "options": {"a": 1, "b": i}}) for i in (2, 3)]
    figure = plots.curves(ProbeResult(runs))
    assert [ax.get_title() for ax in figure.axes] == ["FC2L, b=2", "FC2L, b=3"]
    assert any("all panels: a=1" in text.get_text() for text in figure.texts)


def test_the_reconstruction_accuracy_is_a_dotted_line() -> None:
    read = [[[0, 0.2, 0.1], [50, 0.4, 0.5]], [[0, 0.2, 0.3], [50, 0.4, 0.7]]]
    figure = plots.curves(curved(*read, points=["steps", "accuracy", "reconstructed"]))
    (dotted,) = [line for line in figure.axes[0].lines if line.get_linestyle() == ":" and line.get_color() != "black"]
    np.testing.assert_allclose(dotted.get_xydata(), [(0, 0.2), (50, 0.6)])
    assert "reconstruction accuracy" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_axis_names_its_unit(tmp_path: Path) -> None:
    assert plots.curves(curved(SHORT)).axes[0].get_xlabel() == "updates"
    games = icy.train("study", player="composer", dataset="synth", grammar="concat", instances=1, workers=1,
                      out=tmp_path)  # fmt: skip
    assert plots.curves(games).axes[0].get_xlabel() == "trials"
