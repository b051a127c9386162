"""Meaning spaces: parsing, numbering both ways, and refusing what does not fit in memory."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace, spaces_in

spaces = st.builds(MeaningSpace, st.integers(1, 6), st.integers(1, 9))


@pytest.mark.parametrize("text", ["5x10", "5X10", " 5 x 10 ", "5×10"])
def test_parse(text: str) -> None:
    assert MeaningSpace.parse(text) == MeaningSpace(5, 10)
    assert str(MeaningSpace.parse(text)) == "5x10"


@pytest.mark.parametrize(
    ("text", "meant"), [("5*10", "5x10"), ("10^5", "5x10"), ("10**5", "5x10"), ("(5, 10)", "5x10"), ("five", "")]
)
def test_parse_says_what_is_accepted(text: str, meant: str) -> None:
    with pytest.raises(InvalidSettingError, match="5x10 for 5 attributes of 10 values") as caught:
        MeaningSpace.parse(text)
    assert (f"Did you mean {meant}?" in str(caught.value)) == bool(meant)


def test_a_file_with_another_suffix_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "pets.dat").write_text("{}")
    with pytest.raises(InvalidSettingError, match=r"name of a table of meanings ends in .csv, .tsv, .txt, .parquet,"):
        MeaningSpace.parse(str(tmp_path / "pets.dat"))


def test_a_table_is_not_a_space() -> None:
    with pytest.raises(InvalidSettingError, match=r"Only `icy probe`, .* take a table of meanings"):
        MeaningSpace.parse("existing.csv")
    with pytest.raises(InvalidSettingError, match="save it with to_csv"):
        spaces_in(pd.DataFrame({"color": ["red"]}))


@pytest.mark.parametrize("bad", ["", "x", "5x", "-5x10", "5x10x2", "0x10", "5x0", "5.0x10"])
def test_parse_refuses(bad: str) -> None:
    with pytest.raises(InvalidSettingError):
        MeaningSpace.parse(bad)


def test_of() -> None:
    space = MeaningSpace(2, 3)
    assert MeaningSpace.of(space) is space
    assert MeaningSpace.of("2x3") == MeaningSpace.of((2, 3)) == MeaningSpace.of((np.int64(2), 3)) == space


@pytest.mark.parametrize("bad", [5, (1, 2, 0), None, (2.5, 3), (0, 3), (2, -1), ("2", "3")])
def test_of_refuses(bad: object) -> None:
    with pytest.raises(InvalidSettingError):
        MeaningSpace.of(bad)  # type: ignore[arg-type]


def test_numpy_sizes_do_not_overflow() -> None:
    assert MeaningSpace(np.int64(30), np.int64(100)).size == 100**30  # type: ignore[arg-type]


@given(spaces.filter(lambda s: s.size <= 5000))
def test_order_is_lexicographic_last_attribute_fastest(space: MeaningSpace) -> None:
    by_hand = list(itertools.product(range(space.values), repeat=space.attributes))
    assert space.all().tolist() == [list(m) for m in by_hand]
    assert space.index(space.all()).tolist() == list(range(space.size))


@given(spaces, st.data())
def test_index_round_trip_of_any_shape(space: MeaningSpace, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
    numbers = np.random.default_rng(data.draw(st.integers(0, 99))).integers(space.size, size=shape)
    there = space.meanings(numbers)
    assert there.shape == (*shape, space.attributes)
    np.testing.assert_array_equal(space.index(there), numbers)


def test_single_meaning_and_unsigned_input() -> None:
    space = MeaningSpace(5, 200)
    assert int(space.index([0, 0, 0, 1, 3])) == 203
    assert int(space.index(np.array([199] * 5, dtype=np.uint8))) == space.size - 1
    assert space.meanings(np.uint64(203)).tolist() == [0, 0, 0, 1, 3]


@pytest.mark.parametrize("bad", [[0, 3], [0, -1], [0, 0, 0], 1, [0.0, 1.0], [[0], [1]]])
def test_index_refuses(bad: object) -> None:
    with pytest.raises(InvalidSettingError):
        MeaningSpace(2, 3).index(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [9, -1, [0, 9], 1.5])
def test_meanings_refuses(bad: object) -> None:
    with pytest.raises(InvalidSettingError):
        MeaningSpace(2, 3).meanings(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["12x10", "30x10", "999999999x999999999"])
def test_too_large_is_refused_before_allocation(text: str) -> None:
    space = MeaningSpace.parse(text)
    for attempt in (lambda: space.check_fits(20), space.all):
        with pytest.raises(InvalidSettingError, match=r"needs about .*B|bytes of memory and .* is available"):
            attempt()


def test_check_fits_compares_with_available_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.core.machine.available_memory", lambda: 10**6)
    MeaningSpace(3, 10).check_fits(12)
    with pytest.raises(InvalidSettingError, match=r"A table of 5x10 \(100,000 meanings, 20 tokens each\) needs about "):
        MeaningSpace(5, 10).check_fits(20)


def test_more_meanings_than_numbers() -> None:
    with pytest.raises(InvalidSettingError, match="more than can be numbered"):
        MeaningSpace(40, 10).index([0] * 40)


# -- attributes with different numbers of values -----------------------------------------------------------------------

unequal = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(lambda sizes: MeaningSpace.of_sizes(*sizes))


def test_sizes_are_read_and_written() -> None:
    space = MeaningSpace.parse(" 10, 4,2 ")
    assert (str(space), space.attributes, space.values, space.size) == ("10,4,2", 3, 10, 80)
    assert space == MeaningSpace.of((10, 4, 2)) == MeaningSpace.of_sizes(10, 4, 2) != MeaningSpace(3, 10)
    assert space == MeaningSpace.of_sizes([10, 4, 2])
    assert space.size_of_each == (10, 4, 2)
    assert not space.is_grid
    assert eval(repr(space)) == space
    assert repr(MeaningSpace(3, 4)) == "MeaningSpace(attributes=3, values=4)"
    assert space.chance == pytest.approx((0.1 + 0.25 + 0.5) / 3)
    assert space.existing.sum(1).tolist() == [10, 4, 2]


@given(st.integers(1, 4), st.integers(1, 6))
def test_equal_sizes_are_a_grid(attributes: int, values: int) -> None:
    space = MeaningSpace.of_sizes(*[values] * attributes)
    assert space == MeaningSpace(attributes, values)
    assert str(space) == f"{attributes}x{values}"
    assert space.is_grid
    assert space.existing.all()


@given(unequal)
def test_meanings_of_every_size_are_numbered_in_lexicographic_order(space: MeaningSpace) -> None:
    meanings = space.all()
    assert meanings.tolist() == [list(m) for m in itertools.product(*map(range, space.size_of_each))]
    assert space.index(meanings).tolist() == list(range(space.size))
    assert (meanings @ space.strides).tolist() == list(range(space.size))


def test_a_value_that_an_attribute_lacks_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"Attribute 1 of 10,4,2 .* 0 to 3; found 4"):
        MeaningSpace.parse("10,4,2").index([[9, 3, 1], [0, 4, 0]])


def test_sizes_must_fit() -> None:
    with pytest.raises(InvalidSettingError, match=r"of_sizes\(10, 4\)"):
        MeaningSpace(3, 10, (10, 4))


@pytest.mark.parametrize(
    ("given", "spaces"),
    [
        ("5x10", ["5x10"]),
        ("3x4,5x10", ["3x4", "5x10"]),
        ("10,4,2", ["10,4,2"]),
        ("3x4, 10,4,2 ,5x10", ["3x4", "10,4,2", "5x10"]),
        ("10,4;4,2", ["10,4", "4,2"]),
        (["10,4,2", (3, 4)], ["10,4,2", (3, 4)]),
        ((3, 4), [(3, 4)]),
        (MeaningSpace(3, 4), [MeaningSpace(3, 4)]),
    ],
)
def test_several_spaces(given: object, spaces: list[object]) -> None:
    assert spaces_in(given) == spaces


def test_more_spaces_than_the_name_of_a_file_can_have() -> None:
    many = [f"3x{values}" for values in range(2, 102)]
    assert spaces_in(",".join(many)) == many


def test_numbers_of_very_many_attributes() -> None:
    """The time grows with the number of attributes, not with its square."""
    assert MeaningSpace(100_000, 1).strides.tolist() == [1] * 100_000
