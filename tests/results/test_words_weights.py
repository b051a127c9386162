"""Variances of languages and weights, on small tables with known variances."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from icy.analysis.statistics import student
from results.words_weights import __main__ as page

ROOT = Path(__file__).parents[2]
LANGUAGE, WEIGHTS = np.array([0.1, 0.5, -0.2, 0.3]), np.array([0.0, 0.2, -0.3])
Y = LANGUAGE[:, None] + WEIGHTS  # without interaction


def test_components_of_effects_without_interaction_are_their_variances() -> None:
    assert page.components(Y).tolist() == pytest.approx([LANGUAGE.var(ddof=1), WEIGHTS.var(ddof=1), 0])
    two = page.components(np.stack([Y, 2 * Y]))
    assert two[:, 1].tolist() == pytest.approx((4 * two[:, 0]).tolist())


@pytest.mark.parametrize(("sign", "shared", "paired"), [(1, 1, -math.inf), (-1, -1, math.log(2))])
def test_language_effects_of_a_side_are_shared_or_opposite(sign: int, shared: float, paired: float) -> None:
    rng = np.random.default_rng(0)
    foreign = rng.normal(size=Y.shape)  # of the other side, alone there, so that it has no part in pairs
    found = page.estimands(np.stack([Y, sign * Y, foreign]), ["sender", "sender", "receiver"])
    assert found["shared"] == pytest.approx(shared)
    if sign < 0:
        assert found["paired"] == pytest.approx(paired)
        assert found["difference"] == pytest.approx(math.log(4 * page.components(Y).sum()))
    else:
        assert math.isnan(found["paired"])  # the difference does not vary


def test_an_interval_holds_for_other_languages_and_weights() -> None:
    rng = np.random.default_rng(1)
    languages = rng.normal(size=(2, 10, 1))
    y = languages / languages.std(1, ddof=1, keepdims=True) + 0.1 * rng.normal(size=(2, 10, 10))
    found = page.jackknife(y, ["sender", "receiver"])
    assert set(found) == {"share", "against", "run", "weights", "rest"}  # no pair of one side
    share = found["share"]
    assert share.low < 0.99 < share.high
    assert share.p < 1e-4
    assert found["against"].low < 1 < found["against"].high


@pytest.mark.parametrize(("deviation", "margin", "count"), [(0.2, 1.1, 20), (0.2, 1.2, 8), (0.001, 1.1, 2)])
def test_languages_needed(deviation: float, margin: float, count: int) -> None:
    assert page.languages_needed(deviation**2, margin) == count
    reach = [student(n - 1) * deviation / math.sqrt(n) for n in (count, count - 1) if n > 1]
    assert reach[0] <= math.log(margin) < reach[-1] or count == 2


def test_one_language_covers_the_mean_of_many_too_rarely() -> None:
    rng = np.random.default_rng(2)
    y = 3 * rng.normal(size=(10, 1)) + rng.normal(size=(10, 10))
    assert page.coverage(y, 5, 5, "pairs") > 0.85
    assert page.coverage(y, 1, 10, "one") < 0.5


def test_the_documentation_has_the_table_of_the_page() -> None:
    tables = [
        {line for line in (ROOT / name).read_text().splitlines() if line.startswith("| 3x4 |")}
        for name in ("docs/comparing-results.md", "results/words_weights/words-weights.md")
    ]
    assert tables[0]
    assert tables[0] <= tables[1]
