"""Rules that are logical formulas: concepts, their negations, and pairs of these (Mu & Goodman 2021)."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Integer
from torch import Tensor

from icy.core.errors import InvalidSettingError

from .rules import MOST_RULES, Groups, Obeying, ObjectGroup, Objects, Phrases, RuleNumbers, RuleSource, Uniform, whole
from .worlds.world import World

SINGLE, AND, OR = range(3)
WORDS = {AND: "and", OR: "or"}
Values = frozenset[int]
GROUPS = ((True, True), (True, False), (False, True), (False, False))  # whether the first and the second literal hold


class Literal(NamedTuple):
    """A concept or its negation: an attribute, and the values for which it holds."""

    attribute: int
    values: Values
    name: str


class Formulas(RuleSource):
    """All formulas of one or two literals. A literal is a concept or its negation.

    Two literals are joined by "and" or "or". Formulas that hold for no object or for all objects are left out, as are
    formulas equivalent to a shorter or earlier formula. The world of Mu & Goodman (5 shapes, 6 colors) has 312:
    22 literals, 145 conjunctions and 145 disjunctions. A row of the table has two literals and their connective: 0 for
    a single literal, 1 for "and", 2 for "or". A phrase consists of the literals, and of the word "or" if it joins them.

    Raises:
        InvalidSettingError: the world has too many formulas to list.

    Example:
        >>> from icy.games import Formulas, make_world
        >>> formulas = Formulas(make_world("shape", positions=0))
        >>> formulas.count, formulas.name(0), formulas.name(30), formulas.name(311)
        (312, 'circle', 'circle and not green', 'not triangle or not gray')
    """

    samplings = ("type-first", "uniform")

    def __init__(self, world: World) -> None:
        self.literals = _literals(world)
        if len(self.literals) ** 2 > MOST_RULES:
            raise InvalidSettingError(
                f"There are about {len(self.literals) ** 2:,} formulas in this world, and at most {MOST_RULES:,} can "
                "be listed; take fewer attributes or values."
            )
        super().__init__(world, whole(_formulas(self.literals, world.sizes)))
        self.concepts = (*(literal.name for literal in self.literals), WORDS[OR])
        self._attribute = whole([literal.attribute for literal in self.literals])
        most = max(world.sizes)
        self._holds = whole([[v in literal.values for v in range(most)] for literal in self.literals]).bool()
        self._list_groups()

    def _list_groups(self) -> None:
        """List the allowed values of each attribute, for each group of each rule."""
        sizes = self.world.sizes
        parts = [_parts(self.literals, row, sizes) for row in self.table.tolist()]
        distinct = list(dict.fromkeys(values for groups in parts for values in itertools.chain(*groups)))
        number = {values: place for place, values in enumerate(distinct)}
        self._sets = whole([[[number[values] for values in one] for one in groups] for groups in parts])
        self._members = whole([(sorted(values) + [0] * max(sizes))[: max(sizes)] for values in distinct])
        self._counts = whole([len(values) for values in distinct])
        joins = self.table[:, 2].tolist()
        self.groupings = tuple(
            tuple(
                ObjectGroup(any(held) if join == OR else all(held), 2 - sum(held), math.prod(map(len, one)))
                for held, one in zip(GROUPS, groups, strict=True)
            )
            for join, groups in zip(joins, parts, strict=True)
        )

    def grouping(self, rules: RuleNumbers) -> RuleNumbers:
        """Return the index of each rule's grouping: the rule's own number."""
        return rules

    def draw(self, rules: RuleNumbers, groups: Groups, uniform: Uniform) -> Objects:
        """Draw objects of the given groups; see the base class."""
        sets = self._sets[rules[..., None], groups]
        return self._members[sets, (uniform * self._counts[sets]).long()]

    def phrases(self, rules: RuleNumbers) -> Phrases:
        """Return which words each formula's phrase has: its literals, and "or" if it joins them."""
        first, second, join = self.table[rules].unbind(-1)
        phrases = torch.zeros(*rules.shape, len(self.concepts), dtype=torch.bool, device=rules.device)
        phrases.scatter_(-1, torch.stack([first, second], -1), True)
        phrases[..., -1] = join == OR
        return phrases

    def obeys(self, rules: RuleNumbers, objects: Objects) -> Obeying:
        """Return which objects obey the formula of their turn."""
        first, second, join = self.table[rules].unbind(-1)
        one, other = (self._hold(literal, objects) for literal in (first, second))
        return torch.where((join == OR)[..., None], one | other, one & other)

    def _hold(self, literals: RuleNumbers, objects: Objects) -> Obeying:
        attributes = self._attribute[literals][..., None, None].expand(*objects.shape[:-1], 1)
        return self._holds[literals[..., None], objects.gather(-1, attributes)[..., 0]]

    def name(self, rule: int) -> str:
        """Return a formula as text, as in "square and not yellow"."""
        first, second, join = self.table[rule].tolist()
        names = [self.literals[first].name, self.literals[second].name]
        return names[0] if join == SINGLE else f" {WORDS[join]} ".join(names)

    def types(self) -> list[Integer[Tensor, " _"]]:
        """Return the formulas of each type: single literals, conjunctions and disjunctions."""
        types = ((self.table[:, 2] == join).nonzero()[:, 0] for join in (SINGLE, AND, OR))
        return [members for members in types if len(members)]


def _literals(world: World) -> list[Literal]:
    """Return the concepts of a world, then their negations, without literals equivalent to earlier ones."""
    concepts = [
        Literal(attribute, frozenset([value]), world.concepts[world.first_concepts[attribute] + value])
        for attribute, size in enumerate(world.sizes)
        for value in range(size)
    ]
    everything = [frozenset(range(size)) for size in world.sizes]
    negations = [Literal(one.attribute, everything[one.attribute] - one.values, f"not {one.name}") for one in concepts]
    distinct: dict[tuple[int, Values], Literal] = {}
    for literal in (*concepts, *negations):
        distinct.setdefault(literal[:2], literal)
    return list(distinct.values())


def _formulas(literals: Sequence[Literal], sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the formulas as rows of the table. A single literal is in both literal columns."""
    rows = [(place, place, SINGLE) for place in range(len(literals))]
    known = {literal[:2] for literal in literals}
    for (i, one), (j, other) in itertools.combinations(enumerate(literals), 2):
        for join in (AND, OR):
            if one.attribute == other.attribute:
                values = one.values & other.values if join == AND else one.values | other.values
                if (one.attribute, values) in known or len(values) in (0, sizes[one.attribute]):
                    continue
                known.add((one.attribute, values))
            rows.append((i, j, join))
    return sorted(rows, key=lambda row: row[2])


def _parts(literals: Sequence[Literal], row: Sequence[int], sizes: Sequence[int]) -> list[list[Values]]:
    """Return the possible values of each attribute, for each combination in GROUPS of literals that hold."""
    everything = [frozenset(range(size)) for size in sizes]
    parts = []
    for held in GROUPS:
        part = list(everything)
        for holds, place in zip(held, row, strict=False):
            attribute, values, _ = literals[place]
            part[attribute] &= values if holds else everything[attribute] - values
        parts.append(part)
    return parts
