"""Results of a search: the front of its trials."""

from __future__ import annotations

import math

from icy.experiments.search.measuring import Measured
from icy.experiments.search.objectives import Value
from icy.experiments.search.page import picture
from icy.experiments.search.result import Finalist, SearchResult, SearchTrial

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


def test_bounds_have_no_shrinkage() -> None:
    setup = setup_of(maximize=["ratio:perm"], minimize=())
    point = setup.space.point({"model": "FC1L"})

    def shrinkage(old: Value, new: Value) -> float:
        return Finalist("FC1L", Measured(point, (old,)), Measured(point, (new,))).shrinkage(0)

    assert shrinkage(Value(3.0), Value(2.0)) == -1.0
    cut = Value(20.0, bound=">")
    assert all(map(math.isnan, (shrinkage(cut, cut), shrinkage(Value(3.0), cut), shrinkage(cut, Value(3.0)))))


def test_the_picture_names_the_better_direction_and_marks_values_that_were_cut() -> None:
    setup = setup_of(minimize=["people:eng"], maximize=["ratio:perm"])
    point = setup.space.point({"model": "FC1L"})
    values = [(Value(0.2), Value(3.0)), (Value(0.3), Value(20.0, bound=">"))]
    trials = [SearchTrial(number, {}, (Measured(point, own),)) for number, own in enumerate(values)]
    (axes,) = picture(setup.objectives, trials, trials).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("distance to people on eng (min)", "ratio:perm (max)")
    faces = {line.get_gid(): line.get_markerfacecolor() for line in axes.lines if line.get_gid()}
    assert faces["trial-0"] != "white"
    assert faces["trial-1"] == "white"
    assert "cut at the cap" in [text.get_text() for text in axes.get_legend().texts]
