"""Append-only memories: the last C entries of an episode, and masks of the entries that a step may read.

A memory is a tensor [B, C, ...] with the newest entry last, and a count of the steps of the episode so far. A step
step appends an entry at the end and drops the first. A sequence of T steps appends all entries at once, to
[B, C + T, ...]. Masks then hide entries from a step that are too old, not written yet, or from another episode.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from icy.core.checks import whole_number

from .core import Device, SequenceCore, State


@dataclass(frozen=True, eq=False)
class MemoryView:
    """Masks of the entries that each step of a sequence may read.

    Attributes:
        earlier: mask of earlier entries of the step's episode that are still in memory, [B, T, C + T].
        ages: number of steps of the episode before each step, [B, T].
        count: number of steps of the episode after the last step, [B].
        capacity: number of entries of the memory, C.
        occupied: mask of positions with an entry after the last step, [B, C]; None if empty positions are already zero.
    """

    earlier: Bool[Tensor, "batch step entry"]
    ages: Int[Tensor, "batch step"]
    count: Int[Tensor, " batch"]
    capacity: int
    occupied: Bool[Tensor, "batch capacity"] | None


def view(
    count: Int[Tensor, " batch"], resets: Bool[Tensor, "step batch"] | None, steps: int, capacity: int
) -> MemoryView:
    """Return the masks of the entries that each step of a sequence may read.

    Args:
        count: number of steps of each episode before the sequence.
        resets: mask of the first steps of episodes, [T, B]; None if no episode begins in the sequence.
        steps: number of steps, T.
        capacity: number of entries of the memory, C.
    """
    t = torch.arange(steps, device=count.device)
    ages = count[:, None] + t
    if resets is not None:
        last = torch.where(resets.T, t, -1).cummax(1).values  # the latest beginning so far, or -1
        ages = torch.where(last >= 0, t - last, ages)
    place = torch.arange(capacity + steps, device=count.device)
    end = capacity + t[:, None]  # where a step appends its own entry
    held = ages.clamp(max=capacity)[:, :, None]
    earlier = (place < end) & (place >= end - held)
    after = ages[:, -1] + 1
    occupied = None if resets is None else place[:capacity] >= capacity - after.clamp(max=capacity)[:, None]
    return MemoryView(earlier, ages, after, capacity, occupied)


def appended(
    memory: Float[Tensor, "batch capacity *entry"], new: Float[Tensor, "step batch *entry"]
) -> Float[Tensor, "batch both *entry"]:
    """Append new entries [T, B, ...] to a memory [B, C, ...]; return [B, C + T, ...]."""
    return torch.cat([memory, new.transpose(0, 1)], 1)


def remembered(entries: Float[Tensor, "batch both *entry"], seen: MemoryView) -> Float[Tensor, "batch capacity *entry"]:
    """Return the last C of the entries [B, C + T, ...]: the memory after the last step. Empty positions are zero."""
    last, occupied = entries[:, entries.shape[1] - seen.capacity :], seen.occupied
    return last if occupied is None else last * occupied.view(*occupied.shape, *[1] * (last.dim() - 2))


class RememberingCore(SequenceCore):
    """Base class of cores that remember an entry per step.

    Args:
        width: width of an input.
        output: width of an output.
        latent_width: width of the output of `latent`.
        capacity: capacity of the memory in steps; new steps replace the oldest.
    """

    def __init__(self, width: int, output: int, latent_width: int, capacity: int) -> None:
        super().__init__(width, output, latent_width)
        self.capacity = whole_number("capacity", capacity)

    def empty(self, episodes: int, widths: Iterable[int], device: Device) -> State:
        """Return empty memories with entries of these widths, and the number of steps so far."""
        memories = [self.zeros(episodes, self.capacity, width, device=device) for width in widths]
        return *memories, torch.zeros(episodes, dtype=torch.int64, device=memories[0].device)
