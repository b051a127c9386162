"""The pages of the searches: answers from finalists, and differences from HU-RNN."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from icy.analysis.people import PeopleAccuracies
from icy.experiments.search.objectives import parse
from results.search import __main__ as page

CONDITIONS = (("synth", "concat"), ("synth", "rot"))
PEOPLE = PeopleAccuracies(CONDITIONS, np.zeros(2), np.zeros((4000, 2)), (np.zeros((9, 2)),) * 2)


def games(*accuracies: float) -> list[Any]:
    """Return the records of a network with these accuracies in its games, equal in both conditions."""
    return [
        {"kind": "study", "config": {"dataset": dataset}, "grammar": grammar, "seed": seed, "accuracy": accuracy,
         "failed": False}
        for dataset, grammar in CONDITIONS
        for seed, accuracy in enumerate(accuracies)
    ]  # fmt: skip


def ratios(*values: tuple[float, bool], grammar: str = "shufdet") -> list[Any]:
    """Return records with these ratios on a grammar, and whether each training was cut."""
    return [
        {"grammar": grammar, "seed": seed, "failed": False, "value": value, "reason": "cap" if cut else "target"}
        for seed, (value, cut) in enumerate(values)
    ]


def finalists(*values: Any) -> Any:
    """Return a result with finalists `a`, `b` and so on, with these values of shufdet and hol."""
    found = [
        SimpleNamespace(name=name, larger=None, again=SimpleNamespace(values=one))
        for name, one in zip("abcd", values, strict=False)
    ]
    return SimpleNamespace(finalists=found, objectives=[parse("ratio:shufdet"), parse("ratio:hol")])


def test_a_factor_is_the_geometric_mean_of_quotients_of_the_same_seed() -> None:
    own, other = ratios((2.0, False), (8.0, False), (4.0, False)), ratios((1.0, False), (2.0, False), (2.0, False))
    assert page.factor(own, other, finalists(), 0) == "2.52 (0.93 to 6.81)"  # t = 4.303 with logarithms of 2, 4 and 2
    assert page.factor(own, ratios((1.0, False), (2.0, True), (2.0, False)), finalists(), 0) == "-"


def test_a_network_is_nearer_by_the_difference_of_distances() -> None:
    steady, unsteady = games(*[0.1] * 4), games(0.4, 0.2, 0.3, 0.3)
    middle, low, high = page.nearer(steady, unsteady, PEOPLE)
    assert middle == pytest.approx(0.2)
    assert 0.1 <= low < 0.2 < high <= 0.3
    assert page.nearer(steady, unsteady, PEOPLE, 0.5)[1] > low


def test_networks_are_compared_in_the_same_games() -> None:
    """One network has 0.1 more in each game, so no choice of games changes the difference."""
    own, other = games(0.1, 0.4, 0.2, 0.8), games(0.2, 0.5, 0.3, 0.9)
    assert page.nearer(own, other, PEOPLE) == pytest.approx((0.1, 0.1, 0.1))


def test_the_answer_is_of_all_finalists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has the smallest distance, but varies much."""
    result = finalists(None, None)
    result.setup = SimpleNamespace(people=PEOPLE)
    result.baselines = [SimpleNamespace(name=page.HU_RNN)]
    records = [games(0.0, 0.0, 0.0, 0.6), games(*[0.2] * 4), games(*[0.3] * 4)]
    monkeypatch.setattr(page, "people_of_icy22", lambda: PEOPLE)
    monkeypatch.setattr(page.Scrutiny, "of", lambda *_: SimpleNamespace(shown=True))
    said = page.nearer_text(result, records)
    monkeypatch.setattr(page.Scrutiny, "of", lambda *_: SimpleNamespace(shown=False))
    assert page.nearer_text(result, records) == said.replace("**Yes.**", "**Not shown.**")
    assert said.startswith("**Yes.** Compared with HU-RNN, `a` is nearer by 0.15 (-0.")
    assert "`b` is nearer by 0.10 (0.10 to 0.10). Each of these intervals has a confidence of 97.5 %" in said


def test_a_goal_is_met_by_whole_intervals_that_hold_together() -> None:
    """The 95 % interval of d ends at 1.24, but that of 98.75 % does not: d may be one of four by chance."""
    steady, cut, missed = [(1.1, False)] * 3, [(12.0, True)] * 3, [(1.4, False)] * 3
    slow, unsteady = [(11.0, False)] * 3, [(9.0, False), (11.0, False), (13.0, False)]
    d = [(1.1, False), (1.14, False), (1.18, False)]
    pairs = ((steady, slow), (steady, unsteady), (missed, cut), (d, cut))
    records = [[*ratios(*shufdet), *ratios(*hol, grammar="hol")] for shufdet, hol in pairs]
    assert page.goal_text(finalists(*[None] * 4), records) == (
        "**Yes.** Ratio on shufdet below 1.27 and on hol above 10 (whole intervals): `a` (1.10 to 1.10). An interval "
        "contains 1.27 or 10: `b` (1.10 to 1.10) and `d` (0.95 to 1.36). Not met: `c` (1.40 to 1.40). Each of these "
        "intervals has a confidence of 98.8 %, so that all of them hold with 95 %."
    )


def test_the_trial_for_one_half_of_the_people_is_compared_with_the_other_half() -> None:
    """One half of the people answers all items, the other none: a is best for the first, and b for the other."""
    ones, zeros = np.ones((2, 2)), np.zeros((2, 2))
    halves = np.concatenate([ones, zeros])
    people = PeopleAccuracies(CONDITIONS, np.full(2, 0.5), np.zeros((4, 2)), (halves, halves))
    a, b, hu_rnn = games(0.9, 0.9), games(0.2, 0.2), games(0.5, 0.5)
    result = finalists(None)
    result.setup = SimpleNamespace(people=people, rungs=[{}, {"instances": 2}])
    result.baselines = [SimpleNamespace(name=page.HU_RNN)]
    rungs = [SimpleNamespace(records=one, known=True) for one in (a, b)]
    result.trials = [SimpleNamespace(rungs=[one, one]) for one in rungs] + [SimpleNamespace(rungs=rungs[:1])]
    # For answers of 1, a is chosen, and is 0.9 from the other half; for answers of 0, b, which is 0.8 from it.
    assert page.nearer_to_the_other_half(result, [a, hu_rnn], halves) == pytest.approx(
        (0.5 - 0.85, 0.5 - 0.9, 0.5 - 0.8)
    )


def test_one_condition_may_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finalist is nearer on `rot` alone, which then has the whole gain."""
    conditions = (("synth", "concat"), ("synth", "rot"), ("eng", "rot"))
    means = np.array([0.1, 0.2, 0.9])
    people = PeopleAccuracies(conditions, means, np.tile(means, (50, 1)), (means[None], means[None]))

    def played(*accuracies: float) -> list[Any]:
        return [
            {"config": {"dataset": dataset}, "grammar": grammar, "seed": seed, "accuracy": accuracy}
            for (dataset, grammar), accuracy in zip(conditions, accuracies, strict=True)
            for seed in range(3)
        ]

    result = finalists(None)
    result.finalists, result.baselines = result.finalists[:1], [SimpleNamespace(name=page.HU_RNN)]
    result.setup = SimpleNamespace(people=people, rungs=[{}])
    own, hu_rnn = played(0.2, 0.3, 0.7), played(0.1, 0.3, 0.1)
    monkeypatch.setattr(page, "people_of_icy22", lambda: people)
    rungs = [SimpleNamespace(records=one, known=True) for one in (own, played(0.1, 0.2, 0.0))]
    result.trials = [SimpleNamespace(rungs=[one]) for one in rungs]
    found = page.Scrutiny.of(result, [own, hu_rnn])
    assert found.cell == "eng rot"
    assert found.shares == pytest.approx([0.6 / 0.59])
    assert found.without[0][0] == pytest.approx(np.sqrt(0.01 / 2) - np.sqrt(0.02 / 2))
    assert found.constant == pytest.approx(np.sqrt(2 * 0.05**2 / 3))
    assert found.trials == (2, 1)
    assert not found.shown
