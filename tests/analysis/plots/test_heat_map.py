"""Heat maps of tables and of pairings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.patches import Rectangle

from icy.analysis import plots, style
from icy.analysis.tables.bias import bias_table
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of, select
from tests.analysis.plots.helpers import GRAMMARS, MODELS, acquire, all_text, budget, overlapping, record, texts

# -- heat maps ---------------------------------------------------------------------------------------------------------


def test_heat_has_the_numbers_of_the_table() -> None:
    result = acquire()
    (ax, bar) = plots.heat(result).axes
    table = bias_table(long_of(result), log="only")
    cells = [[cells[g] for g in table.grammars] for _, cells in table.rows]
    shown = [text.replace("\n", "") for text in texts(ax)]
    expected = [row[name].text(2).removeprefix("> ") for _, row in table.rows for name in GRAMMARS]
    assert shown == expected
    assert texts(ax)[1:3] == ["1.65\n×/1.04", "2.25\n×/1.03"]
    assert texts(ax)[GRAMMARS.index("hol")] == "20†"
    assert [label.get_text() for label in ax.get_xticklabels()] == table.grammars == list(GRAMMARS)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["FC2L", "HierZero:GRU"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[cell.center for cell in row] for row in cells])
    assert bar.get_xscale() == "log"
    assert "cut at the cap of 20" in all_text(plots.heat(result))


def test_heat_is_bright_where_learning_is_easy() -> None:
    for result, easy, hard in ((budget(), 0.99, 0.25), (acquire(), 1.0, 20.0)):
        image = plots.heat(result).axes[0].images[0]
        light = [sum(image.cmap(float(image.norm(value)))[:3]) for value in (easy, hard)]
        assert light[0] > light[1] + 0.5
    assert plots.heat(budget()).axes[0].images[0].get_clim() == (0, 1)


@pytest.mark.slow
def test_heat_hatches_missing_cells_and_labels_failed_cells() -> None:
    records = [r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")]
    for r in records:
        if (r["model"], r["grammar"]) == (MODELS[1], "hol"):
            r.update(failed=True, accuracy=None, reason=None, error="diverged")
    figure = plots.heat(ProbeResult(records))
    ax = figure.axes[0]
    boxes = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
    assert sorted((p.get_x() + 0.5, p.get_y() + 0.5) for p in boxes) == [(GRAMMARS.index("rot"), 0), (6, 1)]
    assert texts(ax).count("failed") == 1
    assert len(texts(ax)) == 2 * 7 - 1
    (legend,) = [ax.get_legend() for ax in figure.axes if ax.get_legend()]
    assert [text.get_text() for text in legend.get_texts()] == ["not measured"]
    assert [patch.get_hatch() for patch in legend.get_patches()] == [boxes[0].get_hatch()]
    assert not [ax for ax in plots.heat(budget()).axes if ax.get_legend()]  # nothing is hatched


def test_cells_of_a_partly_finished_sweep_show_their_seeds() -> None:
    half = [r for r in budget(seeds=2).records if (r["model"], r["grammar"], r["seed"]) != (MODELS[1], "hol", 124)]
    assert [text for text in texts(plots.heat(ProbeResult(half)).axes[0]) if " of " in text] == ["0.18\n(1 of 2)"]


def test_numbers_are_black_on_bright_and_white_on_dark() -> None:
    assert (style.ink(colormaps["viridis"](1.0)), style.ink(colormaps["viridis"](0.0))) == ("black", "white")
    assert {text.get_color() for text in plots.heat(budget()).axes[0].texts} == {"black", "white"}


@pytest.mark.slow
def test_representations_have_a_panel_each_and_share_their_colours() -> None:
    both = budget() + budget(representation="discr", target=0.95)
    figure = plots.heat(both)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["soft", "discr", ""]
    first, second, _ = figure.axes
    assert first.images[0].get_clim() == second.images[0].get_clim()
    mixed = plots.heat(both + acquire())
    assert [ax.get_title(loc="left") for ax in mixed.axes][:3] == ["acquire, soft", "budget, soft", "budget, discr"]


@pytest.mark.slow
def test_many_measures_have_colour_bars_in_rows() -> None:
    gap = select(budget(), grammars=["perm", "rot"], models=["FC2L"]) + select(budget(), grammars=["rot"])
    held, both = gap.to_dataframe(), budget(["sender/FC1L+CNN"]).to_dataframe()
    held, both = (t.assign(measure=m, protocol=m) for t, m in ((held, "held_out"), (both, "end_to_end")))
    figure = plots.heat(pd.concat([acquire().to_dataframe(), budget().to_dataframe(), held, both]))
    names = {"ratio to concat", "accuracy", "held-out accuracy", "end-to-end accuracy"}
    assert {ax.get_xlabel() for ax in figure.axes} == {"", *names}
    assert [ax for ax in figure.axes if ax.get_legend()]  # one key more: what was not measured
    assert overlapping(figure) == []
    assert figure.get_figheight() <= style.TALLEST


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 20, 50])
def test_rows_are_about_equally_tall_however_many(count: int) -> None:
    result = select(budget([f"sender/M{i}" for i in range(count)], seeds=1), grammars=["perm", "rot"])
    figure = plots.heat(result)
    figure.draw_without_rendering()
    heights = [ax.bbox.height / figure.dpi / len(ax.get_yticklabels()) for ax in figure.axes if ax.images]
    assert min(heights) > 0.12
    assert max(heights) < 0.32
    assert figure.get_figheight() <= style.TALLEST


@pytest.mark.slow
def test_numbers_in_narrow_cells_lose_decimals_before_they_are_too_small() -> None:
    with plots.plot_style("paper"):
        figure = plots.heat(acquire(["sender/RNNAutoReg:LSTM", "sender/FC2L"]))
    ax = figure.axes[0]
    assert "Geometric mean." in figure.caption  # not its spread, which is not drawn
    assert {text.get_fontsize() for text in ax.texts} == {8.0}
    assert [text.get_text() for text in ax.texts][:3] == ["1.0", "2.2", "3.4"]
    assert ax.texts[-1].get_text() == "20†"


# -- the accuracy of every pairing of populations ----------------------------------------------------------------------


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


def test_results_without_populations() -> None:
    with pytest.raises(InvalidSettingError, match="no populations"):
        plots.pairings(populations(pairings=None))
    with pytest.raises(InvalidSettingError, match="needs every evaluation"):
        plots.pairings(populations().to_dataframe("long"))
