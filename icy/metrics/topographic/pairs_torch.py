"""Count pairs of rows by their joint distance keys on a GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy.typing import NDArray

ROWS_AT_ONCE = 4096


def histogram_on(
    device: str,
    left: Float32[NDArray[np.float32], "batch width"],
    right: Float32[NDArray[np.float32], "batch width"],
    cells: int,
    progress: Callable[[int, int], None] | None = None,
) -> Int64[NDArray[np.int64], "cells={cells}"]:
    """Count each whole number in the product of two tables, left @ right.T, which is symmetric.

    Args:
        device: any device of torch, such as "cuda".
        left: [N, D] whole numbers.
        right: [N, D] whole numbers.
        cells: greater than any number in the product.
        progress: callback, called with the number of counted pairs and the total.

    Returns:
        The count of each number from 0, [cells].
    """
    # Exact up to 2^24 in float32, also if products use TF32: its 11 bits hold ones and the factor of `left`.
    one, two = (torch.from_numpy(table).to(device) for table in (left, right))
    counts = torch.zeros(cells, dtype=torch.int64, device=device)
    half, width = len(one), ROWS_AT_ONCE
    for i in range(0, half, width):
        for j in range(i, half, width):
            found = torch.bincount((one[i : i + width] @ two[j : j + width].T).int().flatten(), minlength=cells)
            counts += found if i == j else 2 * found
        if progress is not None:
            progress(min(i + width, half) * half, half * half)
    result: NDArray[Any] = counts.cpu().numpy()
    return result
