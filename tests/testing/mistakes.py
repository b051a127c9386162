"""Mistakes that plug-ins of several kinds can have, made of a plain plug-in; and what the tests of a kind need."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from icy.testing import CONTRACTS, checks_of

EVERY: Iterable[str] = ("every check",)  # in `Kind.also`

Plugin = Callable[..., Any]
Change = Callable[[Any, Tensor, Tensor], Tensor]  # of a plug-in, its first input and its first output


@dataclass(frozen=True)
class Kind:
    """A kind of plug-ins, for the tests that all kinds share.

    Attributes:
        name: name of the kind, as `icy.testing.check` takes it.
        wrong: wrong plug-ins, by the check that finds them.
        plain: a plug-in as a stranger would write it.
        messages: what checks of the plain plug-in say.
        also: checks that a wrong plug-in may fail too, by the check that finds it.
        mark: mark of the tests of wrong plug-ins; "" for the default suite.
    """

    name: str
    wrong: Mapping[str, Plugin]
    plain: Plugin
    messages: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, Iterable[str]] = field(default_factory=dict)
    mark: str = ""

    @property
    def checks(self) -> set[str]:
        """Names of the checks of the kind."""
        return {*checks_of(CONTRACTS[self.name])}


def _unseed(plugin: Any) -> None:
    next(plugin.parameters()).data += 1e-5 * random.Random().uniform(0.5, 1)


def _fill(plugin: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    for parameter in plugin.parameters():
        parameter.data.copy_(torch.rand(parameter.shape, generator=generator))


def add_unused(plugin: Any) -> None:
    """Add a parameter without effect."""
    plugin.spare = nn.Parameter(torch.rand(3))


def _add_generator(plugin: Any) -> None:
    """Add what cannot be pickled, but a deep copy leaves out."""
    plugin.generator = (i for i in range(3))
    type(plugin).__deepcopy__ = _without_generator


def _without_generator(plugin: Any, memo: dict[int, Any]) -> Any:
    copied = memo[id(plugin)] = object.__new__(type(plugin))
    copied.__dict__.update(copy.deepcopy({k: v for k, v in vars(plugin).items() if k != "generator"}, memo))
    return copied


def _put_outside(plugin: Any) -> None:
    """Add a number of the seed that is neither a parameter nor a buffer."""
    plugin.outside = torch.rand(())


def _count(plugin: Any, given: Tensor, output: Tensor) -> Tensor:
    plugin.calls = getattr(plugin, "calls", 0) + 1
    return output + 1e-8 * plugin.calls


def _write(plugin: Any, given: Tensor, output: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        given.zero_()
    return output


SPOILED: dict[str, Callable[[Any], object]] = {
    "same_seed_same_weights": _unseed,
    "different_seeds_differ": _fill,
    "random_state_untouched": lambda plugin: random.random(),
    "gradients_reach_parameters": add_unused,
    "pickles": _add_generator,
}
CHANGES: dict[str, Change] = {
    "deterministic": _count,
    "inputs_unchanged": _write,
    "examples_independent": lambda plugin, given, output: output + 0.1 * output.detach().mean(0),
    "float64": lambda plugin, given, output: output.float(),
    "empty_batch": lambda plugin, given, output: output + 0 * given.max(),
    "moves_to_device": lambda plugin, given, output: output + torch.zeros(1, dtype=output.dtype),
}


def spoiled(plain: type, spoil: Callable[[Any], object], name: str = "Spoiled") -> type:
    """Return a subclass with the same arguments, of which each object is spoiled when it has been made."""

    @wraps(plain.__init__)  # type: ignore[misc]
    def init(self: Any, *given: Any, **options: Any) -> None:
        plain.__init__(self, *given, **options)  # type: ignore[misc]
        spoil(self)

    return type(name, (plain,), {"__init__": init})


def changed(plain: type, change: Change) -> type:
    """Return a subclass with another first output of `step`, `observe` or `forward`."""
    name = next(name for name in ("step", "observe", "forward") if name in vars(plain))

    def method(self: Any, *given: Any) -> Any:
        found = getattr(plain, name)(self, *given)
        if isinstance(found, Tensor):
            return change(self, given[0], found)
        return (change(self, given[0], found[0]), *found[1:])

    return type("Changed", (plain,), {name: method})


def shared_mistakes(plain: type, kind: str) -> dict[str, Plugin]:
    """Return plug-ins that fail those checks of a kind that several kinds share, by check."""
    checks = checks_of(CONTRACTS[kind])
    made = {check: spoiled(plain, spoil) for check, spoil in SPOILED.items() if check in checks}
    made |= {check: changed(plain, change) for check, change in CHANGES.items() if check in checks}
    if "state_dict" in checks:
        made["state_dict"] = spoiled(
            changed(plain, lambda plugin, given, output: output * plugin.outside), _put_outside
        )
    return made
