"""All metrics on the same small tables: exact values, and what each must not depend on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icy
from icy import metrics
from icy.core.registry import registry
from icy.metrics import Score, Table
from icy.metrics.evaluation import score_all
from tests.helpers import mark_others

NAN = math.nan
Words = Callable[[int, int], tuple[int, ...]]
BAG = {(0, 0): (1, 3), (0, 1): (4, 1), (1, 0): (3, 2), (1, 1): (2, 4)}
COLUMNS = (
    *("topsim_edit", "topsim_hamming", "posdis", "bosdis", "hce", "residual_entropy"),
    *("context_independence", "cbm", "mig", "modularity"),
)
# metrics-facts 11: values per attribute, the message of a meaning, and the exact values in the order of COLUMNS.
TOYS: dict[str, tuple[int, Words, tuple[float, ...]]] = {
    "own symbols": (2, lambda a, b: (1 + a, 3 + b), (1, 1, 1, 1, 1, 0, 0.25, 1, 1, 1)),
    "swapped": (2, lambda a, b: (3 + b, 1 + a), (1, 1, 1, 1, 1, 0, 0.25, 1, 1, 1)),
    "shared symbols": (2, lambda a, b: (1 + a, 1 + b), (1, 1, 1, 0, 1, 0, 0.28125, 0.75, 1, 1)),
    "xor": (2, lambda a, b: (1 + a, 1 + (a ^ b)), (-0.5, -0.5, 0.5, 1 / 3, 0.5, 0.5, 0.203125, 0.75, 0.5, 0.5)),
    "one token": (2, lambda a, b: (1 + 2 * a + b,), (NAN, NAN, 0, 0, 0.5, 0.5, 0.25, 0.5, 1, 0)),
    "constant token": (2, lambda a, b: (1 + a, 3 + b, 5), (1, 1, 1, 1, 1, 0, 1 / 6, 2 / 3, 1, 2 / 3)),
    "bag": (2, lambda a, b: BAG[a, b], (NAN, NAN, 0, 1, 0.5, 0, 0.25, 1, 0, 0)),
    "3x3 shared": (3, lambda a, b: (1 + a, 1 + b), (1, 1, 1, 0, 1, 0, 2 / 9, 2 / 3, 1, 1)),
    "3x3 one sum": (3, lambda a, b: (1 + a, 1 + (a + b) % 3), (0, 0, 0.5, 0, 0.5, 0.5, 5 / 36, 2 / 3, 0.5, 0.5)),
    "3x3 two sums": (
        3,
        lambda a, b: (1 + (a + b) % 3, 1 + (a + 2 * b) % 3),
        (-1, -1, 0, 0, 0.5, 0.5, 1 / 18, 1 / 3, 0, 0),
    ),
}
CALLS: dict[str, Callable[[Any, Any], Score]] = {
    "topsim_edit": lambda x, y: metrics.topsim(x, y),
    "topsim_hamming": lambda x, y: metrics.topsim(x, y, message="hamming"),
    **{name: lambda x, y, name=name: getattr(metrics, name)(x, y) for name in COLUMNS[2:]},  # type: ignore[misc]
}


def toy(name: str) -> tuple[list[tuple[int, int]], list[tuple[int, ...]]]:
    """Meanings and messages of a toy language."""
    values, words, _ = TOYS[name]
    meanings = list(itertools.product(range(values), repeat=2))
    return meanings, [words(*meaning) for meaning in meanings]


@pytest.mark.parametrize(("name", "column"), [(n, c) for n in TOYS for c in COLUMNS])
def test_toy_table(name: str, column: str) -> None:
    expected = TOYS[name][2][COLUMNS.index(column)]
    assert CALLS[column](*toy(name)).value == pytest.approx(expected, abs=1e-9, nan_ok=True)


README_MESSAGES = [[1, 2, 0, 3, 4], [1, 2, 2, 3, 4], [1, 2, 2, 3, 0], [1, 0, 0, 1, 2]]
README_MEANINGS = [[4, 4], [4, 3], [3, 2], [1, 4]]


def test_worked_example_of_two_toolkits() -> None:
    """The example that EGG and emlangkit agree on (metrics-facts 1)."""
    table = README_MEANINGS, README_MESSAGES
    assert metrics.topsim(*table).value == pytest.approx(0.3198010745334156, abs=1e-12)
    assert metrics.posdis(*table).value == pytest.approx(0.516489, abs=1e-6)
    assert metrics.hce(*table).value == pytest.approx(0.833333, abs=1e-6)
    assert metrics.residual_entropy(*table).value == pytest.approx(1 / 6, abs=1e-9)
    assert metrics.bosdis(*table).value == pytest.approx(0.446525, abs=1e-6)
    assert metrics.bosdis(*table, ignore=[0]).value == pytest.approx(0.558156, abs=1e-6)


# -- what a metric must not depend on --------------------------------------------------------------------------------


def random_table(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A language that is half composition and half noise."""
    random = np.random.default_rng(seed)
    meanings = random.integers(3, size=(rows, 3))
    messages = np.concatenate([1 + meanings[:, :2], 4 + random.integers(3, size=(rows, 2))], 1)
    messages[:, 3] = np.where(random.random(rows) < 0.5, 4 + meanings[:, 2], messages[:, 3])
    return meanings, messages


def relabelled(table: np.ndarray, columns: bool, seed: int) -> np.ndarray:
    """Other names: by one bijection, or by one for every column."""
    random, changed = np.random.default_rng(seed), table.copy()
    one = random.permutation(10)
    for j in range(table.shape[1]):
        changed[:, j] = (random.permutation(10) if columns else one)[table[:, j]]
    return changed


CHANGES: dict[str, Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]] = {
    "symbols": lambda x, y, seed: (x, relabelled(y, False, seed)),
    "symbols by position": lambda x, y, seed: (x, relabelled(y, True, seed)),
    "positions": lambda x, y, seed: (x, y[:, np.random.default_rng(seed).permutation(y.shape[1])]),
    "reversal": lambda x, y, seed: (x, y[:, ::-1]),
    "tokens in each message": lambda x, y, seed: (x, np.random.default_rng(seed).permuted(y, axis=1)),
    "values": lambda x, y, seed: (relabelled(x, True, seed), y),
    "attributes": lambda x, y, seed: (x[:, np.random.default_rng(seed).permutation(x.shape[1])], y),
    "rows": lambda x, y, seed: tuple(t[np.random.default_rng(seed).permutation(len(x))] for t in (x, y)),  # type: ignore[dict-item]
    "copies": lambda x, y, seed: (np.tile(x, (3, 1)), np.tile(y, (3, 1))),
    "constant position": lambda x, y, seed: (x, np.insert(y, 2, 0, axis=1)),
}
ALWAYS = {"values", "rows", "symbols"}
# metrics-facts 13
INVARIANT = {
    "topsim_edit": ALWAYS | {"attributes", "reversal"},
    "topsim_hamming": ALWAYS | {"attributes", "symbols by position", "positions", "constant position"},
    "posdis": ALWAYS | {"attributes", "symbols by position", "positions", "copies", "constant position"},
    "bosdis": ALWAYS | {"attributes", "tokens in each message", "positions", "copies"},
    "hce": ALWAYS | {"symbols by position", "positions", "copies", "constant position"},
    "residual_entropy": ALWAYS | {"attributes", "symbols by position", "positions", "copies", "constant position"},
    "context_independence": ALWAYS | {"attributes", "tokens in each message", "copies"},
    "cbm": ALWAYS | {"attributes", "tokens in each message", "copies"},
    "mig": ALWAYS | {"attributes", "symbols by position", "positions", "copies"},
    "modularity": ALWAYS | {"attributes", "symbols by position", "positions", "copies"},
}


@pytest.mark.parametrize(
    ("column", "change"),
    mark_others(
        "slow",
        [(c, one) for c, changes in INVARIANT.items() for one in sorted(changes)],
        lambda case: case[1] == min(INVARIANT[case[0]]),
    ),
)
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10_000), rows=st.integers(12, 40))
def test_what_a_metric_does_not_depend_on(column: str, change: str, seed: int, rows: int) -> None:
    table = random_table(seed, rows)
    before, after = (CALLS[column](*some).value for some in (table, CHANGES[change](*table, seed)))
    assert after == pytest.approx(before, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), rows=st.integers(5, 40))
def test_ranges(seed: int, rows: int) -> None:
    table = random_table(seed, rows)
    for column in COLUMNS:
        value = CALLS[column](*table).value
        assert math.isnan(value) or (-1 if "topsim" in column else 0) <= value <= 1 + 1e-12


def test_one_symbol_for_every_value_is_perfect_in_every_metric() -> None:
    meanings = icy.MeaningSpace(3, 4).all()
    messages = meanings + 4 * np.arange(3)
    for name in ("topsim", "posdis", "bosdis", "hce", "cbm", "mig", "modularity", "factor_vae"):
        assert getattr(metrics, name)(meanings, messages).value == pytest.approx(1, abs=1e-12), name
    assert metrics.residual_entropy(meanings, messages).value == 0
    assert metrics.tre(meanings, messages).value == pytest.approx(0, abs=1e-9)
    assert metrics.context_independence(meanings, messages).value == pytest.approx(1 / 9, abs=1e-12)


# -- what a metric answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.match("all", "metric"), ids=lambda entry: entry.name)
def test_every_metric_keeps_its_contract(name: Any) -> None:
    language = icy.make_language("rot", "2x3", 2, 3, 1)
    (score,) = score_all(Table.of(language), name.name, {}).values()
    again = name.load()(language.space.all(), language.messages)
    assert isinstance(score, Score)
    assert score.metric == name.name
    assert score.rows == 9
    assert math.isfinite(score.value)
    assert again.value == score.value
    assert dict(again.conventions) == dict(score.conventions) or score.conventions.get("vocab_size")
    assert name.description
    assert name.source


def test_a_score_is_nan_exactly_where_it_says_why() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Score("x", NAN, 1)
    with pytest.raises(ValueError, match="needs a reason"):
        Score("x", 1.0, 1, why="because")


@pytest.mark.process
def test_no_metric_needs_torch_but_those_that_train() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from icy import metrics\n"
        "g = [[0, 0], [0, 1], [1, 0], [1, 1]]; m = [[1, 3], [1, 4], [2, 3], [2, 4]]\n"
        "[float(getattr(metrics, name)(g, m)) for name in sys.argv[1:]]\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, *(entry.name for entry in registry.match("all", "metric"))],
        check=True,
        timeout=900,
    )
