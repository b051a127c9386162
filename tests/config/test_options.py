"""Types of options are those of the specs, and their names those of icy's tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

import icy
from icy.config import options
from icy.config.protocols import PROTOCOLS
from icy.config.settings import ENGINES, PRESETS
from icy.config.specs import EndToEndSpec, ProbeSpec, ReproduceSpec, RunSpec, SweepSpec
from icy.core.registry import SIDES
from icy.core.representations import REPRESENTATIONS
from icy.experiments.plan import RUNNERS
from icy.experiments.sweep import ORDERS
from icy.experiments.trackers.make import TRACKERS
from icy.languages.splits import SPLITS
from icy.records.store import RERUN

FUNCTIONS: list[tuple[Callable[..., Any], type, type[RunSpec]]] = [
    (icy.probe, options.ProbeOptions, ProbeSpec),
    (icy.end_to_end, options.EndToEndOptions, EndToEndSpec),
    (icy.reproduce, options.ReproduceOptions, ReproduceSpec),
    (icy.sweep, options.SweepOptions, SweepSpec),
]


def types(spec: type[RunSpec]) -> dict[str, Any]:
    """The type of every field of a spec."""
    hints = get_type_hints(spec)
    return {field.name: hints[field.name] for field in fields(spec)}


@pytest.mark.parametrize(("function", "typed", "spec"), FUNCTIONS)
def test_options_have_the_types_of_the_spec(function: Callable[..., Any], typed: type, spec: type[RunSpec]) -> None:
    wanted = types(spec)
    if spec is SweepSpec:  # which may sweep over pairs
        wanted = {**types(EndToEndSpec), **wanted}
    own = inspect.signature(function, follow_wrapped=False)
    code = inspect.unwrap(function).__code__
    by_name = code.co_varnames[: code.co_argcount]
    assert get_type_hints(typed) == {name: type_ for name, type_ in wanted.items() if name not in by_name}
    assert get_type_hints(function)["options"].__args__ == (typed,)
    assert set(own.parameters) >= set(types(spec))


LITERALS: list[tuple[Any, Iterable[str]]] = [
    (options.ProtocolName, PROTOCOLS),
    (options.RepresentationName, REPRESENTATIONS),
    (options.PresetName, PRESETS),
    (options.SplitName, SPLITS),
    (options.SideName, SIDES),
    (options.RunnerName, RUNNERS),
    (options.Rerun, RERUN),
    (options.TrackerName, TRACKERS),
    (options.OrderName, ORDERS),
    (options.Engine, ENGINES),
]


def test_literals_have_the_names_of_their_tables(subtests: pytest.Subtests) -> None:
    for literal, table in LITERALS:
        with subtests.test(str(literal)):
            assert sorted(get_args(literal)) == sorted(table)
