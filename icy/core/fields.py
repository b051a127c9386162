"""Fields of dataclasses: checked values for them, and those that differ between two."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import msgspec

from .errors import InvalidSettingError, quoted, unknown
from .types import Options


def differing(made: Any, usual: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from those of another."""
    found = {f.name: getattr(made, f.name) for f in fields(made)}
    return {name: value for name, value in found.items() if value != getattr(usual, name)}


def checked(of: type, given: Options, what: str, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return values for fields of a dataclass, each of its type.

    Raises:
        UnknownNameError: a field that there is not.
        InvalidSettingError: a value of another type.
    """
    hints = typing.get_type_hints(of)
    known = [f.name for f in fields(of) if f.name not in set(without)]
    found = {}
    for name, value in given.items():
        if name not in known:
            raise unknown(what, name, known)
        try:
            found[name] = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            why = str(error)[:1].lower() + str(error)[1:].rstrip(".")
            raise InvalidSettingError(f"{name} cannot be {quoted(value)}: {why}.") from error
    return found
