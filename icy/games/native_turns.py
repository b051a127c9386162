"""Draw the objects of turns in compiled code, for conjunctions on a CPU. The numbers equal PyTorch's exactly."""

from __future__ import annotations

import ctypes

from jaxtyping import Float, Integer
from torch import Tensor

from icy.core import native
from icy.core.native import address
from icy.models.native.calls import PACKAGE, POINTER, TurnDraws

from .rules import Rules, RuleSource


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
