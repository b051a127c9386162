"""Counting pairs in blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import icy
from icy.core.errors import IcyError
from icy.core.native import SETTING
from icy.metrics import Table, topsim
from icy.metrics.topographic import native, permuted
from icy.metrics.topographic.distances import meaning_distance, message_distance
from icy.metrics.topographic.pairs import BLOCK, DistancePair, histogram_on, joint_counts
from icy.metrics.topographic.permuted import permuted_topsim
from tests.helpers import mark_others


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


# -- topsim after permutations of the messages -------------------------------------------------------------------------


def table_of(rows: int = 23, seed: int = 0, values: int = 3, length: int = 5) -> Table:
    """Return random meanings, some of which are there twice, with messages of several lengths."""
    random = np.random.default_rng(seed)
    lengths = random.integers(length + 1, size=rows)
    return Table.of(random.integers(values, size=(rows, 2)), [random.integers(3, size=n).tolist() for n in lengths])


def orders(rows: int, number: int, seed: int = 1) -> NDArray[np.int32]:
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(rows) for _ in range(number)]).astype(np.int32)


def values(table: Table, permutations: NDArray[np.int32], **conventions: Any) -> NDArray[np.float64]:
    found = permuted_topsim(table, permutations, conventions)
    assert found is not None
    return found


def one_by_one(table: Table, permutations: NDArray[np.int32], **conventions: Any) -> list[float]:
    return [topsim(replace(table, messages=table.messages[p]), **conventions).value for p in permutations]


def positions_apart(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    return abs(len(one) - len(other)) / 3


COUNTED: list[dict[str, Any]] = [
    {},
    {"correlation": "pearson"},
    {"message": "hamming"},
    {"meaning": "cosine", "message": "hamming", "correlation": "pearson"},
    {"meaning": "euclidean"},
    {"normalise": "mean"},
    {"normalise": "max", "correlation": "pearson"},
    {"padded": True},
    {"pairs": "ordered"},
    {"pairs": "ordered", "normalise": "mean", "correlation": "pearson"},
    {"eos": 2},
    {"pairs": "published"},  # 23^2 pairs are fewer than 10,000
]


@pytest.mark.parametrize("code", ["native", "off"])
@pytest.mark.parametrize("conventions", COUNTED, ids=str)
def test_counted_pairs(conventions: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are those of the permuted table, so the numbers are the same to the last digits."""
    if code == "off":
        monkeypatch.setenv(SETTING, code)
    table, some = table_of(), orders(23, 7)
    found = values(table, some, **conventions)
    assert found.tolist() == pytest.approx(one_by_one(table, some, **conventions), abs=1e-14)
    assert len(set(found.tolist())) > 1


LISTED: list[dict[str, Any]] = [
    {"meaning": "euclidean"},
    {"meaning": "cosine", "correlation": "pearson"},
    {"meaning": "euclidean", "message": positions_apart},
    {"meaning": "euclidean", "message": "hamming", "correlation": "pearson"},
]


@pytest.mark.parametrize(
    "conventions",
    LISTED,
    ids=lambda given: str({name: getattr(value, "__name__", value) for name, value in given.items()}),
)
def test_real_distances(conventions: dict[str, Any]) -> None:
    table = table_of()
    table = replace(table, meanings=table.meanings + np.random.default_rng(3).normal(size=table.meanings.shape))
    some = orders(23, 7)
    found = values(table, some, **conventions)
    assert found.tolist() == pytest.approx(one_by_one(table, some, **conventions), abs=1e-12)


def test_many_combinations_of_distances_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    table, some = table_of(), orders(23, 7)
    counted = values(table, some)
    monkeypatch.setattr(permuted, "MOST_CELLS", 5)
    monkeypatch.setattr(permuted, "_by_counts", lambda *given: pytest.fail("counted"))
    assert values(table, some).tolist() == pytest.approx(counted.tolist(), abs=1e-12)


def test_several_blocks_and_more_distances_than_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of distances of two bytes, and so many combinations that native code has one table of counts."""
    random = np.random.default_rng(0)
    messages = [random.integers(3, size=n).tolist() for n in random.integers(60, size=150)]
    table, some = Table.of(random.integers(9, size=(150, 4)), messages), orders(150, 2)
    expected = one_by_one(table, some, normalise="mean")
    monkeypatch.setattr(permuted, "KEYS_AT_ONCE", 2**11)
    seen: list[int] = []
    counting = permuted._counting
    monkeypatch.setattr(permuted, "_counting", lambda y, *rest: seen.append(int(y.max())) or counting(y, *rest))
    assert values(table, some, normalise="mean").tolist() == pytest.approx(expected, abs=1e-14)
    assert seen[0] > 300
    monkeypatch.setenv(SETTING, "off")
    assert values(table, some[:1], normalise="mean").tolist() == pytest.approx(expected[:1], abs=1e-14)


@pytest.mark.parametrize("code", ["native", "off"])
def test_batches_and_threads_change_nothing(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if code == "off":
        monkeypatch.setenv(SETTING, code)
    table, some = table_of(60), orders(60, 9)
    together = values(table, some, workers=1).tolist()
    assert values(table, some, workers=3).tolist() == together
    assert [values(table, some[k : k + 1])[0] for k in range(9)] == together
    monkeypatch.setattr(permuted, "COUNTS_AT_ONCE", 1)
    monkeypatch.setattr(permuted, "KEYS_AT_ONCE", 100)
    done: list[tuple[int, int]] = []
    found = permuted_topsim(table, some, {"workers": 2}, lambda *given: done.append(given))
    assert found is not None
    assert found.tolist() == together
    assert [part for part, _ in done] == sorted(part for part, _ in done)
    assert done[-1] == (9, 9)


def test_what_is_left_to_topsim() -> None:
    table, some = table_of(), orders(23, 2)
    assert permuted_topsim(table, some, {"pairs": 50}) is None
    assert permuted_topsim(table, some, {"pairs": "ordered", "message": positions_apart}) is None


def test_more_rows_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.core.machine.available_memory", lambda: 500)
    with pytest.raises(IcyError, match="distances between 23 messages"):
        permuted_topsim(table_of(), orders(23, 2), {})


@pytest.mark.skipif(not native.usable(), reason="native code is not built, or switched off")
@pytest.mark.parametrize("variant", getattr(native.native.load(native.__name__), "usable", ()))
@pytest.mark.parametrize("cells", mark_others("native", [1, 7, 1024, 1025, 2**16], lambda cells: cells in (7, 1025)))
def test_counts_of_native_code(cells: int, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, variant)
    random = np.random.default_rng(cells)
    for rows, first, some in ((1, 0, 1), (9, 0, 9), (12, 5, 3), (8, 8, 0)):
        kind: Any = np.uint8 if cells < 2**8 else np.uint16
        y = random.integers(min(cells, 4000), size=(rows, rows)).astype(kind)
        numbers = random.integers(rows, size=some)  # of pairs
        others = random.integers(rows, size=numbers.sum()).astype(np.int32)
        x = random.integers(cells - int(y.max()), size=len(others)).astype(np.uint16)
        starts, many = np.append(0, numbers.cumsum()), orders(rows, 3)
        found = native.PermutedCounts(y, many, cells).count(first, starts, others, x)
        for counts, order in zip(found, many, strict=True):
            keys = x + y[order[np.arange(first, first + some).repeat(numbers)], order[others]].astype(int)
            assert (counts == np.bincount(keys, minlength=cells)).all()
