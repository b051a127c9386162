"""Counting pairs in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from icy.metrics import Table
from icy.metrics.topographic.distances import meaning_distance, message_distance
from icy.metrics.topographic.pairs import BLOCK, DistancePair, histogram, joint_counts


@pytest.mark.parametrize("message", ["hamming", "levenshtein"])
def test_blocks_make_no_difference(message: str) -> None:
    random = np.random.default_rng(0)
    meanings = random.integers(10, size=(2 * BLOCK + 100, 2))
    messages = np.concatenate([meanings, random.integers(4, size=(len(meanings), 3))], 1)
    table = Table.of(meanings, messages)
    distances = meaning_distance(table, "hamming"), message_distance(table, message, False, "none")
    two = DistancePair(*distances, len(table))
    told: list[tuple[int, int]] = []
    counts = joint_counts(two, progress=lambda done, total: told.append((done, total)), workers=2)
    assert counts.sum() == len(table) ** 2
    assert told[-1][0] == told[-1][1]
    alone = np.zeros_like(counts)
    whole = slice(0, len(table))
    np.add.at(alone, (two.x.block(whole, whole).astype(int), two.y.block(whole, whole).astype(int)), 1)
    assert (counts == alone).all()


@pytest.mark.parametrize(("cells", "kind"), [(200, np.uint8), (7000, np.uint16), (2**20, np.uint32)])
@pytest.mark.parametrize("size", [(30, 40), (7, 9)])
def test_histogram(cells: int, kind: type, size: tuple[int, int]) -> None:
    keys = np.random.default_rng(0).integers(cells, size=size).astype(kind)
    assert (histogram(keys, cells) == np.bincount(keys.ravel().astype(int), minlength=cells)).all()
