"""Tables and bars of scores."""

from __future__ import annotations

import math

import pandas as pd

from icy.analysis.plots.metric_bars import plot_metrics
from icy.analysis.tables.by_setting import metrics_table


def test_figure_and_table_of_scores() -> None:
    rows = pd.DataFrame(
        {"name": ["rot", "rot", "mine"], "seed": [1, 2, None], "rows": 9, "attributes": 2, "length": 4, "vocab_size": 4,
         "topsim": [0.25, 0.75, -0.5], "tre": [1.0, 3.0, math.nan], "topsim_error": [math.nan, math.nan, 0.125]}
    )  # fmt: skip
    table = metrics_table(rows, ["topsim", "tre"], "sem")
    assert [row[-2:] for row in table.texts()[1:]] == [["0.500±0.250", "2.000±1.000"], ["-0.500±0.125", "-"]]
    figure = plot_metrics(rows, ["topsim", "tre"])
    assert [ax.get_title() for ax in figure.axes] == ["topsim", "tre\nlower is better"]
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.5, -0.5]


def test_metrics_of_a_single_language_share_a_panel_and_show_their_values() -> None:
    rows = pd.DataFrame(
        {"name": "mine", "seed": [1, 2], "topsim": [0.25, 0.75], "tre": [10.0, 20.0], "dci": [math.nan, math.nan],
         "posdis": [0.5, 0.5]}
    )  # fmt: skip
    shares, numbers = plot_metrics(rows, ["topsim", "tre", "dci", "posdis"]).axes
    assert [label.get_text() for label in shares.get_yticklabels()] == ["topsim", "dci", "posdis"]
    assert [text.get_text() for text in shares.texts] == ["0.500 ± 0.354", "undefined", "0.500 ± 0.000"]
    assert [text.get_text() for text in numbers.texts] == ["15 ± 7.071"]
    assert len(plot_metrics(rows, ["topsim"]).axes) == 1
