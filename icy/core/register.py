"""Functions that register senders, grammars and other objects, one per kind, and functions that list their names."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol, TypeVar, Unpack

from .code import is_user_module
from .entry import ENTRY_KINDS, JOB, KINDS, PLAYERS, SIDES, Entry, EntryFields
from .errors import unknown
from .fields import described, spell_out_arguments
from .registry import registry

# The registered kinds of each list, such as "players" for speakers and listeners.
LISTED = {"models": SIDES, "players": PLAYERS, **{f"{kind}s": (kind,) for kind in ENTRY_KINDS}}
F = TypeVar("F")


class RegisterFunction(Protocol):
    """A function that registers objects of a kind."""

    def __call__(self, name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
        """Register an object; see `register_sender`."""


def _function_for(kind: str) -> RegisterFunction:
    """Return the function that registers objects of a kind, with the facts of the kind in its docstring."""

    def register(name: str, target: str | None = None, **fields: Unpack[EntryFields]) -> Callable[[F], F]:
        """Register {noun}. Its factory takes `{takes}`, and returns {makes}.

        Use it as a decorator of a class or function, or pass `target="module:object"` for a factory that is imported
        when it is first called. The description defaults to the first line of the docstring. The page docs/plug-ins.md
        has an example of each kind.

        Args:
            name: the name that users type, without ':', '/' or '+'.
            target: address of the factory, if it is not decorated.
            **fields: fields of Entry, by name.

        Returns:
            A decorator, which returns the factory unchanged.

        Raises:
            DuplicateNameError: another module has registered the name.
        """
        caller = str(sys._getframe(1).f_globals.get("__name__", "?"))

        def record(factory: Any) -> Any:
            lazy = isinstance(factory, str)
            module = factory.partition(":")[0] if lazy else getattr(factory, "__module__", "?")
            origin = module if is_user_module(module) else caller  # a user may register a factory of another package
            doc = "" if lazy else (getattr(factory, "__doc__", None) or "").strip().partition("\n")[0]
            values: dict[str, Any] = {"description": doc, "source": "", **fields}
            for several in ("aliases", "representations", "heads"):
                values[several] = tuple(values.get(several, ()))
            values["choices"] = {option: tuple(every) for option, every in values.get("choices", {}).items()}
            registry.add(Entry(kind, name, factory, origin=origin, **values))
            return factory

        if target is not None:
            record(target)
        return record

    descriptions = described(Entry)
    register.__name__ = register.__qualname__ = f"register_{kind.replace('-', '_')}"
    register.__doc__ = (register.__doc__ or "").format(**KINDS[kind]._asdict())
    spell_out_arguments(register, {name: descriptions.get(name, "") for name in EntryFields.__annotations__})
    return register


register_sender = _function_for("sender")
register_receiver = _function_for("receiver")
register_cell = _function_for("cell")
register_grammar = _function_for("grammar")
register_metric = _function_for("metric")
register_speaker = _function_for("speaker")
register_listener = _function_for("listener")
register_text_model = _function_for("text-model")
register_core = _function_for("core")
register_world = _function_for("world")
register_perception = _function_for("perception")
register_study_player = _function_for("study-player")
register_reader = _function_for("reader")


def kind_in(kinds: Collection[str], name: str) -> str | None:
    """Return the kind with this name, in singular or plural and in any case; None if no kind has it.

    Example:
        >>> kind_in(LISTED, "Sender"), kind_in(LISTED, "text_model"), kind_in(LISTED, "rot")
        ('senders', 'text-models', None)
    """
    plain = name.lower().replace("_", "-").replace(" ", "-")
    return next((one for one in (plain, f"{plain}s", plain.removesuffix("s")) if one in kinds), None)


def list(kind: str, pattern: str | Iterable[str] | None = None) -> builtins.list[str]:
    """Return the registered names of a kind; for senders, receivers and players of S2B, `kind/name`.

    Args:
        kind: "models", "senders", "receivers", "cells", "grammars", "metrics", "players", "speakers", "listeners",
            "text-models", "cores", "worlds", "perceptions", "study-players", "readers" or "jobs"; or its singular.
        pattern: a name or shell pattern, or several in a list or between commas; by default all.

    Returns:
        The names, as commands and functions take them.

    Raises:
        UnknownNameError: the kind is unknown, or no name matches.

    Example:
        >>> import icy
        >>> icy.list("cells", "*GRU")
        ['GRU', 'minGRU']
    """
    known = kind_in(LISTED, kind)
    if known is None:
        raise unknown("kind to list", kind, [*LISTED])
    kinds = LISTED[known]
    qualified = kinds[0] in (*SIDES, *PLAYERS)
    return [entry.qualified if qualified else entry.name for entry in registry.match(pattern, *kinds)]


def list_models(pattern: str | Iterable[str] | None = None) -> builtins.list[str]:
    """Return the names of registered senders and receivers that match a shell pattern, as in `sender/FC2L`.

    Args:
        pattern: a name or shell pattern, or several in a list or between commas; by default all.

    Returns:
        The names, senders first.

    Example:
        >>> import icy
        >>> icy.list_models("sender/FC*")
        ['sender/FC1L', 'sender/FC2L']
    """
    return list("models", pattern)


def list_grammars(pattern: str | Iterable[str] | None = None) -> builtins.list[str]:
    """Return the names of registered grammars that match a shell pattern.

    Args:
        pattern: a name or shell pattern, or several in a list or between commas; by default all.

    Returns:
        The names, without aliases.

    Example:
        >>> import icy
        >>> icy.list_grammars("shuf*")
        ['shuf', 'shufdet']
    """
    return list("grammars", pattern)


def list_metrics(pattern: str | Iterable[str] | None = None) -> builtins.list[str]:
    """Return the names of registered metrics that match a shell pattern.

    Args:
        pattern: a name or shell pattern, or several in a list or between commas; by default all.

    Returns:
        The names, without aliases.

    Example:
        >>> import icy
        >>> icy.list_metrics("*dis")
        ['bosdis', 'posdis']
    """
    return list("metrics", pattern)


def list_players(pattern: str | Iterable[str] | None = None) -> builtins.list[str]:
    """Return the names of registered players of S2B that match a shell pattern, as in `speaker/posdis`.

    Args:
        pattern: a name or shell pattern, or several in a list or between commas; by default all.

    Returns:
        The names, speakers first.

    Example:
        >>> import icy
        >>> icy.list_players("*/posdis")
        ['speaker/posdis', 'listener/posdis']
    """
    return list("players", pattern)


def register_kind_at(name: str, address: str, description: str, source: str) -> None:
    """Register a kind of job of icy, which is imported from its address "module:object" on first use.

    Commands that train nothing then start fast. Plug-ins use `icy.records.kinds.register_job_kind`.
    """
    registry.add(Entry(JOB, name, address, description, source, 1, origin=address.partition(":")[0]))
