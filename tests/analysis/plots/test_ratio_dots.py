"""Dots of acquisition ratios."""

from __future__ import annotations

import pytest

from icy.analysis import plots, style
from icy.core.errors import InvalidSettingError
from icy.records.select import select
from tests.analysis.plots.helpers import GRAMMARS, MODELS, acquire, arrows, budget, geometric, texts


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
    assert all(arrow.xyann[0] < arrow.xy[0] for arrow in arrows(ax))
    assert "cap" in texts(ax)


def test_errors_without_ratios_name_a_command() -> None:
    with pytest.raises(InvalidSettingError, match=r"is budget; `icy probe --protocol acquire` measures ratios"):
        plots.ratios(budget())
    with pytest.raises(InvalidSettingError, match="have only concat"):
        plots.ratios(select(acquire(), grammars=["concat"]))
