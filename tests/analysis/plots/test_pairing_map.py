"""The accuracy of every pairing of populations."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from icy.analysis import plots
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from tests.analysis.plots.helpers import all_text, overlapping, record

PAIR = "FC2L+RNN1L:GRU"
ACCURACIES = [[0.25, 0.5], [0.75, 1.0], [0.0, 0.125]]  # three senders, two receivers


def populations(seeds: int = 2, **more: object) -> ProbeResult:
    about = {"role": "pair", "protocol": "e2e", "job_kind": "e2e", "reason": "steps", "end_to_end_accuracy": 0.4,
             "pairings": ACCURACIES}  # fmt: skip
    return ProbeResult([record(PAIR, "none", 123 + i, **{**about, **more}) for i in range(seeds)])


def test_a_cell_is_the_accuracy_of_a_sender_and_a_receiver() -> None:
    figure = plots.pairings(populations())
    assert len(figure.axes) == 2
    for ax, seed in zip(figure.axes, (123, 124), strict=True):
        assert ax.get_title() == f"seed {seed}"
        np.testing.assert_array_equal(ax.images[0].get_array(), ACCURACIES)
        assert [text.get_text() for text in ax.texts] == ["0.25", "0.50", "0.75", "1.00", "0.00", "0.12"]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["s1", "s2", "s3"]
        assert [label.get_text() for label in ax.get_xticklabels()] == ["r1", "r2"]
    assert figure.get_suptitle() == "How well each sender of a population is understood by each receiver"
    assert "by chance: 0.25) meanings 3x4; V=4, w=2, E=32; soft; preset default" in all_text(figure)


def test_rows_of_several_sizes_and_settings() -> None:
    """The large population has a taller panel, and nothing overlaps."""
    figure = plots.pairings(populations() + populations(1, representation="gumb", pairings=[[0.5] * 3] * 5))
    assert len(figure.axes) == 3
    assert overlapping(figure) == []
    heights = [ax.get_window_extent().height for ax in figure.axes]
    assert heights[2] > 1.2 * heights[0]


def test_on_given_axes() -> None:
    axes = Figure().subplots(1, 2)
    figure = plots.pairings(populations(), axes=axes)
    assert figure is axes[0].figure
    with pytest.raises(InvalidSettingError, match="2 panels"):
        plots.pairings(populations(), axes=axes[0])


def test_results_without_populations() -> None:
    with pytest.raises(InvalidSettingError, match="no populations"):
        plots.pairings(populations(pairings=None))
    with pytest.raises(InvalidSettingError, match="needs every evaluation"):
        plots.pairings(populations().to_dataframe("long"))
