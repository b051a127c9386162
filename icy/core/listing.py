"""List registered names: `icy.list(KIND)`, and functions for common kinds."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable

from .entry import CORE, JOB, PERCEPTION, PLAYERS, READER, SIDES, STUDY_PLAYER, TEXT_MODEL, WORLD
from .errors import unknown
from .registry import registry

KINDS: dict[str, tuple[str, ...]] = {
    "models": SIDES,
    "senders": SIDES[:1],
    "receivers": SIDES[1:],
    "cells": ("cell",),
    "grammars": ("grammar",),
    "metrics": ("metric",),
    "players": PLAYERS,
    "speakers": PLAYERS[:1],
    "listeners": PLAYERS[1:],
    "text-models": (TEXT_MODEL,),
    "cores": (CORE,),
    "worlds": (WORLD,),
    "perceptions": (PERCEPTION,),
    "study-players": (STUDY_PLAYER,),
    "readers": (READER,),
    "jobs": (JOB,),
}


def kind_in(kinds: Collection[str], name: str) -> str | None:
    """Return the kind with this name, in singular or plural and in any case; None if no kind has it.

    Example:
        >>> kind_in(KINDS, "Sender"), kind_in(KINDS, "text_model"), kind_in(KINDS, "rot")
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
    known = kind_in(KINDS, kind)
    if known is None:
        raise unknown("kind to list", kind, [*KINDS])
    kinds = KINDS[known]
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
