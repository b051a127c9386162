"""Rules of the multi-target games: lists of rules, random rules, and random objects that obey them or not.

A rule divides the objects of a world into groups: a group of objects that obey the rule, and a group for each subset of
its concepts that an object can lack. A group is a product of sets of values, one set per attribute, so an object of a
group needs one random number per attribute, and no rejection.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Integer
from numpy.typing import NDArray
from torch import Tensor

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.core.streams import stream
from icy.core.text import counted
from icy.languages.meanings import MeaningSpace

from .worlds.world import World

MOST_RULES = 1_000_000
SPLIT_SEED = 0  # the split does not depend on the seed of training
MANY = 1000  # number of rules from which on a tenth is held out
SHARE_OF_MANY, SHARE_OF_FEW = 0.1, 0.125
FREE = -1  # any value of an attribute
ATTEMPTS = 10  # tries to find two disjoint sets of rules that each contain every concept

Numbers = NDArray[np.int64]
RuleNumbers = Integer[Tensor, "*turn"]
Objects = Integer[Tensor, "*turn object attr"]
Groups = Integer[Tensor, "*turn object"]
Uniform = Float[Tensor, "*turn object attr"]
Phrases = Bool[Tensor, "*turn concept"]
Obeying = Bool[Tensor, "*turn object"]


def whole(numbers: Any) -> Integer[Tensor, "..."]:
    """Return whole numbers as a tensor on the CPU, whatever the default device is."""
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


class ObjectGroup(NamedTuple):
    """The objects that lack the same concepts of a rule.

    Attributes:
        obeys: whether the objects obey the rule.
        lacks: number of the rule's concepts that the objects lack.
        objects: number of objects in the group.
    """

    obeys: bool
    lacks: int
    objects: int


class RuleSplit(NamedTuple):
    """Numbers of the rules for training, and of the held-out rules."""

    seen: Integer[Tensor, " seen"]
    held_out: Integer[Tensor, " held"]


class RuleSource(ABC):
    """Base class: all rules of one kind in a world, from which the turns of a game are drawn.

    Subclasses say which objects obey a rule, because this depends on the kind: concepts together, or formulas.

    Attributes:
        world: the world.
        concepts: names of the concepts that occur in phrases.
        table: a row per rule; subclasses define the columns.
        groupings: the different divisions of objects into groups; each is a tuple of groups.
        samplings: names of the ways to draw rules, the default first.
    """

    samplings: tuple[str, ...] = ("uniform",)
    concepts: tuple[str, ...]
    groupings: tuple[tuple[ObjectGroup, ...], ...]

    def __init__(self, world: World, table: Integer[Tensor, "rule column"]) -> None:
        self.world = world
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def count(self) -> int:
        """Number of rules."""
        return len(self.table)

    def to(self, device: torch.device) -> Self:
        """Move the rules to a device."""
        moved = copy(self)
        for name, member in vars(self).items():
            if isinstance(member, Tensor):
                setattr(moved, name, member.to(device))
        return moved

    # -- methods of a kind of rules ----------------------------------------------------------------------------------

    @abstractmethod
    def grouping(self, rules: RuleNumbers) -> RuleNumbers:
        """Return the index of each rule's grouping in `groupings`.

        Args:
            rules: numbers of the rules.
        """

    @abstractmethod
    def draw(self, rules: RuleNumbers, groups: Groups, uniform: Uniform) -> Objects:
        """Draw objects uniformly from the given groups.

        Args:
            rules: numbers of the rules.
            groups: index of each object's group in the grouping of its rule.
            uniform: random numbers in [0, 1).
        """

    @abstractmethod
    def phrases(self, rules: RuleNumbers) -> Phrases:
        """Return which concepts are in the phrase of each rule."""

    @abstractmethod
    def obeys(self, rules: RuleNumbers, objects: Objects) -> Obeying:
        """Return which objects obey the rule of their turn."""

    @abstractmethod
    def name(self, rule: int) -> str:
        """Return a rule as text, as in "red and left"."""

    @abstractmethod
    def types(self) -> list[Integer[Tensor, " _"]]:
        """Return the rules of each type. A non-uniform draw takes a type uniformly, then a rule of this type."""

    # -- drawing of rules and objects --------------------------------------------------------------------------------

    def weights(self, sampling: str, among: Integer[Tensor, " some"] | None = None) -> Float[Tensor, " rule"]:
        """Return the probability of each rule.

        Args:
            sampling: method of drawing rules, one of `samplings`.
            among: numbers of the rules to draw from; by default all.

        Raises:
            UnknownNameError: `sampling` is not one of `samplings`.
        """
        require_known("way to draw these rules", sampling, self.samplings)
        some = torch.ones(len(self), dtype=torch.bool, device="cpu")
        if among is not None:
            some = torch.zeros_like(some).index_fill_(0, among, True)
        types = [torch.arange(len(self), device="cpu")] if sampling == "uniform" else self.types()
        types = [members[some[members]] for members in types if some[members].any()]
        probabilities = torch.zeros(len(self), dtype=torch.float64, device="cpu")
        for members in types:
            probabilities[members] = 1 / (len(types) * len(members))
        return probabilities

    def shares(self, kind: str) -> tuple[tuple[Fraction, ...], ...]:
        """Return the probability of each group in each grouping, for targets or a kind of distractors.

        Args:
            kind: "targets", or "uniform", "near", "nearest" or "groups" for distractors.
        """
        return tuple(_shares(grouping, kind) for grouping in self.groupings)

    def split(self, share: float | None = None, seed: int = SPLIT_SEED) -> RuleSplit:
        """Divide the rules into rules for training and held-out rules, such that every concept occurs in both parts.

        Held-out rules test whether agents combine known concepts to new phrases, so no concept may be new itself.

        Args:
            share: share of the rules, rounded up. By default an eighth, or a tenth of a thousand rules or more, but
                enough to contain every concept; 0 if no split has every concept in both parts.
            seed: seed of the random choice.

        Returns:
            The numbers of the rules of each part, in increasing order; `held_out` is empty if the share is 0.

        Raises:
            InvalidSettingError: with this share, one part would lack a concept.
        """
        covers = None if share == 0 else self._covers(seed)
        if share == 0 or (share is None and covers is None):
            return RuleSplit(torch.arange(len(self), device="cpu"), torch.arange(0, device="cpu"))
        if covers is None:
            raise InvalidSettingError(
                f"None of these {counted(len(self), 'rule')} can be held out, because every concept must also occur in "
                "training; hold out 0."
            )
        order, first, other = covers
        least, most = len(first), len(self) - len(other)
        usual = SHARE_OF_MANY if len(self) >= MANY else SHARE_OF_FEW
        count = math.ceil(len(self) * (usual if share is None else share) - 1e-9)  # rounded up
        count = max(count, least) if share is None else count
        if not least <= count <= most:
            raise InvalidSettingError(
                f"With {count} of {counted(len(self), 'rule')} held out, one part would lack a concept; hold out "
                f"{least} to {most} rules, a share of {least / len(self):.3g} to {most / len(self):.3g}."
            )
        free = order[~np.isin(order, np.concatenate([first, other]))]
        held_out = np.sort(np.concatenate([first, free])[:count])
        seen = np.setdiff1d(np.arange(len(self)), held_out)
        return RuleSplit(torch.from_numpy(seen), torch.from_numpy(held_out))

    def _covers(self, seed: int) -> tuple[Numbers, Numbers, Numbers] | None:
        """Return the rules in random order and two disjoint sets with every concept in each; None if impossible."""
        for attempt in range(ATTEMPTS):
            order = stream(seed, "games", "held-out rules", attempt).permutation(len(self))
            first = self._cover(order)
            other = self._cover(order[~np.isin(order, first)][::-1])
            if len(first) and len(other):
                return order, first, other
        return None

    def _cover(self, order: Numbers) -> Numbers:
        """Choose a few rules that together contain every concept (greedily; earlier rules first).

        Return no rules if a concept occurs in none.
        """
        phrases = self.phrases(torch.from_numpy(np.ascontiguousarray(order))).numpy()
        missing = np.ones(len(self.concepts), dtype=bool)
        chosen_rules: list[int] = []
        while missing.any():
            new_concepts = (phrases & missing).sum(1) if len(phrases) else np.zeros(1)
            if not new_concepts.max():
                return order[:0]
            chosen_rules.append(int(new_concepts.argmax()))
            missing &= ~phrases[chosen_rules[-1]]
        return order[chosen_rules]


def _shares(grouping: Sequence[ObjectGroup], kind: str) -> tuple[Fraction, ...]:
    possible = [g.objects > 0 and g.obeys == (kind == "targets") for g in grouping]
    if kind in ("targets", "uniform"):
        weights = [Fraction(g.objects) for g in grouping]
    elif kind == "groups":
        weights = [Fraction(1)] * len(grouping)
    else:  # near: first the number of missing concepts, then these concepts; nearest: the smallest possible number
        ways = Counter(g.lacks for g, one in zip(grouping, possible, strict=True) if one)
        possible = [one and (kind == "near" or g.lacks == min(ways)) for g, one in zip(grouping, possible, strict=True)]
        weights = [Fraction(1, max(ways[g.lacks], 1)) for g in grouping]
    weights = [weight if one else Fraction(0) for weight, one in zip(weights, possible, strict=True)]
    return tuple(weight / sum(weights) for weight in weights)


class Rules(RuleSource):
    """All conjunctions of `length` concepts of different attributes (CBM24).

    The table [rule, attr] has the value of each attribute that a rule demands, or -1 for any value. The number of a
    group in its grouping is a bit mask: bit k is set if the objects lack the rule's k-th concept. The objects of group
    0 obey the rule.

    Example:
        >>> from icy.games import Rules, make_world
        >>> rules = Rules.of(make_world("thing"), 2)
        >>> rules.count, rules.table[0].tolist(), rules.name(0)
        (1000, [0, 0, -1, -1, -1], '1.1 and 2.1')
    """

    samplings = ("attribute-first", "uniform")

    @classmethod
    def of(cls, world: World, length: int) -> "Rules":
        """Return the rules of `length` concepts in a world.

        Raises:
            InvalidSettingError: the world has no rules of this length, or too many to list.
        """
        whole_number("rule length", length)
        if min(world.sizes) < 2:
            raise InvalidSettingError("Every attribute of a world needs at least two values; one has fewer.")
        if length > len(world.sizes):
            raise InvalidSettingError(
                f"A rule of length {length} needs {counted(length, 'attribute')}, and the world has "
                f"{counted(len(world.sizes), 'attribute')}; take shorter rules."
            )
        chosen = list(itertools.combinations(range(len(world.sizes)), length))
        count = sum(math.prod(world.sizes[a] for a in some) for some in chosen)
        if count > MOST_RULES:
            raise InvalidSettingError(
                f"There are {count:,} rules of length {length} in this world, and at most {MOST_RULES:,} can be "
                "listed; take shorter rules, or fewer attributes or values."
            )
        return cls(world, length, chosen)

    def __init__(self, world: World, length: int, chosen: Sequence[Sequence[int]]) -> None:
        tables = [_products(world.sizes, some) for some in chosen]
        super().__init__(world, torch.from_numpy(np.concatenate(tables)))
        self.length = length
        self.concepts = world.concepts
        self.groupings = tuple(_groups_of([world.sizes[a] for a in some]) for some in chosen)
        self._grouping = torch.arange(len(chosen), device="cpu").repeat_interleave(whole([len(t) for t in tables]))
        self._sizes, self._first = whole(world.sizes), whole(world.first_concepts)

    def grouping(self, rules: RuleNumbers) -> RuleNumbers:
        """Return the index of each rule's grouping, which depends on the rule's attributes."""
        return self._grouping[rules]

    def draw(self, rules: RuleNumbers, groups: Groups, uniform: Uniform) -> Objects:
        """Draw objects of the given groups; see the base class."""
        demanded = self.table[rules][..., None, :]
        fixed = demanded != FREE
        bit = fixed.cumsum(-1) - 1
        lacking = fixed & ((groups[..., None] >> bit.clamp_(min=0)) & 1).bool()
        values = (uniform * (self._sizes - lacking.long())).long()
        values += (lacking & (values >= demanded)).long()  # any value except the demanded value
        return torch.where(fixed & ~lacking, demanded, values)

    def phrases(self, rules: RuleNumbers) -> Phrases:
        """Return which concepts each rule demands."""
        demanded = self.table[rules]
        phrases = torch.zeros(*rules.shape, len(self.concepts) + 1, dtype=torch.bool, device=rules.device)
        places = torch.where(demanded == FREE, len(self.concepts), demanded + self._first)
        return phrases.scatter_(-1, places, True)[..., :-1]

    def obeys(self, rules: RuleNumbers, objects: Objects) -> Obeying:
        """Return which objects have all values that the rule of their turn demands."""
        demanded = self.table[rules][..., None, :]
        return ((demanded == FREE) | (demanded == objects)).all(-1)

    def name(self, rule: int) -> str:
        """Return a rule as text, as in "red and left"."""
        phrase = self.phrases(whole(rule))
        return " and ".join(itertools.compress(self.concepts, phrase.tolist()))

    def types(self) -> list[Integer[Tensor, " _"]]:
        """Return the rules for each combination of attributes."""
        return [(self._grouping == place).nonzero()[:, 0] for place in range(len(self.groupings))]


def _products(sizes: Sequence[int], some: Sequence[int]) -> Numbers:
    """Return all rules that demand values of the given attributes [rule, attr]."""
    values = MeaningSpace.of_sizes(*(sizes[a] for a in some)).all()
    table = np.full((len(values), len(sizes)), FREE)
    table[:, list(some)] = values
    return table


def _groups_of(sizes: Sequence[int]) -> tuple[ObjectGroup, ...]:
    """Return the groups of a rule, for the numbers of values of its attributes.

    Other attributes multiply all numbers of objects by the same factor, so they are left out.
    """
    lacking = [[n >> place & 1 for place in range(len(sizes))] for n in range(2 ** len(sizes))]
    return tuple(
        ObjectGroup(not any(bits), sum(bits), math.prod(s - 1 for s, bit in zip(sizes, bits, strict=True) if bit))
        for bits in lacking
    )
