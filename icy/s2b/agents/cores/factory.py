"""Make a core by its name."""

import inspect
from typing import Any

from icy.core.errors import PluginError
from icy.core.registry import CORE, Entry, registry

from .base import CAPACITY, Core, Parts


def make_core(name: str, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: Any) -> Core:
    """Make a core by its name.

    Args:
        name: name of a registered core (`icy list cores`).
        width: width of an input.
        capacity: number of steps that a memory holds, for cores that take it; the oldest make room.
        parts: which parts of an input are seen and heard, for cores that take it.
        **options: further options of the core.

    Raises:
        UnknownNameError: no core has this name.
        PluginError: the core does not take these options, or is no `Core`.

    Example:
        >>> from icy.s2b.agents.cores import make_core
        >>> make_core("LSTM", 20).output, make_core("LSTM", 20, sizes=(64,)).output
        (128, 64)
    """
    return made_of(registry.get(name, CORE), width, capacity=capacity, parts=parts, **options)


def made_of(entry: Entry, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: Any) -> Core:
    """Make the core of a registry entry; see `make_core`."""
    given = {"capacity": capacity, "parts": parts}
    made = entry.create(width, **{name: value for name, value in given.items() if takes(entry, name)}, **options)
    if not isinstance(made, Core):
        raise PluginError(f"{entry.qualified} makes a {type(made).__name__}; derive it from icy.s2b.agents.cores.Core.")
    return made


def takes(entry: Entry, option: str) -> bool:
    """Return whether a core's factory takes an option by name."""
    return option in inspect.signature(entry.load()).parameters
