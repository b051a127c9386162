"""Options in names: canonical names, values, errors, and the entries that they select."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from icy.core.choices import check_choices, distinct, effective, name_with, split_name, typed_text
from icy.core.errors import IcyError, InvalidSettingError, UnknownNameError
from icy.core.register import register_cell, register_sender
from icy.core.registry import registry
from icy.models import create_sender
from icy.models.cells import GRUCell
from icy.records.load import select

pytestmark = pytest.mark.usefixtures("forgetting")
CHOICES = {"net": ("flat", "deep"), "cell": ("GRU",), "layers": (1, 2), "tied": (False, True)}
CONDITIONS = {"cell": [{"net": ["deep"]}], "layers": [{"net": ["deep"]}]}


def arguments(*sizes: int, **options: Any) -> dict[str, Any]:
    return options


@pytest.fixture(autouse=True)
def family(forgetting: None) -> None:
    register_sender("Mine", takes_cell=True, choices=CHOICES, conditions=CONDITIONS, aliases=["My"])(arguments)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Mine", "Mine"),
        ("mine[]", "Mine"),
        ("MY[net=flat]", "Mine"),
        ("Mine[layers=2,cell=LSTM]", "Mine"),  # without effect in a flat net
        ("sender/Mine[ TIED = True , layers=2 ]", "Mine[tied=true]"),
        ("my[layers=2,cell=lstm,net=deep]", "Mine[net=deep,cell=LSTM,layers=2]"),
        ("Mine[cell=gru,net=deep,layers=1]", "Mine[net=deep]"),
    ],
)
def test_names_are_canonical_and_find_their_entry(given: str, name: str) -> None:
    entry = registry.get(given, "sender", "receiver")
    assert entry.name == name
    assert registry.get(entry.qualified) == entry
    assert registry.get(entry.aliases[0]) == entry
    assert [one.name for one in registry.match(given, "sender")] == [name]


def test_the_factory_gets_every_value_and_a_cell_with_an_effect() -> None:
    flat, deep = registry.get("Mine[layers=2]"), registry.get("Mine[net=deep,layers=2,cell=gru]")
    assert flat.create(1, 1, 1, 1) == {"net": "flat", "layers": 1, "tied": False}
    assert deep.create(1, 1, 1, 1) == {"net": "deep", "layers": 2, "tied": False, "cell": GRUCell}
    assert (flat.cell, deep.full_version) == (None, f"{flat.full_version}.1")


def test_an_entry_offers_its_choices_with_all_cells() -> None:
    register_cell("Own", "icy.models.cells:GRUCell")
    entry = registry.get("Mine[net=deep]")
    assert list(entry.choices) == list(CHOICES)
    assert entry.choices["cell"][0] == "GRU"
    assert {*entry.choices["cell"]} == {one.name for one in registry.entries("cell")}
    assert entry.with_choices({"net": "deep", "cell": "own", "tied": True}).name == "Mine[net=deep,cell=Own,tied=true]"
    assert entry.with_choices({}).name == "Mine"
    assert pickle.loads(pickle.dumps(entry.with_choices({"net": "deep"}))) == entry


def test_a_family_is_listed_once_and_wildcards_do_not_choose() -> None:
    assert [one.name for one in registry.match("M*", "sender")] == ["Mine"]
    assert [one.name for one in registry.match("my[tied=true],FC2L,Mine[tied=TRUE]", "sender")] == [
        "Mine[tied=true]",
        "FC2L",
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Mine[tide=1]", "sender/Mine has no option 'tide'; its options: net, cell, layers and tied."),
        ("Mine[layers=3]", "The option layers of sender/Mine cannot be '3'; it is 1 or 2."),
        ("Mine[tied=1]", "The option tied of sender/Mine cannot be '1'; it is false or true."),
        ("Mine[net=flat,NET=deep]", "'Mine[net=flat,NET=deep]' has two values of the option NET; keep one."),
        ("Mine[net=flat,deep]", "'deep' in 'Mine[net=flat,deep]' is not an option; write option=value."),
        ("sender/FC2L[layers=2]", "sender/FC2L has no options; write its name without brackets."),
        ("HierZero:GRU[a=1]", "sender/HierZero:GRU has no options; write its name without brackets."),
    ],
)
def test_unknown_options_and_values_give_the_accepted_ones(name: str, sentence: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.get(name, "sender", "receiver")
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["Mine:GRU", "Mine:GRU[tied=true]", "None[a=1]"])
def test_other_forms_are_unknown_names(name: str) -> None:
    with pytest.raises(UnknownNameError, match="No sender is called"):
        registry.get(name, "sender")


@pytest.mark.parametrize("name", ["Mine[flat]", "sender/Mine[tied=true", "Mine[tied=true]:GRU"])
def test_brackets_without_options_get_an_example(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"is not a name with options; write \S*Mine\[option=value\]"):
        registry.get(name, "sender")


@pytest.mark.parametrize(
    ("choices", "conditions", "sentence"),
    [
        ({"net": ()}, {}, "The option 'net' of sender/Other needs"),
        ({"net": ("a,b",)}, {}, "needs a name like a Python argument and distinct values"),
        ({"net": ("a", "A")}, {}, "distinct values"),
        ({"my net": ("a",)}, {}, "The option 'my net'"),
        ({"a": (1,), "b": (1,)}, {"a": [{"b": (1,)}]}, "needs an option declared before it"),
        ({"a": (1,), "b": (1,)}, {"b": [{"a": (2,)}]}, r"not a=\(2,\)"),
        ({"a": (1,)}, {"b": [{"a": (1,)}]}, "a condition for 'b', which is not one of its choices"),
    ],
)
def test_declarations_that_no_name_can_hold_are_refused(choices: Any, conditions: Any, sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        check_choices("sender/Other", choices, conditions)
    with pytest.raises(IcyError, match=sentence):
        register_sender("Other", "a:b", choices=choices, conditions=conditions)


def test_a_condition_on_an_option_without_effect_does_not_hold() -> None:
    choices = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
    conditions = {"b": [{"a": (1,)}], "c": [{"b": (0,)}, {"a": (0,), "b": (1,)}]}
    assert effective("x", choices, conditions, {}) == {"a": 0}
    assert effective("x", choices, conditions, {"a": "1", "c": 1}) == {"a": 1, "b": 0, "c": 1}


def test_names_split_into_what_they_were_made_of() -> None:
    chosen = {"cell": "GRU", "layers": 2, "tied": True}
    assert split_name(name_with("Mine", chosen)) == ("Mine", {"cell": "GRU", "layers": "2", "tied": "true"})


def test_results_are_selected_by_names_with_options() -> None:
    import pandas as pd

    long = pd.DataFrame({"model": ["sender/Mine[tied=true]", "sender/Mine"], "grammar": "rot", "seed": 1})
    long["measure"], long["value"] = "accuracy", 1.0
    assert list(select(long, models=["mine[layers=2,tied=true]"])["model"]) == ["sender/Mine[tied=true]"]
    assert list(select(long, where={"model": "sender/Mine[tied=true]"})["model"]) == ["sender/Mine[tied=true]"]
    assert len(select(long, models=["Mine*"])) == 2


def test_options_in_the_name_are_not_options_of_the_factory() -> None:
    with pytest.raises(InvalidSettingError, match=r"is part of the model's name: write sender/Mine\[tied=true\]"):
        create_sender("Mine", "3x4", tied=True)


ALIKE = [
    (1, "1"),
    (1, True),
    (0, False),
    (1, 1.0),
    (True, "true"),
    (True, "True"),
    (None, "None"),
    (1.5, "1.5"),
    (2.0, 2),
]


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_values_that_differ_only_in_their_type_are_refused(values: tuple[Any, Any]) -> None:
    for given in (values, values[::-1], ("GRU", *values)):
        with pytest.raises(InvalidSettingError, match=r"k has the values .* differ only in their type"):
            distinct("k", given)
    assert typed_text(values[0]) != typed_text(values[1])


@pytest.mark.parametrize(
    "values", [(1, 2, 1), ("a", "A", "a"), (1, "1-3"), (True, False), (0.5, 1, "x", None)], ids=str
)
def test_other_values_are_kept_once(values: tuple[Any, ...]) -> None:
    assert distinct("k", values) == list(dict.fromkeys(values))
