"""Plots of turns and of the study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from icy.analysis.people import published_people
from icy.analysis.plots.games import (
    FREE,
    GAP,
    MATCHED,
    VIOLATED,
    draw_study,
    plot_turns_of_images,
    plot_turns_of_values,
)
from icy.analysis.tables.study import study_report
from icy.core.errors import InvalidSettingError
from results.study_design.__main__ import draw_design
from results.study_report.__main__ import WINDOW, draw_course
from tests.analysis.tables.test_study import VALUES, rows

# -- turns of games: positions of images, and colors of the values that a rule demands ---------------------------------


IMAGES = np.random.default_rng(0).random((2, 3, 3, 8, 8))


def sheet(figure: Figure, panel: int = 0) -> NDArray[Any]:
    """Return the pixels of a panel."""
    (image,) = [child for child in figure.axes[panel].get_children() if isinstance(child, AxesImage)]
    return np.asarray(image.get_array())


def cells(figure: Figure, panel: int) -> NDArray[Any]:
    """Return the numbers that the cells of a panel are coloured by, [row, column]."""
    return np.asarray(figure.axes[panel].collections[0].get_array()).reshape(-1)


def test_targets_are_above_distractors() -> None:
    figure = plot_turns_of_images(IMAGES.reshape(1, 6, 3, 8, 8), ["red"], 2)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["red", ""]
    above, below = sheet(figure, 0), sheet(figure, 1)
    np.testing.assert_array_equal(above[GAP : GAP + 8, GAP : GAP + 8], IMAGES[0, 0].transpose(1, 2, 0))
    np.testing.assert_array_equal(below[GAP : GAP + 8, GAP : GAP + 8], IMAGES[0, 2].transpose(1, 2, 0))
    assert above.shape == below.shape  # the two targets are as large as the four distractors
    assert [axes.get_ylabel() for axes in figure.axes] == ["targets", "distractors"]
    figure.draw_without_rendering()


def test_cells_show_the_conditions_of_a_rule() -> None:
    objects = np.array([[[1, 5], [1, 0], [2, 5]], [[0, 0], [3, 3], [3, 0]]])
    figure = plot_turns_of_values(objects, np.array([[1, -1], [0, 0]]), ["a", "b"], ["first", "second"], 1)
    found = [cells(figure, panel).tolist() for panel in range(4)]
    turns = [[MATCHED, FREE], [MATCHED, VIOLATED, FREE, FREE], [MATCHED, MATCHED]]
    assert found == [*turns, [VIOLATED, VIOLATED, VIOLATED, MATCHED]]
    assert [text.get_text() for text in figure.axes[1].texts] == ["2", "1", "3", "6"]
    figure.draw_without_rendering()


# -- plots of the study ------------------------------------------------------------------------------------------------


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
