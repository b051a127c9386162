"""Counting pairs by products on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

ROWS_AT_ONCE = 4096


def histogram_on(
    device: str,
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    cells: int,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.int64]:
    """How often each whole number occurs in the product of two tables, left @ right.T.

    Args:
        device: "cuda" or any other of torch's.
        left: [N, D], whole numbers.
        right: [N, D], whole numbers.
        cells: greater than any number in the product.
        progress: told of pairs done.
    """
    # Exact up to 2^24 in 32 bits, also where products are made in TF32: its 11 bits hold ones and the factor of `left`.
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
