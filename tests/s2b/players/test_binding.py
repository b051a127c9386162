"""The binding listener: memory and inference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.s2b import record
from icy.s2b.players.binding import Memory, evidence
from tests.s2b.players.helpers import accuracy


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"samples": 4}, {"samples": 4, "shots": 2, "distractors": 2}, {"samples": 16}])
def test_memory_and_inference_solve_the_query(given: dict[str, Any]) -> None:
    """In the query every value has already occurred with its token."""
    assert accuracy("posdis", "binding", episodes=60, **given) > 0.995
    assert 0.8 < accuracy("posdis", "binding", "support", episodes=60, **given) < 0.99


@pytest.mark.slow
def test_binding_learns_from_success_in_games_without_feedback() -> None:
    assert accuracy("posdis", "binding", feedback=False) > 0.98
    assert accuracy("posdis", "binding", representation="ohe") == 1
    assert accuracy("posdis", "binding", length=1, rounds=3) == 1


@pytest.mark.slow
def test_binding_is_at_chance_with_languages_without_parts() -> None:
    assert accuracy("holistic", "binding") == pytest.approx(0.5, abs=0.06)
    assert accuracy("random", "binding") == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
def test_decisions_of_binding_do_not_depend_on_other_episodes() -> None:
    together = record("posdis", "binding", episodes=12, samples=4)
    alone = record("posdis", "binding", episodes=3, samples=4)
    columns = ["episode", "game", "decision", "said", "heard"]
    assert together[columns].head(len(alone)).equals(alone[columns])


def test_the_memory_infers_the_number_of_values_and_tokens() -> None:
    """At O = 1 a value has one number, so two numbers in the same half exclude a dimension of two values."""
    memory = Memory(1, 1, np.array([2, 3, 4, 5]), 6, samples=1)
    rows = np.array([0])
    memory.see(rows, np.array([[-0.9]]))
    memory.see(rows, np.array([[-0.9]]))
    assert memory.seen[0, 0] == 1
    memory.see(rows, np.array([[-0.4]]))
    weights = memory._weights(rows)[0, 0]
    assert weights[0] < 1e-9
    assert weights.sum() == pytest.approx(1)
    memory.bind(rows, np.array([[-0.9]]), np.array([[3]]))
    assert memory.ratio(rows, np.array([[-0.9]]), np.array([[3]]))[0] > 100
    assert memory.ratio(rows, np.array([[-0.4]]), np.array([[3]]))[0] < 1e-9
    memory.forget(rows)
    assert memory.seen[0, 0] == 0
    assert np.isnan(memory.numbers).all()


def test_evidence_is_an_integral() -> None:
    """The evidence of one number integrates to 1 over a section, because nearly all of each density lies in it."""
    place = (np.arange(400) + 0.5) / 400
    density = np.exp(evidence(np.stack([np.ones(400), place, place**2], -1)))
    assert density.mean() == pytest.approx(1, abs=2e-3)
