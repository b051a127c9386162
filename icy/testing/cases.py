"""The base of all contracts. A case is a plug-in under test; its methods `check_...` are the checks of its kind."""

from __future__ import annotations

import random
import unittest
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icy.core.registry import Entry, registry

Check = Callable[[Any], str | None]  # of a case; returns a remark


class CheckFailure(AssertionError):
    """A check failed; the message is a sentence that names the fault."""


class NotApplicable(unittest.SkipTest):
    """A check does not apply to this plug-in; pytest and unittest treat it as a skip."""


class Unsupported(NotApplicable):
    """A plug-in does not support an optional feature; the message names the feature and the error."""


@dataclass(frozen=True)
class Case(ABC):
    """A plug-in under test.

    The checks of a kind are the methods `check_...` of its case. The first line of each docstring is the claim that the
    check tests.

    Attributes:
        entry: the plug-in's registry entry.
        registered: whether the registry knows the plug-in.
    """

    entry: Entry
    registered: bool = field(default=True, kw_only=True)

    @property
    def noun(self) -> str:
        """The kind of plug-in, in messages."""
        return self.entry.kind.replace("-", " ")

    @abstractmethod
    def make(self) -> object:
        """Create the plug-in; fail if its class is wrong."""

    @abstractmethod
    def use(self) -> object:
        """Create the plug-in and use it."""

    def check_made_by_name(self) -> None:
        """The registry knows the name and every alias, and the factory creates an object of the right class."""
        self.make()
        if not self.registered:
            raise NotApplicable(f"the {self.noun} is not registered")
        for name in (self.entry.qualified, *(f"{self.entry.kind}/{alias}" for alias in self.entry.aliases)):
            found = registry.get(name, self.entry.kind).qualified
            require(found == self.entry.qualified, f"'{name}' is the name of {found}.")

    def check_random_state_untouched(self) -> None:
        """Creating and using the plug-in does not change the global random state of torch, NumPy and Python."""
        before = torch.random.get_rng_state(), repr(np.random.get_state()), random.getstate()
        self.use()
        same = torch.equal(torch.random.get_rng_state(), before[0])
        require(same, f"The {self.noun} changes torch's global random state.")
        after = {"NumPy": repr(np.random.get_state()), "Python": random.getstate()}
        for (library, found), expected in zip(after.items(), before[1:], strict=True):
            advice = "draw from torch, or icy.core.streams"
            require(found == expected, f"The {self.noun} draws from {library}'s global random state; {advice}.")


def checks_of(case: type[Case]) -> dict[str, Check]:
    """Return the checks of a kind of plug-ins.

    Args:
        case: the class of cases of the kind, such as `CONTRACTS["cell"]`.

    Returns:
        The checks by name, without the prefix `check_`: first those of all plug-ins, then those of the kind alone, then
        those that it shares with other kinds. A check takes a case.
    """
    names = [name for owner in (Case, case, *reversed(case.__mro__)) for name in vars(owner)]
    return {name.removeprefix("check_"): getattr(case, name) for name in names if name.startswith("check_")}


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


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without its final period."""
    return str(error).strip().partition("\n")[0].rstrip(".")
