"""Mistakes that plug-ins of several kinds can have, made of a plain plug-in; and what the tests of a kind need."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Plugin = Callable[..., Any]
Change = Callable[[Any, Tensor, Tensor], Tensor]  # of a plug-in, its first input and its first output


@dataclass(frozen=True)
class Kind:
    """A kind of plug-ins, for the tests that all kinds share.

    Attributes:
        name: name of the kind, as `icy.testing.check` takes it.
        checks: its checks, without those of other training loops.
        wrong: wrong plug-ins, by the check that finds them.
        plain: a plug-in as a stranger would write it.
        messages: what checks of the plain plug-in say.
        also: checks that a wrong plug-in may fail too, by the check that finds it.
        unfailing: checks that no plug-in fails.
        mark: mark of the tests of wrong plug-ins; "" for the default suite.
    """

    name: str
    checks: Iterable[str]
    wrong: Mapping[str, Plugin]
    plain: Plugin
    messages: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, Iterable[str]] = field(default_factory=dict)
    unfailing: frozenset[str] = frozenset()
    mark: str = ""


class _Unseeded:
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        with torch.no_grad():
            next(self.parameters()).add_(1e-5 * random.Random().uniform(0.5, 1))  # type: ignore[attr-defined]


class _Constant:
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in self.parameters():  # type: ignore[attr-defined]
                parameter.copy_(torch.rand(parameter.shape, generator=generator))


class _DrawsElsewhere:
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        random.random()


class Unused:
    """Has a parameter without effect."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.spare = nn.Parameter(torch.rand(3))


class _Unpicklable:
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.generator = (i for i in range(3))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = memo[id(self)] = object.__new__(type(self))
        copied.__dict__.update(copy.deepcopy({k: v for k, v in vars(self).items() if k != "generator"}, memo))
        return copied


def _count(plugin: Any, given: Tensor, output: Tensor) -> Tensor:
    plugin.calls = getattr(plugin, "calls", 0) + 1
    return output + 1e-8 * plugin.calls


def _write(plugin: Any, given: Tensor, output: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        given.zero_()
    return output


CLASSES: dict[str, type] = {
    "same_seed_same_weights": _Unseeded,
    "different_seeds_differ": _Constant,
    "random_state_untouched": _DrawsElsewhere,
    "gradients_reach_parameters": Unused,
    "pickles": _Unpicklable,
}
CHANGES: dict[str, Change] = {
    "deterministic": _count,
    "inputs_unchanged": _write,
    "examples_independent": lambda plugin, given, output: output + 0.1 * output.detach().mean(0),
    "float64": lambda plugin, given, output: output.float(),
    "moves_to_device": lambda plugin, given, output: output + torch.zeros(1, dtype=output.dtype),
}


def changed(plain: type, change: Change) -> type:
    """Return a subclass with another first output of `step`, `observe` or `forward`."""
    name = next(name for name in ("step", "observe", "forward") if name in vars(plain))

    def method(self: Any, *given: Any) -> Any:
        found = getattr(plain, name)(self, *given)
        if isinstance(found, Tensor):
            return change(self, given[0], found)
        return (change(self, given[0], found[0]), *found[1:])

    return type("Changed", (plain,), {name: method})


def shared_mistakes(plain: type, checks: Iterable[str]) -> dict[str, Plugin]:
    """Return plug-ins that fail those of `checks` that several kinds share, by check."""
    made = {check: type("Wrong", (mixin, plain), {}) for check, mixin in CLASSES.items() if check in checks}
    return made | {check: changed(plain, change) for check, change in CHANGES.items() if check in checks}
