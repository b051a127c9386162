"""Conflict count, DCI and SAP, against their definitions and scikit-learn."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import balanced_accuracy_score, mutual_info_score
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import icy
from icy.metrics import conflict_count, dci, npmi, prediction, sap
from tests.metrics.test_metrics import toy

NAN = math.nan
GRID = icy.MeaningSpace(3, 4).all()


# -- exact values ------------------------------------------------------------------------------------------------------

# disentanglement, completeness, informativeness, SAP, conflicts, NPMI
TOYS = {
    "own symbols": (1, 1, 1, 0.5, 0, 1),
    "swapped": (1, 1, 1, 0.5, 0, 1),
    "shared symbols": (1, 1, 1, 0.5, 0, math.log2(4 / 3)),
    "xor": (1 - 0.75 * (math.log2(3) - 2 / 3), 0.5, 1, 0.25, 2, (3 * math.log2(4 / 3) + math.log2(2 / 3) / 2) / 4),
    "one token": (0, NAN, 1, 0.5, NAN, 0.5),
    "constant token": (1, 1, 1, 0.5, 0, 1),
    "bag": (0, 0, 1, 0, 0, 1),
    "3x3 shared": (1, 1, 1, 2 / 3, 0, math.log(9 / 5) / math.log(3)),
    "3x3 two sums": (0, 0, 1, 0, 12, None),
}


@pytest.mark.parametrize("name", TOYS)
def test_toy_table(name: str) -> None:
    table = toy(name)
    parts = [dci(*table, part=part).value for part in prediction.PARTS]
    found = (*parts, sap(*table).value, conflict_count(*table).value, npmi(*table).value)
    for value, expected in zip(found, TOYS[name], strict=True):
        assert expected is None or value == pytest.approx(expected, abs=1e-12, nan_ok=True)


# -- conflict count ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), rows=st.integers(2, 20), more=st.integers(0, 2))
def test_conflicts_are_the_least_over_all_assignments(seed: int, rows: int, more: int) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(rows, 3)), random.integers(3, size=(rows, 3 + more))
    meanings[:2] = [[0, 0, 0], [1, 1, 1]]
    expected = []
    for positions in itertools.permutations(range(3 + more), 3):
        conflicts = 0
        for attribute, position in enumerate(positions):
            for token in set(messages[:, position].tolist()):
                counts = Counter(meanings[messages[:, position] == token, attribute].tolist())
                conflicts += sum(count for _, count in counts.most_common()[1:])
        expected.append(conflicts)
    score = conflict_count(meanings, messages)
    assert score.value == min(expected) == sum(score.details["conflicts"].values())
    assert score.details["share"] == score.value / (3 * rows)


def test_conflicts_need_a_position_for_each_attribute_that_changes() -> None:
    refused = conflict_count([[0, 0], [1, 1]], ["a", "b"])
    assert refused.why == "2 attributes need as many positions, but messages have 1"
    score = conflict_count([[0, 7], [1, 7]], ["a", "b"])
    assert (score.value, score.details["positions"]) == (0, {0: 0})


# -- DCI ---------------------------------------------------------------------------------------------------------------


def shapley(meanings: np.ndarray, messages: np.ndarray) -> np.ndarray:
    """The mean gain in information of each position over all orders in which they could become known, [A, S]."""
    found = np.zeros((meanings.shape[1], messages.shape[1]))
    orders = list(itertools.permutations(range(messages.shape[1])))
    for order, a in itertools.product(orders, range(len(found))):
        before = 0.0
        for n, j in enumerate(order, start=1):
            known = [str(row) for row in messages[:, order[:n]]]
            now = mutual_info_score(meanings[:, a], known)
            found[a, j] += (now - before) / len(orders)
            before = now
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 10_000), rows=st.integers(4, 20))
def test_dci_is_the_formula_of_the_importance_over_all_orders(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(rows, 2)), random.integers(3, size=(rows, 3))
    meanings[:2], messages[:2] = [[0, 0], [1, 1]], [[0, 0, 0], [1, 1, 1]]
    importance = shapley(meanings, messages)
    importance /= importance.sum(1, keepdims=True)
    of_codes = 1 - entropy(importance + 1e-14, base=2, axis=0)  # as in disentanglement_lib
    score = dci(meanings, messages)
    assert score.details["importance"] == pytest.approx(importance, abs=1e-9)
    assert score.value == pytest.approx(of_codes @ importance.sum(0) / importance.sum(), abs=1e-6)
    of_attributes = 1 - entropy(importance + 1e-14, base=3, axis=1)
    assert dci(meanings, messages, part="completeness").value == pytest.approx(of_attributes.mean(), abs=1e-6)
    one_hot = OneHotEncoder().fit_transform(messages)
    trees = [DecisionTreeClassifier().fit(one_hot, meanings[:, a]).score(one_hot, meanings[:, a]) for a in (0, 1)]
    assert dci(meanings, messages, part="informativeness").value == pytest.approx(np.mean(trees))


def test_importance_is_that_of_a_forest_of_random_trees() -> None:
    """scikit-learn's trees on tokens of two kinds branch on every value, as these do."""
    random = np.random.default_rng(0)
    meanings = random.integers(2, size=(60, 2))
    messages = np.stack([meanings[:, 0], meanings[:, 0] ^ meanings[:, 1], random.integers(2, size=60)], 1)
    forest = ExtraTreesClassifier(100, criterion="entropy", max_features=1, random_state=0)
    expected = [forest.fit(messages, meanings[:, a]).feature_importances_ for a in (0, 1)]
    assert dci(meanings, messages).details["importance"] == pytest.approx(np.array(expected), abs=0.05)


def test_drawn_orders_are_close_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    language = icy.make_language("rot", "2x4", 4, 2, 1)
    exact = dci(language)
    monkeypatch.setattr(prediction, "MOST_DIMENSIONS", 2)
    drawn = dci(language)
    assert exact.error is None
    assert drawn.error is not None
    assert drawn.error_of == "200 drawn orders"
    assert drawn.value == pytest.approx(exact.value, abs=4 * drawn.error + 0.01)
    assert dci(language, seed=0).value == drawn.value != dci(language, seed=1).value
    assert drawn.conventions["seed"] == 0
    assert exact.conventions["seed"] is None


def test_what_does_not_change_is_left_out() -> None:
    scores = dci(np.insert(GRID, 1, 7, axis=1), np.insert(GRID, 0, 2, axis=1))
    assert scores.value == scores.details["completeness"] == 1
    assert scores.details["importance"].tolist() == np.insert(np.insert(np.eye(3), 0, 0, 1), 1, 0, 0).tolist()


def test_undefined_parts_of_dci() -> None:
    assert dci([[0], [1]], ["ac", "bd"]).why == "no second attribute changes"
    assert dci([[0], [1]], ["ac", "bd"], part="completeness").value == 0
    one = dci([[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "b", "c", "d"], part="completeness")
    assert one.why == "no second dimension of the code changes"
    none = dci([[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "a", "a", "a"], part="informativeness")
    assert (none.value, math.isnan(none.details["disentanglement"])) == (0.5, True)


# -- SAP ---------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10_000), rows=st.integers(4, 30))
def test_sap_is_the_gap_of_balanced_classifiers(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    meanings, messages = random.integers(3, size=(rows, 2)), random.integers(4, size=(rows, 3))
    meanings[:2] = [[0, 0], [1, 1]]
    gaps = []
    for factor in meanings.T:
        accuracies = []
        for position in range(3):
            one_hot = OneHotEncoder().fit_transform(messages[:, [position]])
            tree = DecisionTreeClassifier(class_weight="balanced").fit(one_hot, factor)
            accuracies.append(balanced_accuracy_score(factor, tree.predict(one_hot)))
        gaps.append(sorted(accuracies)[-1] - sorted(accuracies)[-2])
    assert sap(meanings, messages).details["gaps"] == pytest.approx(gaps, abs=1e-9)
    assert sap(meanings, messages).value == pytest.approx(np.mean(gaps), abs=1e-9)


def test_real_codes_are_put_into_bins() -> None:
    codes = GRID + np.random.default_rng(0).uniform(-0.2, 0.2, GRID.shape)
    assert sap(GRID, codes, bins=4).value == pytest.approx(0.75)
    assert dci(GRID, codes, bins=4).value == pytest.approx(1)
    assert sap(GRID, codes, bins=1).value == 0
    assert sap(np.insert(GRID, 0, 1, axis=1), GRID).details["gaps"][1:] == pytest.approx([0.75] * 3)
    assert sap([[0], [1]], ["", ""]).why == "the code has no dimension"
