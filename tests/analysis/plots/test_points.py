"""The trade-off between noise and composition, and results by the number of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icy.analysis import plots, style
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from tests.analysis.plots.helpers import (
    EASE,
    MODELS,
    acquire,
    all_text,
    arrows,
    budget,
    means,
    overlapping,
    record,
    sized,
    texts,
)

# -- the trade-off between noise and composition -----------------------------------------------------------------------


def marked(ax: Axes) -> list[tuple[float, float]]:
    """Where the models are, the best first."""
    marks = [line for line in ax.lines if line.get_marker() not in ("None", None)]
    return [tuple(map(float, line.get_xydata()[0])) for line in marks]  # type: ignore[misc]


def test_tradeoff_has_noise_across_and_composition_up() -> None:
    result = budget()
    (ax,) = plots.tradeoff(result).axes
    expected = []
    for model in MODELS:
        mean = means(result, model)["mean"]
        expected.append((mean[["rot", "pairsum", "proj"]].mean(), mean["shufdet"]))
    np.testing.assert_allclose(sorted(marked(ax)), sorted(expected))
    assert "better: the upper left; dashed" in all_text(plots.tradeoff(result))
    assert "shufdet" in ax.get_ylabel()
    assert not ax.xaxis_inverted()


def test_receivers_are_measured_by_both_shuffles() -> None:
    records = [record("receiver/CNN", g, 1, accuracy=v) for g, v in {**EASE, "shuf": 0.5}.items()]
    (ax,) = plots.tradeoff(ProbeResult(records)).axes
    np.testing.assert_allclose(marked(ax), [(0.7, 0.7)])
    assert "mean of shuf, shufdet" in ax.get_ylabel()


def table_of(rows: dict[str, tuple[float, float]], **more: Any) -> pd.DataFrame:
    """Models with their values on noise and on shufdet."""
    values = [(m, g, noise if g != "shufdet" else comp) for m, (noise, comp) in rows.items()
              for g in ("rot", "pairsum", "proj", "shufdet")]  # fmt: skip
    return pd.DataFrame(values, columns=["model", "grammar", "value"]).assign(
        seed=1, role="sender", **{"measure": "accuracy", **more}
    )


def test_ranks_and_the_front() -> None:
    rows = {"sender/A": (0.5, 0.9), "sender/B": (0.6, 0.8), "sender/C": (0.3, 0.6), "sender/D": (0.7, 0.95)}
    (ax,) = plots.tradeoff(table_of(rows)).axes
    assert texts(ax) == ["1 A", "2 C", "3 D", "4 B"]  # by 0.4, 0.3, 0.25, 0.2
    (front,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(front.get_xydata(), [(0.3, 0.6), (0.5, 0.6), (0.5, 0.9), (0.7, 0.9), (0.7, 0.95)])


def test_of_ratios_the_lower_right_is_better() -> None:
    rows = {"sender/A": (8.0, 2.0), "sender/B": (3.0, 1.5), "sender/C": (4.0, 4.0)}
    more = {"measure": "ratio", "protocol": "acquire", "cap": 20, "censored": False}
    (ax,) = plots.tradeoff(table_of(rows, **more)).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert not ax.xaxis_inverted()
    assert not ax.yaxis_inverted()
    assert "better: the lower right (fast on them, slow on noise)" in all_text(plots.tradeoff(table_of(rows, **more)))
    assert texts(ax) == ["1 A", "2 B", "3 C"]  # noise takes 4, 2 and 1 times as long
    (front,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(front.get_xydata(), [[8.0, 2.0], [3.0, 2.0], [3.0, 1.5]])


@pytest.mark.slow
def test_many_models_are_numbered_and_listed_by_rank() -> None:
    rows = {f"sender/M{i}": (0.5 + 0.01 * i, 0.9 - 0.01 * i) for i in range(20)}
    (ax,) = plots.tradeoff(table_of(rows)).axes
    assert texts(ax) == [str(rank) for rank in range(1, 21)]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [f"{i + 1} M{i}" for i in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 25])
def test_names_do_not_lie_on_one_another(count: int) -> None:
    rng = np.random.default_rng(3)
    rows = {f"sender/Model{i}:GRU": (0.6 + 0.1 * rng.random(), 0.8 + 0.1 * rng.random()) for i in range(count)}
    assert overlapping(plots.tradeoff(table_of(rows))) == []


def test_models_without_all_grammars_are_counted() -> None:
    result = ProbeResult([r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")])
    figure = plots.tradeoff(result)
    assert len(marked(figure.axes[0])) == 1
    assert "not shown, for lack of some of these grammars: 1 of 2 rows" in all_text(figure)
    with pytest.raises(InvalidSettingError, match=r"but rot is missing: probe the same models with -g rot\."):
        plots.tradeoff(ProbeResult([r for r in budget().records if r["grammar"] != "rot"]))


def crowd(count: int, **more: Any) -> pd.DataFrame:
    rows = {f"sender/Model{i}:GRU": (0.6 + 0.003 * i, 0.8 + 0.1 * (i % 7)) for i in range(count)}
    return table_of(rows, **more)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4, 14])
def test_several_panels_do_not_collide(count: int) -> None:
    ratios = {"measure": "ratio", "protocol": "acquire", "cap": 20.0, "censored": False}
    senders = pd.concat([crowd(count, **ratios), crowd(count).assign(protocol="budget")])
    receivers = senders.assign(role="receiver", model=senders["model"].str.replace("sender", "receiver"))
    shuffled = receivers[receivers["grammar"].eq("shufdet")].assign(grammar="shuf")
    figure = plots.tradeoff(pd.concat([senders, receivers, shuffled]))
    assert len(figure.axes) == 4
    assert overlapping(figure) == []
    assert figure.get_figheight() <= style.TALLEST
    assert "better: the upper left, for ratios the lower right" in all_text(figure)
    assert "noise: mean of rot, pairsum, proj" in all_text(figure)


# -- accuracy and ratios against the number of parameters --------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
def test_ratios_against_parameters_have_two_logarithmic_axes() -> None:
    ax = plots.parameters(acquire()).axes[-1]
    assert (ax.get_title(), ax.get_xscale(), ax.get_yscale()) == ("hol", "log", "log")
    assert len(arrows(ax)) == len(MODELS)


def zoo(count: int) -> ProbeResult:
    """Models of like sizes and like results."""
    found = []
    for i in range(count):
        model = f"sender/{'ABCDEFGH'[i % 8]}{'2L' * (i % 3 == 0)}:cell{i // 8}"
        size = {"true": 3000 + 97 * i, "published": 1}
        found += [record(model, g, 1, accuracy=0.5 + 0.1 * (i % 5), parameters=size) for g in ("perm", "rot")]
    return ProbeResult(found)


@pytest.mark.slow
def test_marks_of_many_models_do_not_pile_up() -> None:
    figure = plots.parameters(zoo(45))
    figure.draw_without_rendering()
    for ax in figure.axes:
        lines = [container.lines[0] for container in ax.containers]
        places = 72 / figure.dpi * np.array([ax.transData.transform(line.get_xydata()[0]) for line in lines])
        assert len(places) == 45
        apart = np.hypot(*(places[:, None] - places[None]).T)[np.triu_indices(45, 1)]
        assert apart.min() > 2  # points; marks are 4 wide, so that none hides the middle of another
        exact = 72 / figure.dpi * ax.transData.transform([(3000 + 97 * i, 0.5) for i in range(45)])[:, 0]
        assert np.abs(np.sort(places[:, 0]) - exact).max() < 10.5
    assert "marks that would cover each other are moved aside" in all_text(figure)
    assert overlapping(figure) == []


@pytest.mark.slow
def test_blocks_begin_in_rows_of_their_own() -> None:
    figure = plots.parameters(acquire() + sized())
    names = [part.get_suptitle() for part in figure.subfigs]
    assert names == ["acquire", "budget"]
    assert [ax.get_title() for ax in figure.subfigs[1].axes] == ["perm", "rot"]
    assert overlapping(figure) == []
    own = Figure().subplots(1, 8)
    plots.parameters(acquire() + sized(), axes=own)
    assert own[-1].get_title() == "rot\nbudget"
