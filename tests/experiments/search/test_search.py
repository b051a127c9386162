"""Whole searches: their records, a kill and its continuation, rungs, finalists, the report and the winner."""

from __future__ import annotations

import ast
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest

import icy
from icy import testing
from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.registry import registry
from icy.experiments.progress import Watcher
from icy.experiments.search.objectives import Value
from icy.experiments.search.report import plugin
from icy.experiments.search.result import Measured, SearchResult
from icy.experiments.search.search import DATABASE, LOCK, Trials, _alone, open_trials
from icy.experiments.search.setup import Point, SearchSetup, Space

from .helpers import CHOICES, SMALL, plugin_file, setup_of


class Stop(Watcher):
    """Stops at the n-th record."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after
        self.keys: list[str] = []

    def filed(self, record: Any) -> None:
        self.keys.append(record["key"])
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def search(out: Path, **given: Any) -> SearchResult:
    return icy.search(**{"progress": False, **SMALL, "out": out, **given})


def summary(result: SearchResult) -> list[Any]:
    """Return the points and values of all trials."""
    return [(t.number, t.name, [[v.value for v in one.values] for one in t.rungs]) for t in result.trials]


SPACE: dict[str, Any] = {"hidden": "4,8", "batch": 2, "minimize": ["ratio:perm", "parameters"]}


@pytest.mark.slow
def test_a_killed_search_continues_with_the_same_trials(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole", **SPACE)
    stop = Stop(5)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "killed", watcher=stop, **SPACE)
    rest = Stop(0)
    assert summary(search(tmp_path / "killed", watcher=rest, **SPACE)) == summary(whole)
    assert not {*stop.keys} & {*rest.keys}
    assert len({*stop.keys, *rest.keys}) == len(icy.ProbeResult.load(tmp_path / "whole").records)
    more = Stop(0)
    assert summary(search(tmp_path / "whole", watcher=more, trials=3, **SPACE)) == summary(whole)[:3]
    assert not more.keys


@pytest.mark.slow
def test_trials_are_ordinary_records(tmp_path: Path) -> None:
    result = search(tmp_path)
    probed = icy.probe(SMALL["model"], "perm", **{n: SMALL[n] for n in ("meanings", "word_length", "hidden", "seeds",
                       "target", "settings")}, workers=1, out=tmp_path, rerun="never", progress=False)  # fmt: skip
    assert len(probed.records) == 4
    table = probed.to_dataframe("wide")["perm", "mean"]
    assert {trial.name: trial.last.values[0].value for trial in result.trials} == pytest.approx(
        {str(name).removeprefix("sender/"): value for name, value in zip(["FC1L", "FC2L"], table, strict=True)}
    )


@pytest.mark.slow
def test_the_best_share_of_a_rung_goes_to_the_next(tmp_path: Path) -> None:
    rungs = [{"meanings": "2x2"}, {"seeds": 2}]
    result = search(tmp_path, hidden="4,8", rungs=rungs, keep=0.5, finalists=1, new_seeds=2, baselines="FC1L",
                    larger={"meanings": "2x4"})  # fmt: skip
    reached = [trial for trial in result.trials if len(trial.rungs) == 2]
    assert len(reached) == 2
    best = sorted(trial.rungs[0].values[0].value for trial in result.trials)[:2]
    assert sorted(trial.rungs[0].values[0].value for trial in reached) == best
    assert [len(trial.rungs) for trial in result.ranked] == [2, 2, 1]  # FC1L is tried at one hidden size
    (one,), (other,) = result.finalists, result.baselines
    assert one.search is not None
    assert one.shrinkage(0) == one.again.values[0].value - one.search.values[0].value
    assert (other.search, other.again.point.hidden) == (None, one.again.point.hidden)
    assert one.larger is not None
    records = icy.ProbeResult.load(tmp_path).records
    seeds = {space: {r["seed"] for r in records if r["meanings"] == space} for space in ("2x2", "2x3", "2x4")}
    assert seeds == {"2x2": {123}, "2x3": {123, 124, 125, 126}, "2x4": {125, 126}}
    page = (tmp_path / "search.md").read_text()
    assert all(word in page for word in ("Shrinkage", "Rung 2: 2 trials", "seeds 125 and 126", "search.png", one.name))


@pytest.mark.slow
@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize("fields", ["", CHOICES])
def test_the_winner_is_a_plug_in_of_its_own(fields: str, tmp_path: Path) -> None:
    space = {"depth": [1, 2], "tanh": [True, False]}
    result = search(tmp_path, model="Mine", plugin=plugin_file(tmp_path, fields), space=space, winner="Best")
    assert len(result.trials) == 4
    registry.load_file(tmp_path / "winner.py")
    testing.check("sender/Best")
    best = result.ranked[0].last.point
    sizes = ("2x3", 4, 3, 8)
    made = icy.create_sender("Best", *sizes), icy.create_sender(best.entry.name, *sizes, **best.options)
    assert made[0].state_dict().keys() == made[1].state_dict().keys()


@pytest.mark.parametrize("text", ['a"b', 'x""" + 1', "it's", "back\\", "two\nlines", "naïve, {braces}"])
def test_the_winner_is_python_for_any_value(text: str) -> None:
    setup = setup_of(model="sender/FC1L", space={"word": [text, "y"]}, options={})
    source = plugin(setup, setup.space.point({"word": text}))
    code = ast.parse(source)
    (made,) = [node for node in ast.walk(code) if isinstance(node, ast.Dict)]
    assert ast.literal_eval(made) == {"word": text}


@pytest.mark.usefixtures("forgetting")
def test_the_winner_names_the_code_that_it_needs(tmp_path: Path) -> None:
    built_in = setup_of()
    assert "It needs only icy." in plugin(built_in, built_in.space.point({"model": "FC1L"}))
    own = setup_of(model="Mine", plugin=plugin_file(tmp_path, CHOICES))
    assert "It needs mine.py." in plugin(own, own.space.nth(0))
    here = setup_of(model="Mine")  # registered before, as by a notebook
    assert "the code that registers" in plugin(here, here.space.nth(0))


@pytest.mark.usefixtures("forgetting")
def test_the_report_has_a_command_that_checks_the_winner(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, CHOICES)
    search(tmp_path / "my results", model="Mine", plugin=file, trials=1, winner="Best")
    command = f"icy check --plugin {file} --plugin '{tmp_path}/my results/winner.py' Best"
    assert command in (tmp_path / "my results" / "search.md").read_text()


@pytest.mark.usefixtures("forgetting")
@pytest.mark.slow
def test_the_name_of_an_earlier_winner_may_be_used_again(tmp_path: Path) -> None:
    search(tmp_path, trials=1)
    registry.load_file(tmp_path / "winner.py")
    assert setup_of().request.winner == "Winner"


@pytest.mark.slow
def test_saved_results_are_shown_without_training(tmp_path: Path) -> None:
    """A trial without records is not saved as failed, so that a later call trains it."""
    with pytest.raises(StoreError, match="has no results of this search"):
        search(tmp_path, rerun="never", **SPACE)
    stop = Stop(6)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, watcher=stop, **SPACE)
    shown = search(tmp_path, rerun="never", finalists=1, new_seeds=2, rungs=[{}, {"seeds": 2}], **SPACE)
    assert [(len(trial.rungs), trial.last.known) for trial in shown.trials] == [(1, True)] * len(shown.trials)
    assert (len(shown.trials), shown.finalists) == (3, [])
    whole = search(tmp_path, **SPACE)
    assert summary(whole)[:3] == summary(shown)
    assert all(trial.last.known for trial in whole.trials)


@pytest.mark.slow
def test_a_trial_that_cannot_be_trained_has_no_value(tmp_path: Path) -> None:
    result = search(tmp_path, settings={"check_every": 20, "max_steps": 20}, target=0.95, model=["sender/FC1L",
                    "sender/FC2L"], hidden="1,32")  # fmt: skip
    assert all(trial.last.problem for trial in result.trials if not trial.last.known)
    assert any(not trial.last.known for trial in result.trials)
    assert "has no value: concat did not reach" in (tmp_path / "search.md").read_text()


def test_two_searches_in_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    with _alone(tmp_path), pytest.raises(StoreError, match="Another search runs"):
        search(tmp_path)
    assert (tmp_path / LOCK).exists()


@pytest.mark.slow
def test_another_search_does_not_replace_a_report(tmp_path: Path) -> None:
    """A search that goes on does, and another one takes the records from there."""
    search(tmp_path / "one")
    search(tmp_path / "one", trials=1, finalists=1, new_seeds=2)
    report = (tmp_path / "one" / "search.md").read_text()
    with pytest.raises(InvalidSettingError, match="has the report of another search"):
        search(tmp_path / "one", minimize="parameters")
    assert (tmp_path / "one" / "search.md").read_text() == report
    counted = Stop(0)
    search(tmp_path / "two", minimize=["ratio:perm", "parameters"], initial_results=tmp_path / "one", watcher=counted)
    assert not counted.keys
    (tmp_path / "one" / "search.md").unlink()
    search(tmp_path / "one", minimize="parameters")


def test_results_are_shown_as_tables(tmp_path: Path) -> None:
    result = search(tmp_path, maximize="ratio:rot")
    frame = result.to_dataframe()
    assert list(frame["name"]) == [trial.name for trial in result.ranked]
    assert {"ratio:perm", "ratio:rot", "model", "parameters"} <= {*frame.columns}
    assert "| trial | model |" in repr(result)
    assert result._repr_markdown_().startswith("| trial | model |")
    assert all(trial in result.trials for trial in result.front)
    assert "| out | Linear | 180 |" in (tmp_path / "search.md").read_text()


@pytest.mark.slow
def test_the_distance_to_people_is_measured_in_games(tmp_path: Path) -> None:
    result = search(tmp_path, minimize="people:synth", instances=2, finalists=1, new_seeds=2, baselines="FC1L")
    assert all(trial.last.known for trial in result.trials)
    page = (tmp_path / "search.md").read_text()
    assert "The distance between two halves of the people is 0.06" in page
    records = icy.ProbeResult.load(tmp_path).records
    assert {record["kind"] for record in records} == {"study"}
    assert {record["config"]["settings"]["list_seed"] for record in records} == {0, 1000}


# -- the trials of a search in Optuna: the same points however often it is stopped -------------------------------------


OPTIONS = {"a": [1, 2, 3, 4], "b": ["x", "y", "z"], "c": [True, False]}


def measured(point: Point) -> Measured:
    """Return a measurement with a known value, or none, without a training."""
    own = point.params
    failed = own["a"] == 4 and own["b"] == "z"
    return Measured(point, (Value(math.nan if failed else own["a"] + (own["b"] == "y") + 0.1 * own["c"]),))


def run(trials: Trials, setup: SearchSetup, count: int) -> list[dict[str, Any]]:
    """Run `count` trials, and return their points."""
    found: list[Point] = []
    while batch := trials.batch(min(setup.request.batch, count - len(found))):
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
