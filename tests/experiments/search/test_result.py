"""Results of a search: the front of its trials."""

from __future__ import annotations

from icy.experiments.search.measuring import Measured
from icy.experiments.search.objectives import Value
from icy.experiments.search.page import picture
from icy.experiments.search.result import SearchResult, SearchTrial

from .helpers import setup_of


def test_the_front_is_of_the_last_rung_with_values() -> None:
    """The trial that reached the second rung failed there, so the front has the others."""
    setup = setup_of(minimize=["ratio:perm", "parameters"])
    point = setup.space.point({"model": "FC1L"})

    def trial(number: int, *values: tuple[float, ...]) -> SearchTrial:
        return SearchTrial(number, {}, tuple(Measured(point, tuple(map(Value, one))) for one in values))

    trials = [trial(0, (1.0, 2.0), ()), trial(1, (3.0, 1.0)), trial(2, (2.0, 3.0)), trial(3, (4.0, 4.0))]
    result = SearchResult(trials, setup=setup)
    assert [one.number for one in result.front] == [1, 2]
    picture(result.objectives, trials[1:], result.front)
    assert SearchResult(trials[:1], setup=setup).front == []
