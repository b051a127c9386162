"""Check and convert arguments that users give: whole numbers, seeds, hidden sizes."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import Any

from .errors import InvalidSettingError

MOST_SEEDS = 10_000
FIRST_SEED = 123  # the papers' first seed

LARGEST_NUMBER = 2**31  # of attributes, values, tokens


def seed_list(seeds: int | str | Iterable[int]) -> list[int]:
    """Return the seeds for a count (from 123 on), a list, or text such as "3", "1,2,5" or "123-127".

    Raises:
        InvalidSettingError: no seeds, too many, or not whole numbers.

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
    """Return the hidden sizes for a number, a list, or text such as "128" or "64,128,256".

    Raises:
        InvalidSettingError: no sizes, or not whole numbers of at least 1.

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


def whole_number(what: str, given: Any, least: int = 1) -> int:
    """Return `given` as a Python integer, which unlike NumPy's does not overflow.

    Raises:
        InvalidSettingError: `given` is not a whole number in `least`..2^31.
    """
    try:
        whole = operator.index(given)
    except TypeError:
        whole = least - 1
    if not least <= whole <= LARGEST_NUMBER:
        raise InvalidSettingError(f"The {what} must be a whole number, at least {least}, not {given!r}.")
    return whole
