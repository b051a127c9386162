"""Small tables to reconstruct."""

from __future__ import annotations

import itertools

import numpy as np

TWO = list(itertools.product(range(2), repeat=2))
THREE = list(itertools.product(range(3), repeat=2))
XOR = [(a, a ^ b) for a, b in TWO]


def random_table(seed: int, rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 3))
    messages = random.integers(3, size=(rows, 3))
    messages[:, 0] = meanings[:, 1]
    return meanings, messages
