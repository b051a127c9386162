"""The trials of a search in Optuna: the same points however often it is stopped."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest

from icy.core.errors import StoreError
from icy.experiments.search.sampling import DATABASE, INSTALL, Trials, quiet_optuna, require_optuna
from icy.experiments.search.setup import SearchSetup
from icy.experiments.search.space import Space

from .helpers import setup_of

OPTIONS = {"a": [1, 2, 3, 4], "b": ["x", "y", "z"], "c": [True, False]}


def of(setup: SearchSetup, folder: Path | None, count: int) -> list[dict[str, Any]]:
    """Run a search of `count` trials whose values are known, and return the points of all of its trials."""
    with quiet_optuna(), closing(Trials(setup, folder)) as trials:
        done = len(trials.ended()) // setup.spec.batch * setup.spec.batch
        while done < count:
            batch = trials.batch(done, min(setup.spec.batch, count - done))
            for params in batch[len(trials.ended()) - done :]:
                value = params["a"] + (params["b"] == "y") + 0.1 * params["c"]
                failed = params["a"] == 4 and params["b"] == "z"
                trials.add(params, None if failed else [value], {"model": "x"})
            done += len(batch)
        return [dict(trial.params) for trial in trials.ended()]


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


@pytest.mark.slow
def test_tpe_learns_from_earlier_trials() -> None:
    setup = setup_of(model="sender/FC1L", space={"a": [*range(1, 13)], "b": [*"wxyz"], "c": [*range(12)]})
    points = of(setup, None, 24)
    late = [point["a"] for point in points[12:]]
    assert sum(late) / len(late) < sum(point["a"] for point in points[:12]) / 12


def test_a_trial_depends_on_its_number_and_earlier_batches() -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    whole = of(setup, None, 8)
    with quiet_optuna():
        trials = Trials(setup, None)
        assert trials.batch(0, 2) == whole[:2]
        assert trials.batch(0, 4) == whole[:4]


def test_no_trial_repeats_a_point_until_all_are_tried() -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    with quiet_optuna():
        trials = Trials(setup, None)
        points = trials.batch(0, 100)
    assert len(points) == setup.space.size == 24
    assert len({tuple(point.values()) for point in points}) == 24


def test_tpe_draws_all_points_of_a_batch_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would propose one point for the whole batch, if it compared as many values at each redraw."""
    options = {name: [*range(6)] for name in "abcd"}
    setup = setup_of(model="sender/FC1L", space=options, batch=8)
    with quiet_optuna():
        trials = Trials(setup, None)
        for params in trials.batch(0, 16):
            trials.add(params, [float(sum(params.values()))], {"model": "x"})
        monkeypatch.setattr(Space, "nth", None)  # the first free points
        points = trials.batch(16, 8)
    assert len({tuple(point.values()) for point in points}) == 8
    assert sum(map(sum, (point.values() for point in points))) / 8 < 8  # 10 is the mean of random points


@pytest.mark.slow
def test_importances_are_shares(tmp_path: Path) -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    of(setup, tmp_path, 20)
    with quiet_optuna(), closing(Trials(setup, tmp_path)) as trials:
        (found,) = trials.importances(20)
        assert trials.importances(4) != [found]
        assert trials.importances(1) == [{}]
    assert set(found) == {*OPTIONS}
    assert max(found, key=lambda name: found[name]) == "a"
    assert math.isclose(sum(found.values()), 1)


@pytest.mark.slow
def test_a_trial_that_was_trained_again_has_its_new_values(tmp_path: Path) -> None:
    """A failure that `rerun="failed"` repairs counts for the importances and for later trials."""
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    with quiet_optuna(), closing(Trials(setup, tmp_path)) as trials:
        points = trials.batch(0, 4)
        for params in points:
            trials.add(params, None, {"model": "x"})
        assert trials.importances(4) == [{}]
    with quiet_optuna(), closing(Trials(setup, tmp_path)) as trials:
        for number in range(4):
            trials.correct(number, [float(number)])
        assert [trial.values for trial in trials.ended()] == [[0.0], [1.0], [2.0], [3.0]]
        assert [dict(trial.params) for trial in trials.ended()] == points
        assert math.isclose(sum(trials.importances(4)[0].values()), 1)


@pytest.mark.parametrize("name", ["a?b=1", "ä {b} %3f#"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with quiet_optuna(), closing(Trials(setup_of(), folder)) as trials:
        trials.add({"model": "FC1L"}, [1.0], {"model": "x"})
    assert [file.name for file in folder.iterdir()] == [DATABASE]
    with quiet_optuna(), closing(Trials(setup_of(), folder)) as trials:
        assert len(trials.ended()) == 1


def test_a_damaged_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("no database")
    with quiet_optuna(), pytest.raises(StoreError, match="cannot be read"):
        Trials(setup_of(), tmp_path)


def test_without_optuna_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(Exception, match=r'pip install "icy-toolkit\[search\]"'):
        require_optuna()
    assert "search" in INSTALL


def _enqueue(study: Any) -> None:
    study.enqueue_trial({"a": 2, "b": "y", "c": True})


def _ask(study: Any) -> None:
    study.ask()


def _ask_a_point(study: Any) -> None:
    study.ask(_point())


def _fail(study: Any) -> None:
    study.tell(study.ask(_point()), state=optuna.trial.TrialState.FAIL)


def _prune(study: Any) -> None:
    trial = study.ask(_point())
    trial.report(1.0, 0)
    study.tell(trial, state=optuna.trial.TrialState.PRUNED)


def _complete(study: Any) -> None:
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)


def _set_attributes(study: Any) -> None:
    study.set_user_attr("owner", "me")
    study.set_user_attr("model", "x")


def _another_study(study: Any) -> None:
    optuna.copy_study(from_study_name=study.study_name, from_storage=study._storage, to_storage=study._storage,
                      to_study_name="copy")  # fmt: skip
    optuna.create_study(storage=study._storage, study_name="mine", directions=["maximize", "minimize"])


def _point() -> dict[str, Any]:
    return {name: optuna.distributions.CategoricalDistribution(values) for name, values in OPTIONS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [_enqueue, _ask, _ask_a_point, _fail, _prune, _complete, _set_attributes, _another_study],
)
def test_trials_of_other_programs_do_not_count(change: Any, tmp_path: Path) -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    whole = of(setup, None, 12)
    assert of(setup, tmp_path, 5) == whole[:5]
    with quiet_optuna(), closing(Trials(setup, tmp_path)) as trials:
        trials.set_reported()
        change(trials.study)
    (tmp_path / "search.md").write_text("a report")
    assert of(setup, tmp_path, 12) == whole
    with quiet_optuna(), closing(Trials(setup, tmp_path)) as trials:
        trials.correct(11, [9.0])
        trials.correct(11, [8.0])
        assert trials.ended()[11].values == [8.0]
        assert trials.importances(12)[0]


def _later_schema(setup: SearchSetup, file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("update alembic_version set version_num = 'v99.0.0.a'")
        connection.commit()


def _other_values(setup: SearchSetup, file: Path) -> None:
    study = optuna.load_study(study_name=setup.name, storage=f"sqlite:///{file}")
    study.ask({"a": optuna.distributions.CategoricalDistribution([7, 8])})


def _other_kind(setup: SearchSetup, file: Path) -> None:
    study = optuna.load_study(study_name=setup.name, storage=f"sqlite:///{file}")
    study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=1)


def _other_directions(setup: SearchSetup, file: Path) -> None:
    optuna.delete_study(study_name=setup.name, storage=f"sqlite:///{file}")
    optuna.create_study(study_name=setup.name, storage=f"sqlite:///{file}", directions=["maximize", "minimize"])


def _unknown_distribution(setup: SearchSetup, file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("""update trial_params set distribution_json = '{"name": "Later", "attributes": {}}'""")
        connection.commit()


def _no_tables(setup: SearchSetup, file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("drop table trials")
        connection.commit()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [_later_schema, _other_values, _other_kind, _other_directions, _unknown_distribution, _no_tables]
)
def test_a_study_that_cannot_continue_is_explained(change: Any, tmp_path: Path) -> None:
    setup = setup_of(model="sender/FC1L", space=OPTIONS)
    whole = of(setup, None, 5)
    of(setup, tmp_path, 0 if change in (_other_values, _other_kind) else 5)  # Optuna refuses them after the first trial
    with quiet_optuna():
        change(setup, tmp_path / DATABASE)
    with pytest.raises(StoreError, match=r"search\.sqlite.*Move this file away"):
        of(setup, tmp_path, 12)
    (tmp_path / DATABASE).rename(tmp_path / "old.sqlite")
    assert of(setup, tmp_path, 5) == whole


@pytest.mark.slow
def test_a_database_that_is_lost_during_a_search_is_explained(tmp_path: Path) -> None:
    with quiet_optuna(), closing(Trials(setup_of(), tmp_path)) as trials:
        with contextlib.closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
            connection.execute("drop table trials")
            connection.commit()
        for action in (trials.ended, lambda: trials.add({"model": "FC1L"}, [1.0], {"model": "x"})):
            with pytest.raises(StoreError, match="cannot be read or written"):
                action()
