"""Turns of the multi-target games, drawn in batches for several replicates at once.

A turn has a rule, T objects that obey it, and D objects that do not (CBM24, section 2). Every random number is a hash
of the training seed, the purpose, the index of the turn, and the index of the object in the turn. So turns do not
depend on earlier steps, on the device, or on other replicates of a stack.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from icy.core import native
from icy.core.errors import InvalidSettingError, require_known
from icy.core.native import address
from icy.core.noise import counter_hash, shift
from icy.core.streams import stream_key
from icy.models.native.calls import PACKAGE, POINTER, TurnDraws

from .formulas import Formulas
from .rules import Rules, RuleSource, RuleSplit, whole
from .settings import TurnSettings
from .worlds.world import World

# -- draw the objects of turns in compiled code, for conjunctions on a CPU. The numbers equal PyTorch's exactly --------


def can_draw(rules: RuleSource) -> bool:
    """Return whether compiled code can draw objects of these rules."""
    return type(rules) is Rules and rules.table.device.type == "cpu" and native.load(PACKAGE) is not None


def draw_objects(
    rules: Rules,
    numbers: Integer[Tensor, "*turn"],
    keys: Integer[Tensor, "*turn"],
    shares: Float[Tensor, "grouping border"],
    stream: int,
    count: int,
) -> tuple[Integer[Tensor, "*turn object attr"], Integer[Tensor, "*turn object"]]:
    """Draw the objects of turns, and the keys of their looks.

    Args:
        rules: the rules.
        numbers: number of each turn's rule.
        keys: key of each turn.
        shares: cumulative probabilities of the groups of each grouping, without the last.
        stream: stream of random numbers of a turn for objects of this kind.
        count: number of objects per turn.
    """
    library = native.load(PACKAGE)
    assert library is not None
    function = library.function("icy_turns", None, POINTER)
    numbers, keys, shares = numbers.contiguous(), keys.contiguous(), shares.contiguous()
    turns, (size, attributes) = numbers.numel(), rules.table.shape
    groupings, sizes = rules.grouping(numbers), numbers.new_tensor(rules.world.sizes)
    values, looks = numbers.new_empty(*numbers.shape, count, attributes), numbers.new_empty(*numbers.shape, count)
    draws = TurnDraws(
        turns, count, attributes, stream, shares.shape[-1], address(keys, "int64", turns, "keys"),
        address(numbers, "int64", turns, "numbers"), address(rules.table, "int64", size * attributes, "table"),
        address(groupings, "int64", turns, "groupings"), address(shares, "float64", shares.numel(), "shares"),
        address(sizes, "int64", attributes, "sizes"), values.data_ptr(), looks.data_ptr(),
    )  # fmt: skip
    function(ctypes.addressof(draws))
    return values, looks


TRAINING, VALIDATION, TEST, TEST_SEEN = "training", "validation", "test", "test-seen"
PURPOSES = (TRAINING, VALIDATION, TEST, TEST_SEEN)
EVALUATION_SEED = 0  # seed of the turns in evaluations, which do not depend on the training seed
# Streams of random numbers of a turn, and of an object.
RULE, TARGETS, DISTRACTORS, SENDER_TARGETS, SENDER_DISTRACTORS = range(5)
GROUP, LOOK, VALUES = range(3)


@dataclass
class TurnBatch:
    """A batch of turns, for several steps and replicates.

    Attributes:
        rules: each turn's rule, as its row in the table of rules. For conjunctions, the demanded value of each
            attribute; -1 if any value is allowed.
        numbers: index of each turn's rule among all rules of the game.
        objects: candidates as values of attributes: first the targets, then the distractors.
        keys: key of each candidate, which determines the candidate's look.
        sender_objects: objects of the sender, if they differ from the receiver's objects.
        sender_keys: keys of `sender_objects`.
    """

    rules: Integer[Tensor, "step replicate turn column"]
    numbers: Integer[Tensor, "step replicate turn"]
    objects: Integer[Tensor, "step replicate turn candidate attr"]
    keys: Integer[Tensor, "step replicate turn candidate"]
    sender_objects: Integer[Tensor, "step replicate turn candidate attr"] | None = None
    sender_keys: Integer[Tensor, "step replicate turn candidate"] | None = None

    @classmethod
    def joined(cls, parts: Sequence["TurnBatch"], which: Integer[Tensor, " chosen"]) -> "TurnBatch":
        """Concatenate batches along the replicates, and select replicates by index."""
        members = zip(*(vars(part).values() for part in parts), strict=True)
        chosen: list[Any] = [None if some[0] is None else torch.cat(some, 1)[:, which] for some in members]
        return cls(*chosen)


class Turns:
    """Source of the turns of a stack of replicates.

    Args:
        world: the world.
        settings: settings of turns, for all replicates or one per replicate. They must give batches of the same shape.
        seeds: training seed of each replicate; replicates with the same seed and settings get the same turns.
        device: device of the turns.

    Attributes:
        rules: all rules of the game.
        split: numbers of the rules for training and of the held-out rules, for the first settings.

    Raises:
        InvalidSettingError: the world does not have these rules, or this share cannot be held out.

    Example:
        >>> from icy.games import Turns, TurnSettings, make_world
        >>> turns = Turns(make_world("thing"), TurnSettings(rule_length=2, targets=3, distractors=4), [1, 2])
        >>> turns.batch("training", first=0, count=5, size=10).objects.shape
        torch.Size([5, 2, 10, 7, 5])
    """

    def __init__(
        self,
        world: World,
        settings: TurnSettings | Sequence[TurnSettings],
        seeds: Sequence[int],
        device: torch.device | str = "cpu",
    ) -> None:
        each = [settings] * len(seeds) if isinstance(settings, TurnSettings) else list(settings)
        if len(each) != len(seeds):
            raise InvalidSettingError(
                f"There are {len(each)} settings of turns for {len(seeds)} replicates; give one, or one per replicate."
            )
        self.world, self.device = world, torch.device(device)
        self._games = [_Game(world, one, self.device) for one in dict.fromkeys(each)]
        first = self._games[0]
        self.rules, self.split = first.rules, first.split
        pairs = list(dict.fromkeys(zip(each, seeds, strict=True)))
        for game in self._games:
            game.take([seed for one, seed in pairs if one == game.settings])
        drawn = [pair for game in self._games for pair in pairs if pair[0] == game.settings]
        self._place = whole([drawn.index(p) for p in zip(each, seeds, strict=True)]).to(self.device)

    def batch(self, purpose: str, first: int, count: int, size: int, which: Sequence[int] | None = None) -> TurnBatch:
        """Return the turns of several steps.

        Args:
            purpose: "training", "validation", "test" or "test-seen". Only turns of "training" depend on the training
                seed. If rules are held out, "test" uses the held-out rules, and other purposes the rest.
            first: number of the first step.
            count: number of steps.
            size: number of turns per step.
            which: indices of the replicates to return turns for; by default all.

        Raises:
            UnknownNameError: the purpose is unknown.
        """
        require_known("purpose of turns", purpose, PURPOSES)
        found = [game.batch(purpose, first, count, size) for game in self._games]
        return TurnBatch.joined(found, self._place if which is None else self._places(which))

    def _places(self, which: Sequence[int]) -> Tensor:
        return self._place[whole(which).to(self.device)]

    def keep(self, which: Sequence[int]) -> None:
        """Drop all replicates except those at these indices."""
        self._place = self._places(which)


def rules_of(world: World, settings: TurnSettings) -> RuleSource:
    """Create the rules of a game.

    Raises:
        InvalidSettingError: the world does not have these rules, or has too many.
    """
    return Formulas(world) if settings.rules == "formulas" else Rules.of(world, settings.rule_length)


class _Game:
    """Source of turns with the same settings, for several seeds."""

    def __init__(self, world: World, settings: TurnSettings, device: torch.device) -> None:
        self.settings, self._device = settings, device
        source = rules_of(world, settings)
        self.split: RuleSplit = source.split(settings.held_out)
        held_out = self.split.held_out if len(self.split.held_out) else self.split.seen
        self._pools = {
            part: _pool(numbers, source.weights(settings.rule_sampling, numbers), device)
            for part, numbers in (("seen", self.split.seen), ("held out", held_out))
        }
        self.rules: RuleSource = source.to(device)
        self._shares = {}  # cumulative probabilities of the groups in each grouping, without the last
        for kind in ("targets", settings.drawn_distractors):
            ends = [[float(end) for end in accumulate(row)][:-1] for row in source.shares(kind)]
            self._shares[kind] = torch.tensor(ends, dtype=torch.float64, device=device)
        self._in_compiled_code = can_draw(self.rules)
        self._keys: dict[str, Tensor] = {}

    def take(self, seeds: Sequence[int]) -> None:
        """Set the training seeds, which the batches follow."""
        for purpose in PURPOSES:
            used = seeds if purpose == TRAINING else [EVALUATION_SEED] * len(seeds)
            self._keys[purpose] = whole([stream_key(s, "turns", purpose) for s in used]).to(self._device)

    def batch(self, purpose: str, first: int, count: int, size: int) -> TurnBatch:
        """Return the turns of several steps for each seed."""
        seeds = self._keys[purpose] if purpose == TRAINING else self._keys[purpose][:1]
        places = torch.arange(first * size, (first + count) * size, device=self._device).view(count, 1, size)
        turns = counter_hash(seeds[:, None], places)
        pool, ends = self._pools["held out" if purpose == TEST else "seen"]
        uniform = _unit(counter_hash(turns, torch.full_like(turns, RULE)))
        numbers = pool[torch.searchsorted(ends, uniform.contiguous(), right=True)]
        objects, keys = self._candidates(numbers, turns, TARGETS, DISTRACTORS, purpose)
        found = [self.rules.table[numbers], numbers, objects, keys]
        if not self.settings.same_objects:
            found += self._candidates(numbers, turns, SENDER_TARGETS, SENDER_DISTRACTORS, purpose)
        return TurnBatch(*(m.expand(-1, len(self._keys[purpose]), *m.shape[2:]) for m in found))

    def _candidates(
        self, numbers: Tensor, turns: Tensor, targets: int, distractors: int, purpose: str
    ) -> tuple[Tensor, Tensor]:
        settings = self.settings
        count = 1 if settings.repeat_target else settings.targets
        near, own = self._objects(numbers, turns, targets, "targets", count)
        if settings.repeat_target:
            near = near.expand(*near.shape[:-2], settings.targets, -1)
            own = own.expand(*own.shape[:-1], settings.targets)
        kind = settings.drawn_distractors
        far, other = self._objects(numbers, turns, distractors, kind, settings.distractors)
        looks = torch.cat([own, other], -1)
        # The last bit is 1 in evaluations and 0 in training; see World.observe.
        return torch.cat([near, far], -2), (looks & ~1) | int(purpose != TRAINING)

    def _objects(self, numbers: Tensor, turns: Tensor, stream: int, kind: str, count: int) -> tuple[Tensor, Tensor]:
        """Draw the objects of each turn, and the keys of their looks."""
        if isinstance(self.rules, Rules) and self._in_compiled_code:
            return draw_objects(self.rules, numbers, turns, self._shares[kind], stream, count)
        keys = counter_hash(turns, torch.full_like(turns, stream))
        each = counter_hash(keys[..., None], torch.arange(count, device=keys.device))
        slots = torch.arange(VALUES + len(self.rules.world.sizes), device=keys.device)
        bits = counter_hash(each[..., None], slots)
        uniform = _unit(bits)
        shares = self._shares[kind][self.rules.grouping(numbers)]
        groups = (uniform[..., GROUP, None] >= shares[..., None, :]).sum(-1)
        return self.rules.draw(numbers, groups, uniform[..., VALUES:]), bits[..., LOOK]


def _pool(numbers: Tensor, weights: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rules to draw from, and their cumulative probabilities without the last."""
    ends = weights[numbers].cumsum(0)
    return numbers.to(device), (ends / ends[-1])[:-1].to(device)


def _unit(bits: Integer[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Convert hashes to numbers in [0, 1) with 53 bits."""
    return shift(bits, 64 - 53).double() * 2.0**-53
