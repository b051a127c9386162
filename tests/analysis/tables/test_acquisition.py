"""The orders in which people and senders find grammars easy."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from icy.analysis.people import published_people
from icy.analysis.tables.study import acquisition_order, order_tau, study_report
from icy.core.errors import InvalidSettingError

EASY_FIRST = {"concat": 0.6, "shufdet": 0.5, "perm": 0.2, "proj": 0.04, "rot": 0.02}


def ratios(model: str, **by_grammar: float) -> list[dict[str, object]]:
    """Rows of acquisition ratios, of two seeds each."""
    return [
        {"model": model, "grammar": grammar, "seed": seed, "measure": "ratio", "failed": False, "value": value + seed}
        for grammar, value in by_grammar.items()
        for seed in (0, 1)
    ]


def test_tau_is_one_of_the_same_order_and_minus_one_of_the_reverse() -> None:
    hard_last = {grammar: float(place) for place, grammar in enumerate(EASY_FIRST)}
    assert order_tau(EASY_FIRST, hard_last) == pytest.approx(1.0)
    assert order_tau(EASY_FIRST, {grammar: -ratio for grammar, ratio in hard_last.items()}) == pytest.approx(-1.0)
    swapped = {**hard_last, "proj": hard_last["rot"], "rot": hard_last["proj"]}
    assert order_tau(EASY_FIRST, swapped) == pytest.approx(0.8)  # one of ten pairs
    assert math.isnan(order_tau(EASY_FIRST, {"concat": 1.0, "perm": 2.0}))


def test_senders_are_compared_with_people_of_every_dataset() -> None:
    report = study_report(published_people().astype(object))
    long = pd.DataFrame(
        [*ratios("sender/A", shufdet=1.0, perm=2.0, proj=3.0, rot=4.0, hol=9.0), *ratios("receiver/A", perm=1.0)]
    )
    found = acquisition_order(report, long)
    assert list(found["sender"]) == ["A"]
    assert found.loc[0, ["concat", "perm", "shufdet"]].to_list() == [1.0, 2.5, 1.5]
    assert "hol" not in found
    assert found.loc[0, "tau people (Icy22), eng"] == pytest.approx(0.8)  # people: shufdet before concat
    assert "tau people (Icy22), synth" in found


def test_missing_people_or_ratios_are_errors() -> None:
    report = study_report(published_people().astype(object))
    long = pd.DataFrame(ratios("receiver/A", perm=1.0))
    with pytest.raises(InvalidSettingError, match="icy probe --protocol acquire"):
        acquisition_order(report, long)
    with pytest.raises(InvalidSettingError, match="has no people"):
        acquisition_order(report[report["agent_kind"] == "human"], long)
