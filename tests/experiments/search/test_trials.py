"""The trials of a search in Optuna: the same points however often it is stopped."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest

from icy.core.errors import IcyError, StoreError
from icy.experiments.search.objectives import Value
from icy.experiments.search.result import Measured
from icy.experiments.search.search import DATABASE, Trials, open_trials
from icy.experiments.search.setup import Point, SearchSetup, Space

from .helpers import setup_of

OPTIONS = {"a": [1, 2, 3, 4], "b": ["x", "y", "z"], "c": [True, False]}


def measured(point: Point) -> Measured:
    """Return a measurement with a known value, or none, without a training."""
    own = point.params
    failed = own["a"] == 4 and own["b"] == "z"
    return Measured(point, (Value(math.nan if failed else own["a"] + (own["b"] == "y") + 0.1 * own["c"]),))


def run(trials: Trials, setup: SearchSetup, count: int) -> list[dict[str, Any]]:
    """Run `count` trials, and return their points."""
    found: list[Point] = []
    while batch := trials.batch(min(setup.spec.batch, count - len(found))):
        for point in batch:
            trials.add(measured(point))
        found += batch
    return [dict(point.params) for point in found]


def of(setup: SearchSetup, folder: Path | None, count: int) -> list[dict[str, Any]]:
    """Run a search of `count` trials."""
    with open_trials(setup, folder) as trials:
        return run(trials, setup, count)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_that_was_stopped_has_the_same_trials(sampler: str, tmp_path: Path) -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS, sampler=sampler)
    whole = of(setup, None, 19)
    for stopped in (1, 3, 8, 14, 19):
        assert of(setup, tmp_path, stopped) == whole[:stopped]
    assert len({tuple(point.values()) for point in whole}) == 19
    other = setup_of(model="sender/FC1L", space=OPTIONS, sampler=sampler, sampler_seed=1)
    assert of(other, tmp_path, 4) != whole[:4]


def test_the_first_points_of_a_seed_are_those_of_earlier_versions() -> None:
    points = of(setup_of(model="sender/FC1L", space=OPTIONS), None, 2)
    assert points == [{"a": 3, "b": "x", "c": True}, {"a": 2, "b": "x", "c": True}]


@pytest.mark.slow
def test_tpe_learns_from_earlier_trials() -> None:
    options = {"a": [*range(1, 13)], "b": [*"wxyz"], "c": [*range(12)]}
    points = of(setup_of(model="sender/FC1L", space=options), None, 24)
    late = [point["a"] for point in points[12:]]
    assert sum(late) / len(late) < sum(point["a"] for point in points[:12]) / 12


def test_no_trial_repeats_a_point_until_all_are_tried() -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    with open_trials(setup) as trials:
        points = trials.batch(100)
    assert len(points) == setup.space.size == 24
    assert len({tuple(point.params.values()) for point in points}) == 24


def test_tpe_draws_all_points_of_a_batch_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would propose one point for the whole batch, if it compared as many values at each redraw."""
    setup = setup_of(model="sender/FC1L", space={name: [*range(6)] for name in "abcd"}, batch=8)
    with open_trials(setup) as trials:
        for point in trials.batch(16):
            trials.add(Measured(point, (Value(float(sum(point.params.values()))),)))
        monkeypatch.setattr(Space, "nth", None)  # the first free points
        points = [tuple(point.params.values()) for point in trials.batch(8)]
    assert len(set(points)) == 8
    assert sum(map(sum, points)) / 8 < 8  # 10 is the mean of random points


@pytest.mark.slow
def test_importances_are_shares() -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    with open_trials(setup) as trials:
        run(trials, setup, 1)
        assert trials.importances() == [{}]
        run(trials, setup, 19)
        (found,) = trials.importances()
    assert set(found) == {*OPTIONS}
    assert max(found, key=lambda name: found[name]) == "a"
    assert math.isclose(sum(found.values()), 1)


@pytest.mark.parametrize("name", ["plain", "a?b=1", "ä {b} %3f#"])
def test_the_database_has_the_trials_in_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    """It is written again by each run, whatever was in it."""
    folder = tmp_path / name
    folder.mkdir()
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    for content in (b"", b"no database"):
        (folder / DATABASE).write_bytes(content)
        points = of(setup, folder, 5)
        assert [file.name for file in folder.iterdir()] == [DATABASE]
    (folder / DATABASE).rename(tmp_path / "copy.sqlite")
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path / 'copy.sqlite'}")
    assert [trial.params for trial in study.trials] == points
    assert {trial.user_attrs["model"] for trial in study.trials} == {"sender/FC1L"}


@pytest.mark.slow
def test_a_database_that_is_lost_during_a_search_is_explained(tmp_path: Path) -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)

    def lose() -> None:
        with open_trials(setup, tmp_path) as trials:
            with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
                connection.execute("drop table trials")
                connection.commit()
            run(trials, setup, 1)

    with pytest.raises(StoreError, match="cannot be written"):
        lose()


def test_without_optuna_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(IcyError, match=r'pip install "icy-toolkit\[search\]"'):
        setup_of()
