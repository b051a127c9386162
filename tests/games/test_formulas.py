"""The formulas of Mu & Goodman: numbers, meaning, groups and split."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
import torch

from icy.games import Formulas, Rules, Turns, TurnSettings, make_world

WORLD = make_world("shape", positions=0)
FORMULAS = Formulas(WORLD)
OBJECTS = torch.cartesian_prod(torch.arange(5), torch.arange(6))
EXTENSIONS = FORMULAS.obeys(torch.arange(312), OBJECTS.expand(312, -1, -1))


def number(name: str) -> int:
    return next(n for n in range(FORMULAS.count) if FORMULAS.name(n) == name)


def test_there_are_312_of_three_types() -> None:
    assert FORMULAS.count == 312
    assert [len(members) for members in FORMULAS.types()] == [22, 145, 145]
    weights = FORMULAS.weights("type-first")
    assert weights[0].item() == pytest.approx(1 / 66)
    assert weights[-1].item() == pytest.approx(1 / (3 * 145))
    assert weights.sum().item() == pytest.approx(1)


def test_the_split_equals_the_paper() -> None:
    split = FORMULAS.split(0.2)
    assert [len(part) for part in split] == [249, 63]
    for part in split:
        assert FORMULAS.phrases(part).any(0).all()
    assert [len(part) for part in Rules.of(WORLD, 2).split(0.2)] == [24, 6]


def test_formulas_hold_for_different_nontrivial_sets_of_objects() -> None:
    assert len(EXTENSIONS.unique(dim=0)) == 312
    assert EXTENSIONS.any(1).all()
    assert not EXTENSIONS.all(1).any()


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("not red", lambda shape, colour: colour != "red"),
        ("square and not yellow", lambda shape, colour: shape == "square" and colour != "yellow"),
        ("not circle and not square", lambda shape, colour: shape not in ("circle", "square")),
        ("red or not triangle", lambda shape, colour: colour == "red" or shape != "triangle"),
        ("red or blue", lambda shape, colour: colour in ("red", "blue")),
    ],
)
def test_formulas_hold_according_to_their_names(name: str, holds: object) -> None:
    rule = number(name)
    expected = [holds(WORLD.values[0][s], WORLD.values[1][c]) for s, c in OBJECTS.tolist()]  # type: ignore[operator]
    assert EXTENSIONS[rule].tolist() == expected
    literals = set(name.replace(" and ", " or ").split(" or ")) | ({"or"} if " or " in name else set())
    shown = {c for c, has in zip(FORMULAS.concepts, FORMULAS.phrases(torch.tensor(rule)).tolist(), strict=True) if has}
    assert shown == literals


def test_distractors_are_uniform_over_groups() -> None:
    both = FORMULAS.shares("groups")
    assert both[number("square and not yellow")] == (0, *[Fraction(1, 3)] * 3)
    assert both[number("not circle and not square")] == (0, Fraction(1, 2), Fraction(1, 2), 0)  # no object lacks both
    assert both[number("square or yellow")] == (0, 0, 0, 1)
    assert both[number("red")] == (0, 0, 0, 1)
    targets = FORMULAS.shares("targets")[number("square or yellow")]
    assert targets == (Fraction(1, 10), Fraction(5, 10), Fraction(4, 10), 0)  # uniform over the ten objects that obey


@pytest.mark.parametrize("kind", ["groups", "near", "nearest", "uniform"])
def test_turns_obey_formulas(kind: str) -> None:
    settings = TurnSettings(
        targets=5, distractors=7, rules="formulas", rule_sampling="type-first", distractor_kind=kind, held_out=0.2
    )
    turns = Turns(WORLD, settings, [1])
    for purpose in ("training", "test"):
        batch = turns.batch(purpose, 0, 50, 40)
        obey = turns.rules.obeys(batch.numbers, batch.objects)
        assert obey[..., :5].all()
        assert not obey[..., 5:].any()


def test_uniform_distractors_are_uniform() -> None:
    rule = number("square and not yellow")
    groups = torch.arange(4)[None].repeat_interleave(400, 1)
    grid = torch.cartesian_prod(*[(torch.arange(20) + 0.5) / 20] * 2).double().repeat(4, 1)
    drawn = FORMULAS.draw(torch.tensor([rule]), groups, grid[None])[0]
    shares = FORMULAS.shares("uniform")[rule]
    found: Counter[tuple[int, ...]] = Counter()
    for group, one in zip(groups[0].tolist(), drawn.tolist(), strict=True):
        found[tuple(one)] += shares[group]
    wrong = OBJECTS[~EXTENSIONS[rule]].tolist()
    assert {one: share / 400 for one, share in found.items() if share} == {tuple(o): Fraction(1, 25) for o in wrong}


def test_redundant_negations_are_left_out() -> None:
    two = Formulas(make_world("thing", attributes=1, values=2))
    assert [two.name(n) for n in range(two.count)] == ["1.1", "1.2"]
    four = Formulas(make_world("thing", attributes=1, values=4))
    assert four.count == 4 + 4 + 6  # a pair of values, or the other pair
