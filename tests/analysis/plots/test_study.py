"""Plots of the study."""

from __future__ import annotations

import pandas as pd
import pytest

from icy.analysis.people import published_people
from icy.analysis.plots.games import draw_study
from icy.analysis.tables.study import study_report
from icy.core.errors import InvalidSettingError
from results.study_design.__main__ import draw_design
from results.study_report.__main__ import WINDOW, draw_course
from tests.analysis.tables.test_study import VALUES, rows


@pytest.fixture(scope="module")
def report() -> pd.DataFrame:
    parts = [rows("human", "people", VALUES), rows("model", "FC2L", VALUES), published_people()]
    parts.append(rows("model", "FC2L", VALUES, protocol="converged"))
    return study_report(pd.concat([part.astype(object) for part in parts], ignore_index=True))


def test_marks_are_the_means(report: pd.DataFrame) -> None:
    figure = draw_study(report)
    synth, eng = figure.axes
    assert (synth.get_title(loc="left"), eng.get_title(loc="left")) == ("synth", "eng")
    assert [label.get_text() for label in eng.get_xticklabels()] == ["concat", "perm", "proj", "rot", "shufdet"]
    marks = {round(float(line.get_ydata()[0]), 3) for line in eng.lines if len(line.get_ydata()) == 1}
    wanted = {round(100 * sum(v) / len(v), 3) for v in VALUES.values()}
    assert wanted <= marks
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["people (Icy22)", "people", "FC2L (played)", "FC2L (converged)"]


def test_an_empty_report_is_refused(report: pd.DataFrame) -> None:
    with pytest.raises(InvalidSettingError, match="Cannot draw an empty report"):
        draw_study(report[:0])


def test_the_course_is_averaged_over_as_many_examples_as_a_number_of_cards_lasts() -> None:
    items = pd.DataFrame(
        {"agent": "composer", "dataset": "synth", "grammar": "concat", "seed": 0, "example": range(1, 21),
         "correct": [0.0] * 10 + [1.0] * 10, "held_out": [0.0] * 19 + [1.0]}
    )  # fmt: skip
    figure = draw_course(items)
    line, asked = figure.axes[0].lines
    assert len(line.get_ydata()) == 19
    assert line.get_ydata()[0] == 0
    assert line.get_ydata()[18] == 100
    assert list(asked.get_xdata()) == [20]
    assert 0 < line.get_ydata()[9] < 100
    assert WINDOW == 8


def test_the_design_shows_a_pair_of_bars_per_item() -> None:
    design = pd.DataFrame(
        {"dataset": "synth", "preset": ["published"] * 2 + ["clean"] * 2, "item": ["green square", "blue circle"] * 2,
         "colour": [2, 0, 2, 2], "shape": [1, 2, 2, 2], "told": [1.0, 0.0, 1.0, 1.0], "untold": [1.0, 0.0, 1.0, 1.0]}
    )  # fmt: skip
    figure = draw_design(design)
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert heights == [2, 0, 1, 2]
    figure.draw_without_rendering()
