"""Counting pairs in blocks."""

from __future__ import annotations

import numpy as np
import pytest

import icy
from icy.metrics import Table, topsim
from icy.metrics.topographic.distances import meaning_distance, message_distance
from icy.metrics.topographic.pairs import BLOCK, DistancePair, histogram_on, joint_counts


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


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    language = icy.make_language("rot", "2x4", 3, 3, 1)
    told: list[tuple[int, int]] = []
    values = [
        topsim(language, progress=p).value for p in (None, True, False, lambda done, all_: told.append((done, all_)))
    ]
    assert len(set(values)) == 1
    assert told == [(256, 256)]


@pytest.mark.slow
def test_products_by_torch_count_the_same() -> None:
    random = np.random.default_rng(0)
    left, right = (random.integers(2, size=(5000, 6)).astype(np.float32) for _ in range(2))
    right = left.copy()
    expected = np.bincount((left @ right.T).astype(int).ravel(), minlength=7)
    assert (histogram_on("cpu", left, right, 7) == expected).all()
