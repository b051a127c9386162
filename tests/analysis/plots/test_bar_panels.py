"""Bars."""

from __future__ import annotations

import math

import numpy as np
import pytest

from icy.analysis import plots
from icy.experiments.results import ProbeResult
from tests.analysis.plots.helpers import GRAMMARS, MODELS, acquire, all_text, arrows, budget, geometric, means, texts


def test_bars_of_few_models_stand_in_groups() -> None:
    result = budget()
    (ax,) = plots.bars(result).axes
    expected = means(result, MODELS[1]).loc[list(GRAMMARS)]
    bars = ax.containers[1:] if len(ax.containers) == 2 else [c for c in ax.containers if hasattr(c, "patches")]
    second = bars[-1]
    np.testing.assert_allclose([bar.get_height() for bar in second], expected["mean"])
    assert [label.get_text() for label in ax.get_xticklabels()] == list(GRAMMARS)
    segments = second.errorbar.lines[2][0].get_segments()  # type: ignore[attr-defined]
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
    low, high = container.errorbar.lines[2][0].get_segments()[0][:, 1]  # type: ignore[attr-defined]
    assert (high - low) / 2 == pytest.approx(0.02 * factor)
