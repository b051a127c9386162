"""Turns of games: positions of images, and colors of the values that a rule demands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from icy.analysis.plots.games import FREE, GAP, MATCHED, VIOLATED, plot_turns_of_images, plot_turns_of_values

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


@pytest.mark.parametrize("turns", [1, 3])
def test_every_turn_has_its_rule_above(turns: int) -> None:
    figure = plot_turns_of_images(np.zeros((turns, 4, 3, 8, 8)), [f"rule {n}" for n in range(turns)], 2)
    assert [axes.get_title(loc="left") for axes in figure.axes[::2]] == [f"rule {n}" for n in range(turns)]
