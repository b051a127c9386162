"""The distance between accuracies of networks and people, and of people from one another."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from icy.analysis.people import (
    grammars_of,
    people_distance,
    published_accuracies,
    published_people,
    rms,
    study_accuracies,
)
from icy.core.errors import InvalidSettingError


def rows(persons: int, rate: float = 0.5) -> pd.DataFrame:
    """Return rows of a study: `persons` people per grammar, with accuracy 0 or 1."""
    found = [
        {"agent_kind": kind, "agent": "people", "dataset": "synth", "grammar": grammar, "metric": "exact",
         "split": split, "person": str(person), "value": float(person < rate * persons)}
        for kind in ("human", "simulated") for split in ("held-out", "trained")
        for grammar in ("concat", "rot") for person in range(persons)
    ]  # fmt: skip
    return pd.DataFrame(found)


def test_the_published_people_have_the_middle_of_their_counts() -> None:
    people = published_accuracies()
    table = published_people()
    assert people.means.tolist() == table[table["metric"] == "exact"]["value"].tolist()
    assert len(people.conditions) == 10
    assert np.abs(people.draws.mean(0) - people.means).max() < 0.01
    whole, half = people.draws.std(0), people.halves[0].std(0)
    assert half / whole == pytest.approx(np.full(10, np.sqrt(2)), rel=0.1)
    assert grammars_of(people) == {name: ["concat", "perm", "proj", "rot", "shufdet"] for name in ("synth", "eng")}


def test_a_network_like_people_is_as_near_as_people_are() -> None:
    people = published_accuracies()
    assert people_distance(np.tile(people.means, (50, 1)), people).value == pytest.approx(0, abs=1e-9)
    far = people_distance(np.ones((4, 10)), people)
    assert far.value == pytest.approx(rms(1 - people.means))
    assert far.low < far.value < far.high
    ceiling = people.ceiling()
    assert 0 < ceiling.low < ceiling.value < ceiling.high < far.low


def test_one_dataset_is_a_part() -> None:
    people = published_accuracies().part("eng")
    assert {dataset for dataset, _ in people.conditions} == {"eng"}
    assert people.draws.shape[1] == people.halves[1].shape[1] == len(people.means) == 5
    with pytest.raises(InvalidSettingError, match="no results of the dataset 'x'; they have: synth, eng"):
        published_accuracies().part("x")


def test_people_of_a_study_are_split_by_person() -> None:
    people = study_accuracies(rows(20))
    assert people.conditions == (("synth", "concat"), ("synth", "rot"))
    assert people.means.tolist() == [0.5, 0.5]
    # Two halves of twenty people, of whom ten are right: the hypergeometric variance of a half's mean.
    assert people.halves[0].var() == pytest.approx(0.25 / 10 * 10 / 19, rel=0.1)
    assert people.halves[0] + people.halves[1] == pytest.approx(np.ones(people.halves[0].shape))
    assert study_accuracies(rows(20, rate=1)).ceiling().value == 0


def test_too_few_people_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="Only one person played concat of synth"):
        study_accuracies(rows(1))
    with pytest.raises(InvalidSettingError, match="no answers of people"):
        study_accuracies(rows(0).reindex(columns=rows(1).columns))


@pytest.mark.parametrize("value", ["x", math.nan, 1.5, -0.1])
def test_a_value_that_is_not_an_accuracy_is_explained(value: object) -> None:
    wrong = rows(3).astype({"value": object})
    wrong.loc[0, "value"] = value
    with pytest.raises(InvalidSettingError, match=f"from 0 to 1, not '?{value}"):
        study_accuracies(wrong)


def test_the_order_of_rows_does_not_matter() -> None:
    table = rows(9)
    forward, backward = study_accuracies(table), study_accuracies(table[::-1])
    assert forward.conditions == backward.conditions
    assert np.array_equal(forward.draws, backward.draws)
    assert np.array_equal(forward.halves, backward.halves)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"pilot": 1}, "people"), ({"pilot": "TRUE"}, "people"), ({"agent": "people x=1"}, "people and people x=1")],
)
def test_pilots_and_mixed_settings_are_reported(
    change: dict[str, object], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    study_accuracies(rows(20).assign(pilot=[0, None] * 80))
    assert not caplog.text
    mixed = pd.concat([rows(20), rows(20).assign(**change)], ignore_index=True)
    study_accuracies(mixed)
    assert f"The people are {named}: choose the games of one study, without its pilot." in caplog.text
