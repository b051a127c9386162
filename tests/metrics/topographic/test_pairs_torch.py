"""Counting pairs with torch."""

from __future__ import annotations

import numpy as np
import pytest

from icy.metrics.topographic.pairs import histogram_on


@pytest.mark.slow
def test_products_by_torch_count_the_same() -> None:
    random = np.random.default_rng(0)
    left, right = (random.integers(2, size=(5000, 6)).astype(np.float32) for _ in range(2))
    right = left.copy()
    expected = np.bincount((left @ right.T).astype(int).ravel(), minlength=7)
    assert (histogram_on("cpu", left, right, 7) == expected).all()
