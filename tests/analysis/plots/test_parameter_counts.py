"""Accuracy and ratios against the number of parameters."""

from __future__ import annotations

import pytest

from icy.analysis import plots
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from tests.analysis.plots.helpers import MODELS, acquire, all_text, arrows, record, sized


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


def test_ratios_against_parameters_have_two_logarithmic_axes() -> None:
    ax = plots.parameters(acquire()).axes[-1]
    assert (ax.get_title(), ax.get_xscale(), ax.get_yscale()) == ("hol", "log", "log")
    assert len(arrows(ax)) == len(MODELS)
