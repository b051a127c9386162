"""Run the contract of plug-ins of any kind, registered or not: one by one, or as pytest tests."""

from __future__ import annotations

import contextlib
import inspect
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from icy.core.errors import IcyError, InvalidSettingError, UnknownNameError, require_known, unknown
from icy.core.registry import CORE, PERCEPTION, PLAYERS, SIDES, STUDY_PLAYER, TEXT_MODEL, WORLD, Entry, registry
from icy.core.surroundings import standard_state
from icy.core.text import counted
from icy.models.base import Receiver, Sender
from icy.training.runners.base import one_thread

from .cases import Case, Check, CheckFailure, NotApplicable, Unsupported, checks_of, first_line, require
from .cells import CellCase
from .cores import CoreCase
from .games import PerceptionCase, WorldCase
from .grammars import GrammarCase
from .metrics import MetricCase
from .models import ModelCase
from .players import PlayerCase, StudyPlayerCase, TextModelCase

if TYPE_CHECKING:
    import pytest


# -- run checks and report their results -------------------------------------------------------------------------------


ICY, TORCH = Path(__file__).parents[1], Path(torch.__file__).parent  # folders of code that is not the plug-in's


@dataclass(frozen=True)
class CheckResult:
    """The result of one check.

    Attributes:
        name: name of the check, such as "output_shape".
        passed: whether the check held or was excused.
        message: the failure, the reason for an excuse, an unsupported optional feature, a remark such as
            how a model is stacked, or "".
        seconds: duration of the check.
        excused: whether the check does not apply, tests an unsupported optional feature, or was expected to fail.
    """

    name: str
    passed: bool
    message: str
    seconds: float
    excused: bool = False


class ContractError(IcyError, AssertionError):
    """Some checks failed; the message lists them.

    Attributes:
        results: the results of all checks.
    """

    def __init__(self, sentence: str, results: Sequence[CheckResult] = ()) -> None:
        super().__init__(sentence)
        self.results = list(results)


@dataclass(frozen=True)
class BoundCheck:
    """One check of one plug-in; call it to run it.

    Attributes:
        name: name of the check.
        label: name of the plug-in with its kind, as in "sender/FC2L".
        function: the check.
        case: the plug-in and its setting, which the check takes.
        expected_failure: reason why the check is expected to fail, if any.
    """

    name: str
    label: str
    function: Check = field(repr=False)
    case: Case = field(repr=False)
    expected_failure: str = ""

    def __call__(self) -> str | None:
        """Run the check. Raises a failure, or NotApplicable, which pytest treats as a skip."""
        return self.function(self.case)

    def result(self) -> CheckResult:
        """Run the check and return its result."""
        started, passed, excused = time.perf_counter(), True, False
        try:
            message = self() or ""
        except Unsupported as lack:
            message, excused = f"not supported: {lack}", True
        except NotApplicable as reason:
            message, excused = f"does not apply: {reason}", True
        except Exception as error:  # a plug-in may raise anything
            message, passed = _sentence(error), False
        if self.expected_failure:
            declared = f"expected to fail: {self.expected_failure}"
            message = f"declared as {declared}, but it holds" if passed else f"{declared} ({message})"
            passed, excused = True, not passed
        return CheckResult(self.name, passed, message, time.perf_counter() - started, excused)


def bind(case: Case, expected: Mapping[str, str] | None) -> list[BoundCheck]:
    """Bind every check to a case. If the factory takes wrong arguments, return only a check that reports this.

    Args:
        case: the plug-in under test; its factory may declare `expected_failures`.
        expected: for each check that the plug-in cannot pass, the reason, by the name of the check.

    Raises:
        UnknownNameError: an expected failure that is not a check.
    """
    entry, checks = case.entry, checks_of(type(case))
    declared = {**getattr(entry.load(), "expected_failures", {}), **(expected or {})}
    for name in declared:
        require_known("check", name, checks)
    if why := entry.misfit(getattr(case, "options", None) or ()):
        sentence = f"{why}. No other check can run."
        return [BoundCheck("signature", entry.qualified, lambda case: require(False, sentence), case)]
    return [
        BoundCheck(name, entry.qualified, function, case, declared.get(name, "")) for name, function in checks.items()
    ]


def message_or_reference(messages: Mapping[str, str], name: str) -> str:
    """Return the message of a check; if an earlier check has the same message, the name of that check."""
    first = next(earlier for earlier, message in messages.items() if message == messages[name])
    return messages[name] if first == name else f"as {first}"


def _sentence(error: Exception) -> str:
    """Return the error, and the line of the plug-in that raised it."""
    known = isinstance(error, CheckFailure | IcyError)
    first = str(error) if known else f"{type(error).__name__}: {first_line(error)}"
    sentence = ". ".join(part.rstrip(".") for part in (first, *getattr(error, "__notes__", ())))
    frames = [] if known else traceback.extract_tb(error.__traceback__)
    at = next((f for f in reversed(frames) if not Path(f.filename).is_relative_to(TORCH)), None)
    if at is None or Path(at.filename).is_relative_to(ICY):
        return f"{sentence}."
    return f"{sentence} (line {at.lineno} of {Path(at.filename).name})."


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
    results: list[CheckResult] = []
    # On a busy machine, threads that wait for each other take ten times longer than one.
    with registry.holding(entry) if held else contextlib.nullcontext(), standard_state(), one_thread():
        for one in bind(case, expected_failures):
            results.append(one.result())
            if report is not None:
                report(results[-1])
    failed = {result.name: result.message for result in results if not result.passed}
    if failed and raise_on_failure:
        listing = "\n".join(f"  {name}: {message_or_reference(failed, name)}" for name in failed)
        said = f"{entry.qualified} fails {len(failed)} of {counted(len(results), 'check')}:\n{listing}"
        raise ContractError(said, results)
    return results


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
