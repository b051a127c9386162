"""Learning curves of models and of games."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import icy
from icy.analysis import plots, style
from icy.analysis.plots.learning_curves import PANELS
from icy.experiments.results import ProbeResult
from icy.records.long_table import ROW
from tests.analysis.plots.helpers import GRAMMARS, MODELS, all_text, budget, overlapping, record

# -- learning curves ---------------------------------------------------------------------------------------------------


SHORTER, LONGER = [[0, 0.2], [50, 0.4], [100, 0.8]], [[0, 0.4], [50, 0.6], [100, 0.7], [150, 0.75], [200, 0.9]]


def curved(*curves: list[list[float]], **more: Any) -> ProbeResult:
    return ProbeResult([record(MODELS[0], "perm", 123 + i, curve=c, **more) for i, c in enumerate(curves)])


def band(ax: Axes) -> list[tuple[float, float]]:
    (path,) = ax.collections[0].get_paths()
    return sorted({(float(x), round(float(y), 6)) for x, y in path.vertices})


def test_curves_have_a_mean_and_a_band_as_far_as_all_seeds_go() -> None:
    (ax,) = plots.curves(curved(SHORTER, LONGER), spread="sem").axes
    mean = ax.lines[0]
    np.testing.assert_allclose(mean.get_xydata(), [(0, 0.3), (50, 0.5), (100, 0.75)])
    error = [0.1, 0.1, 0.05]
    limits = {(x, round(y + s * e, 6)) for (x, y), e in zip(mean.get_xydata(), error, strict=True) for s in (-1, 1)}
    assert set(band(ax)) == {(float(x), y) for x, y in limits}


def test_curves_beyond_the_mean_are_single_seeds_to_their_ends() -> None:
    ax = plots.curves(curved(SHORTER, LONGER)).axes[0]
    thin = [
        line
        for line in ax.lines
        if line.get_linewidth() < 1 and line.get_marker() == "None" and len(line.get_xdata()) > 1
    ]
    (tail,) = [line for line in thin if line.get_linestyle() == "-"]
    np.testing.assert_allclose(tail.get_xydata(), LONGER[2:])
    ends = [line for line in ax.lines if line.get_marker() == style.GRAMMARS["perm"].marker]
    assert sorted(tuple(map(float, line.get_xydata()[0])) for line in ends) == [(100, 0.8), (200, 0.9)]


@pytest.mark.slow
def test_a_cut_run_ends_in_a_hollow_mark() -> None:
    for reason, hollow in (("cap", True), ("target", False)):
        about = {"reason": reason, "measure": "ratio", "protocol": "acquire", "target": 0.8}
        ax = plots.curves(curved(SHORTER, **about)).axes[0]
        assert 0.8 in [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]
        (end,) = [line for line in ax.lines if line.get_marker() == "s"]
        assert (end.get_markerfacecolor() == "white") is hollow


def test_curves_of_very_different_lengths_have_a_logarithmic_axis() -> None:
    longer = [[step, 0.5] for step in range(0, 2001, 50)]
    assert plots.curves(curved(SHORTER, longer)).axes[0].get_xscale() == "symlog"
    assert plots.curves(curved(SHORTER, LONGER)).axes[0].get_xscale() == "linear"
    assert plots.curves(curved(SHORTER, longer), log=False).axes[0].get_xscale() == "linear"


def test_a_panel_per_model_and_a_line_per_grammar() -> None:
    axes = plots.curves(budget()).axes
    assert [ax.get_title() for ax in axes] == ["FC2L", "HierZero:GRU"]
    named = [line for line in axes[0].lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in named] == list(GRAMMARS)
    assert len({(line.get_color(), line._unscaled_dash_pattern) for line in named}) == len(GRAMMARS)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_long_names_are_broken_into_lines() -> None:
    figure = plots.curves(budget([f"sender/AVeryLongFamilyName{i}:MultiHeadAttentionCell" for i in range(4)]))
    assert overlapping(figure) == []
    assert figure.axes[0].get_title() == "AVeryLongFamilyName0:\nMultiHeadAttentionCell"


def test_options_that_all_panels_share_are_a_note() -> None:
    runs = [record(MODELS[0], "perm", 123 + i, config={"settings": {}, "options": {"a": 1, "b": i}}) for i in (2, 3)]
    figure = plots.curves(ProbeResult(runs))
    assert [ax.get_title() for ax in figure.axes] == ["FC2L, b=2", "FC2L, b=3"]
    assert any("all panels: a=1" in text.get_text() for text in figure.texts)


def test_the_reconstruction_accuracy_is_a_dotted_line() -> None:
    read = [[[0, 0.2, 0.1], [50, 0.4, 0.5]], [[0, 0.2, 0.3], [50, 0.4, 0.7]]]
    figure = plots.curves(curved(*read, points=["steps", "accuracy", "reconstructed"]))
    (dotted,) = [line for line in figure.axes[0].lines if line.get_linestyle() == ":" and line.get_color() != "black"]
    np.testing.assert_allclose(dotted.get_xydata(), [(0, 0.2), (50, 0.6)])
    assert "reconstruction accuracy" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_axis_names_its_unit(tmp_path: Path) -> None:
    assert plots.curves(curved(SHORTER)).axes[0].get_xlabel() == "updates"
    games = icy.train("study", player="composer", dataset="synth", grammar="concat", instances=1, workers=1,
                      out=tmp_path)  # fmt: skip
    assert plots.curves(games).axes[0].get_xlabel() == "trials"


# -- curves of games ---------------------------------------------------------------------------------------------------


PAIRS = ("FC2L+RNN1L:GRU", "RNNAutoReg:GRU+RNN1L:GRU")


def played(accuracy: Any, seeds: int = 3, grammars: tuple[str, ...] = ("perm", "none")) -> pd.DataFrame:
    """Readings of games: `accuracy` gives that of both together from the share of the updates and the seed."""
    about: dict[str, Any] = dict.fromkeys(ROW, "")
    about |= {"meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128, "representation": "soft"}
    about["preset"] = "default"
    rows = []
    for model in PAIRS:
        for grammar in grammars:
            for seed in range(seeds):
                for step in range(0, 1001, 100):
                    value = accuracy(step / 1000, seed)
                    alone = {"sender_accuracy": value, "receiver_accuracy": value} if grammar != "none" else {}
                    reading = {"steps": step, "loss": 1 - step / 1000, "accuracy": value, "topsim": 0.5, **alone}
                    rows.append({**about, "model": model, "grammar": grammar, "seed": seed, **reading})
    return pd.DataFrame(rows).reindex(columns=[*about, "grammar", "seed", "steps", *PANELS])


def place(ax: Axes, accuracy: float) -> float:
    """Height of an accuracy, as a share of that of its axes."""
    return float(ax.transAxes.inverted().transform(ax.transData.transform((0, accuracy)))[1])


def accuracies(curves: pd.DataFrame) -> list[Axes]:
    figure = plots.e2e(curves)
    figure.draw_without_rendering()
    return [ax for ax in figure.axes if "accuracy" in ax.get_ylabel()]


@pytest.mark.slow
def test_the_axis_separates_accuracies_near_1() -> None:
    for ax in accuracies(played(lambda share, seed: 0.9 + 0.1 * share)):
        assert place(ax, 1) - place(ax, 0.95) > 0.15
        assert place(ax, 1) - place(ax, 0.99) > 0.05
        assert 0 <= place(ax, 0) < place(ax, 0.5) < place(ax, 0.9) < place(ax, 1) <= 1
        assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "0.5", "0.8", "0.9", "0.95", "1"]
    assert "axes of accuracies are logarithmic in the error" in all_text(plots.e2e(played(lambda share, seed: share)))
    for ax in accuracies(played(lambda share, seed: 0.5 * share)):
        assert place(ax, 0.25) == pytest.approx(place(ax, 0.5) / 2)
    assert "logarithmic" not in all_text(plots.e2e(played(lambda share, seed: 0.5 * share)))


@pytest.mark.slow
def test_a_band_above_1_stays_in_the_axes() -> None:
    for ax in accuracies(played(lambda share, seed: 1 - 0.3 * (seed == 0))):
        (band, *_) = ax.collections
        heights = ax.transAxes.inverted().transform(ax.transData.transform(band.get_paths()[0].vertices))[:, 1]
        assert np.isfinite(heights).all()


LONG = "FC1L+CNN, soft, pretrained=835563d93c8c+1555086c3c4e, game steps 100"


@pytest.mark.slow
@pytest.mark.parametrize("measured", [PANELS, ("loss", "accuracy"), ("loss", "accuracy", "topsim")])
def test_long_titles_wrap_and_take_no_width(measured: tuple[str, ...]) -> None:
    curves = played(lambda share, seed: share, grammars=("none",))
    curves[[name for name in PANELS if name not in measured]] = np.nan
    if measured == PANELS:
        curves[["sender_accuracy", "receiver_accuracy"]] = 0.5
    short, long = (plots.e2e(curves.replace({"model": {PAIRS[0]: name}})) for name in ("A+B", LONG))
    assert overlapping(short) == overlapping(long) == []
    widths = [[ax.get_window_extent().width for ax in figure.axes] for figure in (short, long)]
    assert widths[1] == pytest.approx(widths[0])
    assert min(widths[1]) > 0.9 * max(widths[1])
    assert LONG in [" ".join(row.get_suptitle().split()).removesuffix(", soft") for row in long.subfigs]


@pytest.mark.slow
def test_nothing_overlaps() -> None:
    for grammars in (("perm", "none"), ("concat", "perm", "rot"), ("none",)):
        assert overlapping(plots.e2e(played(lambda share, seed: share, grammars=grammars))) == []
    assert len({line.get_color() for line in plots.e2e(played(lambda share, seed: share)).axes[3].lines}) == 3
