"""The pages of the searches: answers from finalists, and differences from HU-RNN."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from icy.analysis.people_distance import PeopleAccuracies
from icy.experiments.search.objectives import Value, parse
from results.search import __main__ as page

CONDITIONS = (("synth", "concat"), ("synth", "rot"))
PEOPLE = PeopleAccuracies(CONDITIONS, np.zeros(2), np.zeros((page.RESAMPLES, 2)), (np.zeros((9, 2)),) * 2)


def games(*accuracies: float) -> list[Any]:
    """Return the records of a network with these accuracies in its games, equal in both conditions."""
    return [
        {"kind": "study", "config": {"dataset": dataset}, "grammar": grammar, "seed": seed, "accuracy": accuracy,
         "failed": False}
        for dataset, grammar in CONDITIONS
        for seed, accuracy in enumerate(accuracies)
    ]  # fmt: skip


def ratios(*values: tuple[float, bool]) -> list[Any]:
    """Return records with these ratios on shufdet, and whether each training was cut."""
    return [
        {"grammar": "shufdet", "seed": seed, "failed": False, "value": value, "reason": "cap" if cut else "target"}
        for seed, (value, cut) in enumerate(values)
    ]


def finalists(*values: Any) -> Any:
    """Return a result with finalists `a`, `b` and so on, with these values of shufdet and hol."""
    found = [
        SimpleNamespace(name=name, larger=None, again=SimpleNamespace(values=one))
        for name, one in zip("abcd", values, strict=False)
    ]
    return SimpleNamespace(finalists=found, objectives=[parse("ratio:shufdet")])


def test_a_factor_is_the_geometric_mean_of_quotients_of_the_same_seed() -> None:
    own, other = ratios((2.0, False), (8.0, False), (4.0, False)), ratios((1.0, False), (2.0, False), (2.0, False))
    assert page.factor(own, other, finalists(), 0) == "2.52 (0.93 to 6.81)"  # t = 4.303 with logarithms of 2, 4 and 2
    assert page.factor(own, ratios((1.0, False), (2.0, True), (2.0, False)), finalists(), 0) == "-"


def test_a_network_is_nearer_by_the_difference_of_distances() -> None:
    steady, unsteady = games(0.1, 0.1), games(0.4, 0.2, 0.3, 0.3)
    middle, low, high = page.nearer(steady, unsteady, PEOPLE)
    assert middle == pytest.approx(0.2)
    assert 0.1 <= low < 0.2 < high <= 0.3
    assert page.nearer(steady, unsteady, PEOPLE, 0.99)[1] < low


def test_the_answer_is_of_all_finalists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has the smallest distance, but varies much."""
    result = finalists(None, None)
    result.setup = SimpleNamespace(people=PEOPLE)
    result.baselines = [SimpleNamespace(name=page.HU_RNN)]
    records = [games(0.0, 0.0, 0.0, 0.6), games(*[0.2] * 4), games(*[0.3] * 4)]
    monkeypatch.setattr(page, "records_again", lambda _: records)
    said = page.nearer_text(result)
    assert said.startswith("**Yes.** Compared with HU-RNN, `a` is nearer by 0.15 (-0.")
    assert "`b` is nearer by 0.10 (0.10 to 0.10). Each of these intervals has a confidence of 97.5 %" in said


def test_a_goal_is_met_by_whole_intervals() -> None:
    low, high = Value(1.1, 1.0, 1.2), Value(11.0, 10.5, 11.5)
    cut = Value(12.0, bound=">")
    said = page.goal_text(
        finalists((low, high), (low, cut), (low, Value(11.0, 9.0, 13.0)), (Value(1.4, 1.3, 1.5), cut))
    )
    assert said == (
        "**Yes.** Ratio on shufdet below 1.27 and on hol above 10 (whole intervals): `a` and `b`. "
        "An interval contains 1.27 or 10: `c`. Not met: `d`."
    )
