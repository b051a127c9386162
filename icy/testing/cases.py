"""Shared parts of all checks: failures, comparisons, and watches on a running plug-in."""

from __future__ import annotations

import contextlib
import random
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from icy.config.settings import TrainingSettings
from icy.core.registry import Entry, registry

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(learning_rate=0.01)

Check = Callable[[Any], str | None]


def named(*checks: Check) -> dict[str, Check]:
    """Return checks by name; names have no prefix `check_`."""
    return {check.__name__.removeprefix("check_"): check for check in checks}


class CheckFailure(AssertionError):
    """A check failed; the message is a sentence that names the fault."""


class NotApplicable(unittest.SkipTest):
    """A check does not apply to this plug-in; pytest and unittest treat it as a skip."""


class Unsupported(NotApplicable):
    """A plug-in does not support an optional feature; the message names the feature and the error."""


def require(condition: object, sentence: str) -> None:
    """Fail the check with `sentence` unless `condition` holds.

    Raises:
        CheckFailure: the condition does not hold.
    """
    if not condition:
        raise CheckFailure(sentence)


def require_close(found: Tensor, expected: Tensor, what: str, tolerance: float = 1e-5) -> None:
    """Fail the check unless two tensors agree to `tolerance`, relative to numbers above 1.

    Raises:
        CheckFailure: the tensors differ; the sentence starts with `what` and gives the largest difference.
    """
    require(found.shape == expected.shape, f"{what}: shapes are {tuple(found.shape)} and {tuple(expected.shape)}.")
    x, y = found.double().cpu(), expected.double().cpu()
    difference = ((x - y).abs() / y.abs().clamp(min=1)).max().item() if found.numel() else 0.0
    require(difference <= tolerance, f"{what}: they differ by up to {difference:.2g}.")


class RegisteredCase(Protocol):
    """A plug-in under test; the registry may know its entry."""

    @property
    def entry(self) -> Entry:
        """The plug-in's registry entry."""

    @property
    def registered(self) -> bool:
        """Whether the registry knows the plug-in."""

    def make(self) -> object:
        """Create the plug-in; fail if its class is wrong."""


def check_made_by_name(case: RegisteredCase) -> None:
    """The registry knows the name and every alias, and the factory creates an object of the right class."""
    case.make()
    require_registered(case.entry, case.registered)


def require_registered(entry: Entry, registered: bool) -> None:
    """Fail the check unless the registry knows an entry by its name and by every alias.

    Raises:
        CheckFailure: a name belongs to another entry.
        NotApplicable: the entry was made for this run of the checks.
    """
    if not registered:
        raise NotApplicable(f"the {entry.kind} is not registered")
    for name in (entry.qualified, *(f"{entry.kind}/{alias}" for alias in entry.aliases)):
        found = registry.get(name, entry.kind).qualified
        require(found == entry.qualified, f"'{name}' is the name of {found}.")


def run(model: nn.Module, inputs: Tensor) -> Tensor:
    """Run a model without gradients, and return its scores."""
    with torch.no_grad():
        scores: Tensor = model(inputs)
    return scores


@contextlib.contextmanager
def same_random_state(what: str) -> Iterator[None]:
    """Fail if a `with` block draws from a global random state."""
    before = torch.random.get_rng_state(), repr(np.random.get_state()), random.getstate()
    yield
    require(torch.equal(torch.random.get_rng_state(), before[0]), f"{what} changes torch's global random state.")
    for library, found, expected in (
        ("NumPy", repr(np.random.get_state()), before[1]),
        ("Python", random.getstate(), before[2]),
    ):
        require(
            found == expected,
            f"{what} draws from {library}'s global random state; draw from torch, or icy.core.streams.",
        )


class MadeTensors(TorchFunctionMode):
    """Record, in a `with` block, the functions that create a tensor on the default device, not on that of the inputs.

    Attributes:
        by: names of the functions.
    """

    makers = frozenset(getattr(torch, name) for name in ("arange", "empty", "eye", "full", "ones", "tensor", "zeros"))

    def __init__(self) -> None:
        super().__init__()
        self.by: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call the function; torch calls this method instead of the function."""
        found = func(*args, **(kwargs or {}))
        if func in self.makers and "device" not in (kwargs or {}) and isinstance(found, Tensor) and found.dim():
            self.by.append(f"torch.{func.__name__}")
        return found


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its final period."""
    return str(error).strip().partition("\n")[0].rstrip(".")
