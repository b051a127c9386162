"""Run the contract of plug-ins of any kind, registered or not: one by one, or as pytest tests."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError, UnknownNameError, require_known, unknown
from icy.core.registry import CORE, PERCEPTION, PLAYERS, SIDES, STUDY_PLAYER, TEXT_MODEL, WORLD, Entry, registry
from icy.models.base import Receiver, Sender

from .cases import Case
from .cells import CellCase
from .cores import CoreCase
from .games import PerceptionCase, WorldCase
from .grammars import GrammarCase
from .metrics import MetricCase
from .models import ModelCase
from .players import PlayerCase
from .runner import BoundCheck, CheckResult, bind, run_all
from .study_players import StudyPlayerCase
from .text_models import TextModelCase

if TYPE_CHECKING:
    import pytest

Report = Callable[[CheckResult], None]
FIRST_CHOICE = (*SIDES, "grammar")  # kinds that a name shared by several kinds prefers
NO_SETTINGS = ("entry", "registered", "ends")  # fields of cases that `check` does not take

CONTRACTS: dict[str, type[Case]] = {
    **dict.fromkeys(SIDES, ModelCase),
    "cell": CellCase,
    "grammar": GrammarCase,
    "metric": MetricCase,
    **dict.fromkeys(PLAYERS, PlayerCase),
    TEXT_MODEL: TextModelCase,
    CORE: CoreCase,
    WORLD: WorldCase,
    PERCEPTION: PerceptionCase,
    STUDY_PLAYER: StudyPlayerCase,
}
"""The class of cases of each kind; `icy.testing.checks_of` returns its checks."""


def check(
    plugin: str | Entry | Callable[..., object],
    kind: str | None = None,
    *,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Report | None = None,
    begin: Callable[[str, int, int], None] | None = None,
    seconds: float | None = None,
    **setting: Any,
) -> list[CheckResult]:
    """Run the whole contract of one plug-in.

    Args:
        plugin: a registered name such as "sender/FC2L", "rot" or "metric/posdis"; or a class or function, registered or
            not, as for `icy.register_sender` and similar functions.
        kind: "sender", "receiver", "cell", "grammar", "metric", "speaker", "listener", "text-model", "core", "world",
            "perception" or "study-player"; needed for an unregistered class or function, and for a name that
            several kinds have.
        expected_failures: for each check that the plug-in cannot pass, the reason, by the name of the check.
        raise_on_failure: whether to raise an error after all checks, if one failed.
        report: callback for each result, as it comes.
        begin: callback before each check with its name, its number from 1, and the number of checks.
        seconds: time after which the remaining checks are left out; None for no limit.
        **setting: the setting of the checks. All kinds except players and text models take `seed`, a whole number.
            Models: `space`, "3x4"; `vocab_size`, V; `word_length`, w (messages have A * w tokens); `hidden_size`, E;
            `representation`, by default the first that the model works with; `options`, further arguments of the
            factory. Grammars: `space`, `vocab_size`, `word_length`. Cells: `size`, of the input and the state.
            Cores: `width`, of an input. Perceptions: `size`, of the vectors.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists the failures.
        UnknownNameError: unknown plug-in, kind, setting, or check in `expected_failures`.
        InvalidSettingError: a class or function without a kind.

    Example:
        >>> from icy.testing import check
        >>> [result.passed for result in check("sender/FC2L") if result.name == "stacked_equals_separate"]
        [True]
        >>> [result.message for result in check("nearest", "listener") if result.name == "plays_every_game"]
        ['refuses no feedback']
    """
    entry, registered = _entry_of(plugin, kind, setting.get("options"))
    contract = CONTRACTS[entry.kind]
    known = [name for name in inspect.signature(contract).parameters if name not in NO_SETTINGS]
    for name in setting:
        require_known(f"setting of checks of a {entry.kind}", name, known)
    case = contract(entry, registered=registered, **setting)
    held = entry.kind == "grammar" and not registered  # a language is made from the name of its grammar
    with registry.holding(entry) if held else contextlib.nullcontext():
        bound = bind(case, expected_failures)
        return run_all(bound, entry.qualified, raise_on_failure, report, begin, seconds)


def matching(names: str | Iterable[str]) -> list[Entry]:
    """Return the registered plug-ins of every kind that match names and shell patterns.

    A name that several kinds share means a model or grammar if there is one. Otherwise give the kind too, as in
    "metric/posdis".

    Raises:
        UnknownNameError: no plug-in has this name, or several have it.
    """
    found: dict[str, Entry] = {}
    for name in [names] if isinstance(names, str) else names:
        try:
            entries = registry.match(name, *CONTRACTS)
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


def bound_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> list[BoundCheck]:
    """Return every check of some registered plug-ins, ready to run.

    Args:
        names: names or shell patterns, as in `"sender/Mine*"`, `"rot"` or `"metric/*"`.
        expected_failures: for each check that none of these plug-ins can pass, the reason, by the name of the check.
        representation: the representation of models; models that do not support it are left out. By default each is
            checked in the first representation that it supports.

    Returns:
        An entry per plug-in and check. Call it without arguments; it raises if the plug-in fails or if the check does
        not apply.

    Raises:
        UnknownNameError: no plug-in has this name, or several have it.
    """
    bound: list[BoundCheck] = []
    for entry in matching(names):
        setting: dict[str, Any] = {}
        if entry.kind in SIDES and representation is not None:
            if not entry.works_with(representation):
                continue
            setting = {"representation": representation}
        bound += bind(CONTRACTS[entry.kind](entry, **setting), expected_failures)
    return bound


def parametrize_with_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> pytest.MarkDecorator:
    """Make every check of some registered plug-ins a separate test: a decorator for pytest.

    The test function takes an argument `check` and calls it. `-k pickles` then selects one check and `-k MyModel` one
    model. A check that does not apply is skipped, and an expected failure is marked so.

    Args:
        names: names or shell patterns, as in `"sender/Mine*"`, `"rot"` or `"metric/*"`.
        expected_failures: for each check that none of these plug-ins can pass, the reason, by the name of the check.
        representation: see `bound_checks`.

    Returns:
        The decorator, a mark of pytest.

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


def _entry_of(
    plugin: str | Entry | Callable[..., object], kind: str | None, options: Mapping[str, object] | None
) -> tuple[Entry, bool]:
    """Return an entry, and whether it is registered; an unregistered factory gets a new entry."""
    if kind is not None and kind not in CONTRACTS:
        raise unknown("kind of plug-ins", kind, [*CONTRACTS])
    kinds = (*CONTRACTS,) if kind is None else (kind,)
    if isinstance(plugin, Entry):
        return plugin, True
    if isinstance(plugin, str):
        found = matching(plugin) if kind is None else [registry.get(plugin, kind)]
        if len(found) > 1:
            raise InvalidSettingError(f"'{plugin}' matches {len(found)} plug-ins; check one at a time.")
        return found[0], True
    known = registry.entries_of_factory(plugin, *kinds)
    if len(known) == 1:
        return known[0], True
    if known and "cell" not in (options or {}):
        raise InvalidSettingError(
            f"{known[0].qualified.partition(':')[0]} takes a cell; add it, as in '{known[0].qualified}'."
        )
    name, origin = getattr(plugin, "__name__", type(plugin).__name__), getattr(plugin, "__module__", "?")
    if kind is None and isinstance(plugin, type):
        bases = zip(SIDES, (Sender, Receiver), strict=True)
        kind = next((side for side, base in bases if issubclass(plugin, base)), None)
    if kind is None:
        raise InvalidSettingError(f"{name} has no kind; give one, as in check({name}, 'sender').")
    return Entry(kind, name, plugin, description="", source="", defaults=dict(options or {}), origin=origin), False
