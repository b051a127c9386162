"""Heat maps."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.patches import Rectangle

from icy.analysis import plots, style
from icy.analysis.tables.bias import bias_table
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from tests.analysis.plots.helpers import GRAMMARS, MODELS, acquire, all_text, budget, texts


def test_heat_has_the_numbers_of_the_table() -> None:
    result = acquire()
    (ax, bar) = plots.heat(result).axes
    table = bias_table(long_of(result))
    cells = [[cells[g] for g in table.grammars] for _, cells in table.rows]
    assert texts(ax) == [f"{cell.mean:.2f}{'†' if cell.cut else ''}" for row in cells for cell in row]
    assert texts(ax)[GRAMMARS.index("hol")] == "20.00†"
    assert [label.get_text() for label in ax.get_xticklabels()] == table.grammars == list(GRAMMARS)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["FC2L", "HierZero:GRU"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[cell.mean for cell in row] for row in cells])
    assert bar.get_yscale() == "log"
    assert "cut at the cap of 20" in all_text(plots.heat(result))


def test_heat_is_bright_where_learning_is_easy() -> None:
    for result, easy, hard in ((budget(), 0.99, 0.25), (acquire(), 1.0, 20.0)):
        image = plots.heat(result).axes[0].images[0]
        light = [sum(image.cmap(float(image.norm(value)))[:3]) for value in (easy, hard)]
        assert light[0] > light[1] + 0.5
    assert plots.heat(budget()).axes[0].images[0].get_clim() == (0, 1)


def test_heat_hatches_what_is_missing_and_says_what_failed() -> None:
    records = [r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")]
    for r in records:
        if (r["model"], r["grammar"]) == (MODELS[1], "hol"):
            r.update(failed=True, accuracy=None, reason=None, error="diverged")
    ax = plots.heat(ProbeResult(records)).axes[0]
    boxes = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
    assert sorted((p.get_x() + 0.5, p.get_y() + 0.5) for p in boxes) == [(GRAMMARS.index("rot"), 0), (6, 1)]
    assert texts(ax).count("failed") == 1
    assert len(texts(ax)) == 2 * 7 - 1


def test_numbers_are_black_on_bright_and_white_on_dark() -> None:
    assert (style.ink(colormaps["viridis"](1.0)), style.ink(colormaps["viridis"](0.0))) == ("black", "white")
    assert {text.get_color() for text in plots.heat(budget()).axes[0].texts} == {"black", "white"}


def test_representations_have_a_panel_each_and_share_their_colours() -> None:
    both = budget() + budget(representation="discr", target=0.95)
    figure = plots.heat(both)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["soft", "discr", ""]
    first, second, _ = figure.axes
    assert first.images[0].get_clim() == second.images[0].get_clim()
    mixed = plots.heat(both + acquire())
    assert [ax.get_title(loc="left") for ax in mixed.axes][:3] == ["acquire, soft", "budget, soft", "budget, discr"]
