"""The space of a search, and the settings of its measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import IcyError
from icy.experiments.search.search import Measuring, open_trials
from icy.study.rows import COLUMNS, frame_of
from icy.study.study_job import StudyRequest
from icy.training.probe_settings import ProbeRequest

from .helpers import CHOICES, plugin_file, setup_of


def test_models_and_hidden_sizes_are_dimensions() -> None:
    space = setup_of(hidden="8,16").space
    assert space.values == {"model": ("FC1L", "FC2L"), "hidden": (8, 16)}
    points = [space.nth(place) for place in range(space.size)]
    assert [point.name for point in points] == [f"{m} hidden={h}" for m in ("FC1L", "FC2L") for h in (8, 16)]
    assert setup_of().space.values == {"model": ("FC1L", "FC2L")}


def test_a_space_of_several_sizes_is_one_value() -> None:
    assert setup_of(meanings="4,3,2").request.meanings == "4,3,2"
    with pytest.raises(IcyError, match="one value of meanings"):
        setup_of(meanings="4,3,2;3x3")


def test_wildcards_match_only_models_of_the_representation() -> None:
    assert "RNNSampling:RNN" not in setup_of(model="sender/RNN*:RNN").space.entries


@pytest.mark.usefixtures("forgetting")
def test_a_family_is_searched_along_all_that_it_declares(tmp_path: Path) -> None:
    space = setup_of(model="Mine", plugin=plugin_file(tmp_path, CHOICES)).space
    assert space.values == {"depth": (1, 2), "tanh": (False, True)}
    assert space.point({"depth": 2, "tanh": True}).name == "Mine[depth=2,tanh=true]"
    assert space.point({"depth": 1, "tanh": False}).name == "Mine"
    for default, other in (("1", "2"), ("2", "1")):
        rest = setup_of(model=f"Mine[Depth={default}]").space
        assert dict(rest.values) == {"tanh": (False, True)}
        assert rest.point({"tanh": True}).name == {"1": "Mine[tanh=true]", "2": "Mine[depth=2,tanh=true]"}[default]
        with pytest.raises(IcyError, match="depth is in the name of a model and in `space`"):
            setup_of(model=f"Mine[depth={default}]", space={"depth": other})
    part = setup_of(model="Mine", space={"depth": [1, 2]}).space
    assert part.values == {"depth": (1, 2)}
    with pytest.raises(IcyError, match="has no option 'width'"):
        setup_of(model="Mine", space={"width": [1, 2]})
    with pytest.raises(IcyError, match="cannot be '3'"):
        setup_of(model="Mine", space={"depth": [1, 3]})


@pytest.mark.usefixtures("forgetting")
def test_a_model_without_declared_options_gets_them_as_arguments(tmp_path: Path) -> None:
    setup = setup_of(model="Mine", plugin=plugin_file(tmp_path), space={"depth": [1, 2]}, options={"tanh": True})
    point = setup.space.point({"depth": 2})
    assert (point.name, point.options) == ("Mine tanh=True depth=2", {"tanh": True, "depth": 2})


def test_the_name_depends_on_what_determines_the_trials_alone() -> None:
    name = setup_of().name
    assert name == setup_of(trials=3, finalists=2, workers=2, out="x", keep=0.5, larger={"meanings": "3x4"}).name
    others = [{"batch": 2}, {"sampler": "random"}, {"sampler_seed": 1}, {"seeds": 2}, {"hidden": "8,16"}]
    others += [{"maximize": "ratio:hol"}, {"rungs": [{"meanings": "2x2"}]}, {"settings": {"check_every": 10}}]
    others += [{"frequencies": "zipf:1"}]
    assert len({name, *(setup_of(**one).name for one in others)}) == len(others) + 1


def test_people_of_a_study_are_known_by_their_accuracies(tmp_path: Path) -> None:
    def name(file: str, value: float) -> str:
        about = {"agent_kind": "human", "dataset": "synth", "grammar": "rot", "metric": "exact", "split": "held-out"}
        row = {**dict.fromkeys(COLUMNS, ""), **about}
        frame_of([{**row, "person": str(person), "value": value} for person in range(2)]).to_csv(tmp_path / file)
        return setup_of(minimize="people", people=tmp_path / file).name

    assert name("one.csv", 0.5) == name("two.csv", 0.5)
    names = {name("one.csv", 0.25), name("one.csv", 0.5), setup_of(minimize="people").name}
    assert len(names) == 3
    assert setup_of(minimize="people", people="Icy22").name in names


def test_meanings_may_be_a_list_of_one_space(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a,b\nx,1\ny,2\n")
    for meanings in ("2x3", "10,4,2", str(file)):
        setup = setup_of(meanings=(meanings,))
        assert setup.request.meanings == meanings
        assert setup.name == setup_of(meanings=meanings).name


def test_finalists_get_seeds_that_no_rung_used() -> None:
    setup = setup_of(rungs=[{"seeds": 1}, {"seeds": "200-202"}], new_seeds=3, larger={"meanings": "3x4", "seeds": 2})
    assert setup.again() == {"seeds": [203, 204, 205], "list_seed": 1000}
    assert setup.again(larger=True) == {"seeds": [203, 204], "meanings": "3x4", "list_seed": 1000}
    assert setup_of(larger={"seeds": "2"}).again(larger=True)["seeds"] == [124, 125]
    with pytest.raises(IcyError, match="at most 10000"):
        setup_of(larger={"seeds": 10**6})
    with pytest.raises(IcyError, match="The seed 201 of `larger` was used"):
        setup_of(rungs=[{"seeds": "200-202"}], larger={"seeds": "201,300"})


def test_a_point_is_measured_by_ordinary_jobs() -> None:
    setup = setup_of(minimize=["ratio:perm", "people:eng"], grammar="rot", instances=4)
    probe, games = setup.requests_of(setup.space.point({"model": "FC2L"}), {"meanings": "2x2", "seeds": 2})
    assert isinstance(probe, ProbeRequest)
    assert (list(probe.model), probe.grammar, probe.meanings, probe.seeds) == (
        ["sender/FC2L"],
        ["perm", "rot"],
        "2x2",
        2,
    )
    assert isinstance(games, StudyRequest)
    assert (games.player, games.dataset, games.protocol, games.instances) == (["FC2L"], ["eng"], "converged", 4)
    assert (games.representation, games.settings) == ("soft", {"check_every": 20})
    _, games = setup.requests_of(setup.space.point({"model": "FC2L"}), {"settings": {"learning_rate": 0.1}, "seeds": 2})
    assert isinstance(games, StudyRequest)
    assert games.settings == {"learning_rate": 0.1}
    assert not setup_of(minimize=["people", "parameters"]).grammars
    assert setup_of(minimize=["updates"]).grammars == ["concat"]


def test_baselines_may_have_a_hidden_size_of_their_own() -> None:
    own = setup_of(baselines="FC1L,sender/RNN*:GRU hidden=16,FC2L hidden=32", hidden=[8, 16]).baselines
    assert own[0].name == "FC1L"
    assert {point.name.partition(" ")[2] for point in own[1:-1]} == {"hidden=16"}
    assert (own[-1].name, own[-1].hidden) == ("FC2L hidden=32", 32)
    with pytest.raises(IcyError, match=r"The hidden size must be a whole number, at least 1, not .big"):
        setup_of(baselines="FC1L hidden=big")


def test_settings_without_effect_in_games_are_named(caplog: pytest.LogCaptureFixture) -> None:
    setup_of(minimize="people")
    (warning,) = caplog.messages
    assert warning.startswith("meanings, word_length, seeds and target do nothing: the games of the study")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rungs": [{}, {"meanings": "3y3"}]}, "'3y3' is not a meaning space"),
        ({"rungs": [{}, {"word_length": -1}]}, "The word length"),
        ({"rungs": [{}, {}, {"target": 2.0}]}, "The target"),
        ({"rungs": [{}, {"set": {"learning_rte": 0.1}}]}, "No training setting is called 'learning_rte'"),
        ({"rungs": [{}, {"preset": "foo"}]}, "No preset is called 'foo'"),
        ({"larger": {"meanings": "5z"}}, "'5z' is not a meaning space"),
        ({"minimize": "people:eng", "larger": {"instances": 0}}, "instances"),
    ],
)
def test_settings_of_later_measurements_are_checked_before_the_training(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        Measuring(setup_of(**given)).check()


@pytest.mark.usefixtures("forgetting")
def test_a_model_may_refuse_a_later_rung(tmp_path: Path) -> None:
    """Here the first two points do; the settings themselves are accepted."""
    file = plugin_file(tmp_path)
    file.write_text(file.read_text().replace("super()", "assert depth > 1 or space.values < 4\n        super()"))
    setup = setup_of(model="Mine", plugin=file, space={"depth": [1, 2]}, rungs=[{}, {"meanings": "2x4"}], baselines=())
    measuring = Measuring(setup)
    measuring.check()
    _, (refused, accepted) = measuring.plan([setup.space.point({"depth": depth}) for depth in (1, 2)], setup.rungs[1])
    assert isinstance(refused, IcyError)
    assert isinstance(accepted, list)


@pytest.mark.usefixtures("forgetting")
def test_a_single_value_is_fixed(tmp_path: Path) -> None:
    declared = plugin_file(tmp_path, CHOICES)
    one = setup_of(model="Mine", plugin=declared, space={"depth": 2}).space
    assert (dict(one.values), one.fixed) == ({"tanh": (False, True)}, {"depth": 2})
    assert one.point({"tanh": True}).name == "Mine[depth=2,tanh=true]"
    some = setup_of(model="Mine", plugin=declared, space={"depth": [2], "tanh": [True]}, hidden="4,8").space
    assert (dict(some.values), some.point({"hidden": 4}).entry.name) == ({"hidden": (4, 8)}, "Mine[depth=2,tanh=true]")
    plain = setup_of(model="FC2L", side="sender", space={"layers": [1, 2], "bias": False}).space
    assert plain.point({"layers": 1}).options == {"bias": False, "layers": 1}
    names = [
        setup_of(model="FC2L", side="sender", space={"layers": [1, 2], **one}).name for one in ({}, {"bias": False})
    ]
    assert names[0] != names[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": ()}, "No model was given"),
        ({"side": "senders"}, "No side is called 'senders'"),
        ({"model": "FC2L", "side": "sender"}, "There is nothing to choose"),
        ({"model": "*/FC1L"}, "choose a side"),
        ({"representation": "soft,gumb"}, "one value of representation"),
        ({"space": {"hidden": [8, 16]}}, "give its values in `hidden`"),
        ({"space": {"layers": [[1], [2]]}}, "a list of texts, finite numbers"),
        ({"space": {"layers": []}}, "a list of texts, finite numbers"),
        ({"space": {"layers": [1.0, float("inf")]}}, "a list of texts, finite numbers"),
        ({"sampler": "grid"}, "No sampler is called 'grid'"),
        ({"keep": 0.0}, "above 0 to 1"),
        ({"trials": 0}, "trials"),
        ({"rungs": [{"trials": 3}]}, "No setting in rungs is called 'trials'"),
        ({"rungs": [3]}, "needs tables of settings"),
        ({"larger": {"modell": 3}}, "No setting in larger is called 'modell'"),
        ({"minimize": "people", "model": ["receiver/FC1L", "receiver/FC2L"]}, "is for senders"),
        ({"minimize": "people:klingon"}, "no results of the dataset 'klingon'"),
        ({"minimize": "people", "people": "missing.csv"}, "cannot be read"),
        ({"baselines": "FC9"}, "FC9"),
        ({"winner": "the best"}, "letters, digits"),
        ({"winner": None}, "letters, digits"),
        ({"space": ["layers"]}, "needs a table"),
        ({"people": None, "minimize": "people"}, "cannot be read"),
        ({"new_seeds": 10**7}, "at most 10000"),
        ({"winner": "FC1L"}, "A sender is already called 'FC1L'"),
        ({"word_seeds": 2}, "takes no word_seeds"),
        ({"rungs": [{}, {"meanings": ["2x2", "2x3"]}]}, "one value of meanings"),
        ({"rungs": [{"representation": "all"}]}, "one value of representation"),
        ({"rungs": {"seeds": 1}}, r"each under \[\[rungs\]\]"),
        ({"larger": "3x4"}, r"under \[larger\]"),
    ],
)
def test_wrong_settings_are_explained(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        setup_of(**given)


def test_a_point_without_a_record_of_every_replicate_has_no_value() -> None:
    """The sum of the updates of some replicates would be too small."""
    setup = setup_of(minimize="parameters")
    measuring, point = Measuring(setup), setup.space.point({"model": "FC1L"})
    _, (rows,) = measuring.plan([point], {})
    assert isinstance(rows, list)
    keys = [row.job.key(replicate) for row in rows for replicate in row.job.replicates]
    record: Any = {
        "failed": False,
        "seed": 0,
        "grammar": "concat",
        "parameters": {"true": 7},
        "reason": "",
        "config": {},
    }
    whole = dict.fromkeys(keys, record)
    assert [value.value for value in measuring._measured(point, rows, whole).values] == [7.0]
    part = measuring._measured(point, rows, dict(list(whole.items())[1:]))
    assert not part.known
    assert part.problem == "a replicate is not on file"


@pytest.mark.parametrize("where", [{"max_updates": 300}, {"rungs": [{"max_updates": 300}, {}]}])
def test_bounds_that_depend_on_concat_are_named(where: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    setup_of(minimize="ratio:rot", **where)
    setup_of(minimize=[], maximize="ratio:rot", **where)
    (warning,) = caplog.messages
    assert warning.startswith("Under max_updates, a training without the target counts as")


@pytest.mark.parametrize("values", [[1, "1", 2], [True, 1], [1.0, 1], ["true", True], [None, "None"]], ids=str)
def test_values_that_differ_only_in_their_type_are_refused(values: list[Any]) -> None:
    with pytest.raises(IcyError, match="`space`: k has the values"):
        setup_of(model="sender/FC1L", space={"k": values})


def test_names_of_points_show_the_type_of_a_value() -> None:
    space = setup_of(model="sender/FC1L", space={"k": ["1", 2, "GRU", "True"]}).space
    names = [space.nth(place).name for place in range(space.size)]
    assert names == ["FC1L k='1'", "FC1L k=2", "FC1L k=GRU", "FC1L k='True'"]


def test_a_model_without_a_hidden_layer_is_tried_at_one_hidden_size(caplog: pytest.LogCaptureFixture) -> None:
    setup = setup_of(model=["sender/FC1L", "sender/FC2L", "sender/RNNZero:GRU"], hidden="8,16,32")
    assert "FC1L is the same at 3 hidden sizes, and tried at one." in caplog.text
    with open_trials(setup) as trials:
        points = [point.name.partition(" ")[0] for point in trials.batch(20)]
    assert {name: points.count(name) for name in points} == {"FC1L": 1, "FC2L": 3, "RNNZero:GRU": 3}
    assert dict(setup_of(model=["sender/FC1L", "sender/Hashtable"], hidden="8,16").space.values) == {
        "model": ("FC1L", "Hashtable")
    }
    with pytest.raises(IcyError, match="FC1L has no hidden layer, so 2 hidden sizes are one model"):
        setup_of(model="sender/FC1L", hidden="8,16")


@pytest.mark.usefixtures("forgetting")
def test_hidden_sizes_of_a_model_with_options_stay(tmp_path: Path) -> None:
    setup = setup_of(model="Mine", plugin=plugin_file(tmp_path, CHOICES), hidden="8,16")
    with open_trials(setup) as trials:
        assert len(trials.batch(20)) == 8
