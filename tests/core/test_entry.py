"""Arguments of factories: valid signatures, and messages for invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import icy
from icy.core.entry import KINDS, Entry, misfit
from icy.core.errors import InvalidSettingError, PluginError, UnknownNameError
from icy.core.fields import changed_fields, checked
from icy.core.register import LISTED
from icy.core.registry import registry
from icy.models.creation import create


class Model:
    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, **options: Any) -> None: ...


class Bare:
    def __init__(self, space: Any) -> None: ...


class Corruption:
    def apply(self, messages: Any, table: Any) -> None: ...


class Told(Corruption):
    def __init__(self, seed: int) -> None: ...


def family(space: Any, message_length: int, vocab_size: int, hidden_size: int, cell: Any) -> None: ...


def measure(meanings: Any, messages: Any = None, base: int = 2) -> None: ...


FIT: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("sender", Model, {}),
    ("receiver", family, {"takes_cell": True}),
    ("sender", lambda space, length, vocab, hidden, gain: None, {"given": {"gain"}}),
    ("cell", lambda inputs, hidden, fed=True: None, {}),
    ("grammar", Corruption, {}),
    ("grammar", lambda space, vocab_size, word_length, seed: None, {}),
    ("metric", measure, {}),
    ("speaker", lambda: None, {}),
    ("job", Bare, {}),
]
WRONG: list[tuple[str, Callable[..., Any], str]] = [
    ("sender", Bare, "Bare takes (space)"),
    ("sender", family, "family takes (space, message_length, vocab_size, hidden_size, cell)"),
    (
        "receiver",
        lambda space, length, vocab, hidden, more: None,
        "<lambda> takes (space, length, vocab, hidden, more)",
    ),
    ("cell", lambda size: None, "<lambda> takes (size)"),
    ("grammar", Told, "Told takes (seed)"),
    ("grammar", Bare, "Bare takes (space)"),
    ("metric", Bare, "Bare takes (space)"),
    ("listener", Bare, "Bare takes (space)"),
]


@pytest.mark.parametrize(("kind", "factory", "how"), FIT)
def test_factories_that_can_be_called(kind: str, factory: Callable[..., Any], how: dict[str, Any]) -> None:
    assert misfit(kind, factory, **how) == ""


@pytest.mark.parametrize(("kind", "factory", "taken"), WRONG)
def test_factories_that_cannot(kind: str, factory: Callable[..., Any], taken: str) -> None:
    wanted = "no arguments" if factory is Told else KINDS[kind].takes
    assert misfit(kind, factory) == f"{taken}, and a {kind} must take {wanted}"


def test_everything_registered_can_be_called() -> None:
    assert [entry.qualified for entry in registry.entries() if entry.misfit()] == []


def test_a_wrong_init_is_described_when_a_model_is_made() -> None:
    sentence = r"^sender/Bare cannot be made: Bare takes \(space\), and a sender must take \(space, message_length, voc"
    with pytest.raises(PluginError, match=sentence):
        Entry("sender", "Bare", Bare, "", "").create(None, 6, 4, 16)


def test_a_wrong_init_of_a_cell_is_described_when_a_model_is_made() -> None:
    cell = Entry("cell", "Bare", Bare, "", "")
    entry = registry.get("sender/HierZero:GRU").with_cell(cell)
    with pytest.raises(PluginError, match=r"Bare takes \(space\), and a cell must take \(input_size, hidden_size, fed"):
        create(entry, "2x3", 4, 4, 8)


# -- `icy.list`: names of everything that is registered ----------------------------------------------------------------


def test_every_kind_is_listed() -> None:
    listed = {name for kind in LISTED for name in icy.list(kind)}
    assert listed == {
        e.qualified if e.kind in (*LISTED["models"], *LISTED["players"]) else e.name for e in registry.entries()
    }


@pytest.mark.parametrize(
    ("kind", "pattern", "names"),
    [
        ("sender", "FC*", ["sender/FC1L", "sender/FC2L"]),
        ("Text models", "http", ["http"]),
        ("study_player", ["composer", "fam*"], ["composer", "family"]),
        ("listeners", "posdis", ["listener/posdis"]),
    ],
)
def test_names_match_a_pattern(kind: str, pattern: str | list[str], names: list[str]) -> None:
    assert icy.list(kind, pattern) == names


# -- checks and conversions of values for fields of dataclasses --------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    width: int = 3
    rate: float = 0.5
    name: str = "plain"


def test_values_are_of_the_type_of_their_field() -> None:
    assert checked(Sizes, {"width": 4, "rate": 1}, "size") == {"width": 4, "rate": 1.0}
    with pytest.raises(InvalidSettingError, match=r"width cannot be 'wide': expected `int`, got `str`\."):
        checked(Sizes, {"width": "wide"}, "size")


def test_unknown_and_excluded_names_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match="No size is called 'widht'; did you mean width"):
        checked(Sizes, {"widht": 4}, "size")
    with pytest.raises(UnknownNameError, match="No size is called 'name'"):
        checked(Sizes, {"name": "x"}, "size", without=["name"])


def test_changed_fields() -> None:
    assert changed_fields(Sizes(4), Sizes()) == {"width": 4}
    assert changed_fields(Sizes(), Sizes()) == {}
