"""Objectives and results of searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import icy
from icy.analysis import style
from icy.analysis.people import PeopleAccuracies
from icy.analysis.statistics import log_summary, student
from icy.core.errors import IcyError
from icy.experiments.requests import SearchRequest
from icy.experiments.search.objectives import Value, objectives_of, parse
from icy.experiments.search.report import page, parts_of, picture, write_report
from icy.experiments.search.result import Finalist, Measured, SearchResult, SearchTrial, fronts
from icy.experiments.search.search import Measuring, _again, _halve
from icy.experiments.search.setup import Point
from icy.models import create_receiver, create_sender
from icy.records.record import Record, value_of

from .helpers import setup_of

# -- objectives of a search: their words, and their values in records --------------------------------------------------


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
        objectives_of(SearchRequest(model="FC1L", **given))


def test_accuracy_at_a_common_number_of_updates_is_an_objective() -> None:
    assert objectives_of(SearchRequest(maximize="accuracy:perm", max_updates=100))[0].maximize


# -- results of a search: the front of its trials ----------------------------------------------------------------------


class Same:
    """Measures 3 in place of a training."""

    def measure_all(self, points: Sequence[Point], changes: object) -> list[Measured]:
        return [Measured(one, (Value(3.0),)) for one in points]


SAME = cast(Measuring, Same())


def test_the_share_that_goes_on_is_exact() -> None:
    """0.28 of 25 trials are 7 of them, although 0.28 * 25 is 7.000000000000001."""
    setup = setup_of(rungs=[{"meanings": "2x2"}, {"meanings": "2x3"}], keep=0.28)
    point = setup.space.point({"model": "FC1L"})
    trials = [SearchTrial(number, (Measured(point, (Value(number / 1),)),)) for number in range(25)]
    assert [trial.number for trial in _halve(setup, SAME, trials) if len(trial.rungs) == 2] == [*range(7)]


def test_the_front_is_of_the_last_rung_with_values() -> None:
    """The trial that reached the second rung failed there, so the front has the others."""
    setup = setup_of(minimize=["ratio:perm", "parameters"])
    point = setup.space.point({"model": "FC1L"})

    def trial(number: int, *values: tuple[float, ...]) -> SearchTrial:
        return SearchTrial(number, tuple(Measured(point, tuple(map(Value, one))) for one in values))

    trials = [trial(0, (1.0, 2.0), (math.nan, 2.0)), trial(1, (3.0, 1.0)), trial(2, (2.0, 3.0)), trial(3, (4.0, 4.0))]
    result = SearchResult(trials, setup=setup)
    assert [one.number for one in result.front] == [1, 2]
    picture(result)
    assert SearchResult(trials[:1], setup=setup).front == []


def test_bounds_have_no_shrinkage() -> None:
    setup = setup_of(maximize=["ratio:perm"], minimize=())
    point = setup.space.point({"model": "FC1L"})

    def shrinkage(old: Value, new: Value) -> float:
        return Finalist(Measured(point, (old,)), Measured(point, (new,))).shrinkage(0)

    assert shrinkage(Value(3.0), Value(2.0)) == -1.0
    cut = Value(20.0, bound=">")
    assert all(map(math.isnan, (shrinkage(cut, cut), shrinkage(Value(3.0), cut), shrinkage(cut, Value(3.0)))))


def test_the_picture_names_the_better_direction_and_marks_values_that_were_cut() -> None:
    setup = setup_of(minimize=["people:eng"], maximize=["ratio:perm"])
    point = setup.space.point({"model": "FC1L"})
    values = [(Value(0.2), Value(3.0)), (Value(0.3), Value(20.0, bound=">"))]
    trials = [SearchTrial(number, (Measured(point, own),)) for number, own in enumerate(values)]
    (axes,) = picture(SearchResult(trials, setup=setup)).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("distance to people on eng (min)", "ratio:perm (max)")
    faces = {line.get_xydata()[0][0]: line.get_markerfacecolor() for line in axes.lines if len(line.get_xydata()) == 1}
    assert [place for place, face in faces.items() if face == "white"] == [0.3]
    assert {*faces} == {0.2, 0.3}
    assert "cut at the cap" in [text.get_text() for text in axes.get_legend().texts]


def test_shrinkage_is_of_finalists_that_reached_the_last_rung() -> None:
    """Values of an earlier rung have other settings."""
    setup = setup_of(rungs=[{"meanings": "2x2"}, {"meanings": "2x3"}], finalists=2, baselines="FC1L")
    point = setup.space.point({"model": "FC1L"})

    rungs = [Measured(point, (Value(value),)) for value in (1.0, 2.5)]
    trials = [SearchTrial(0, tuple(rungs)), SearchTrial(1, (rungs[0],))]
    finalists, baselines = _again(setup, SAME, trials)
    shrinkages = [one.shrinkage(0) for one in (*finalists, *baselines)]
    assert shrinkages[0] == 0.5
    assert all(map(math.isnan, shrinkages[1:]))
    assert SearchResult(trials, finalists, setup=setup).finalist_table()[1][1][2:] == ["-", "3.00", "-"]


def test_one_objective_without_a_value_hides_no_other_and_has_its_reason_in_the_report() -> None:
    setup = setup_of(minimize=["people:eng", "ratio:perm"])
    point = setup.space.point({"model": "FC1L"})
    old = Measured(point, (Value(0.2), Value(3.0)))
    new = Measured(point, (Value(0.5), Value(math.nan)), "concat did not reach 0.8")
    found = Finalist(old, new)
    assert found.shrinkage(0) == pytest.approx(0.3)
    assert math.isnan(found.shrinkage(1))
    other = setup.space.point({"model": "FC2L"})
    baseline = Finalist(None, Measured(other, (Value(math.nan),) * 2, "it takes no grid"))
    result = SearchResult([SearchTrial(0, (old,))], [found], [baseline], setup=setup)
    assert [row[3:] for row in result.finalist_table()[1]] == [
        *(["0.50", "+0.30"], ["failed", "-"], ["failed", "-"], ["failed", "-"])
    ]
    text = page(result)
    assert "- `FC1L` has no value: concat did not reach 0.8\n- `FC2L` has no value: it takes no grid\n" in text


def test_fronts_of_one_and_two_objectives() -> None:
    def of(*costs: tuple[float, ...]) -> list[int]:
        return fronts(np.array(costs))

    assert of((-1,), (-3,), (-2,), (-3,)) == [2, 0, 1, 0]
    assert of((1, -1), (2, -2), (2, -1), (0, 0)) == [0, 0, 1, 0]
    assert of((1, 1), (1, 1), (1, 2)) == [0, 0, 1]
    assert fronts(np.zeros((0, 2))) == []


@pytest.mark.parametrize("error", [RuntimeError("no latex"), MemoryError(), KeyError("$x")])
def test_a_picture_that_cannot_be_drawn_loses_no_report(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(style, "figure", fail)
    setup = setup_of()
    point = setup.space.point({"model": "FC1L"})
    result = SearchResult([SearchTrial(0, (Measured(point, (Value(3.0),)),))], folder=tmp_path, setup=setup)
    assert [path.name for path in write_report(result)] == ["search.md", "winner.py"]
    assert "icy.create_sender" in (tmp_path / "winner.py").read_text()
    assert (tmp_path / "search.md").read_text().startswith(page(result))
    assert "could not be drawn" in (tmp_path / "search.md").read_text()
    assert "The report is complete without them." in caplog.text


def test_parts_are_in_the_order_of_their_first_use() -> None:
    model = create_sender("HierAutoReg:GRU", "3x4", 6, 4, 8)  # which declares `out` before `lower`
    parts = parts_of(model, torch.zeros(2, 3, dtype=torch.int64))
    names = [name for name, _, _ in parts]
    assert names[0] == "embed"
    assert names[-1] == "out"
    assert names.index("upper") < names.index("out")
    assert sum(count for *_, count in parts) == model.parameter_count("true")  # type: ignore[operator]


def test_shared_parameters_are_counted_once_and_own_parameters_have_a_part() -> None:
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.ones(3))
    model.first = torch.nn.Linear(3, 3, bias=False)
    model.second = torch.nn.Linear(3, 3)
    model.second.weight = model.first.weight
    model.forward = lambda x: model.second(model.first(x.float() * model.scale))  # type: ignore[method-assign]
    found = parts_of(model, torch.zeros(2, 3, dtype=torch.int64))
    assert found == [("own", "parameters", 3), ("first", "Linear", 9), ("second", "Linear", 3)]


def test_a_container_names_its_parts() -> None:
    model = create_receiver("Transformer", "3x4", 6, 4, 8)
    kinds = [kind for _, kind, _ in parts_of(model, torch.zeros(2, 6, dtype=torch.int64))]
    assert "ModuleList of PreNormLayer" in kinds
