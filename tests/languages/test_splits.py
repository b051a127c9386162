"""Splits of a meaning space: what is held out, and what must stay."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.languages.meanings import IntArray, MeaningSpace
from icy.languages.splits import SPLITS, Split

SPACES = st.builds(MeaningSpace, st.integers(2, 4), st.integers(2, 5))
SHARES = st.floats(0, 1, exclude_min=True, exclude_max=True)


def rest(space: MeaningSpace, held_out: IntArray) -> IntArray:
    return np.setdiff1d(np.arange(space.size), held_out)


def pairs(space: MeaningSpace, numbers: IntArray, first: int, second: int) -> set[tuple[int, int]]:
    return {(int(m[first]), int(m[second])) for m in space.meanings(numbers)}


@given(SPACES, SHARES, st.sampled_from(list(SPLITS)), st.integers(0, 100))
def test_a_split_is_of_the_share_asked_for_and_leaves_every_value(
    space: MeaningSpace, share: float, kind: str, seed: int
) -> None:
    drawn = space.size if kind == "random" else space.values**2
    count = round(share * drawn)
    split = Split(kind, share)
    if count == 0 or drawn - count < space.values:
        with pytest.raises(InvalidSettingError, match=r"hold out a (larger|smaller) share\.$"):
            split.held_out(space, seed)
        return
    held_out = split.held_out(space, seed)
    assert len(held_out) == len(set(held_out.tolist())) == count * space.size // drawn
    assert (np.diff(held_out) > 0).all()
    left = space.meanings(rest(space, held_out))
    for attribute in range(space.attributes):
        assert set(left[:, attribute].tolist()) == set(range(space.values))


@pytest.mark.parametrize("seed", range(20))
def test_combinations_hold_out_whole_pairs_of_values_of_two_attributes(seed: int) -> None:
    space = MeaningSpace(4, 5)
    held_out = Split("combinations", 0.2).held_out(space, seed)
    left = rest(space, held_out)
    unseen = {
        attributes: pairs(space, held_out, *attributes) - pairs(space, left, *attributes)
        for attributes in combinations(range(space.attributes), 2)
    }
    assert sorted(map(len, unseen.values())) == [0, 0, 0, 0, 0, 5]  # 0.2 of 25 pairs
    assert len(held_out) == 5 * 5**2  # every meaning with one of them


def test_each_seed_has_its_own_attributes_and_pairs() -> None:
    space, found = MeaningSpace(3, 4), set()
    for seed in range(40):
        held_out = Split("combinations", 0.3).held_out(space, seed)
        found |= {
            c for c in combinations(range(3), 2) if pairs(space, held_out, *c) - pairs(space, rest(space, held_out), *c)
        }
    assert found == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("kind", SPLITS)
def test_a_split_depends_on_the_seed_alone_and_smaller_ones_lie_in_larger_ones(kind: str) -> None:
    space = MeaningSpace(3, 5)
    small, large = (set(Split(kind, share).held_out(space, 7).tolist()) for share in (0.2, 0.5))
    assert small < large
    assert Split(kind, 0.2).held_out(space, 7).tolist() == sorted(small)
    assert Split(kind, 0.2).held_out(space, 8).tolist() != sorted(small)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPLITS)
def test_all_meanings_are_equally_likely_to_be_held_out(kind: str) -> None:
    space, seeds = MeaningSpace(2, 3), 3000
    counts = np.zeros(space.size)
    for seed in range(seeds):
        counts[Split(kind, 0.3).held_out(space, seed)] += 1
    share = 3 / 9
    assert np.abs(counts / seeds - share).max() < 4.5 * np.sqrt(share * (1 - share) / seeds)


@pytest.mark.parametrize(
    ("kind", "share", "space", "words"),
    [
        ("random", 0.2, (1, 10), "has one attribute"),
        ("combinations", 0.2, (1, 10), "has one attribute"),
        ("random", 0.01, (2, 3), "is less than one"),
        ("combinations", 0.002, (5, 10), "0.002 of the 100 pairs of values"),
        ("random", 0.9, (2, 3), "1 would remain"),
        ("combinations", 0.95, (5, 10), "5 would remain"),
        ("random", 0.5, (3, 1), "nothing would be held out"),
    ],
)
def test_spaces_that_cannot_be_split(kind: str, share: float, space: tuple[int, int], words: str) -> None:
    with pytest.raises(InvalidSettingError, match=words) as caught:
        Split(kind, share).check(MeaningSpace(*space))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "a", None, True])
def test_a_share_that_cannot_be(share: Any) -> None:
    with pytest.raises(InvalidSettingError, match="above 0 and below 1"):
        Split("random", share)


def test_an_unknown_kind() -> None:
    with pytest.raises(UnknownNameError, match="combinations"):
        Split("combination")


@given(st.lists(st.integers(2, 5), min_size=2, max_size=3), st.sampled_from(list(SPLITS)), st.integers(0, 50))
def test_attributes_of_several_sizes_keep_every_value_too(sizes: list[int], kind: str, seed: int) -> None:
    space, split = MeaningSpace.of_sizes(*sizes), Split(kind, 0.2)
    try:
        held_out = split.held_out(space, seed)
    except InvalidSettingError:
        return
    left = space.meanings(rest(space, held_out))
    assert 0 < len(held_out) < space.size
    for attribute, size in enumerate(space.size_of_each):
        assert set(left[:, attribute].tolist()) == set(range(size))


@given(st.data(), st.sampled_from(list(SPLITS)), st.integers(0, 50))
def test_of_meanings_that_exist_a_share_of_these_is_held_out(data: st.DataObject, kind: str, seed: int) -> None:
    space = MeaningSpace.of_sizes(4, 3, 3)
    existing = np.array(sorted(data.draw(st.sets(st.integers(0, space.size - 1), min_size=1))))
    try:
        trained_on, held_out = Split(kind, 0.3).parts(space, seed, existing)
    except InvalidSettingError:
        return
    assert sorted([*trained_on, *held_out]) == existing.tolist()
    assert len(trained_on) * len(held_out) > 0
    if kind == "random":
        assert len(held_out) == round(0.3 * len(existing))
        known, left = space.meanings(existing), space.meanings(trained_on)
        assert [set(column) for column in left.T] == [set(column) for column in known.T]


@pytest.mark.parametrize("kind", SPLITS)
def test_a_table_of_all_meanings_has_the_split_of_the_space(kind: str) -> None:
    space, split = MeaningSpace(3, 4), Split(kind, 0.3)
    assert split.held_out(space, 5, np.arange(space.size)).tolist() == split.held_out(space, 5).tolist()


def test_combinations_of_meanings_that_exist_hold_out_whole_pairs() -> None:
    space = MeaningSpace(2, 6)
    existing = np.flatnonzero(np.random.default_rng(0).random(space.size) < 0.8)
    held_out = Split("combinations", 0.2).held_out(space, 3, existing)
    assert len(held_out) == round(0.2 * len(existing))  # of two attributes, a pair is a meaning


def test_few_meanings_of_a_small_table_stay_in_training_to_show_every_value() -> None:
    space = MeaningSpace(3, 5)
    existing = np.sort(space.index(np.array([[v, v, (v + more) % 5] for v in range(5) for more in (0, 1)])))
    assert {len(Split("random", 0.4).held_out(space, seed, existing)) for seed in range(50)} == {4}
