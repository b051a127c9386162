"""Rules: numbers, sampling, held-out rules, and exact shares of groups of objects."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float, Integer
from torch import Tensor

from icy.games import Rules, World, make_world


class Uneven(World):
    """A world with attributes of 2, 3 and 4 values."""

    attributes = ("a", "b", "c")
    values = tuple(tuple(f"{a}{v}" for v in range(n)) for a, n in zip("abc", (2, 3, 4), strict=True))
    shape = (3,)

    def observe(self, objects: Integer[Tensor, "*batch attr"], keys: Any) -> Float[Tensor, "*batch attr"]:
        return objects.float()


class Lonely(Uneven):
    """A world with an attribute of one value."""

    values = (("a0",), *Uneven.values[1:])


THING, SHAPE = make_world("thing"), make_world("shape")


def every_object(world: World) -> Tensor:
    return torch.cartesian_prod(*(torch.arange(size) for size in world.sizes))


@pytest.mark.parametrize(
    ("world", "counts"), [(THING, (50, 1000, 10_000, 50_000, 100_000)), (SHAPE, (17, 105, 279, 270))]
)
def test_numbers_of_rules_equal_the_paper(world: World, counts: tuple[int, ...]) -> None:
    for length, count in enumerate(counts, 1):
        rules = Rules.of(world, length)
        assert rules.count == len(rules) == count
        assert ((rules.table >= 0).sum(1) == length).all()
        assert len(rules.table.unique(dim=0)) == count


@pytest.mark.parametrize("length", [1, 2, 3])
def test_rules_and_phrases_agree(length: int) -> None:
    world, rules = Uneven(), Rules.of(Uneven(), length)
    objects = every_object(world)
    obey = rules.obeys(torch.arange(rules.count), objects.expand(rules.count, -1, -1))
    for rule, row in enumerate(rules.table.tolist()):
        demanded = {f"{'abc'[a]}{v}" for a, v in enumerate(row) if v >= 0}
        assert set(rules.name(rule).split(" and ")) == demanded
        assert set(itertools.compress(world.concepts, rules.phrases(torch.tensor(rule)))) == demanded
        expected = [all(v in (-1, has) for v, has in zip(row, one, strict=True)) for one in objects.tolist()]
        assert obey[rule].tolist() == expected


def test_attribute_first_makes_concepts_of_small_attributes_frequent() -> None:
    weights = Rules.of(SHAPE, 1).weights("attribute-first").tolist()
    assert weights == pytest.approx([1 / 20] * 5 + [1 / 24] * 6 + [1 / 12] * 6, abs=1e-15)
    assert Rules.of(SHAPE, 1).weights("uniform").tolist() == pytest.approx([1 / 17] * 17)
    assert Rules.of(SHAPE, 4).weights("attribute-first").tolist() == pytest.approx([1 / 270] * 270)


def test_attribute_first_also_draws_from_seen_rules() -> None:
    rules = Rules.of(SHAPE, 2)
    for part in rules.split():
        weights = rules.weights("attribute-first", part)
        assert weights.nonzero()[:, 0].tolist() == part.tolist()
        shares = torch.bincount(rules.grouping(part), weights[part], minlength=6)
        assert shares[shares > 0].tolist() == pytest.approx([1 / int((shares > 0).sum())] * int((shares > 0).sum()))
    assert rules.weights("uniform", part)[part].tolist() == pytest.approx([1 / len(part)] * len(part))


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 3])
def test_uniform_shares_count_the_objects_that_do_not_obey(length: int) -> None:
    world, rules = Uneven(), Rules.of(Uneven(), length)
    shares = rules.shares("uniform")
    for rule, place in enumerate(rules.grouping(torch.arange(rules.count)).tolist()):
        counts: Counter[int] = Counter()
        for one in every_object(world).tolist():
            demanded = [(v, has) for v, has in zip(rules.table[rule].tolist(), one, strict=True) if v >= 0]
            counts[sum(2**bit for bit, (v, has) in enumerate(demanded) if v != has)] += 1
        wrong = sum(counts.values()) - counts[0]
        assert list(shares[place]) == [0, *(Fraction(counts[n], wrong) for n in range(1, 2**length))]


def test_one_known_concept_of_four_reaches_the_published_bounds() -> None:
    """A receiver that checks only one concept is right about all targets, and about distractors that lack it."""
    rules = Rules.of(THING, 4)
    for kind, accuracy in (
        ("uniform", Fraction(1, 2) + Fraction(9000, 2 * 9999)),
        ("near", Fraction(13, 16)),
        ("nearest", Fraction(5, 8)),
    ):
        for literal in range(4):
            (lacks,) = {sum(s for n, s in enumerate(row) if n >> literal & 1) for row in rules.shares(kind)}
            assert (1 + lacks) / 2 == accuracy


def test_near_distractors_are_uniform_over_numbers_of_lacking_concepts() -> None:
    for row in Rules.of(SHAPE, 3).shares("near"):
        assert [sum(s for n, s in enumerate(row) if n.bit_count() == k) for k in range(4)] == [0, *[Fraction(1, 3)] * 3]
        assert len({s for n, s in enumerate(row) if n.bit_count() == 2}) == 1


def test_groups_equal_mu_and_goodman() -> None:
    assert set(Rules.of(SHAPE, 2).shares("groups")) == {(0, *[Fraction(1, 3)] * 3)}
    assert set(Rules.of(SHAPE, 2).shares("targets")) == {(1, 0, 0, 0)}


@pytest.mark.parametrize("group", range(8))
def test_objects_of_a_group_are_drawn_uniformly(group: int) -> None:
    """A grid of uniform numbers gives every object of the group equally often."""
    rules, rule = Rules.of(Uneven(), 3), torch.tensor([13])
    grid = torch.cartesian_prod(*[(torch.arange(12) + 0.5) / 12] * 3).double()
    objects = rules.draw(rule, torch.full((1, len(grid)), group), grid[None])[0]
    found = Counter(map(tuple, objects.tolist()))
    demanded = rules.table[13].tolist()
    right = [
        one
        for one in map(tuple, every_object(Uneven()).tolist())
        if sum(2**bit for bit, (v, has) in enumerate(zip(demanded, one, strict=True)) if v != has) == group
    ]
    assert set(found) == set(right)
    assert set(found.values()) == {len(grid) // len(right)}


# -- holding out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "length", "held_out"), [(THING, 4, 5000), (THING, 2, 100), (SHAPE, 4, 34)])
def test_as_many_phrases_are_held_out_as_in_the_paper(world: World, length: int, held_out: int) -> None:
    rules = Rules.of(world, length)
    split = rules.split()
    assert len(split.held_out) == held_out
    assert torch.cat(split).sort().values.tolist() == list(range(rules.count))
    for part in split:
        assert rules.phrases(part).any(0).all()


def test_a_split_depends_only_on_its_seed() -> None:
    rules = Rules.of(SHAPE, 4)
    assert rules.split(0.2).held_out.tolist() == rules.split(0.2).held_out.tolist()
    assert rules.split(0.2).held_out.tolist() != rules.split(0.2, seed=1).held_out.tolist()


def test_shares_that_are_too_small_or_too_large_are_rejected() -> None:
    rules = Rules.of(SHAPE, 4)
    assert len(rules.split(6 / 270).held_out) == 6
    assert len(rules.split(0).held_out) == 0


@given(st.integers(2, 3), st.integers(2, 4), st.data())
def test_the_default_share_works_in_every_world(attributes: int, values: int, data: st.DataObject) -> None:
    rules = Rules.of(make_world("thing", attributes=attributes, values=values), data.draw(st.integers(1, attributes)))
    split = rules.split()
    assert bool(len(split.held_out)) == (rules.length > 1)
    for part in split if len(split.held_out) else split[:1]:
        assert rules.phrases(part).any(0).all()


# -- rejected values ---------------------------------------------------------------------------------------------------
