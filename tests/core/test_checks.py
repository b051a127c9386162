"""Checks of arguments: lists of seeds and of hidden sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy.core.checks import (
    boolean_column,
    hidden_list,
    number_column,
    number_or_text,
    parse_whole,
    real_number,
    seed_list,
    whole_number,
)
from icy.core.errors import InvalidSettingError, quoted, unknown


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (2, [123, 124]),
        ("3", [123, 124, 125]),
        ("1,2", [1, 2]),
        ("7,", [7]),
        ("5-7,1", [5, 6, 7, 1]),
        ([4, 4, 2], [4, 2]),
        (np.int64(2), [123, 124]),
        (np.array([7, 5], dtype=np.uint64), [7, 5]),
        ([2**63 - 1], [2**63 - 1]),
        ("9223372036854775807,", [2**63 - 1]),
        ("9223372036854775806-9223372036854775807", [2**63 - 2, 2**63 - 1]),
    ],
)
def test_seeds(given: Any, expected: list[int]) -> None:
    assert seed_list(given) == expected
    assert {type(seed) for seed in seed_list(given)} == {int}


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        [],
        "",
        "x",
        "5-3",
        [1.5],
        "1-²",
        [True],
        [2**63],
        "9223372036854775808,",
        "9223372036854775807-9223372036854775808",
        np.array([2**63], dtype=np.uint64),
        np.array(3.0),
        [np.bool_(True)],
        pytest.param(10**5000, id="5001 digits"),
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_invalid_seeds_are_rejected(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"Seeds are.*each from 0 to 9223372036854775807"):
        seed_list(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(64, [64]), ("128", [128]), ("64,128,64", [64, 128]), (" 8, ", [8]), ([64, 32], [64, 32]), (range(1, 3), [1, 2])],
)
def test_hidden_sizes(given: Any, expected: list[int]) -> None:
    assert hidden_list(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        [],
        "",
        ",",
        "a",
        "64-128",
        [1.5],
        None,
        "64,0",
        [[64]],
        True,
        pytest.param(10**5000, id="5001 digits"),
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_invalid_hidden_sizes_are_rejected(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match="he hidden size"):
        hidden_list(given)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("128", 128), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("²", None), ("٣", None),
     pytest.param("9" * 5000, None, id="5000 digits"),
     ("-1", None), ("+1", None), ("1_0", None), (" 1", None), ("1.0", None), ("", None)],
)  # fmt: skip
def test_numbers_are_few_digits(text: str, number: int | None) -> None:
    assert parse_whole(text) == number
    assert number_or_text(text) == (text if number is None else number)


@pytest.mark.parametrize("given", [True, 1.0, "1", None, 0, 2**31 + 1, pytest.param(10**5000, id="5001 digits")])
def test_invalid_whole_numbers_are_rejected(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"The size must be (a whole number|at most 2147483648)"):
        whole_number("size", given)


@pytest.mark.parametrize("given", [True, "1", None, -0.5, 1.5, float("nan"), float("inf"), [1]])
def test_invalid_numbers_are_rejected(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"The share must be a number, at least 0 and at most 1, not "):
        real_number("share", given, most=1)


def test_a_number_may_be_at_its_limits_or_must_be_above() -> None:
    assert [real_number("share", given, most=1) for given in (0, 1, 0.5)] == [0.0, 1.0, 0.5]
    assert real_number("rate", 1e38, above=True) == 1e38
    with pytest.raises(InvalidSettingError, match=r"The rate must be a number above 0 and at most 1e\+38, not 0"):
        real_number("rate", 0, above=True)


def test_messages_cut_long_numbers() -> None:
    nested: list[Any] = [0]
    for _ in range(40):  # as a few lines of YAML with aliases can define
        nested = [nested, nested]
    for value in ("9" * 5000, 10**4000, 10**5000, list(range(10**5)), nested):
        assert len(quoted(value)) <= 60
        assert len(str(unknown("thing", str(quoted(value)), ["a"]))) < 150
    assert quoted("half") == "'half'"
    assert quoted("\x1b[31m\n") == r"'\x1b[31m\n'"


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        [True, False, False],
        ["TRUE", "FALSE", "NA"],
        (" T", "F ", ""),
        ["yes", "No", None],
        [1.0, 0.0, math.nan],
        ["1.0", "0", "0.00"],
        [True, math.nan, None],
        [True, "False", 0],
        np.array([[1], [0], [0]]),
        pd.Series([True, False, pd.NA], dtype="boolean"),
        pd.Series(["true", "false", None], dtype="string"),
        pd.Series([1, 0, None], dtype="Int64"),
    ],
)
def test_columns_that_say_true_or_false(given: Any) -> None:
    assert boolean_column("Column cut", given, 3).tolist() == [True, False, False]


@pytest.mark.parametrize("wrong", ["maybe", 2, 0.5, -1, "cut", [True], "TRUE;"])
def test_other_values_of_a_column_are_errors(wrong: Any) -> None:
    with pytest.raises(InvalidSettingError, match="Column cut must hold yes or no") as error:
        boolean_column("Column cut", pd.Series([True, wrong], dtype=object))
    assert quoted(wrong) in str(error.value)


@pytest.mark.parametrize("given", [[True], True, "TRUE", [True, False, False]])
def test_a_column_has_a_value_for_each_run(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"`cut` needs a value for each of 2 runs; its length is [13]"):
        boolean_column("`cut`", given, 2)


@pytest.mark.parametrize(
    "given",
    [[1.5, None], ["1.5", "NA"], [1.5, math.nan], pd.Series([1.5, pd.NA], dtype="Float64"), [np.float32(1.5), pd.NaT]],
)
def test_columns_of_numbers(given: Any) -> None:
    np.testing.assert_array_equal(number_column("Column value", given), [1.5, math.nan])


@pytest.mark.parametrize("wrong", ["failed", "1,5", [1.5, 2.0]])
def test_text_is_not_a_number(wrong: Any) -> None:
    with pytest.raises(InvalidSettingError, match="Column value must hold numbers, not"):
        number_column("Column value", pd.Series([1.5, wrong], dtype=object))
