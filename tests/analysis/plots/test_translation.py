"""The picture of words and concepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from icy.analysis.plots.translation import MOST, plot_translation
from icy.core.errors import InvalidSettingError
from icy.metrics.concept_matching import cbm
from icy.metrics.score import Score

EXAMPLE_1 = [("w1 w2", "red square"), ("w1 w3", "red circle"), ("w4 w2", "blue square"), ("w4 w3", "blue circle"),
             ("w1 w5", "red circle"), ("w6", "blue square")]  # fmt: skip


def of_texts(samples: Sequence[tuple[str, str]], **conventions: Any) -> Score:
    messages, phrases = ([text.split() for text in side] for side in zip(*samples, strict=True))
    return cbm(phrases, messages, concepts="items", **conventions)


def grid(*values: int) -> np.ndarray:
    return np.indices(values).reshape(len(values), -1).T


def shown(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_picture_shows_every_word_and_concept() -> None:
    figure = plot_translation(of_texts(EXAMPLE_1))
    assert {"w1", "w6", "red", "circle", "3"} < set(shown(figure))
    assert "hollow: no partner" in figure.axes[0].get_xlabel()
    assert figure.axes[0].get_xlabel().startswith("CBM 0.75")
    assert [len(lines.get_segments()) for lines in figure.axes[0].collections] == [12, 4]


def test_the_picture_of_many_words_shows_the_heaviest_and_says_so() -> None:
    meanings = grid(8, 5, 5)
    score = cbm(meanings, np.arange(200)[:, None] % 40)
    own = Figure().subplots()
    figure = plot_translation(score, own)
    assert figure is own.figure
    assert f"the heaviest {MOST} of 40 words" in own.get_xlabel()
    figure.draw_without_rendering()
    with pytest.raises(InvalidSettingError, match="score of cbm"):
        plot_translation(Score("topsim", 0.5, 3))


def test_concepts_have_the_colours_of_their_groups() -> None:
    score = of_texts(EXAMPLE_1)
    plain, grouped = (plot_translation(score, groups=groups) for groups in (None, {"red": 0, "blue": 0, "square": 1}))
    colors = [{tuple(c) for c in figure.axes[0].collections[1].get_colors()} for figure in (plain, grouped)]  # type: ignore[attr-defined]
    assert [len(found) for found in colors] == [1, 2]
