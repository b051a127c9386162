"""Checks of arguments: lists of seeds and of hidden sizes."""

from __future__ import annotations

from typing import Any

import pytest

from icy.core.checks import hidden_list, seed_list
from icy.core.errors import InvalidSettingError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (2, [123, 124]),
        ("3", [123, 124, 125]),
        ("1,2", [1, 2]),
        ("7,", [7]),
        ("5-7,1", [5, 6, 7, 1]),
        ([4, 4, 2], [4, 2]),
    ],
)
def test_seeds(given: Any, expected: list[int]) -> None:
    assert seed_list(given) == expected


@pytest.mark.parametrize("given", [0, -1, [], "", "x", "5-3", [1.5], [-1], "0"])
def test_seeds_that_are_none(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match="Seeds are"):
        seed_list(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(64, [64]), ("128", [128]), ("64,128,64", [64, 128]), (" 8, ", [8]), ([64, 32], [64, 32]), (range(1, 3), [1, 2])],
)
def test_hidden_sizes(given: Any, expected: list[int]) -> None:
    assert hidden_list(given) == expected


@pytest.mark.parametrize("given", [0, -1, [], "", ",", "a", "64-128", "64;128", [1.5], 1.5, [0], None, "64,0", [[64]]])
def test_hidden_sizes_that_are_none(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match="he hidden size"):
        hidden_list(given)
