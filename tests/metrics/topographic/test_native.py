"""Native code counts the same pairs as NumPy and RapidFuzz, in every variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein as Edits

import icy
from icy.core.native import SETTING, load
from icy.metrics import Table, topsim
from icy.metrics.topographic import native
from icy.metrics.topographic.distances import Hamming, Levenshtein, meaning_distance, message_distance
from icy.metrics.topographic.pairs import DistancePair, joint_counts
from tests.helpers import mark_others

LIBRARY = load(native.__name__)
VARIANTS = LIBRARY.usable if LIBRARY is not None else ()

pytestmark = pytest.mark.skipif(not VARIANTS, reason="native code is not built, or switched off")


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with each variant."""
    monkeypatch.setenv(SETTING, request.param)


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("symbols", [1, 2, 5, 300, native.MOST_SYMBOLS])
@pytest.mark.parametrize(
    "width",
    mark_others("native", [0, 1, 7, 8, 9, 16, 17, 20, 32, 33, 63, 64], lambda width: width in (1, 17)),
)
def test_edits(width: int, symbols: int) -> None:
    """At the lengths around those where wider lanes are taken; with lengths from none to all."""
    random = np.random.default_rng(width * symbols)
    sides: list[Any] = []
    for rows in (13, 141):
        tokens = random.integers(symbols, size=(rows, width)).astype(np.uint16)
        lengths = random.integers(width + 1, size=rows).astype(np.int32)
        lengths[::3] = width
        sides += [tokens, lengths]
    found = native.levenshtein(sides[0], sides[1], sides[2], sides[3], symbols)
    left, right = ([row[:n].tolist() for row, n in zip(*side, strict=True)] for side in (sides[:2], sides[2:]))
    assert found.tolist() == [[Edits.distance(one, other) for other in right] for one in left]


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize(("left", "right"), [(1, 1), (5, 127), (3, 128), (2, 129), (4, 256), (1, 600), (0, 3), (3, 0)])
@pytest.mark.parametrize("width", mark_others("native", [0, 1, 25, native.MOST_COLUMNS], lambda width: width == 25))
def test_equal_columns(left: int, right: int, width: int) -> None:
    random = np.random.default_rng(width)
    one, other = (random.integers(4, size=(rows, width)).astype(np.uint8) * 85 for rows in (left, right))
    expected = (one[:, None] == other).sum(2)
    assert (native.equal_columns(one, other) == expected).all()


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize(("cells", "kind"), [(1, np.uint8), (256, np.uint8), (5000, np.uint16), (2**20, np.uint32)])
def test_counts(cells: int, kind: type) -> None:
    for size in ((), (0,), (5,), (64, 9), (33, 1000)):
        keys: Any = np.random.default_rng(0).integers(cells, size=size).astype(kind)
        for some in (keys, keys.T):
            expected = np.bincount(keys.ravel().astype(int), minlength=cells)
            assert (native.count_keys(some, cells) == expected).all(), size


@pytest.mark.native
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 300),
    width=st.integers(1, 70),
    symbols=st.sampled_from([1, 2, 5, 260, 70_000]),
    values=st.sampled_from([2, 10, 300]),
    meaning=st.sampled_from(["hamming", "cosine", "euclidean"]),
    message=st.sampled_from(["hamming", "none", "mean", "max", "padded"]),
)
def test_counts_of_pairs_are_those_of_the_reference(
    seed: int, rows: int, width: int, symbols: int, values: int, meaning: str, message: str
) -> None:
    """Tables of any shape, those that native code leaves to the reference among them."""
    random = np.random.default_rng(seed)
    meanings = random.integers(values, size=(rows, random.integers(1, 6)))
    lengths = random.integers(width + 1, size=rows)
    lengths[0] = width
    messages = [random.integers(symbols, size=n).tolist() for n in lengths]
    table = Table.of(meanings, messages)

    def counted() -> list[list[int]]:
        x = meaning_distance(table, meaning)
        if message == "hamming":
            y = message_distance(table, message, False, "none")
        else:
            y = message_distance(table, "levenshtein", message == "padded", "none" if message == "padded" else message)
        two = DistancePair(x, y, rows)
        return joint_counts(two).tolist() if two.countable else []

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(SETTING, raising=False)
        found = counted()
        patch.setenv(SETTING, "off")
        assert found == counted()


def test_native_code_is_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it can count, and nothing else."""
    called: list[str] = []
    real = native._call

    def call(name: str, *given: Any) -> None:
        called.append(name)
        real(name, *given)

    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(native, "_call", call)
    language = icy.make_language("rot", "3x4", seed=1)
    topsim(language, message="levenshtein")
    assert called == ["equal_columns", "levenshtein", "count_keys"]
    called.clear()
    topsim(language, message="hamming")
    assert called == ["equal_columns", "equal_columns", "count_keys"]
    assert Hamming([np.arange(256)]).bytes is not None
    assert Hamming([np.arange(257)]).bytes is None
    assert Hamming([np.arange(2)] * 256).bytes is None
    long = Table.of([[0], [1]], [[0] * 65, [1]])
    assert Levenshtein(long, False, "none").numbered is None


def test_off_means_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "off")
    monkeypatch.setattr(native, "_call", lambda *given: pytest.fail("called"))
    assert topsim(icy.make_language("rot", "3x4", seed=1)).value < 1
