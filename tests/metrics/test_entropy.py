"""Entropies, against SciPy's and scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import mutual_info_score

from icy.languages.table import number, together
from icy.metrics.information import conditional_entropy, entropy, joint_entropy, mutual_information


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 40))
def test_entropies_are_those_of_scipy_and_scikit_learn(seed: int, rows: int, values: int) -> None:
    random = np.random.default_rng(seed)
    x, y = (number(random.integers(values, size=rows)) for _ in range(2))
    assert entropy(x) == pytest.approx(scipy_entropy(np.bincount(x), base=2), abs=1e-12)
    found = mutual_information(x, y)
    assert found == pytest.approx(mutual_info_score(x, y) / math.log(2), abs=1e-9)
    assert 0 <= found <= min(entropy(x), entropy(y))
    assert conditional_entropy(x, y) == pytest.approx(entropy(x) - found, abs=1e-9)
    assert joint_entropy(x, y) == pytest.approx(entropy(together(x, y)), abs=1e-9)
