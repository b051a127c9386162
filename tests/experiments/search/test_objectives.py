"""Objectives of a search: their words, and their values in records."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest

import icy
from icy.analysis.people import PeopleAccuracies
from icy.analysis.statistics import log_summary, student
from icy.config.search_spec import SearchSpec
from icy.core.errors import IcyError
from icy.experiments.search.objectives import Value, objectives_of, parse
from icy.records.record import Record, value_of


def record(grammar: str, seed: int, steps: int, **more: Any) -> Record:
    """Return the record of a probe; concat has 100 steps."""
    found = {
        "kind": "probe",
        "grammar": grammar,
        "seed": seed,
        "failed": False,
        "reason": "target",
        "measure": "ratio",
        "steps": steps,
        "baseline_steps": 100,
        "accuracy": 0.8,
        "seconds": steps / 10,
        "parameters": {"true": 7},
        "config": {"settings": {"round_ratio": False}},
        "cap": 20,
        **more,
    }
    return cast(Record, found)


RECORDS = [
    *(record("concat", seed, 100) for seed in (1, 2)),
    *(record("perm", seed, steps) for seed, steps in ((1, 200), (2, 800))),
    *(record("rot", seed, 2000, reason="cap") for seed in (1, 2)),
]


def value(text: str, records: list[Record] = RECORDS) -> Value:
    return parse(text).value(records, None)


def test_a_ratio_is_a_geometric_mean_as_in_tables() -> None:
    found, expected = value("ratio:perm"), log_summary([2.0, 8.0], [False, False])
    assert (found.value, found.low, found.high, found.bound) == (4.0, *expected.interval, "")


def test_a_training_that_was_cut_counts_with_its_bound() -> None:
    found = value("ratio:rot")
    assert (found.value, found.bound, found.text(interval=True)) == (20.0, ">", "> 20.00")
    assert value("ratio:rot - ratio:perm").bound == ">"
    assert value("ratio:perm - ratio:rot").bound == "<"
    assert value("ratio:rot - ratio:rot").bound == "?"
    assert value("updates").bound == ">"


def test_a_ratio_with_few_cut_trainings_is_an_estimate_as_in_tables() -> None:
    steps = {1: 400, 2: 500, 3: 700, 4: 2000}
    records = [record("rot", seed, n, reason="cap" if n == 2000 else "target") for seed, n in steps.items()]
    found, expected = value("ratio:rot", records), log_summary([4.0, 5.0, 7.0, 20.0], [False, False, False, True])
    assert (found.value, found.low, found.high, found.bound) == (expected.center, *expected.interval, "")
    assert found.value > 4 * (5 / 4 * 7 / 4 * 20 / 4) ** 0.25  # the mean with the cut training at its bound


def test_a_difference_is_taken_seed_by_seed() -> None:
    found, half = value("ratio:perm - ratio:concat"), student(1) * np.std([1, 7], ddof=1) / math.sqrt(2)
    assert (found.value, found.low, found.high) == pytest.approx((4.0, 4.0 - half, 4.0 + half))


def test_costs_are_sums_over_grammars_or_of_one() -> None:
    assert value("updates:perm").value == 500
    assert value("updates").value == 100 + 500 + 2000
    assert value("seconds").value == pytest.approx(260)
    assert (value("parameters").value, value("parameters").text(interval=True)) == (7, "7.00")
    assert value("accuracy:perm").value == 0.8


def test_a_failure_or_a_missing_seed_has_no_value() -> None:
    failed = record("perm", 2, 800, failed=True, reason="diverged")
    assert not value("ratio:perm", [*RECORDS[:3], failed]).known
    assert not value("ratio:perm", []).known
    assert value("ratio:perm", []).text() == "failed"


def test_values_are_the_values_of_tables(tmp_path: Any) -> None:
    result = icy.probe("sender/FC1L", "perm", quick=True, workers=1, out=tmp_path, progress=False)
    own = [value_of(r) for r in result.records if r["grammar"] == "perm"]
    assert value("ratio:perm", list(result.records)).value == log_summary(own, [False] * len(own)).center


def test_the_distance_to_people_is_of_the_games_alone() -> None:
    people = PeopleAccuracies(
        (("synth", "concat"), ("synth", "rot")), np.array([0.5, 0.0]), np.full((10, 2), 0.5), (np.zeros((10, 2)),) * 2
    )
    games = [
        record(grammar, number, 50, kind="study", accuracy=accuracy, config={"dataset": "synth"})
        for number in range(3)
        for grammar, accuracy in (("concat", 0.1), ("rot", 0.3))
    ]
    assert parse("people").value([*RECORDS, *games], people).value == pytest.approx(math.sqrt((0.16 + 0.09) / 2))
    assert not parse("people").value([*RECORDS, *games[1:]], people).known


def test_a_difference_needs_no_spaces() -> None:
    texts = ("ratio:perm - ratio:rot", "ratio:perm-ratio:rot", "ratio:perm  -\tratio:rot", " ratio: perm - ratio :rot ")
    assert {parse(text) for text in texts} == {parse(texts[0])}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "A search needs an objective"),
        ({"minimize": "ratio"}, "needs a grammar, as in ratio:shufdet"),
        ({"minimize": "speed"}, "No objective is called 'speed'"),
        ({"minimize": "ratio:prem"}, "perm"),
        ({"minimize": "ratio:perm + ratio:rot"}, "is not an objective"),
        ({"minimize": "ratio:perm - ratio:rot - ratio:hol"}, "the difference of two"),
        ({"minimize": "people - ratio:rot"}, "no value per seed"),
        ({"minimize": "parameters:perm"}, "has no grammar"),
        ({"minimize": "ratio:perm", "maximize": "ratio:perm"}, "is given twice"),
        ({"minimize": "ratio:perm", "protocol": "budget"}, "needs the protocol acquire, not budget"),
        ({"maximize": "accuracy:perm"}, "needs the protocol budget or generalise, not acquire"),
    ],
)
def test_wrong_objectives_are_explained(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        objectives_of(SearchSpec(model="FC1L", **given))


def test_accuracy_at_a_common_number_of_updates_is_an_objective() -> None:
    assert objectives_of(SearchSpec(maximize="accuracy:perm", max_updates=100))[0].maximize
