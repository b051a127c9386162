"""Accuracy and ratios against the number of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from icy.analysis import plots
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from tests.analysis.plots.helpers import MODELS, acquire, all_text, arrows, overlapping, record, sized


@pytest.mark.slow
def test_a_line_per_model_through_its_sizes() -> None:
    axes = plots.parameters(sized()).axes
    assert [ax.get_title() for ax in axes] == ["perm", "rot"]
    assert {ax.get_xscale() for ax in axes} == {"log"}
    first, second = (container.lines[0] for container in axes[1].containers)
    assert list(zip(*first.get_data(), strict=True)) == [(64, 0.58), (256, 0.66), (1024, pytest.approx(0.82))]
    assert list(second.get_xdata()) == [128, 512, 2048]
    assert first.get_marker() != second.get_marker()


def test_published_results_have_published_sizes() -> None:
    long = long_of(ProbeResult([record(MODELS[0], "rot", 1, preset="published")]))
    (container,) = plots.parameters(long).axes[0].containers
    assert container.lines[0].get_xdata() == [1200]


def test_models_without_parameters_are_named() -> None:
    nothing = {"parameters": {"true": 0, "published": 0}}
    none = ProbeResult([record("sender/Hashtable", "rot", 1, **nothing)])
    assert "not shown: sender/Hashtable" in all_text(plots.parameters(sized() + none))
    with pytest.raises(InvalidSettingError, match=r"None of these models has parameters \(sender/Hashtable\)"):
        plots.parameters(none)


@pytest.mark.slow
def test_ratios_against_parameters_have_two_logarithmic_axes() -> None:
    ax = plots.parameters(acquire()).axes[-1]
    assert (ax.get_title(), ax.get_xscale(), ax.get_yscale()) == ("hol", "log", "log")
    assert len(arrows(ax)) == len(MODELS)


def zoo(count: int) -> ProbeResult:
    """Models of like sizes and like results."""
    found = []
    for i in range(count):
        model = f"sender/{'ABCDEFGH'[i % 8]}{'2L' * (i % 3 == 0)}:cell{i // 8}"
        size = {"true": 3000 + 97 * i, "published": 1}
        found += [record(model, g, 1, accuracy=0.5 + 0.1 * (i % 5), parameters=size) for g in ("perm", "rot")]
    return ProbeResult(found)


@pytest.mark.slow
def test_marks_of_many_models_do_not_pile_up() -> None:
    figure = plots.parameters(zoo(45))
    figure.draw_without_rendering()
    for ax in figure.axes:
        lines = [container.lines[0] for container in ax.containers]
        places = 72 / figure.dpi * np.array([ax.transData.transform(line.get_xydata()[0]) for line in lines])
        assert len(places) == 45
        apart = np.hypot(*(places[:, None] - places[None]).T)[np.triu_indices(45, 1)]
        assert apart.min() > 2  # points; marks are 4 wide, so that none hides the middle of another
        exact = 72 / figure.dpi * ax.transData.transform([(3000 + 97 * i, 0.5) for i in range(45)])[:, 0]
        assert np.abs(np.sort(places[:, 0]) - exact).max() < 10.5
    assert "marks that would cover each other are moved aside" in all_text(figure)
    assert overlapping(figure) == []


@pytest.mark.slow
def test_blocks_begin_in_rows_of_their_own() -> None:
    figure = plots.parameters(acquire() + sized())
    names = [part.get_suptitle() for part in figure.subfigs]
    assert names == ["acquire", "budget"]
    assert [ax.get_title() for ax in figure.subfigs[1].axes] == ["perm", "rot"]
    assert overlapping(figure) == []
    own = Figure().subplots(1, 8)
    plots.parameters(acquire() + sized(), axes=own)
    assert own[-1].get_title() == "rot\nbudget"
