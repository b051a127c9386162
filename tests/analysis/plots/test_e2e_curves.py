"""Curves of games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from icy.analysis import plots
from icy.analysis.plots.learning_curves import PANELS
from icy.records.long_table import ROW
from tests.analysis.plots.helpers import all_text, overlapping

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
def test_it_says_the_setting_the_band_and_the_seeds() -> None:
    figure = plots.e2e(played(lambda share, seed: share))
    assert figure.get_suptitle() == "What changes while a sender and a receiver play together"
    assert "meanings 5x10; V=4, w=4, E=128; soft; preset default" in all_text(figure)
    assert "line and band: mean ± standard error of the mean, while all seeds run; 3 seeds" in all_text(figure)
    assert "± standard deviation over seeds" in all_text(plots.e2e(played(lambda share, seed: share), spread="sd"))
    assert "one seed each" in all_text(plots.e2e(played(lambda share, seed: share, seeds=1)))
    assert plots.e2e(played(lambda share, seed: share), title="").get_suptitle() == ""


@pytest.mark.slow
def test_the_axis_separates_accuracies_near_1() -> None:
    for ax in accuracies(played(lambda share, seed: 0.9 + 0.1 * share)):
        assert place(ax, 1) - place(ax, 0.95) > 0.15
        assert place(ax, 1) - place(ax, 0.99) > 0.05
        assert 0 <= place(ax, 0) < place(ax, 0.5) < place(ax, 0.9) < place(ax, 1) <= 1
        assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "0.5", "0.8", "0.9", "0.95", "1"]
    assert "axes of accuracies are logarithmic in the error" in all_text(plots.e2e(played(lambda share, seed: share)))


@pytest.mark.slow
def test_accuracies_far_from_1_have_a_plain_axis() -> None:
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
