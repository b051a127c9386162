"""The contract of every kind: for each check a plug-in that is wrong in the way it looks for, and fails it."""

from __future__ import annotations

from typing import Any

import pytest

from icy import testing
from icy.core.errors import UnknownNameError
from icy.core.registry import Entry, registry
from icy.testing import ContractError
from tests.testing import (
    test_cells,
    test_cores,
    test_games,
    test_metrics,
    test_players,
    test_study_players,
    test_text_models,
)
from tests.testing.mistakes import EVERY, OTHER_LOOPS, Kind

KINDS = [
    module.KIND for module in (test_cells, test_cores, test_metrics, test_players, test_study_players, test_text_models)
]
KINDS += [test_games.WORLD, test_games.PERCEPTION]


def marked(kind: Kind, *values: Any) -> Any:
    """Return a parameter for a test of a kind, with the mark of its suite."""
    marks = [getattr(pytest.mark, kind.mark)] if kind.mark else []
    return pytest.param(kind, *values, id="-".join([kind.name, *values]), marks=marks)


EACH_KIND = pytest.mark.parametrize("kind", [marked(kind) for kind in KINDS])


@pytest.mark.parametrize(("kind", "check"), [marked(kind, check) for kind in KINDS for check in kind.wrong])
def test_a_wrong_plug_in_fails_its_check(kind: Kind, check: str) -> None:
    plugin: Any = kind.wrong[check]
    role = "speaker" if getattr(plugin, "token", None) else kind.name
    entry = Entry(role, plugin.__name__, plugin, "", "", origin=__name__, weighted=check == "weights")
    with registry.holding(entry):
        results = testing.check(entry, raise_on_failure=False)
    failed = {r.name: r.message for r in results if not r.passed and r.name not in OTHER_LOOPS}
    assert failed.get(check)
    assert kind.also.get(check) is EVERY or failed.keys() <= {check, *kind.also.get(check, ())}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_check_has_a_plug_in_that_fails_it(kind: Kind) -> None:
    assert set(kind.wrong) == kind.checks - OTHER_LOOPS  # the rest: test_other_loops


@EACH_KIND
def test_a_strangers_plug_in_passes(kind: Kind) -> None:
    results = {r.name: r for r in testing.check(kind.plain, kind.name)}
    assert set(results) == kind.checks
    assert results["made_by_name"].message.endswith(" is not registered")
    assert {name: results[name].message for name in kind.messages} == kind.messages


@EACH_KIND
def test_registered_plug_ins_are_found(kind: Kind) -> None:
    name = kind.plain.__name__
    entry = Entry(kind.name, name, kind.plain, "", "", origin=__name__, aliases=("my_own",))
    with registry.holding(entry):
        for given in ("my_own", kind.plain):
            assert not {r.name: r for r in testing.check(given, kind.name)}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=rf"No {kind.name} is called '{name}'.*`icy list "):
        testing.check(name, kind.name)


@pytest.mark.parametrize("kind", ["core", "world", "metric"])
def test_failures_are_raised_unless_they_are_expected(kind: str) -> None:
    (found,) = (found for found in KINDS if found.name == kind)
    check = next(check for check in found.wrong if check != "made_by_name" and check not in found.also)
    with pytest.raises(ContractError, match=f"{kind}/.* fails 1 of"):
        testing.check(found.wrong[check], kind)
    assert all(r.passed for r in testing.check(found.wrong[check], kind, expected_failures={check: "on purpose"}))
