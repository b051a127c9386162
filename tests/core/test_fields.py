"""Checks and conversions of values for fields of dataclasses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.fields import changed_fields, checked


@dataclass(frozen=True)
class Sizes:
    width: int = 3
    rate: float = 0.5
    name: str = "plain"


def test_values_are_of_the_type_of_their_field() -> None:
    assert checked(Sizes, {"width": 4, "rate": 1}, "size") == {"width": 4, "rate": 1.0}
    with pytest.raises(InvalidSettingError, match=r"width cannot be 'wide': expected `int`, got `str`\."):
        checked(Sizes, {"width": "wide"}, "size")


def test_unknown_and_excluded_names_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match="No size is called 'widht'; did you mean width"):
        checked(Sizes, {"widht": 4}, "size")
    with pytest.raises(UnknownNameError, match="No size is called 'name'"):
        checked(Sizes, {"name": "x"}, "size", without=["name"])


def test_changed_fields() -> None:
    assert changed_fields(Sizes(4), Sizes()) == {"width": 4}
    assert changed_fields(Sizes(), Sizes()) == {}
