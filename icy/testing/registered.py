"""Run the contracts of registered plug-ins, of whatever kinds: one by one, or as tests of pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from icy.core.errors import UnknownNameError
from icy.core.registry import (
    CORE,
    PERCEPTION,
    PLAYERS,
    SIDES,
    STUDY_PLAYER,
    TEXT_MODEL,
    WORLD,
    Entry,
    registry,
)
from icy.languages.meanings import MeaningSpace
from icy.training.probe_job import Task

from .cases import GrammarCase, ModelCase, first_representation
from .cells import CellCase
from .contracts import CHECKS, Report, run_case
from .cores import CoreCase
from .metrics import MetricCase
from .perceptions import PerceptionCase
from .players import PlayerCase
from .runner import BoundCheck, Case, CheckResult, bind
from .study_players import StudyPlayerCase
from .text_models import TextModelCase
from .worlds import WorldCase

FIRST_CHOICE = (*SIDES, "grammar")  # of a name that stands for a model or grammar and for something else too
CASES: dict[str, Callable[[Entry], Case]] = {  # of the kinds whose usual case needs nothing but the plug-in
    "cell": CellCase,
    "metric": MetricCase,
    **dict.fromkeys(PLAYERS, PlayerCase),
    TEXT_MODEL: TextModelCase,
    CORE: CoreCase,
    WORLD: WorldCase,
    PERCEPTION: PerceptionCase,
    STUDY_PLAYER: StudyPlayerCase,
}


def matching(names: str | Iterable[str]) -> list[Entry]:
    """Return the registered plug-ins that names and shell patterns stand for, of every kind.

    A name that several kinds have is that of a model or grammar if there is one; otherwise the kind must be said, as in
    "metric/posdis".

    Raises:
        UnknownNameError: nothing is called that, or several plug-ins are.
    """
    found: dict[str, Entry] = {}
    for name in [names] if isinstance(names, str) else names:
        try:
            entries = registry.match(name, *CHECKS)
        except UnknownNameError:
            try:
                entries = registry.match(name, *FIRST_CHOICE)
            except UnknownNameError:
                entries = []
            if not entries:
                raise
        for entry in entries:
            found.setdefault(entry.qualified, entry)
    return list(found.values())


def check_entry(
    entry: Entry,
    representation: str | None = None,
    report: Report | None = None,
    begin: Callable[[str, int, int], None] | None = None,
    seconds: float | None = None,
) -> list[CheckResult]:
    """Run the whole contract of a registered plug-in, whatever its kind, and return the results.

    Args:
        entry: the plug-in.
        representation: the representation of a model; by default the first that it works with.
        report: called with each result as it comes.
        begin: called before each check with its name, its number from 1, and the number of checks.
        seconds: time after which the remaining checks are left out; None for no limit.
    """
    return run_case(entry, _usual_case(entry, representation), None, False, report, begin, seconds)


def bound_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> list[BoundCheck]:
    """Return every check of some registered plug-ins, ready to run.

    Args:
        names: names or shell patterns, as in `"sender/Mine*"`, `"rot"` or `"metric/*"`.
        expected_failures: names of checks that none of them can pass, each with the reason.
        representation: the representation of models; models that do not work with it are left out. By default each is
            checked in the first that it works with.

    Raises:
        UnknownNameError: nothing is called that, or several plug-ins are.
    """
    bound: list[BoundCheck] = []
    for entry in matching(names):
        if entry.kind in SIDES and representation is not None and not entry.works_with(representation):
            continue
        bound += bind(entry, _usual_case(entry, representation), CHECKS[entry.kind], expected_failures)
    return bound


def _usual_case(entry: Entry, representation: str | None) -> Case:
    """Return the case of a registered plug-in in the setting that the functions of `contracts` have by default."""
    space = MeaningSpace(3, 4)
    if entry.kind == "grammar":
        return GrammarCase(entry.name, space)
    if entry.kind in SIDES:
        used = representation or first_representation(entry)
        return ModelCase(Task(entry, space, word_length=2, hidden_size=16, representation=used))
    return CASES[entry.kind](entry)


def parametrize_with_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> Any:
    """Make every check of some registered plug-ins a test of its own: a decorator for pytest.

    The test function takes an argument `check` and calls it. `-k pickles` then selects one check and `-k MyModel` one
    model; a check that does not apply is skipped, and one that is expected to fail is marked so.

    Args:
        names: names or shell patterns, as in `"sender/Mine*"`, `"rot"` or `"metric/*"`.
        expected_failures: names of checks that none of them can pass, each with the reason.
        representation: see `bound_checks`.

    Example:
        >>> from icy.testing import parametrize_with_checks
        >>> @parametrize_with_checks(["sender/FC*", "rot"])
        ... def test_contract(check):
        ...     check()
    """
    import pytest

    parameters = [
        pytest.param(
            check,
            id=f"{check.label}-{check.name}",
            marks=[pytest.mark.xfail(reason=check.expected_failure, strict=True)] if check.expected_failure else [],
        )
        for check in bound_checks(names, expected_failures, representation)
    ]
    return pytest.mark.parametrize("check", parameters)
