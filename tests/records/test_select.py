"""Selecting rows of results."""

from __future__ import annotations

import pandas as pd
import pytest

from icy.cli.options import Assignment
from icy.core.errors import UnknownNameError
from icy.records.load import select
from tests.helpers import THREE, long


def test_selection() -> None:
    table = long(THREE)
    assert set(select(table, ["a", "sender/B"])["model"]) == {"sender/A", "sender/B"}
    assert set(select(table, grammars=["*rot*"])["grammar"]) == {"rot"}
    with pytest.raises(UnknownNameError, match="No grammar in these results is called 'hol'"):
        select(table, grammars=["hol"])


def test_results_are_in_the_order_of_the_models_that_are_named() -> None:
    table = long(THREE)
    assert list(dict.fromkeys(select(table, ["C", "[AB]"])["model"])) == ["sender/C", "sender/A", "sender/B"]
    assert list(dict.fromkeys(select(table, ["b", "all"])["model"])) == ["sender/B", "sender/A", "sender/C"]
    assert select(table, grammars=["rot"]).index.is_monotonic_increasing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["null", "NA", "None", "nan", "True", "1e5", "007", "inf"])
def test_names_that_look_like_something_else_are_selected(name: str) -> None:
    table = long({name: {name: 0.5}, "7": {"rot": 0.5}, "100000": {"100000": 0.5}})
    assert list(select(table, [name], [name])["grammar"]) == [name]
    assert list(select(table, where={"grammar": name})["model"]) == [f"sender/{name}"]
    assert list(
        select(table, where=dict([Assignment(plain=True).convert(f"grammar={name}", None, None)]))["grammar"]
    ) == [name]


def test_numbers_are_selected_by_their_value_and_missing_values_by_none() -> None:
    table = long({"A": {"rot": [0.5, 0.5]}}).assign(pretrain_representation=["soft", None])
    assert (
        list(select(table, where={"seed": "123.0"})["seed"])
        == list(select(table, where={"seed": 123})["seed"])
        == [123]
    )
    for nothing in (None, "None", "null", "nan", ""):
        assert list(select(table, where={"pretrain_representation": nothing})["seed"]) == [124]


def test_settings_in_the_column_of_options_are_selected_by_name() -> None:
    texts = ["frequencies=zipf:1, senders=3", "", "frequencies=equal, existing=pets@0704534bc80552ac"]
    table = pd.concat([long({"A": {"rot": 0.5}})] * 3).assign(options=texts, seed=[1, 2, 3])

    def seeds(**where: object) -> list[int]:
        return list(select(table, where=where)["seed"])

    assert seeds(senders=3) == seeds(frequencies="zipf:1") == [1]
    assert seeds(frequencies="zipf:1,equal") == [1, 3]
    assert seeds(senders="none") == [2, 3]
    assert seeds(existing="pets@0704534bc80552ac") == [3]
    with pytest.raises(UnknownNameError, match=r"senders in these results is called '4'; known: 3"):
        seeds(senders=4)
    with pytest.raises(UnknownNameError, match="column of results is called 'sender'"):
        seeds(sender=3)
