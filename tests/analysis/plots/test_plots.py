"""Common behavior of all kinds of plots: axes, long tables, titles, and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

import icy
from icy.analysis import plots, style
from icy.analysis.order import models_in_order
from icy.analysis.picture import LARGEST
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import select
from tests.analysis.plots.helpers import MODELS, acquire, all_text, budget, overlapping, sized, texts, written
from tests.analysis.plots.test_heat_map import populations
from tests.analysis.plots.test_learning_curves import played


def few_chains(folder: Path) -> ProbeResult:
    """Train two short chains."""
    options = {"quick": True, "chains": 1, "generations": 1, "updates": 20, "workers": 1, "out": folder}
    return icy.iterate("FC2L", ["perm", "hol"], **options)  # type: ignore[arg-type]


SINGLE = {  # a kind, and results that it draws in one panel
    "heat": budget,
    "bars": budget,
    "curves": lambda: budget(MODELS[:1]),
    "ratios": acquire,
    "tradeoff": budget,
    "parameters": lambda: select(sized(), grammars=["rot"]),
    "pairings": lambda: populations(1),
}
TWICE = {  # the same in two panels
    **{kind: lambda: budget() + budget(representation="gumb") for kind in ("heat", "bars", "tradeoff")},
    "curves": budget,
    "ratios": lambda: acquire() + acquire(["receiver/CNN"]),
    "parameters": sized,
    "pairings": populations,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SINGLE)
def test_plots_use_the_axes_of_the_caller(kind: str) -> None:
    figure = Figure()
    ax, other = figure.subplots(1, 2)
    assert plots.plot_function(kind)(SINGLE[kind](), axes=ax, title="mine") is figure
    assert ax.lines or ax.images or ax.patches
    assert len(other.get_children()) == len(Figure().subplots().get_children())
    assert ax.get_title(loc="left") == "mine"
    assert figure.get_suptitle() == ""
    two = Figure().subplots(1, 2)
    plots.plot_function(kind)(TWICE[kind](), axes=list(two))
    assert all(ax.lines or ax.images or ax.patches for ax in two)


@pytest.mark.parametrize("kind", TWICE)
def test_one_axes_is_too_few_for_two_panels(kind: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"This plot has 2 panels \(.+; .+\), and 1 axes were given"):
        plots.plot_function(kind)(TWICE[kind](), axes=Figure().subplots())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("bars", 45), ("ratios", 110), ("tradeoff", 40)])
def test_too_many_rows_are_an_error_that_suggests_filters(kind: str, count: int) -> None:
    some = acquire([f"sender/M{i}" for i in range(count)], seeds=1).to_dataframe()
    table = pd.concat([some.assign(representation=name) for name in ("soft", "gumb", "discr", "a", "b", "c")])
    draw = plots.plot_function(kind)
    with pytest.raises(InvalidSettingError, match=rf"have {6 * count} rows in 6 panels. .+ --where rep.+=soft"):
        draw(table)
    assert draw(some[some["model"].isin(some["model"].unique()[:20])]).get_figheight() <= LARGEST


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in SINGLE if kind not in ("curves", "pairings")])
def test_a_long_table_does_as_well(kind: str, tmp_path: Path) -> None:
    result, draw = SINGLE[kind](), plots.plot_function(kind)
    file = tmp_path / "results.csv"
    result.to_dataframe().to_csv(file, index=False)
    drawn = [draw(results) for results in (result, result.to_dataframe(), pd.read_csv(file))]
    first, *others = [[(len(ax.lines), len(ax.patches), texts(ax)) for ax in figure.axes] for figure in drawn]
    assert others == [first, first]
    assert len({all_text(figure) for figure in drawn}) == 1


def test_a_table_of_an_older_version_lacks_columns() -> None:
    long = budget().to_dataframe().drop(columns=["held_out", "split", "pretrain_representation", "game_steps"])
    assert texts(plots.heat(long).axes[0]) == texts(plots.heat(budget()).axes[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SINGLE)
def test_title_and_width(kind: str) -> None:
    figure = plots.plot_function(kind)(SINGLE[kind](), title="", width=4.5)
    assert figure.get_suptitle() == ""
    assert figure.get_figwidth() == 4.5
    assert "meanings 3x4" in all_text(plots.plot_function(kind)(SINGLE[kind]()))


def test_kinds_are_functions_of_the_package() -> None:
    assert set(plots.KINDS) < set(dir(plots))
    assert all(getattr(plots, kind).__name__ == kind and plots.KINDS[kind][1].endswith(".") for kind in plots.KINDS)
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        plots.pie  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "sizes"), [("paper", 3.25, {8.0}), ("slides", 6.3, {10.0, 11.0, 12.0}), (None, None, None)]
)
@pytest.mark.parametrize("kind", plots.KINDS)
def test_styles_set_the_width_and_the_letters_of_every_kind(
    kind: str, name: str | None, width: float | None, sizes: set[float] | None, tmp_path: Path
) -> None:
    chains = dict.fromkeys(("chain_curves", "chain_paths"), lambda: few_chains(tmp_path))
    results = {
        **SINGLE, **chains, "e2e": lambda: played(lambda share, seed: share),
        "side_by_side": lambda: select("results/context/records.parquet", where={"role": "sender", "word_length": 2}),
    }[kind]()  # fmt: skip
    usual = style.WIDTH, style.SMALL
    with plots.plot_style(name):
        figure = plots.plot_function(kind)(results)
        letters = {text.get_fontsize() for text in written(figure)}
        assert [pair for pair in overlapping(figure) if "the edge" in pair] == []
    assert usual == (style.WIDTH, style.SMALL)
    assert width in (None, figure.get_figwidth())
    assert sizes is None or letters <= sizes
    assert ("w=" in all_text(figure)) is (name != "paper")  # the title is left to the caption
    assert "w=" in figure.caption
    assert figure.caption.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("results", [SINGLE, TWICE], ids=["one panel", "two panels"])
@pytest.mark.parametrize("kind", SINGLE)
def test_all_texts_are_inside_the_figure_at_every_resolution(kind: str, results: dict[str, Any]) -> None:
    """Letters on a grid of pixels are up to 7 % wider than in a file of vectors."""
    figure = plots.plot_function(kind)(results[kind]())
    for dpi in (72, 110, 300):
        figure.set_dpi(dpi)
        assert [pair for pair in overlapping(figure) if "the edge" in pair] == []


def test_models_are_in_the_requested_order() -> None:
    def rows() -> list[str]:
        return [label.get_text() for label in plots.heat(budget()).axes[0].get_yticklabels()]

    with models_in_order(["sender/HierZero:GRU"]):
        assert rows() == ["HierZero:GRU", "FC2L"]
    assert rows() == ["FC2L", "HierZero:GRU"]


@pytest.mark.slow
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", SINGLE)
def test_a_dollar_in_a_name_is_no_formula(kind: str, given: bool) -> None:
    """As a formula it would be drawn in italics, or be an error, as this one."""
    found = [
        {**one, "model": one["model"] + r"$\frac{1$", "grammar": one["grammar"].replace("perm", r"$\perm$")}
        for one in SINGLE[kind]().records
    ]
    drawn = plots.plot_function(kind)(ProbeResult(found), axes=Figure().subplots() if given else None, title="$x^$")
    shown = [text for text in written(drawn) if "$" in text.get_text()]
    assert shown
    assert not any(text.get_parse_math() for text in shown)


USERS = (
    {"text.usetex": True},
    {"font.family": "No Such Font"},
    {"font.size": 30.0},
    {"savefig.bbox": "tight"},
    {"savefig.format": "svg"},
    {"savefig.transparent": True},
    {"figure.autolayout": True},
    {"axes.formatter.use_locale": True},
    {"axes.facecolor": "black", "figure.facecolor": "black", "text.color": "white"},
    {"axes.grid": True, "axes.spines.left": False},
)


def _png(kind: str) -> bytes:
    return plots.plot_function(kind)(SINGLE[kind]())._repr_png_()  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("settings", USERS, ids=str)
def test_a_new_figure_does_not_depend_on_the_users_settings(settings: dict[str, Any]) -> None:
    with rc_context(settings):
        assert _png("heat") == _usual()


@cache
def _usual() -> bytes:
    return _png("heat")


def test_axes_of_the_caller_keep_the_callers_settings() -> None:
    with rc_context({"axes.facecolor": "black"}):
        assert plots.heat(budget()).axes[0].get_facecolor()[:3] == (1, 1, 1)
        ax = Figure().subplots()
        plots.heat(budget(), axes=ax)
        assert ax.get_facecolor()[:3] == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nonsense", "TkAgg", "module://nowhere.backend"])
def test_plots_need_no_backend(name: str) -> None:
    program = "from icy.analysis import plots; import os; print(os.environ['MPLBACKEND'])"
    environment = {**os.environ, "MPLBACKEND": name}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{name}\n", "")


@pytest.mark.slow
def test_a_file_that_matplotlib_cannot_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_bytes(b"\xff\xfe")
    words = [sys.executable, "-m", "icy", "plot", "heat"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "correct or remove the file matplotlibrc" in done.stderr
    assert "Traceback" not in done.stderr
