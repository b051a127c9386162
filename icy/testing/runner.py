"""Run checks and report their results."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from icy.core.errors import IcyError, require_known
from icy.core.surroundings import standard_state
from icy.core.text import counted
from icy.training.runners.base import one_thread

from .cases import Case, Check, CheckFailure, NotApplicable, Unsupported, checks_of, first_line, require

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
        left_out: whether the check did not run, or not to its end, because the time was over.
    """

    name: str
    passed: bool
    message: str
    seconds: float
    excused: bool = False
    left_out: bool = False


class _OutOfTimeError(BaseException):
    """The time for the checks is over. Not an `Exception`, which checks catch from plug-ins."""


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


@standard_state()
@one_thread()  # models are small; on a busy machine, threads that wait for each other take ten times longer
def run_all(
    checks: Sequence[BoundCheck],
    label: str,
    raise_on_failure: bool,
    report: Callable[[CheckResult], None] | None,
    begin: Callable[[str, int, int], None] | None = None,
    seconds: float | None = None,
) -> list[CheckResult]:
    """Run some checks and return their results.

    Args:
        checks: the checks.
        label: name of the plug-in, for the error.
        raise_on_failure: whether to raise an error after all checks, if one failed.
        report: callback for each result as it comes, except for checks that are left out.
        begin: callback before each check with its name, its number from 1, and the number of checks.
        seconds: time after which the remaining checks are left out, and the running one is stopped; None for no limit.

    Raises:
        ContractError: a check failed.
    """
    results: list[CheckResult] = []
    end = math.inf if seconds is None else time.monotonic() + seconds
    for number, check in enumerate(checks, 1):
        if begin is not None:
            begin(check.name, number, len(checks))
        try:
            with _stopped_after(end - time.monotonic()):
                results.append(check.result())
        except _OutOfTimeError:
            break
        if report is not None:
            report(results[-1])
    why = f"left out because {seconds:.2g} s were over" if seconds is not None else ""
    results += [CheckResult(check.name, True, why, 0.0, True, True) for check in checks[len(results) :]]
    failed = {result.name: result.message for result in results if not result.passed}
    if failed and raise_on_failure:
        listing = "\n".join(f"  {name}: {message_or_reference(failed, name)}" for name in failed)
        raise ContractError(f"{label} fails {len(failed)} of {counted(len(results), 'check')}:\n{listing}", results)
    return results


@contextlib.contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise an error in the block after some seconds. In other threads and on Windows, only check before the block.

    Raises:
        _OutOfTimeError: the time is over.
    """
    if seconds <= 0:
        raise _OutOfTimeError
    in_main_thread = threading.current_thread() is threading.main_thread()
    if math.isinf(seconds) or not in_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise _OutOfTimeError

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again each second: a destructor may swallow the error
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


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
