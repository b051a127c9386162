"""Exact reconstruction errors: worked values, the primal programme, and the best permutation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import icy
from icy.metrics import Table, tre
from icy.metrics.reconstruction_solvers import make_target
from tests.metrics.reconstruction.helpers import THREE, TWO, XOR, random_table


@pytest.mark.parametrize(
    ("meanings", "messages", "expected"),
    [
        (TWO, TWO, 0),
        (TWO, XOR, 1),
        (TWO, [(2 * a + b,) for a, b in TWO], 1),
        (THREE, [(a, (a + b) % 3) for a, b in THREE], 1),
        (TWO, [(a, b) if b else (a,) for a, b in TWO], 0),  # the end of a message is a symbol
        ([[0], [0], [1]], ["a", "b", "c"], 2 / 3),  # one attribute: 0 only if each value has one message
    ],
)
def test_exact_values(meanings: Any, messages: Any, expected: float) -> None:
    """metrics-facts 7, and a few by hand."""
    assert tre(meanings, messages).value == pytest.approx(expected, abs=1e-9)


def primal(meanings: np.ndarray, messages: np.ndarray) -> float:
    """The programme as it is defined: a distance of its own for every row."""
    target = make_target(Table.of(meanings, messages))
    rows, count = len(meanings), target.count
    design = np.zeros((rows, count))
    np.put_along_axis(design, target.atoms, 1, 1)
    total = 0.0
    for output in target.one_hot.reshape(rows, -1).T:
        costs = np.concatenate([np.zeros(count), np.ones(2 * rows)])
        equations = np.concatenate([design, np.eye(rows), -np.eye(rows)], 1)
        free = [(None, None)] * count + [(0, None)] * (2 * rows)
        total += linprog(costs, A_eq=equations, b_eq=output, bounds=free).fun
    return total / rows


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
def test_the_dual_programme_is_the_primal(seed: int) -> None:
    table = random_table(seed)
    found = tre(*table)
    assert found.value == pytest.approx(primal(*table), abs=1e-7)
    assert sum(found.details["positions"]) == pytest.approx(found.value)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(["additive", "permutation"]))
def test_what_it_does_not_depend_on(seed: int, composition: str) -> None:
    meanings, messages = random_table(seed)
    random = np.random.default_rng(seed)
    value = tre(meanings, messages, composition=composition).value
    others = {
        "symbols by position": (meanings, np.stack([random.permutation(3)[column] for column in messages.T], 1)),
        "positions": (meanings, messages[:, random.permutation(3)]),
        "values": (np.stack([random.permutation(3)[column] for column in meanings.T], 1), messages),
        "attributes": (meanings[:, random.permutation(3)], messages),
        "rows": tuple(t[np.random.default_rng(seed).permutation(12)] for t in (meanings, messages)),
        "copies": (np.tile(meanings, (2, 1)), np.tile(messages, (2, 1))),
    }
    for what, other in others.items():
        assert tre(*other, composition=composition).value == pytest.approx(value, abs=1e-7), what


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_the_best_permutation(seed: int, length: int) -> None:
    """Against every way to give positions to two attributes of (S + 1) // 2 places each."""
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(10, 2)), random.integers(3, size=(10, length))
    one_hot = np.eye(3)[messages]
    least = math.inf
    for owners in itertools.product(range(2), repeat=length):
        if max(owners.count(a) for a in range(2)) > (length + 1) // 2:
            continue
        left = 0.0
        for j, a in enumerate(owners):
            for value in range(3):
                said = one_hot[meanings[:, a] == value, j]
                left += np.minimum(said.sum(0), (1 - said).sum(0)).sum()
        least = min(least, left / 10)
    found = tre(meanings, messages, composition="permutation")
    assert found.value == pytest.approx(least, abs=1e-9)
    assert found.value >= tre(meanings, messages).value - 1e-7


@pytest.mark.parametrize("grammar", ["concat", "perm"])
def test_compositional_grammars(grammar: str) -> None:
    language = icy.make_language(grammar, "3x4", 4, 2, 1)
    assert tre(language).value == 0
    found = tre(language, composition="permutation")
    assert found.value == 0
    assert sorted(found.details["attributes"]) == [0, 0, 1, 1, 2, 2]
    assert tre(icy.make_language("rot", "3x4", 4, 2, 1), composition="permutation").value > 1


def test_a_token_of_its_own_for_each_of_many_rows() -> None:
    """No table of one-hot vectors is made where counts will do."""
    meanings = np.stack(np.unravel_index(np.arange(50_000), (250, 200)), 1)
    assert tre(meanings, np.arange(50_000)[:, None], composition="permutation").value == 1


def test_the_published_vocabulary() -> None:
    """V + 2 symbols, used or not, of which the end of a message is one."""
    for messages, symbols in ((XOR, 4), ([(0, 9), (1,), (0,), (1, 1)], 12)):
        target = make_target(Table.of(TWO, messages), published=True)
        assert target.symbols == symbols
        assert target.tokens.max() < symbols
