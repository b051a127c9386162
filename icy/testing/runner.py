"""Running the checks, on one model or grammar or over the registry."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from icy.core.errors import IcyError, InvalidSettingError, unknown
from icy.core.registry import SIDES, Entry, registry
from icy.languages.meanings import MeaningSpace
from icy.models.base import Receiver, Sender
from icy.training.job import Task

from .cases import Check, CheckFailure, GrammarCase, ModelCase, NotApplicable, first_line
from .grammars import GRAMMAR_CHECKS
from .models import MODEL_CHECKS

ICY, TORCH = Path(__file__).parents[1], Path(torch.__file__).parent  # whose code is not the one to mend


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: of the check, such as "output_shape".
        passed: the check held, or was excused.
        message: what went wrong; or why it was excused; or a remark, such as how a model is stacked; or nothing.
        seconds: how long it took.
        excused: it does not apply to this model, or its failure was declared.
    """

    name: str
    passed: bool
    message: str
    seconds: float
    excused: bool = False


class ContractError(IcyError, AssertionError):
    """Checks that a model or grammar did not pass, by name; `results` holds all of them.

    Attributes:
        results: what every check found.
    """

    def __init__(self, sentence: str, results: Sequence[CheckResult] = ()) -> None:
        super().__init__(sentence)
        self.results = list(results)


@dataclass(frozen=True)
class BoundCheck:
    """One check of one model or grammar; call it to run it.

    Attributes:
        name: of the check.
        label: what is checked.
        function: the check.
        case: what it is given.
        expected_failure: why it is expected to fail, if it is.
    """

    name: str
    label: str
    function: Check = field(repr=False)
    case: ModelCase | GrammarCase = field(repr=False)
    expected_failure: str = ""

    def __call__(self) -> str | None:
        """Run the check; it raises what is wrong, or NotApplicable, which is a skip for pytest."""
        return self.function(self.case)

    def result(self) -> CheckResult:
        """Run the check and say what it found."""
        started, passed, excused = time.perf_counter(), True, False
        try:
            message = self() or ""
        except NotApplicable as reason:
            message, excused = f"does not apply: {reason}", True
        except Exception as error:  # whatever a stranger's code raises
            message, passed = _sentence(error), False
        if self.expected_failure:
            declared = f"expected to fail: {self.expected_failure}"
            message = f"declared as {declared}; but it holds" if passed else f"{declared} ({message})"
            passed, excused = True, not passed
        return CheckResult(self.name, passed, message, time.perf_counter() - started, excused)


def check_model(
    model: str | Entry | Callable[..., nn.Module],
    side: str | None = None,
    *,
    space: MeaningSpace | str | tuple[int, int] = "3x4",
    vocab_size: int = 4,
    word_length: int = 2,
    hidden_size: int = 16,
    representation: str | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Callable[[CheckResult], None] | None = None,
) -> list[CheckResult]:
    """Run the whole contract of senders and receivers on one model.

    Args:
        model: a registered name such as "sender/FC2L" or "HierZero:GRU"; or a factory, registered or not, that takes
            `(space, message_length, vocab_size, hidden_size, **options)`.
        side: "sender" or "receiver", where the model does not say it.
        space: the meanings it is tried on.
        vocab_size: V.
        word_length: w; messages have A * w tokens.
        hidden_size: E.
        representation: what it is trained in: "soft", "gumb" or "discr"; by default the first that it works with.
        seed: of weights and examples.
        options: further arguments of the factory.
        expected_failures: names of checks that it cannot pass, each with the reason.
        raise_on_failure: raise if a check fails, once all have run.
        report: called with each result as it comes.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such model, or no such check in `expected_failures`.
        InvalidSettingError: a factory that does not say whether it makes a sender or a receiver.

    Example:
        >>> from icy.testing import check_model
        >>> [result.message for result in check_model("sender/FC2L") if result.name == "stacked_equals_separate"]
        ['trains as: broadcast']
    """
    entry, registered = _model_entry(model, side, options)
    task = Task(
        entry,
        MeaningSpace.of(space),
        vocab_size,
        word_length,
        hidden_size,
        representation or _first_representation(entry),
        dict(options or {}) if registered else {},
    )
    bound = _bind(entry, ModelCase(task, seed, registered), MODEL_CHECKS, expected_failures)
    return _run_all(bound, entry.qualified, raise_on_failure, report)


def check_grammar(
    grammar: str | Entry | Callable[..., Any],
    *,
    space: MeaningSpace | str | tuple[int, int] = "3x4",
    vocab_size: int = 4,
    word_length: int = 2,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
    raise_on_failure: bool = True,
    report: Callable[[CheckResult], None] | None = None,
) -> list[CheckResult]:
    """Run the whole contract of grammars on one of them.

    Args:
        grammar: a registered name; or a Corruption class or a function, registered or not (see icy.grammars.base).
        space: the meanings it is tried on.
        vocab_size: V.
        word_length: w.
        seed: of the language.
        expected_failures: names of checks that it cannot pass, each with the reason.
        raise_on_failure: raise if a check fails, once all have run.
        report: called with each result as it comes.

    Returns:
        One result per check.

    Raises:
        ContractError: a check failed; the message lists those that did.
        UnknownNameError: no such grammar, or no such check in `expected_failures`.

    Example:
        >>> from icy.testing import check_grammar
        >>> [result.message for result in check_grammar("shuf") if result.name == "sides"]
        ['for receivers']
    """
    entry, registered = _entry_of(grammar, "grammar", ("grammar",), {})
    case = GrammarCase(entry.name, MeaningSpace.of(space), vocab_size, word_length, seed)
    with contextlib.nullcontext() if registered else registry.holding(entry):
        bound = _bind(entry, case, GRAMMAR_CHECKS, expected_failures)
        return _run_all(bound, entry.qualified, raise_on_failure, report)


def _first_representation(entry: Entry) -> str:
    return entry.representations[0] if entry.representations else "soft"


def bound_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> list[BoundCheck]:
    """Every check of registered models and grammars, ready to run.

    Args:
        names: names or shell patterns, as in "sender/Mine*" or "rot".
        expected_failures: names of checks that none of them can pass, each with the reason.
        representation: what models are trained in, and only those that work with it; by default the first of each.

    Raises:
        UnknownNameError: nothing is called that.
    """
    bound: list[BoundCheck] = []
    for entry in registry.match(names, *SIDES, "grammar"):
        if entry.kind == "grammar":
            case: ModelCase | GrammarCase = GrammarCase(entry.name, MeaningSpace(3, 4))
            bound += _bind(entry, case, GRAMMAR_CHECKS, expected_failures)
        elif representation is None or entry.works_with(representation):
            used = representation or _first_representation(entry)
            case = ModelCase(Task(entry, MeaningSpace(3, 4), word_length=2, hidden_size=16, representation=used))
            bound += _bind(entry, case, MODEL_CHECKS, expected_failures)
    return bound


def parametrize_with_checks(
    names: str | Iterable[str],
    expected_failures: Mapping[str, str] | None = None,
    representation: str | None = None,
) -> Any:
    """A pytest decorator that makes every check of registered models and grammars a test of its own.

    The test function takes an argument `check` and calls it. `-k pickles` then selects one check, `-k MyModel` one
    model; a check that does not apply is skipped, and one that is expected to fail is marked so.

    Args:
        names: names or shell patterns, as in "sender/Mine*" or "rot".
        expected_failures: names of checks that none of them can pass, each with the reason.
        representation: as for `bound_checks`.

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


def _model_entry(
    model: str | Entry | Callable[..., nn.Module], side: str | None, options: Mapping[str, Any] | None
) -> tuple[Entry, bool]:
    if side is not None and side not in SIDES:
        raise InvalidSettingError(f"'{side}' is not a side; it is {' or '.join(SIDES)}.")
    kinds = SIDES if side is None else (side,)
    kind = side or next(
        (kind for kind, base in zip(SIDES, (Sender, Receiver), strict=True) if _is_a(model, base)), None
    )
    return _entry_of(model, kind, kinds, options or {})


def _is_a(given: object, base: type) -> bool:
    return isinstance(given, type) and issubclass(given, base)


def _entry_of(
    given: str | Entry | Callable[..., Any], kind: str | None, kinds: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[Entry, bool]:
    """The entry of what was given, and whether the registry knows it; otherwise one is made for the occasion."""
    if isinstance(given, str):
        return registry.get(given, *kinds), True
    if isinstance(given, Entry):
        return given, True
    known = [entry for entry in registry.entries(*kinds) if entry.factory is given]
    if len(known) == 1:
        return known[0], True
    if known and "cell" not in options:
        raise InvalidSettingError(
            f"{known[0].qualified.partition(':')[0]} takes a cell; name one, as in '{known[0].qualified}'."
        )
    name = getattr(given, "__name__", type(given).__name__)
    if kind is None:
        raise InvalidSettingError(f"{name} does not say its side; give side='sender' or side='receiver'.")
    origin = getattr(given, "__module__", "?")
    return Entry(kind, name, given, description="", source="", defaults=dict(options), origin=origin), False


def _bind(
    entry: Entry, case: ModelCase | GrammarCase, checks: Mapping[str, Check], expected: Mapping[str, str] | None
) -> list[BoundCheck]:
    declared = {**getattr(entry.load(), "expected_failures", {}), **(expected or {})}
    for name in declared:
        if name not in checks:
            raise unknown("check", name, list(checks))
    return [
        BoundCheck(name, entry.qualified, function, case, declared.get(name, "")) for name, function in checks.items()
    ]


def _run_all(
    checks: Iterable[BoundCheck], label: str, raise_on_failure: bool, report: Callable[[CheckResult], None] | None
) -> list[CheckResult]:
    results = []
    for check in checks:
        results.append(check.result())
        if report is not None:
            report(results[-1])
    failed = [result for result in results if not result.passed]
    if failed and raise_on_failure:
        listing = "\n".join(f"  {result.name}: {result.message}" for result in failed)
        raise ContractError(f"{label} fails {len(failed)} of {len(results)} checks:\n{listing}", results)
    return results


def _sentence(error: Exception) -> str:
    """What went wrong, and where in the code that was checked."""
    if isinstance(error, CheckFailure | IcyError):
        return str(error)
    sentence = f"{type(error).__name__}: {first_line(error)}"
    frames = traceback.extract_tb(error.__traceback__)
    at = next((f for f in reversed(frames) if not Path(f.filename).is_relative_to(TORCH)), None)
    if at is None or Path(at.filename).is_relative_to(ICY):
        return f"{sentence}."
    return f"{sentence} (line {at.lineno} of {Path(at.filename).name})."
