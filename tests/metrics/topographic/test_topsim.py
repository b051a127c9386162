"""Topographic similarity: equal to a list of pairs, and near the measured values of the grammars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr

import icy
from icy.core.errors import InvalidSettingError
from icy.metrics import Table, topsim


def strip(row: Any) -> list[int]:
    """A message without what fills it up."""
    return [t for t in row if t >= 0]


def edits(one: Any, other: Any) -> int:
    return Levenshtein.distance(strip(one), strip(other))


BY_HAND: dict[str, Callable[[Any, Any], float]] = {
    "hamming": lambda a, b: sum(p != q for p, q in zip(a, b, strict=True)),
    "cosine": lambda a, b: sum(p != q for p, q in zip(a, b, strict=True)),
    "euclidean": lambda a, b: math.dist(a, b),
    "levenshtein none": edits,
    "levenshtein mean": lambda a, b: edits(a, b) / max((len(strip(a)) + len(strip(b))) / 2, 1e-9),
    "levenshtein max": lambda a, b: edits(a, b) / max(len(strip(a)), len(strip(b)), 1e-9),
    "levenshtein padded": lambda a, b: Levenshtein.distance(list(a), list(b)),
}


def by_pairs(x: Any, y: Any, meaning: str, message: str, ordered: bool, correlation: str) -> float:
    """The definition, with a list of pairs."""
    pairs = itertools.product(range(len(x)), repeat=2) if ordered else itertools.combinations(range(len(x)), 2)
    lists = zip(*((BY_HAND[meaning](x[i], x[j]), BY_HAND[message](y[i], y[j])) for i, j in pairs), strict=True)
    dx, dy = (np.array(values, dtype=float) for values in lists)
    if np.ptp(dx) == 0 or np.ptp(dy) == 0:
        return math.nan
    return float((spearmanr if correlation == "spearman" else pearsonr)(dx, dy)[0])


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(3, 14),
    meaning=st.sampled_from(["hamming", "cosine", "euclidean"]),
    message=st.sampled_from([name for name in BY_HAND if "levenshtein" in name] + ["hamming"]),
    ordered=st.booleans(),
    correlation=st.sampled_from(["spearman", "pearson"]),
)
def test_it_is_the_correlation_over_pairs(
    seed: int, rows: int, meaning: str, message: str, ordered: bool, correlation: str
) -> None:
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, random.integers(1, 4)))
    messages = random.integers(3, size=(rows, 4))
    messages[:, 0] = meanings[:, 0]  # some structure
    messages[np.arange(4) >= random.integers(0, 5, size=(rows, 1))] = -1  # and messages of any length
    name, _, how = message.partition(" ")
    found = topsim(
        meanings,
        [strip(row) for row in messages.tolist()],
        meaning=meaning,
        message=name,
        padded=how == "padded",
        normalise=how if how in ("mean", "max") else "none",
        pairs="ordered" if ordered else "all",
        correlation=correlation,
    )
    expected = by_pairs(meanings.tolist(), messages.tolist(), meaning, message, ordered, correlation)
    assert found.value == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert bool(found.why) == math.isnan(expected)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(["spearman", "pearson"]))
def test_real_valued_meanings(seed: int, correlation: str) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.normal(size=(12, 3)), random.integers(3, size=(12, 4))
    expected = (spearmanr if correlation == "spearman" else pearsonr)(pdist(meanings), pdist(messages, "hamming"))[0]
    found = topsim(meanings, messages, meaning="euclidean", message="hamming", correlation=correlation)
    assert found.value == pytest.approx(expected, abs=1e-9)
    angles = spearmanr(pdist(meanings, "cosine"), pdist(messages, "hamming"))[0]
    assert topsim(meanings, messages, meaning="cosine", message="hamming").value == pytest.approx(angles, abs=1e-9)


@pytest.mark.parametrize("options", [{"message": "hamming"}, {"message": "levenshtein"}, {"meaning": "euclidean"}])
def test_many_different_values(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One-hot vectors that are too wide, and too many different distances, are gone about in another way."""
    random = np.random.default_rng(0)
    meanings = random.integers(100, size=(40, 2))
    messages = np.concatenate([meanings, random.integers(100, size=(40, 2))], 1)
    expected = topsim(meanings, messages, **options).value
    monkeypatch.setattr("icy.metrics.topographic.distances.WIDEST", 10)
    monkeypatch.setattr("icy.metrics.topographic.pairs.WIDEST", 10)
    assert topsim(meanings, messages, **options).value == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr("icy.metrics.topographic.pairs.MOST_CELLS", 10)
    assert topsim(meanings, messages, **options).value == pytest.approx(expected, abs=1e-12)


def test_identity_and_edit_distance() -> None:
    """Common prefixes and suffixes never change the edit distance (metrics-facts 1)."""
    grid = list(itertools.product(range(4), repeat=3))
    assert topsim(grid, grid, message="hamming").value == 1
    assert topsim(grid, grid).value == pytest.approx(0.9373, abs=5e-5)
    posdis_speaker = [(*(v + 1 for v in row), 0) for row in itertools.product(range(5), repeat=3)]
    grid = list(itertools.product(range(5), repeat=3))
    assert topsim(grid, posdis_speaker).value == pytest.approx(0.942149, abs=1e-6)
    assert topsim(grid, posdis_speaker, eos=0).value == pytest.approx(0.942149, abs=1e-6)


def test_animals() -> None:
    words = [list(word) for word in ("cat", "dog", "pen", "ben", "ten")]
    assert topsim(words, words, message="hamming").value == pytest.approx(1)
    assert topsim(words, words, normalise="mean").value == pytest.approx(1)


def test_drawn_pairs_come_with_their_error() -> None:
    language = icy.make_language("proj", "3x10", 4, 4, 1)
    exact = topsim(language, message="hamming")
    drawn = [topsim(language, message="hamming", pairs=4000, seed=seed) for seed in range(40)]
    spread = np.std([score.value for score in drawn], ddof=1)
    assert drawn[0].error == pytest.approx((1 - drawn[0].value ** 2) / math.sqrt(4000))
    assert drawn[0].error == pytest.approx(spread, rel=0.5)
    assert np.mean([s.value for s in drawn]) == pytest.approx(exact.value, abs=4 * spread / math.sqrt(40))
    assert topsim(language, pairs=4000, seed=3) == topsim(language, pairs=4000, seed=3)
    assert exact.error is None


def test_published_pairs() -> None:
    small, large = icy.make_language("hol", "2x5", 2, 5, 1), icy.make_language("hol", "3x5", 4, 2, 1)
    options: dict[str, Any] = {"message": "hamming", "pairs": "published"}
    assert topsim(small, **options).value == topsim(small, message="hamming", pairs="ordered").value
    assert topsim(small, **options).details["pairs"] == 625
    assert topsim(large, **options).details["pairs"] == 10_000
    assert topsim(large, **options).error is not None


def test_a_row_is_not_compared_with_its_copies() -> None:
    language = icy.make_language("rot", "2x4", 3, 3, 1)
    table = Table.of(language)
    doubled = table.rows(np.repeat(np.arange(len(table)), 2))
    for options in ({}, {"meaning": lambda a, b: float((a != b).sum())}):
        assert topsim(doubled, **options).value == pytest.approx(topsim(table).value, abs=1e-12)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "mean", "sd"),
    [("concat", 0.712, 0.020), ("perm", 0.712, 0.020), ("proj", 0.337, 0.011), ("shuf", 0.164, 0.006),
     ("rot", 0.104, 0.014), ("hol", 0.005, 0.008)],
)  # fmt: skip
def test_values_measured_on_the_authors_languages(grammar: str, mean: float, sd: float) -> None:
    """Over five seeds, at 5x10, from 1000 meanings instead of 10,000 pairs; within four standard errors."""
    found = []
    for seed in range(123, 128):
        language = icy.make_language(grammar, "5x10", seed=seed)
        rows = np.random.default_rng(seed).choice(language.space.size, 1000, replace=False)
        found.append(topsim(language.space.meanings(rows), language.messages[rows], message="hamming").value)
    assert np.mean(found) == pytest.approx(mean, abs=4 * math.sqrt(2) * sd / math.sqrt(5) + 0.005)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="The device 'gpu' is not available"):
        topsim([[0], [1], [2]], [[0], [1], [2]], device="gpu")


def test_too_many_pairs_to_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.core.machine.available_memory", lambda: 1000)
    with pytest.raises(InvalidSettingError, match="A list of the 66 pairs of 12 rows"):
        topsim(np.random.default_rng(0).normal(size=(12, 2)), np.arange(12)[:, None], meaning="euclidean")


@pytest.mark.parametrize(
    "table", [([[0], [0]], ["a", "b"]), ([[0], [1]], ["a", "a"]), ([[0]], ["a"]), ([[0], [1]], ["", ""])]
)
def test_nothing_to_compare_is_nan(table: tuple[Any, Any]) -> None:
    assert math.isnan(topsim(*table).value)
    assert topsim(*table).why


@pytest.mark.parametrize("message", ["levenshtein", "hamming"])
@pytest.mark.parametrize("pairs", ["all", "ordered", 50])
def test_empty_messages_are_all_alike(message: str, pairs: Any) -> None:
    score = topsim([[0], [1], [2]], [[], [], []], message=message, pairs=pairs)
    assert math.isnan(score.value)
    assert score.why == "all pairs of meanings, or all pairs of messages, are equally far apart"
    assert math.isnan(topsim([[0]], [[]], message=message, pairs=pairs).value)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("large", [0xD800, 0x110000, 2**40, 2**62, 2**63 - 1, 10**20])
def test_the_size_of_a_token_changes_nothing(large: int, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.metrics.topographic import distances

    if not native:
        monkeypatch.setattr(distances.native, "usable", lambda: False)
    meanings, messages = list(itertools.product(range(3), repeat=2)), [[a, 3 + b] for a in range(3) for b in range(3)]
    grown = [[large + token if token > 3 else token for token in row] for row in messages]
    for pairs in ("all", 40):
        assert topsim(meanings, grown, pairs=pairs).value == topsim(meanings, messages, pairs=pairs).value


def test_more_symbols_than_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.metrics.topographic import distances

    meanings = list(itertools.product(range(3), repeat=2))
    expected = topsim(meanings, meanings, pairs=40).value
    monkeypatch.setattr(distances, "MOST_CHARACTERS", 2)
    assert topsim(meanings, meanings, pairs=40).value == expected


def test_large_values_are_as_far_apart_as_small_ones() -> None:
    values = np.array([[0, 0], [0, 3], [4, 1], [2, 2]])
    messages = ["ab", "abc", "bbcc", "a"]
    expected = topsim(values, messages, meaning="euclidean", correlation="pearson").value
    for first in (2**53 + 1, 2**61, -(2**61)):
        found = topsim(values + first, messages, meaning="euclidean", correlation="pearson").value
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_messages_longer_than_sixteen_bits_count() -> None:
    """As many edits as these have no room in the integers that were taken for long messages."""
    messages = [[1] * 70_000, [2] * 70_000, [1] * 10, []]
    score = topsim([[0, 0], [0, 1], [1, 1], [1, 0]], messages, correlation="pearson")
    expected = pearsonr([1, 2, 1, 1, 2, 1], [70_000, 69_990, 70_000, 70_000, 70_000, 10]).statistic
    assert score.value == pytest.approx(expected, abs=1e-12)
