"""What the arguments of `icy.probe` and `icy.end_to_end` share: options by name, small values for a quick try."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from icy.errors import InvalidSettingError, unknown
from icy.meanings import whole_number

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_SEEDS = 10_000
FIRST_SEED = 123  # the papers' first seed


class Asked:
    """A dataclass of everything that one function of the library takes.

    Attributes:
        function: the function's name, for errors.
        small: the values of `quick`, for what was not given.
    """

    function: ClassVar[str]
    small: ClassVar[Mapping[str, Any]]

    @classmethod
    def asked(cls, **given: Any) -> Self:
        """The spec of what was given; with `quick`, what was not given is small.

        Raises:
            UnknownNameError: an argument that there is not.
        """
        known = names(cls)
        for name in given:
            if name not in known:
                raise unknown(f"option of {cls.function}", name, known)
        return cls(**({**cls.small, **given} if given.get("quick") else given))


def names(spec: type) -> list[str]:
    """The fields of a spec."""
    dataclass: type[DataclassInstance] = spec
    return [f.name for f in fields(dataclass)]


def spell_out(function: Callable[..., Any], spec: type[Asked], result: type) -> None:
    """Have help() and notebooks show every option of a function with its default, where it takes **options."""
    own, options = inspect.signature(function).parameters, inspect.signature(spec).parameters
    first = [options[name] for name, p in own.items() if name in options and p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in options.values() if p not in first]
    beside = [p for name, p in own.items() if name not in options and p.kind is p.KEYWORD_ONLY]
    signature = inspect.Signature([*first, *named, *beside], return_annotation=result)
    function.__signature__ = signature  # type: ignore[attr-defined]


def seed_list(seeds: int | str | Iterable[int]) -> list[int]:
    """Which seeds are meant: a count from 123 on, a list, or text such as "3", "1,2,5" or "123-127".

    Raises:
        InvalidSettingError: none, or not whole numbers.

    Example:
        >>> seed_list(2), seed_list("123-125,7")
        ([123, 124], [123, 124, 125, 7])
    """
    wanted = "Seeds are a number of seeds (3), a list (1,2,5) or a range (123-127)"
    if isinstance(seeds, str):
        text = seeds.strip()
        if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*,?", text):
            raise InvalidSettingError(f"{wanted}, not '{seeds}'.")
        if text.isdigit():
            return seed_list(int(text))
        ends = [part.partition("-") for part in text.split(",") if part]
        if any(int(b or a) - int(a) >= MOST_SEEDS for a, _, b in ends):
            raise InvalidSettingError(f"{wanted}, and at most {MOST_SEEDS} of them; not '{seeds}'.")
        found = [n for a, dash, b in ends for n in range(int(a), int(b or a) + 1)]
    elif isinstance(seeds, int):
        if seeds > MOST_SEEDS:
            raise InvalidSettingError(f"{wanted}, and at most {MOST_SEEDS} of them; not {seeds}.")
        found = list(range(FIRST_SEED, FIRST_SEED + seeds))
    else:
        found = list(seeds)
        if not all(isinstance(n, int) and n >= 0 for n in found):
            raise InvalidSettingError(f"{wanted}, not {seeds!r}.")
    if not found:
        raise InvalidSettingError(f"{wanted}; '{seeds}' leaves none to train.")
    return list(dict.fromkeys(found))


def hidden_list(hidden: int | str | Iterable[int]) -> list[int]:
    """Which hidden sizes are meant: one, a list, or text such as "128" or "64,128,256".

    Raises:
        InvalidSettingError: none, or not whole numbers of at least 1.

    Example:
        >>> hidden_list(128), hidden_list("64,128")
        ([128], [64, 128])
    """
    wanted = "The hidden size is a whole number of at least 1 (128), or several (64,128,256)"
    if isinstance(hidden, str):
        if not re.fullmatch(r"\d+(,\d+)*,?", hidden.strip()):
            raise InvalidSettingError(f"{wanted}, not '{hidden}'.")
        given: list[Any] = [int(n) for n in hidden.strip().split(",") if n]
    else:
        given = list(hidden) if isinstance(hidden, Iterable) else [hidden]
    if not given:
        raise InvalidSettingError(f"{wanted}; none was given.")
    return list(dict.fromkeys(whole_number("hidden size", n) for n in given))
