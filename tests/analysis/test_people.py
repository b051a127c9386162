"""Statistics of people, the people of Icy22, and distances of networks from people."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from icy.analysis.literature.catalogue import published
from icy.analysis.people import (
    STUDY_COLUMNS,
    as_printed,
    chance_p,
    cluster_bootstrap,
    draw_accuracies,
    equivalence_p,
    exact_interval,
    grammars_of,
    half_width,
    people_distance,
    permutation_p,
    power_of_study,
    printed,
    published_accuracies,
    published_people,
    rms,
    study_accuracies,
)
from icy.core.errors import InvalidSettingError

# -- statistics of people: intervals, tests, printed forms and power, against known values -----------------------------


def test_bootstrap_agrees_with_the_normal_interval() -> None:
    values = np.random.default_rng(0).normal(5, 2, 200)
    found = cluster_bootstrap(values)
    error = values.std(ddof=1) / 200**0.5
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.06)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.06)


def test_games_of_one_person_go_together() -> None:
    values = [0.0] * 10 + [1.0] * 10
    persons = [n // 5 for n in range(20)]  # four persons, each always the same
    by_game, by_person = cluster_bootstrap(values), cluster_bootstrap(values, persons)
    assert by_game.value == by_person.value == 0.5
    assert by_person.high - by_person.low > 1.8 * (by_game.high - by_game.low)


def test_bootstraps_are_reproducible_and_nan_if_unknown() -> None:
    assert cluster_bootstrap([0, 1, 1]) == cluster_bootstrap([0, 1, 1])
    assert math.isnan(cluster_bootstrap([1, 1], ["a", "a"]).low)
    assert math.isnan(cluster_bootstrap([]).value)


def test_exact_intervals() -> None:
    """Clopper and Pearson's closed form for 0 of n: 1 - (alpha / 2) ** (1 / n)."""
    assert exact_interval(0, 20).high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert exact_interval(0, 20).low == 0
    assert exact_interval(20, 20).low == pytest.approx(0.025 ** (1 / 20))
    assert math.isnan(exact_interval(0, 0).value)


def all_permutations(ours: list[float], theirs: list[float]) -> float:
    both, seen = ours + theirs, abs(np.mean(ours) - np.mean(theirs))
    gaps = []
    for chosen in itertools.combinations(range(len(both)), len(ours)):
        first = [both[i] for i in chosen]
        rest = [both[i] for i in range(len(both)) if i not in chosen]
        gaps.append(abs(np.mean(first) - np.mean(rest)) >= seen - 1e-12)
    return float(np.mean(gaps))


def test_permutation_tests_count_all_permutations_of_few() -> None:
    ours, theirs = [0.0, 1 / 3, 1 / 3, 1.0], [2 / 3, 1.0, 1.0]
    assert permutation_p(ours, theirs, paired=False) == pytest.approx(all_permutations(ours, theirs))
    gaps = np.array([1.0, 1.0, 2.0, -0.5])
    signs = np.array(list(itertools.product([-1, 1], repeat=4)))
    expected = np.mean(abs((signs * gaps).mean(1)) >= abs(gaps.mean()) - 1e-12)
    assert permutation_p(gaps, np.zeros(4), paired=True) == pytest.approx(expected)


def test_permutation_tests_hold_their_level() -> None:
    rng = np.random.default_rng(3)
    p = [permutation_p(rng.binomial(3, 0.4, 12) / 3, rng.binomial(3, 0.4, 12) / 3, False, 199) for _ in range(200)]
    assert np.mean(np.array(p) <= 0.05) < 0.1


def test_permutation_tests_without_variation() -> None:
    assert permutation_p([1.0, 1.0], [1.0, 1.0], False) == 1.0
    assert math.isnan(permutation_p([1.0], [0.0, 1.0], False))


def test_equivalence() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.5, 0.1, 50), rng.normal(0.5, 0.1, 50)
    assert equivalence_p(ours, theirs, 0.2, paired=False) < 0.001
    assert equivalence_p(ours, theirs + 0.3, 0.2, paired=False) > 0.5
    assert equivalence_p(ours, ours + rng.normal(0, 0.01, 50), 0.05, paired=True) < 0.001
    assert math.isnan(equivalence_p([1, 1, 1], [1, 1, 1], 0.2, paired=False))


def test_chance() -> None:
    assert chance_p(1, 3, 0.5) == pytest.approx(7 / 8)
    assert chance_p(0, 3, 0.1) == pytest.approx(1)
    assert math.isnan(chance_p(0, 0, 0.1))


# -- the published reduction -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (147.2, 19.9, "140±10"),  # cut, not rounded
        (299.9, 199.9, "200±100"),
        (243, 86, "240±80"),
        (17.4, 9.4, "17±9"),
        (0.2, 0.097, "0.2±0.1"),
        (0.0392, 0.0534, "0.04±0.05"),
        (0.5, 0, "0.500±0.000"),
        (3.0, math.nan, "3.000"),
    ],
)
def test_printed_forms(mean: float, half: float, text: str) -> None:
    assert as_printed(mean, half) == text


def test_half_widths_are_of_the_sample() -> None:
    assert half_width([0, 1]) == pytest.approx(1.96 * 0.5**0.5 / 2**0.5)
    assert math.isnan(half_width([1]))


def test_counts_give_the_printed_cells() -> None:
    """All counts of games with 1, 2 or 3 right answers in a cell that print as in the paper."""
    for row in published("icy22/table2").to_dict("records"):
        games, fitting = row["n"], set()
        for ones in range(games + 1):
            for twos in range(games + 1 - ones):
                for threes in range(games + 1 - ones - twos):
                    right = ones + 2 * twos + 3 * threes
                    if not row["correct_min"] - 3 <= right <= row["correct_max"] + 3:
                        continue
                    values = [1 / 3] * ones + [2 / 3] * twos + [1.0] * threes + [0.0] * (games - ones - twos - threes)
                    if printed(values) == row["printed"]:
                        fitting.add(right)
        assert (min(fitting), max(fitting)) == (row["correct_min"], row["correct_max"])
        assert games * 3 == row["items"]


# -- power -------------------------------------------------------------------------------------------------------------


def test_drawn_persons_have_the_mean_and_the_spread() -> None:
    rng = np.random.default_rng(0)
    for mean, spread in ((0.5, 0.35), (0.2, 0.3), (0.5, 0.29)):
        drawn = draw_accuracies(mean, spread, 40_000, 3, rng)
        assert drawn.mean() == pytest.approx(mean, abs=0.01)
        assert drawn.std() == pytest.approx(spread, abs=0.01)
    assert set(np.unique(np.round(drawn * 3, 9))) == {0.0, 1.0, 2.0, 3.0}
    assert draw_accuracies(0.5, 0.0, 40_000, 3, rng).std() == pytest.approx((0.25 / 3) ** 0.5, abs=0.01)
    assert (draw_accuracies(1.0, 0.3, 5, 3, rng) == 1).all()


@pytest.mark.parametrize(("persons", "gap", "power"), [(16, 0.35, 0.70), (48, 0.2, 0.77)])
def test_power_is_near_the_normal_approximation(persons: int, gap: float, power: float) -> None:
    """That has 80 % for both (spycodes-facts 11); with answers in thirds, ties cost a permutation test some of it."""
    found = power_of_study({"concat": 0.5 + gap / 2, "rot": 0.5 - gap / 2}, persons, spread=0.35, studies=600)
    assert found["rot"] == pytest.approx(power, abs=0.06)


def test_holm_costs_power() -> None:
    means = {"concat": 0.6, "perm": 0.3, "proj": 0.3, "rot": 0.3, "shufdet": 0.6}
    alone = power_of_study({"concat": 0.6, "perm": 0.3}, 24, studies=200)["perm"]
    found = power_of_study(means, 24, studies=200)
    assert found["perm"] < alone
    assert found["shufdet"] < 0.1
    assert found["all"] <= min(found.values())
    assert found == power_of_study(means, 24, studies=200)


# -- input -------------------------------------------------------------------------------------------------------------


def test_games_without_a_value_are_left_out() -> None:
    assert cluster_bootstrap([0, 1, math.nan, 1], ["a", "b", "c", "d"]) == cluster_bootstrap([0, 1, 1], ["a", "b", "d"])
    assert permutation_p([1, 1, 1, math.nan], [0, 0, 0], paired=False) == 0.1
    assert permutation_p([1, 1, 1, math.nan], [0, 0, 0, 1], paired=True) == 0.25
    assert equivalence_p([0.1, 0.2, 0.3, math.nan], [0.1, 0.2, 0.3], 0.2, paired=False) < 0.1
    assert printed([*[1 / 3] * 2, *[0] * 15, math.nan]) == "0.04±0.05"


# -- the published people as rows --------------------------------------------------------------------------------------


RIGHT = {  # spycodes-facts 7: right answers of all, or their range
    ("synth", "concat"): (9, 13), ("synth", "perm"): (2, 2), ("synth", "proj"): (1, 1), ("synth", "rot"): (2, 2),
    ("synth", "shufdet"): (3, 3), ("eng", "concat"): (25, 29), ("eng", "perm"): (9, 13), ("eng", "proj"): (2, 2),
    ("eng", "rot"): (1, 1), ("eng", "shufdet"): (34, 38),
}  # fmt: skip


def test_rows_are_computed_from_counts() -> None:
    people = published_people()
    assert list(people.columns) == list(STUDY_COLUMNS)
    exact = people[people["metric"] == "exact"]
    for row in exact.to_dict("records"):
        least, most = RIGHT[row["dataset"], row["grammar"]]
        assert (round(row["low"] * row["items"]), round(row["high"] * row["items"])) == (least, most)
        assert row["items"] == 3 * row["persons"]
    assert exact.groupby("dataset")["persons"].sum().to_dict() == {"synth": 85, "eng": 88}


def test_scores_and_minutes_are_as_printed() -> None:
    people = published_people().set_index(["dataset", "grammar", "metric"])
    assert people.loc[("eng", "concat", "score"), "printed"] == "200±100"
    assert people.loc[("synth", "rot", "minutes"), "value"] == 21


# -- the distance between accuracies of networks and people, and of people from one another ----------------------------


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
