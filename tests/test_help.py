"""`help()` of what icy exports: every argument is described."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import icy
from icy.analysis.literature.catalogue import published_sources
from icy.core.entry import Entry, EntryFields
from icy.core.fields import described, spell_out_arguments

MODULES = [icy, icy.metrics, icy.games, icy.s2b, icy.testing]
PACKAGES = [*MODULES, icy.analysis, icy.grammars, icy.models]  # with a page of the documentation


def undescribed(function: Callable[..., Any]) -> list[str]:
    """Return the arguments that a docstring does not describe; `**options` may be described one by one."""
    text = inspect.getdoc(function) or ""
    taken = inspect.signature(function).parameters.values()
    return [
        p.name
        for p in taken
        if p.name not in ("self", "cls", "fields")
        and not re.search(rf"^ +(\w+, )*\*{{0,2}}{p.name}(, \w+)*: +\S", text, re.MULTILINE)
    ]


def functions(module: types.ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in module.__all__:
        found = getattr(module, name)
        if isinstance(found, types.FunctionType):
            yield name, found
        elif inspect.isclass(found) and not issubclass(found, BaseException) and module is icy:
            yield name, found
            for method, value in inspect.getmembers(found, callable):
                if not method.startswith("_") and str(getattr(value, "__module__", "")).startswith("icy."):
                    yield f"{name}.{method}", value


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_argument_is_described(module: types.ModuleType) -> None:
    assert {name: left for name, function in functions(module) if (left := undescribed(function))} == {}


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_every_function_has_a_section_on_the_values_that_it_returns(module: types.ModuleType) -> None:
    returning = [name for name, one in functions(module) if "." not in name and isinstance(one, types.FunctionType)
                 and inspect.signature(one).return_annotation not in ("None", None)]  # fmt: skip
    sections = re.compile(r"^(Returns|Yields):\n +\S", re.MULTILINE)
    assert [name for name in returning if not sections.search(inspect.getdoc(getattr(module, name)) or "")] == []
    assert returning


def test_help_of_icy_spells_out_every_paper() -> None:
    for paper in published_sources().values():
        found = re.search(rf"^- [^:]*\b{paper['name']}\b[^:]*:.*\"", inspect.getdoc(icy) or "", re.MULTILINE)
        assert found is not None, paper["name"]


def test_options_are_described_one_by_one_in_the_place_of_options() -> None:
    for function in (icy.probe, icy.sweep, icy.end_to_end, icy.reproduce):
        text = inspect.getdoc(function) or ""
        assert "**options:" not in text
        assert "\n    workers: number of processes." in text
        assert max(map(len, text.splitlines())) <= 120
    assert "\n    **options: arguments of the kind" in (inspect.getdoc(icy.train) or "")


def test_register_functions_describe_the_card() -> None:
    for name in icy.__all__:
        if name.startswith("register_"):
            text = inspect.getdoc(getattr(icy, name)) or ""
            said = {field: described(Entry)[field] for field in EntryFields.__annotations__}
            assert all(f"\n    {field}: {what}"[:40] in text for field, what in said.items()), name


def test_a_function_without_docstring_is_left_as_it_is() -> None:
    def bare(**options: Any) -> None: ...

    spell_out_arguments(bare, {"a": "x"})
    assert bare.__doc__ is None
