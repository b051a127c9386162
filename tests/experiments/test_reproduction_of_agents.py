"""The page of a reproduction of agents, which know no grammars."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd

from icy.analysis import find_table, published
from icy.experiments.reproduction import Reproduction, _learned_from


class Measured:
    """Results in long form, without records."""

    def __init__(self, long: pd.DataFrame) -> None:
        self.long, self.records = long, list[Any]()

    def to_dataframe(self) -> pd.DataFrame:
        return self.long


def reproduction() -> Reproduction:
    rows = [
        {"model": "LSTM+r2d2", "shots": 1, "samples": 1, "failed": False, "value": value, "observations": count,
         "options": "values=2-5, shots=1", "settings": ""}
        for value, count in ((0.61, 1e6), (0.63, 1.5e6))
    ]  # fmt: skip
    table = find_table("metarg22/listener")
    return Reproduction(table, cast(Any, Measured(pd.DataFrame(rows))), published(table.id))


def test_cells_have_the_columns_of_agents() -> None:
    cells = reproduction().cells
    assert len(cells) == 9
    assert cells["icy"].dropna().tolist() == [62.0]


def test_the_page_shows_agents_and_games() -> None:
    text = reproduction().page()
    assert "| agent | game |" in text
    assert "| LSTM | S=1, O=1 | 62.000" in text
    assert "Not measured: LSTM (S=2, O=1" in text


def test_the_page_says_from_how_many_observations() -> None:
    assert _learned_from(reproduction()) == "from 1,250,000 observations an agent, where the paper's had 5,000,000"
