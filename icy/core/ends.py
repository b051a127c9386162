"""The end token of messages of different lengths: the positions that count."""

from jaxtyping import Bool, Float, Integer
from torch import Tensor

UNCOUNTED = -1  # target at a position that does not count; no score has this index


def counted(messages: Integer[Tensor, "*lead length"], end: int) -> Bool[Tensor, "*lead length"]:
    """Return the positions up to the first end token, which counts too.

    Args:
        messages: tokens; tokens after an end token are ignored.
        end: the end token.

    Example:
        >>> import torch
        >>> from icy.core.ends import counted
        >>> counted(torch.tensor([[0, 4, 4], [1, 0, 4], [1, 0, 2]]), end=4).int().tolist()
        [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    """
    ends = (messages == end).long()
    return ends.cumsum(-1) == ends


def counted_mean(
    values: Float[Tensor, "*stack batch length"], counts: Bool[Tensor, "*stack batch length"]
) -> Float[Tensor, "*stack"]:
    """Return the mean of the values at the positions that count, over batch and positions."""
    total: Tensor = (values * counts).sum((-2, -1)) / counts.sum((-2, -1))
    return total
