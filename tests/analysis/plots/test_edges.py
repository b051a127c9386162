"""No text leaves the figure, at the resolution of a screen or of print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from icy.analysis import compare
from icy.analysis.atlas.atlas import Atlas
from icy.analysis.atlas.placement import plot_placements
from icy.analysis.plots import chain_curves, chain_paths, plot_style
from icy.analysis.plots.error_bars import differences
from icy.analysis.plots.games import draw_study, plot_stimuli, plot_turns_of_images, plot_turns_of_values
from icy.analysis.plots.metric_bars import plot_metrics
from icy.analysis.tables.study import study_report
from results.study_design.__main__ import draw_design
from results.study_report.__main__ import draw_course
from tests.analysis.atlas.test_placement import ABOUT, ZOO_OF_TWO, spread
from tests.analysis.plots.helpers import written
from tests.analysis.plots.test_error_bars import CUT, EASY
from tests.analysis.plots.test_plots import few_chains
from tests.analysis.tables.test_paired import ratios
from tests.analysis.tables.test_study import VALUES, rows
from tests.analysis.test_metric_conventions import NAMES, PLOTS, scores

LONG = "a name that is much longer than the names of grammars are"


def course() -> Figure:
    items = [
        {"agent": agent, "dataset": "synth", "grammar": grammar, "seed": seed, "example": example,
         "correct": float(example % (seed + 2) == 0), "held_out": example in (29, 39, 49)}
        for agent in ("FC2L", "composer") for grammar in ("concat", "rot") for seed in range(3) for example in range(50)
    ]  # fmt: skip
    return draw_course(pd.DataFrame(items))


def design() -> Figure:
    items = {"dataset": "synth", "preset": ["published"] * 2 + ["clean"] * 2, "item": ["green square", "blue"] * 2}
    counts = {"colour": [2, 0, 2, 2], "shape": [1, 2, 2, 2], "told": [1.0, 0.0, 1.0, 1.0], "untold": [1.0, 0.0, 1, 1]}
    return draw_design(pd.DataFrame(items | counts))


def placed() -> Figure:
    own = {"role": "receiver", "model": "receiver/A"}
    zoo = pd.concat([spread(ZOO_OF_TWO), spread(ZOO_OF_TWO, **own)], ignore_index=True)
    mine = pd.concat([spread({"New": (2.0, 2.2)}), spread({"New": (2.0, 2.2)}, **own)], ignore_index=True)
    return plot_placements(Atlas(zoo, ABOUT).places(mine))


def by_chance() -> pd.DataFrame:
    ends = {f"{name}_chance_{end}": value for name in NAMES for end, value in (("low", -0.1), ("high", 12.0))}
    return scores().assign(**ends, topsim_note="a small language")


MADE: dict[str, Callable[[], Figure]] = {
    **PLOTS,
    "metrics by chance": lambda: plot_metrics(by_chance(), NAMES),
    "metrics of one language": lambda: plot_metrics(by_chance().assign(name=LONG), NAMES),
    "study": lambda: draw_study(study_report(rows("model", "FC2L", VALUES))),
    "course": course,
    "design": design,
    "differences": lambda: differences(compare(ratios(EASY), ratios(CUT))),
    "placement": placed,
    "stimuli": lambda: plot_stimuli(
        np.array([2, 3]), *np.array([[[-0.5, 0.5, 0.9]] * 2, [[0.1] * 3] * 2]), np.zeros((2, 3, 4)), LONG
    ),
    "turns of images": lambda: plot_turns_of_images(np.zeros((2, 8, 3, 16, 16)), ["red", LONG], 4),
    "turns of values": lambda: plot_turns_of_values(
        np.zeros((2, 8, 3), int), np.array([[1, -1, 0]] * 2), ["1.2", LONG], ["first", "second", "third"], 4
    ),
}


def assert_inside(figure: Figure) -> None:
    """Assert that no text is more than a point outside the figure."""
    for dpi in (72, 110, 300):
        figure.set_dpi(dpi)
        boxes = {text.get_text(): Text.get_window_extent(text).padded(-dpi / 72) for text in written(figure)}
        corners = figure.bbox.extents
        assert [name for name, box in boxes.items() if (Bbox.union([box, figure.bbox]).extents != corners).any()] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_texts_are_inside_the_figure(name: str, tmp_path: Path) -> None:
    figure = MADE[name]()
    assert_inside(figure)
    figure.savefig(tmp_path / "figure.pdf")  # draws at 72 dpi
    assert_inside(figure)


@pytest.mark.slow
@pytest.mark.parametrize("style", [None, "paper", "slides"])
def test_texts_of_chains_are_inside_the_figure(style: str | None, tmp_path: Path) -> None:
    chains = few_chains(tmp_path)
    with plot_style(style):
        for draw in (chain_curves, chain_paths):
            assert_inside(draw(chains))
