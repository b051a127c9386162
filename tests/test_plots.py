"""What plots draw, read back from the artists; and `icy plot`."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

import icy
from icy.analysis import plots, style
from icy.analysis.plots.labels import place_labels
from icy.analysis.plots.panels import blocks, lines_of
from icy.analysis.tables.bias import bias_table
from icy.cli import main
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from icy.records.select import select

ROOT = Path(__file__).resolve().parent.parent
GRAMMARS = ("concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol")
EASE = dict(zip(GRAMMARS, (0.99, 0.98, 0.8, 0.6, 0.7, 0.9, 0.25), strict=True))
MODELS = ("sender/FC2L", "sender/HierZero:GRU")


def record(model: str, grammar: str, seed: int, **more: Any) -> dict[str, Any]:
    """A record as the store keeps it, of the protocol `budget` unless something else is said."""
    usual = {
        "model": model,
        "grammar": grammar,
        "seed": seed,
        "side": model.partition("/")[0],
        "meanings": "3x4",
        "vocab_size": 4,
        "word_length": 2,
        "hidden_size": 32,
        "representation": "soft",
        "protocol": "budget",
        "measure": "accuracy",
        "target": 0.99,
        "cap": 1,
        "preset": "default",
        "reason": "budget",
        "accuracy": 0.5,
        "steps": 200,
        "baseline_steps": 200,
        "failed": False,
        "error": None,
        "parameters": {"true": 1000, "published": 1200},
        "curve": [[0, 0.25], [50, 0.4], [100, 0.5]],
        "config": {"settings": {"round_ratio": False}, "options": {}},
        "finished": "2026-01-01T00:00:00+00:00",
    }
    merged = {**usual, **more}
    about = [merged[name] for name in ("model", "grammar", "seed", "hidden_size", "representation", "protocol")]
    key = "-".join(map(str, about))
    return {**merged, "key": key, "config": {**merged["config"], "of": key}}


def budget(models: Sequence[str] = MODELS, seeds: int = 2, **more: Any) -> ProbeResult:
    """Accuracies that differ by model, grammar and seed."""
    return ProbeResult([
        record(model, grammar, 123 + seed, accuracy=ease - 0.03 * place + 0.02 * seed, **more)
        for (place, model), (grammar, ease), seed in itertools.product(enumerate(models), EASE.items(), range(seeds))
    ])  # fmt: skip


def acquire(models: Sequence[str] = MODELS, seeds: int = 2) -> ProbeResult:
    """Ratios; hol is cut for all seeds, and rot for one."""
    found = []
    for (place, model), (number, grammar), seed in itertools.product(
        enumerate(models), enumerate(GRAMMARS), range(seeds)
    ):
        cut = grammar == "hol" or (grammar == "rot" and seed == 0)
        steps = 2000 if cut else 100 + 60 * number * (place + 1) + 10 * seed * (grammar != "concat")
        more = {"reason": "cap" if cut else "target", "steps": steps, "baseline_steps": 100, "target": 0.8, "cap": 20}
        found.append(record(model, grammar, 123 + seed, protocol="acquire", measure="ratio", accuracy=0.8, **more))
    return ProbeResult(found)


def means(result: ProbeResult | pd.DataFrame, model: str, spread: str = "std") -> pd.DataFrame:
    """Mean and spread by grammar of one model, by pandas alone."""
    long = long_of(result)
    return long[long["model"] == model].groupby("grammar")["value"].agg(["mean", spread])


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def arrows(ax: Axes) -> list[Annotation]:
    return [text for text in ax.texts if isinstance(text, Annotation) and text.arrow_patch is not None]


def all_text(figure: Figure) -> str:
    """Title and notes of a figure."""
    return " ".join(f"{figure.get_suptitle()} {figure.get_supxlabel()}".split())


# -- heat --------------------------------------------------------------------------------------------------------------


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


# -- bars --------------------------------------------------------------------------------------------------------------


def test_bars_of_few_models_stand_in_groups() -> None:
    result = budget()
    (ax,) = plots.bars(result).axes
    expected = means(result, MODELS[1]).loc[list(GRAMMARS)]
    bars = ax.containers[1:] if len(ax.containers) == 2 else [c for c in ax.containers if hasattr(c, "patches")]
    second = bars[-1]
    np.testing.assert_allclose([bar.get_height() for bar in second], expected["mean"])
    assert [label.get_text() for label in ax.get_xticklabels()] == list(GRAMMARS)
    segments = second.errorbar.lines[2][0].get_segments()  # type: ignore[attr-defined]
    np.testing.assert_allclose([s[1][1] - s[0][1] for s in segments], 2 * expected["std"], rtol=1e-6)
    hatches = {bar.get_hatch() for container in bars for bar in container}
    assert len(hatches) == 2  # for print without colours


def test_bars_of_many_models_have_a_panel_per_grammar() -> None:
    models = [f"sender/RNNZero:{cell}" for cell in "ABCDEF"]
    result = budget(models)
    axes = plots.bars(result).axes
    assert [ax.get_title() for ax in axes] == list(GRAMMARS)
    for ax, grammar in zip(axes, GRAMMARS, strict=True):
        expected = [means(result, model).loc[grammar, "mean"] for model in models]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected)
    forced = plots.bars(budget(), by="grammar")
    assert len(forced.axes) == len(GRAMMARS)
    with pytest.raises(InvalidSettingError, match="by grammar or measure, not by 'seed'"):
        plots.bars(result, by="seed")


def test_bars_of_ratios_start_at_concat() -> None:
    result = acquire()
    (ax,) = plots.bars(result).axes
    assert ax.get_yscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == list(GRAMMARS[1:])
    expected = means(result, MODELS[0]).loc[list(GRAMMARS[1:]), "mean"]
    first = ax.patches[: len(expected)]
    assert {bar.get_y() for bar in first} == {1.0}
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in first], expected)
    assert texts(ax).count("†") == 4


def test_bars_say_what_was_not_measured() -> None:
    records = [r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")]
    figure = plots.bars(ProbeResult(records))
    assert texts(figure.axes[0]) == ["–"]
    assert "– not measured" in all_text(figure)


@pytest.mark.parametrize(("spread", "factor"), [("sd", 1), ("sem", 1 / math.sqrt(3)), ("ci95", 1.96 / math.sqrt(3))])
def test_spreads_are_those_of_the_table(spread: str, factor: float) -> None:
    result = budget(MODELS[:1], seeds=3)
    container = plots.bars(result, spread=spread).axes[0].containers[-1]
    low, high = container.errorbar.lines[2][0].get_segments()[0][:, 1]  # type: ignore[attr-defined]
    assert (high - low) / 2 == pytest.approx(0.02 * factor)
    with pytest.raises(InvalidSettingError, match="sd, sem, ci95, not 'mad'"):
        plots.bars(result, spread="mad")


# -- curves ------------------------------------------------------------------------------------------------------------

SHORT, LONG = [[0, 0.2], [50, 0.4], [100, 0.8]], [[0, 0.4], [50, 0.6], [100, 0.7], [150, 0.75], [200, 0.9]]


def curved(*curves: list[list[float]], **more: Any) -> ProbeResult:
    return ProbeResult([record(MODELS[0], "perm", 123 + i, curve=c, **more) for i, c in enumerate(curves)])


def band(ax: Axes) -> list[tuple[float, float]]:
    (path,) = ax.collections[0].get_paths()
    return sorted({(float(x), round(float(y), 6)) for x, y in path.vertices})


def test_curves_have_a_mean_and_a_band_as_far_as_all_seeds_go() -> None:
    (ax,) = plots.curves(curved(SHORT, LONG), spread="sem").axes
    mean = ax.lines[0]
    np.testing.assert_allclose(mean.get_xydata(), [(0, 0.3), (50, 0.5), (100, 0.75)])
    error = [0.1, 0.1, 0.05]
    limits = {(x, round(y + s * e, 6)) for (x, y), e in zip(mean.get_xydata(), error, strict=True) for s in (-1, 1)}
    assert set(band(ax)) == {(float(x), y) for x, y in limits}


def test_curves_beyond_the_mean_are_single_seeds_to_their_ends() -> None:
    ax = plots.curves(curved(SHORT, LONG)).axes[0]
    thin = [
        line
        for line in ax.lines
        if line.get_linewidth() < 1 and line.get_marker() == "None" and len(line.get_xdata()) > 1
    ]
    (tail,) = [line for line in thin if line.get_linestyle() == "-"]
    np.testing.assert_allclose(tail.get_xydata(), LONG[2:])
    ends = [line for line in ax.lines if line.get_marker() == style.GRAMMARS["perm"].marker]
    assert sorted(tuple(map(float, line.get_xydata()[0])) for line in ends) == [(100, 0.8), (200, 0.9)]


def test_a_cut_run_ends_in_a_hollow_mark() -> None:
    for reason, hollow in (("cap", True), ("target", False)):
        ax = plots.curves(curved(SHORT, reason=reason, measure="ratio", protocol="acquire")).axes[0]
        (end,) = [line for line in ax.lines if line.get_marker() == "s"]
        assert (end.get_markerfacecolor() == "white") is hollow


def test_the_target_is_a_line() -> None:
    ax = plots.curves(curved(SHORT, target=0.8)).axes[0]
    assert [
        line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--" and len(line.get_xdata()) == 2
    ] == [0.8]


def test_curves_of_very_different_lengths_have_a_logarithmic_axis() -> None:
    longer = [[step, 0.5] for step in range(0, 2001, 50)]
    assert plots.curves(curved(SHORT, longer)).axes[0].get_xscale() == "symlog"
    assert plots.curves(curved(SHORT, LONG)).axes[0].get_xscale() == "linear"
    assert plots.curves(curved(SHORT, longer), log=False).axes[0].get_xscale() == "linear"


def test_a_panel_per_model_and_a_line_per_grammar() -> None:
    axes = plots.curves(budget()).axes
    assert [ax.get_title() for ax in axes] == ["FC2L", "HierZero:GRU"]
    named = [line for line in axes[0].lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in named] == list(GRAMMARS)
    assert len({(line.get_color(), line._unscaled_dash_pattern) for line in named}) == len(GRAMMARS)  # type: ignore[attr-defined]


# -- ratios ------------------------------------------------------------------------------------------------------------


def test_ratios_are_dots_on_a_logarithmic_axis() -> None:
    result = acquire()
    (ax,) = plots.ratios(result).axes
    assert ax.get_xscale() == "log"
    marks = [line for line in ax.lines if line.get_marker() in {look.marker for look in style.GRAMMARS.values()}]
    assert len(marks) == len(MODELS) * (len(GRAMMARS) - 1)
    for row, model in enumerate(MODELS):
        found = {line.get_marker(): line for line in marks if round(line.get_ydata()[0]) == row}
        for grammar, mean in means(result, model).loc[list(GRAMMARS[1:]), "mean"].items():
            assert found[style.GRAMMARS[str(grammar)].marker].get_xdata()[0] == pytest.approx(mean)


def test_cut_ratios_are_hollow_with_an_arrow() -> None:
    (ax,) = plots.ratios(acquire()).axes
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert {line.get_marker() for line in hollow} == {style.GRAMMARS[g].marker for g in ("rot", "hol")}
    assert len(hollow) == len(arrows(ax)) == 4
    assert all(arrow.xyann[0] < arrow.xy[0] for arrow in arrows(ax))
    assert "cap" in texts(ax)


def test_what_has_no_ratios_is_told_what_to_type() -> None:
    with pytest.raises(InvalidSettingError, match=r"protocol budget; `icy probe --protocol acquire` measures them"):
        plots.ratios(budget())
    with pytest.raises(InvalidSettingError, match="concat alone"):
        plots.ratios(select(acquire(), grammars=["concat"]))


# -- tradeoff ----------------------------------------------------------------------------------------------------------


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
    assert ax.get_title(loc="right") == "better: upper left"
    assert "shufdet" in ax.get_ylabel()
    assert not ax.xaxis_inverted()


def test_receivers_are_measured_by_both_shuffles() -> None:
    records = [record("receiver/CNN", g, 1, accuracy=v) for g, v in {**EASE, "shuf": 0.5}.items()]
    (ax,) = plots.tradeoff(ProbeResult(records)).axes
    np.testing.assert_allclose(marked(ax), [(0.7, 0.7)])
    assert "mean of shuf, shufdet" in ax.get_ylabel()


def table_of(rows: dict[str, tuple[float, float]], **more: Any) -> pd.DataFrame:
    """Models by what they reach on noise and on shufdet."""
    values = [(m, g, noise if g != "shufdet" else comp) for m, (noise, comp) in rows.items()
              for g in ("rot", "pairsum", "proj", "shufdet")]  # fmt: skip
    return pd.DataFrame(values, columns=["model", "grammar", "value"]).assign(seed=1, side="sender", **more)


def test_ranks_and_the_front() -> None:
    rows = {"sender/A": (0.5, 0.9), "sender/B": (0.6, 0.8), "sender/C": (0.3, 0.6), "sender/D": (0.7, 0.95)}
    (ax,) = plots.tradeoff(table_of(rows)).axes
    assert texts(ax) == ["1 A", "2 C", "3 D", "4 B"]  # by 0.4, 0.3, 0.25, 0.2
    (front,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(front.get_xydata(), [(0.3, 0.6), (0.5, 0.6), (0.5, 0.9), (0.7, 0.9), (0.7, 0.95)])


def test_of_ratios_less_is_to_the_right_and_up() -> None:
    rows = {"sender/A": (8.0, 2.0), "sender/B": (3.0, 1.5), "sender/C": (4.0, 4.0)}
    more = {"measure": "ratio", "protocol": "acquire", "cap": 20, "cut": False}
    (ax,) = plots.tradeoff(table_of(rows, **more)).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.xaxis_inverted()
    assert ax.yaxis_inverted()
    assert texts(ax) == ["1 A", "2 B", "3 C"]  # noise takes 4, 2 and 1 times as long
    (front,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert front.get_xydata().tolist() == [[8.0, 2.0], [3.0, 2.0], [3.0, 1.5]]


def test_many_models_are_numbered_and_listed_by_rank() -> None:
    rows = {f"sender/M{i}": (0.5 + 0.01 * i, 0.9 - 0.01 * i) for i in range(20)}
    (ax,) = plots.tradeoff(table_of(rows)).axes
    assert texts(ax) == [str(rank) for rank in range(1, 21)]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["front", *(f"{i + 1} M{i}" for i in range(20))]


@pytest.mark.parametrize("count", [10, 25])
def test_names_do_not_lie_on_one_another(count: int) -> None:
    rng = np.random.default_rng(3)
    rows = {f"sender/Model{i}:GRU": (0.6 + 0.1 * rng.random(), 0.8 + 0.1 * rng.random()) for i in range(count)}
    figure = plots.tradeoff(table_of(rows))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    boxes = [Annotation.get_window_extent(text).shrunk(0.98, 0.9) for text in ax.texts if not arrows_of(text)]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def arrows_of(text: Any) -> bool:
    """Whether its extent has a line in it."""
    return getattr(text, "arrow_patch", None) is not None


def test_labels_at_one_place_are_set_apart() -> None:
    ax = Figure(figsize=(4, 3)).subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    found = place_labels(ax, [(0.5, 0.5)] * 6, ["a name"] * 6)
    assert len({text.xyann for text in found}) == 6


def test_models_without_all_grammars_are_counted() -> None:
    result = ProbeResult([r for r in budget().records if (r["model"], r["grammar"]) != (MODELS[0], "rot")])
    figure = plots.tradeoff(result)
    assert len(marked(figure.axes[0])) == 1
    assert "1 of 2 rows lack some of these grammars" in all_text(figure)
    with pytest.raises(InvalidSettingError, match=r"there is no rot here: probe the same models with -g rot\."):
        plots.tradeoff(ProbeResult([r for r in budget().records if r["grammar"] != "rot"]))


# -- parameters --------------------------------------------------------------------------------------------------------


def sized() -> ProbeResult:
    """Two models at three hidden sizes."""
    found = []
    for (place, model), size in itertools.product(enumerate(MODELS), (8, 16, 32)):
        count = {"true": size * size * (place + 1), "published": 1}
        accuracy = 0.5 + size / 100 + place / 20
        found += [record(model, g, 1, hidden_size=size, accuracy=accuracy, parameters=count) for g in ("perm", "rot")]
    return ProbeResult(found)


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


def test_ratios_against_parameters_have_two_logarithmic_axes() -> None:
    ax = plots.parameters(acquire()).axes[-1]
    assert (ax.get_title(), ax.get_xscale(), ax.get_yscale()) == ("hol", "log", "log")
    assert len(arrows(ax)) == len(MODELS)


# -- all kinds ---------------------------------------------------------------------------------------------------------

SINGLE = {  # a kind, and results that it draws in one panel
    "heat": budget,
    "bars": budget,
    "curves": lambda: budget(MODELS[:1]),
    "ratios": acquire,
    "tradeoff": budget,
    "parameters": lambda: select(sized(), grammars=["rot"]),
}
TWICE = {  # the same in two panels
    **{kind: lambda: budget() + budget(representation="gumb") for kind in ("heat", "bars", "tradeoff")},
    "curves": budget,
    "ratios": lambda: acquire() + acquire(["receiver/CNN"]),
    "parameters": sized,
}


@pytest.mark.parametrize("kind", SINGLE)
def test_axes_that_are_given_are_drawn_on(kind: str) -> None:
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
    with pytest.raises(InvalidSettingError, match=r"There are 2 panels to draw \(.+; .+\) and 1 axes to draw on"):
        plots.plot_function(kind)(TWICE[kind](), axes=Figure().subplots())


@pytest.mark.parametrize("kind", [kind for kind in SINGLE if kind != "curves"])
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


@pytest.mark.parametrize("kind", SINGLE)
def test_title_and_width(kind: str) -> None:
    figure = plots.plot_function(kind)(SINGLE[kind](), title="", width=4.5)
    assert figure.get_suptitle() == ""
    assert figure.get_figwidth() == 4.5
    usual = plots.plot_function(kind)(SINGLE[kind]()).get_suptitle()
    assert "meanings 3x4" in " ".join(usual.split())


def test_plots_that_results_cannot_give() -> None:
    with pytest.raises(InvalidSettingError, match="a table does not hold: give the results folder"):
        plots.curves(budget().to_dataframe())
    without = ProbeResult([{**r, "curve": []} for r in budget().records])
    with pytest.raises(InvalidSettingError, match=r"None of these 28 results has a learning curve \(0 failed\)"):
        plots.curves(without)
    with pytest.raises(InvalidSettingError, match="`icy e2e` trains a sender and a receiver together"):
        plots.e2e(budget())
    with pytest.raises(InvalidSettingError, match="`icy plot e2e`"):
        plots.curves(ProbeResult([record("A+B", "none", 1, side="pair", protocol="e2e")]))
    with pytest.raises(InvalidSettingError, match=r"no long table of results.*lacks the column value"):
        plots.heat(budget().to_dataframe().drop(columns="value"))
    for draw in (plots.heat, plots.curves):
        with pytest.raises(InvalidSettingError, match="no results here"):
            draw(ProbeResult([]))


def test_marks_of_several_settings_would_be_the_same() -> None:
    both = ProbeResult([*budget().records, *budget(target=0.5).records])
    with pytest.raises(InvalidSettingError, match=r"several values of target.*--where target=0\.99"):
        plots.parameters(both)


def test_kinds_are_functions_of_the_package() -> None:
    assert set(plots.KINDS) < set(dir(plots))
    assert all(getattr(plots, kind).__name__ == kind and plots.KINDS[kind][1].endswith(".") for kind in plots.KINDS)
    with pytest.raises(UnknownNameError, match="No plot is called 'heatmap'; did you mean heat"):
        plots.plot_function("heatmap")
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        plots.pie  # noqa: B018


def test_grammars_look_different_in_colour_and_without() -> None:
    looks = style.grammar_looks([*style.GRAMMARS, "rot+perm"])
    assert len({look.colour for look in looks.values() if not look.hollow}) == len(style.GRAMMARS)
    assert len({(look.marker, look.hollow) for look in looks.values()}) == len(looks)
    assert len({str(style.GRAMMARS[name].dash) for name in style.GRAMMARS}) == len(style.GRAMMARS)


def test_of_many_models_families_have_colours_and_cells_marks() -> None:
    models = [f"sender/{f}:{c}" for f in ("RNNZero", "RNNZero2L", "HierZero") for c in ("RNN", "GRU", "LSTM")]
    looks = style.model_looks(models)
    assert len({(look.colour, look.marker, look.hollow) for look in looks.values()}) == len(models)
    assert looks["sender/RNNZero:GRU"].colour == looks["sender/RNNZero2L:GRU"].colour
    assert looks["sender/RNNZero:GRU"].marker == looks["sender/HierZero:GRU"].marker


def test_rows_are_told_apart_by_what_differs() -> None:
    (block,) = blocks(long_of(sized()))
    assert [line.label for line in block.lines][:2] == ["FC2L, E=8", "FC2L, E=16"]
    assert [line.label for line in block.lines_over("hidden_size")] == ["FC2L", "HierZero:GRU"]


def test_text_is_wrapped_to_the_width_it_has() -> None:
    lines = style.wrapped("a fairly long sentence that does not fit into one line of this width", 1.5, 8).splitlines()
    assert len(lines) > 2
    assert all(style.text_size(line, 8)[0] <= 1.5 * 72 for line in lines)


# -- the command -------------------------------------------------------------------------------------------------------


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["plot", *words], prog_name="icy")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with results in bias/, saved.json and results.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bias" / "records").mkdir(parents=True)
    for r in budget().records:
        config = {**r["config"], "key": r["key"]}
        (tmp_path / "bias" / "records" / f"{r['key'].replace('/', '-')}.json").write_text(
            json.dumps({**r, "config": config})
        )
    budget(["sender/FC1L"]).save(tmp_path / "saved.json")
    acquire().to_dataframe().to_csv(tmp_path / "results.csv", index=False)
    acquire().to_dataframe().to_parquet(tmp_path / "results.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_command_writes_each_format_the_same_each_time(folder: Path, name: str, start: bytes) -> None:
    result = run("heat", "bias", "--save", name)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Drawn: {name}.\n"
    written = (folder / name).read_bytes()
    assert written.startswith(start)
    assert run("heat", "bias", "--save", name, "-q").stderr == ""
    assert (folder / name).read_bytes() == written


@pytest.mark.parametrize(
    "words",
    [
        ["bars", "bias", "saved.json"],
        ["curves", "bias", "saved.json", "--model", "fc*"],
        ["ratios", "results.csv", "--spread", "ci95"],
        ["ratios", "results.parquet", "--grammar", "rot", "--width", "3.4"],
        ["tradeoff", "bias", "results.csv", "--title", "mine"],
        ["parameters", "bias", "--where", "seed=123"],
    ],
)
def test_the_command_draws_what_it_is_given(folder: Path, words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert (folder / f"{words[0]}.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["heet", "bias"], 2, "No plot is called 'heet'; did you mean heat"),
        ([], 2, "Say which plot: heat, bars"),
        (["heat"], 1, "There is no file or folder icy-results"),
        (["heat", "bias", "--save", "x.gif"], 2, "A plot is written as .png, .pdf or .svg"),
        (["heat", "bias", "--spread", "sd"], 2, "The plot 'heat' has no --spread"),
        (["heat", "bias", "-m", "FC3L"], 2, "No model in these results is called 'FC3L'; did you mean FC2L"),
        (["heat", "bias", "-g", "rott"], 2, "did you mean rot"),
        (["heat", "bias", "--where", "protocl=budget"], 2, "did you mean protocol"),
        (["heat", "bias", "--where", "representation=gumb"], 2, "known: soft"),
        (["heat", "nothing"], 1, "There is no file or folder nothing"),
        (["heat", "nothing.csv"], 1, "There is no file nothing.csv"),
        (["heat", "saved.json", "broken.parquet"], 1, "broken.parquet is no table that can be read"),
        (["curves", "results.csv"], 2, "give the results folder"),
        (["ratios", "bias"], 2, "no acquisition ratios"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, words: list[str], code: int, part: str) -> None:
    (folder / "broken.parquet").write_text("no parquet")
    result = run(*words)
    assert result.exit_code == code, result.output
    assert part in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list(folder.glob("*.png"))


def test_choices_that_fit_nothing_together(folder: Path) -> None:
    both = select(budget() + acquire(), where={"protocol": "ACQUIRE", "hidden_size": 32.0})
    assert {r["protocol"] for r in both.records} == {"acquire"}
    with pytest.raises(InvalidSettingError, match="all together none"):
        select(budget(["sender/A"]) + acquire(["sender/B"]), models=["A"], where={"protocol": "acquire"})


def test_list_names_every_kind() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == list(plots.KINDS)


@pytest.mark.parametrize("words", [["plot", "--help"], ["plot", "--list"]])
def test_help_waits_for_no_matplotlib(words: list[str]) -> None:
    code = (
        f"import sys\nfrom icy.cli import main\ntry: main({words!r}, prog_name='icy')\nexcept SystemExit: pass\n"
        "sys.exit(str([m for m in ('torch', 'pandas', 'matplotlib') if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "", done.stderr


def test_lines_stand_by_model_then_in_the_order_of_tables() -> None:
    rows = [("b10", "soft"), ("b2", "discr"), ("b2", "soft"), ("b2", "gumb")]
    found = lines_of(pd.DataFrame(rows, columns=["model", "representation"]), ["representation"], sides=True)
    assert [line.label for line in found] == ["b2, soft", "b2, gumb", "b2, discr", "b10, soft"]


def test_end_to_end_curves_from_the_command(folder: Path) -> None:
    sizes: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="pairs", **sizes)
    assert run("e2e", "pairs").stderr == "Drawn: e2e.png.\n"
    figure = plots.e2e(ProbeResult.load("pairs"))
    assert [ax.get_ylabel() for ax in figure.axes] == ["end-to-end loss", "end-to-end accuracy", "topsim"]
    with pytest.raises(InvalidSettingError, match="3 panels"):
        plots.e2e(ProbeResult.load("pairs"), axes=Figure().subplots())
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="pairs", preset="published", **sizes)
    with pytest.raises(InvalidSettingError, match="needs the readings of every check"):
        plots.e2e(ProbeResult.load("pairs").to_dataframe())
    heat = plots.heat(ProbeResult.load("pairs").to_dataframe().assign(value=0.1, end_to_end_accuracy=0.9))
    assert {text.get_text() for text in heat.axes[0].texts} == {"0.90"}  # not how well the sender knows the language
    icy.end_to_end("FC2L", "RNN1L:GRU", pretrain="perm", target=0.3, steps=40, report_every=20, out="both", **sizes)
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="both", **sizes)
    assert [ax.get_title(loc="left") for ax in plots.e2e(ProbeResult.load("both")).axes[::5]] == [
        "FC2L+RNN1L:GRU, soft"
    ]  # with and without pre-training, side by side
    records = ProbeResult.load("pairs").records
    for given in (records, records[::-1]):  # whichever finished first
        assert [ax.get_title(loc="left") for ax in plots.e2e(ProbeResult(given)).axes[::3]] == [
            "FC2L+RNN1L:GRU, soft, default",
            "FC2L+RNN1L:GRU, soft, published",
        ]
    assert all(isinstance(line, Line2D) for line in figure.axes[0].lines)


def test_figures_show_themselves_in_a_notebook() -> None:
    from icy.analysis import style

    assert style.figure(2, 1)._repr_png_().startswith(b"\x89PNG")
