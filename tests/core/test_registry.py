"""The registry: finding names, rejecting invalid entries, and packages with entry points."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icy.core.registry as registry_module
from icy.core.errors import DuplicateNameError, IcyError, PluginError, UnknownNameError
from icy.core.register import (
    list_grammars,
    list_models,
    register_cell,
    register_grammar,
    register_receiver,
    register_sender,
)
from icy.core.registry import Entry, Registry, registry
from icy.models import create_receiver, create_sender

pytestmark = pytest.mark.usefixtures("forgetting")
CELLS = ["dgrecv", "dgsend", "GRU", "LSTM", "minGRU", "RNN", "SRU"]


def entry(kind: str, name: str, origin: str = "mine", **more: Any) -> Entry:
    return Entry(kind, name, more.pop("factory", dict), "", "", origin=origin, **more)


def fresh() -> Registry:
    """A registry without the built-in entries."""
    empty = Registry()
    empty._loaded = True
    return empty


# -- looking up --------------------------------------------------------------------------------------------------------


def test_lists_are_qualified_and_match_patterns_in_any_case() -> None:
    assert list_models("sender/FC*") == ["sender/FC1L", "sender/FC2L"]
    assert list_models("fc2l*") == ["sender/FC2L", "receiver/FC2L", "receiver/FC2Lv2"]
    assert list_models("HierZero:*") == [f"sender/HierZero:{cell}" for cell in CELLS]
    assert list_models("*:gru") == [name for name in list_models() if name.endswith(":GRU")]
    assert list_grammars("shuf*") == ["shuf", "shufdet"]
    assert list_grammars("?o[tl]") == ["hol", "rot"]
    assert list_grammars() == sorted(list_grammars())


def test_several_patterns_are_a_union_in_order() -> None:
    assert list_models(["receiver/FC*", "sender/FC1L", "receiver/FC2L"]) == [
        "receiver/FC",
        "receiver/FC1L",
        "receiver/FC2L",
        "receiver/FC2Lv2",
        "sender/FC1L",
    ]
    assert list_models("all") == list_models()
    assert list_models([]) == []


def test_ambiguous_names_give_qualified_names() -> None:
    with pytest.raises(UnknownNameError, match=r"'FC2L' exists on both sides; write sender/FC2L or receiver/FC2L\."):
        registry.get("FC2L")
    assert registry.get("sender/FC2L").kind == "sender"
    assert registry.get("receiver/FC2L", "sender", "receiver").kind == "receiver"
    assert registry.get("FC2L", "receiver").qualified == "receiver/FC2L"


def test_near_misses_are_suggested() -> None:
    with pytest.raises(UnknownNameError) as caught:
        registry.get("HierZreo:GRU", "sender", "receiver")
    sentence = str(caught.value)
    assert "No sender or receiver is called 'HierZreo:GRU'; did you mean HierZero:GRU" in sentence
    assert "`icy list models` shows all." in sentence
    with pytest.raises(UnknownNameError, match=r"did you mean shuf .*`icy list grammars` shows all"):
        registry.get("schuf", "grammar")
    with pytest.raises(UnknownNameError, match="known:"):
        registry.get("zzzzzz", "grammar")
    with pytest.raises(UnknownNameError, match=r"No grammar is called 'x\*'"):
        registry.match("x*", "grammar")


@pytest.mark.parametrize("name", ["HierZero", "HierZero:", "HierZero:none", "FC1L:GRU", "GRU:HierZero", "", "sender/"])
def test_families_need_a_cell_and_other_models_take_no_cell(name: str) -> None:
    with pytest.raises(UnknownNameError):
        registry.get(name, "sender", "receiver")


def test_aliases() -> None:
    assert registry.get("comp", "grammar").name == "concat"
    assert registry.get("RNN:GRU", "receiver").name == "RNN1L:GRU"
    assert registry.get("receiver/RNN:GRU").qualified == "receiver/RNN1L:GRU"
    assert "RNN:GRU" in registry.get("RNN1L:GRU").aliases
    assert "comp" not in list_grammars()


def test_names_of_the_papers_ignore_case() -> None:
    for name, kind, found in (
        ("LSTM-Z", "sender", "RNNZero:LSTM"),
        ("HUSendA:lstm", "sender", "HierAutoReg:LSTM"),
        ("hurecv:GRU", "receiver", "Hier:GRU"),
        ("TRE7", "metric", "tre"),
        ("rho", "metric", "topsim"),
        ("fc2l", "sender", "FC2L"),
        ("COMP", "grammar", "concat"),
        ("resent", "metric", "residual_entropy"),
    ):
        assert registry.get(name, kind).name == found
    assert [e.name for e in registry.match("HUSend?:gru", "sender")] == ["HierAutoReg:GRU", "HierZero:GRU"]
    with pytest.raises(UnknownNameError, match="did you mean LSTM-Z"):
        registry.get("LSTM-Y", "sender")


def test_a_name_in_another_case_must_be_unique(forgetting: None) -> None:
    register_grammar("Perm", "icy.grammars.perm:perm")
    assert (registry.get("Perm", "grammar").name, registry.get("perm", "grammar").name) == ("Perm", "perm")
    with pytest.raises(UnknownNameError):
        registry.get("PERM", "grammar")


def test_cells_appear_in_all_families() -> None:
    families = {name.partition(":")[0] for name in list_models("*:GRU")}
    assert families == {
        *("sender/RNNZero", "sender/RNNZero2L", "sender/RNNAutoReg", "sender/RNNAutoReg2L"),
        *("sender/RNNSampling", "sender/RNNSampling2L", "sender/HierSampling"),
        *("sender/HierZero", "sender/HierAutoReg", "receiver/RNN1L", "receiver/RNN2L", "receiver/Hier"),
    }
    for cell in CELLS:
        assert len(list_models(f"*:{cell}")) == len(families)


def test_a_plugged_in_cell_works_in_all_families() -> None:
    from icy.models.cells import GRUCell

    @register_cell("mine", source="this test", version=3)
    class Mine(GRUCell):
        """A cell of a plug-in."""

    assert len(list_models("*:mine")) == len(list_models("*:GRU"))
    found = registry.get("HierZero:mine")
    assert found.description == "HU-RNN, two levels joined by a stop gate, zero input, with the mine cell."
    assert re.fullmatch(r"1\.3-[0-9a-f]{8}", found.full_version)  # with the digest of its code
    assert isinstance(create_sender("HierZero:mine", "2x3", 4, 4, 8).upper, Mine)
    assert create_receiver("RNN2L:mine", "2x3", 4, 4, 8) is not None


# -- registering -------------------------------------------------------------------------------------------------------


def test_another_module_cannot_use_a_registered_name() -> None:
    ours = fresh()
    ours.add(entry("sender", "net", "theirs", aliases=("web",)))
    for taken in (entry("sender", "net"), entry("sender", "web"), entry("sender", "new", aliases=("net",))):
        with pytest.raises(DuplicateNameError, match="is already registered by theirs; mine must choose another name"):
            ours.add(taken)
    ours.add(entry("receiver", "net"))
    assert [e.qualified for e in ours.entries()] == ["sender/net", "receiver/net"]


def test_the_same_module_can_register_again() -> None:
    ours = fresh()
    ours.add(entry("sender", "net", factory=dict))
    ours.add(entry("sender", "net", factory=list))
    assert [e.factory for e in ours.entries()] == [list]


@pytest.mark.parametrize("name", ["a:b", "a/b", "a+b"])
def test_names_with_special_characters_are_rejected(name: str) -> None:
    for refused in (entry("grammar", name), entry("grammar", "fine", aliases=(name,))):
        with pytest.raises(IcyError, match="have a meaning in names"):
            fresh().add(refused)


def test_decorators_register_and_return_their_object() -> None:
    decorators: list[tuple[str, Callable[..., Any]]] = [
        ("sender", register_sender),
        ("receiver", register_receiver),
        ("cell", register_cell),
        ("grammar", register_grammar),
    ]
    for kind, decorator in decorators:

        def factory(*_: Any, **options: Any) -> Any:
            """What it is.

            And more.
            """
            return options

        assert decorator("testonly", defaults={"size": 3}, published={"size": 4}, version=2)(factory) is factory
        found = registry.get("testonly", kind)
        assert (found.description, found.origin, found.version) == ("What it is.", __name__, 2)
        assert found.create() == {"size": 3}
        assert found.create(size=5) == {"size": 5}
        assert dict(found.published) == {"size": 4}


def test_holding_ends_with_its_block() -> None:
    ours = fresh()
    first, second = entry("grammar", "g", factory=dict), entry("grammar", "g", factory=list)
    with ours.holding(first), ours.holding(second):
        assert ours.get("g").factory is list
    assert ours.entries() == []
    ours.add(first)
    with pytest.raises(ZeroDivisionError), ours.holding(second):
        raise ZeroDivisionError
    assert ours.get("g") is first


def test_a_string_target_is_imported_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("icy_test_lazy")
    module.make = lambda **options: ("made", options)  # type: ignore[attr-defined]
    register_sender("lazy", "icy_test_lazy:make", description="Not there yet.", defaults={"a": 1})
    found = registry.get("lazy", "sender")
    assert found.origin == "icy_test_lazy"
    with pytest.raises(PluginError, match="sender/lazy points to 'icy_test_lazy:make', which cannot be loaded"):
        found.load()
    monkeypatch.setitem(sys.modules, "icy_test_lazy", module)
    assert found.create(b=2) == ("made", {"a": 1, "b": 2})
    register_sender("lazy_too", "icy_test_lazy:absent")
    with pytest.raises(PluginError, match="absent"):
        registry.get("lazy_too").load()


# -- entry points ------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Registry]:
    """A new registry, in an environment where a package with one entry point is installed."""

    def make(value: str) -> Registry:
        point = importlib.metadata.EntryPoint("stranger", value, registry_module.ENTRY_POINT_GROUP)

        def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
            return [point] if group == registry_module.ENTRY_POINT_GROUP else []

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        monkeypatch.setattr(registry_module, "BUILT_IN", ())
        new = Registry()
        monkeypatch.setattr("icy.core.register.registry", new)
        return new

    return make


def test_an_installed_package_registers_by_its_entry_point(
    installed: Callable[[str], Registry], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "icy_test_package.py").write_text(
        "from icy.core.register import register_sender\n\n"
        "@register_sender('Stranger')\ndef stranger(): 'A stranger.'\n",
    )
    monkeypatch.syspath_prepend(tmp_path)
    new = installed("icy_test_package")
    assert [e.qualified for e in new.entries()] == ["sender/Stranger"]
    assert new.get("Stranger").description == "A stranger."
    assert new.get("Stranger").origin == "icy_test_package"


@pytest.mark.parametrize(
    ("module", "what"), [("icy_test_broken", "ZeroDivision"), ("icy_test_absent", "ModuleNotFound")]
)
def test_a_broken_installed_package_is_named_and_left_out(
    installed: Callable[[str], Registry],
    module: str,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It must not prevent the use of other entries."""
    (tmp_path / "icy_test_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed(module).entries() == []
    assert f"'stranger' ({module}) cannot be loaded and is left out: {what}Error" in caplog.text
