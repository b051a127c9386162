"""The replay buffer: steps of sequences, and hand-computed priorities and importance weights."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

from icy.core.errors import InvalidSettingError
from icy.s2b.agents.r2d2.agent import Replay, mixed_priority


def filled(steps: int, **given: Any) -> Replay:
    """Return a replay buffer of two actors. A step stores its number, plus 100 for the second actor."""
    replay = Replay(**{"actors": 2, "capacity": 24, "length": 4, "overlap": 2, **given})
    for step in range(steps):
        number = torch.tensor([step, 100 + step])
        replay.add({"number": number}, {"core": number * 10} if replay.begins else None)
    return replay


def draw(replay: Replay, count: int = 200) -> Any:
    return replay.draw(count, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("steps", [4, 5, 11, 12, 13, 14, 25, 38])
def test_only_complete_sequences_in_the_buffer_are_drawn(steps: int) -> None:
    drawn = draw(filled(steps))
    found = {tuple(row) for row in drawn.steps["number"].T.tolist()}
    held = range(steps // 2 * 2 - 12 + 2 * (steps % 2), steps)  # a new sequence replaces the whole oldest one
    begun = [first for first in range(0, steps, 2) if first in held and first + 4 <= steps]
    assert found == {tuple(range(a + first, a + first + 4)) for first in begun for a in (0, 100)}
    assert torch.equal(drawn.states["core"], drawn.steps["number"][0] * 10)


def test_sequences_with_a_small_overlap_start_at_every_stride() -> None:
    drawn = draw(filled(16, overlap=1))
    assert {row[0] for row in drawn.steps["number"].T.tolist()} == {6, 9, 12, 106, 109, 112}


def test_draw_probabilities_and_importance_weights() -> None:
    replay = filled(8, priority=0.5, importance=2.0)  # sequences begin at 0, 2 and 4
    places = draw(replay).places.unique()
    assert len(places) == 6
    priorities = torch.tensor([16.0, 1.0, 4.0, 1.0, 1.0, 9.0])
    replay.set_priorities(places, priorities)
    chances = priorities.sqrt() / priorities.sqrt().sum()  # 4 1 2 1 1 3 of 12
    drawn = draw(replay, 60_000)
    shares = torch.stack([(drawn.places == place).float().mean() for place in places])
    torch.testing.assert_close(shares, chances, atol=0.01, rtol=0)
    weights = (6 * chances) ** -2
    for place, weight in zip(places, weights / weights.max(), strict=True):
        torch.testing.assert_close(drawn.weights[drawn.places == place].unique(), weight[None])


def test_new_sequences_have_the_highest_priority() -> None:
    replay = filled(4, priority=1.0)
    replay.set_priorities(draw(replay).places.unique(), torch.tensor([3.0, 0.5]))
    for step in (4, 5):
        replay.add({"number": torch.tensor([step, step])}, {"core": torch.zeros(2)} if replay.begins else None)
    assert replay.state()["chances"][:2].tolist() == [[3.0, 0.5], [3.0, 3.0]]


def test_a_sequence_without_error_can_still_be_drawn() -> None:
    replay = filled(4)
    replay.set_priorities(torch.tensor([0, 1]), torch.zeros(2))
    assert draw(replay).weights.isfinite().all()


def test_priorities_mix_the_highest_and_the_mean_error() -> None:
    errors = torch.tensor([[3.0, 1.0], [-5.0, 9.0], [100.0, -1.0]])
    counted = torch.tensor([[True, True], [True, False], [False, True]])
    found = mixed_priority(errors, counted, 0.9)
    torch.testing.assert_close(found, torch.tensor([0.9 * 5 + 0.1 * 4, 0.9 * 1 + 0.1 * 1]))
    assert mixed_priority(errors, torch.zeros_like(counted), 0.9).tolist() == [0.0, 0.0]


def test_the_state_can_be_saved_and_loaded() -> None:
    replay, other = filled(17), filled(0)
    held = io.BytesIO()
    torch.save(replay.state(), held)
    held.seek(0)
    other.load(torch.load(held, weights_only=True))
    for one in (replay, other):
        one.add({"number": torch.tensor([17, 117])}, {"core": torch.zeros(2)} if one.begins else None)
    first, second = draw(replay), draw(other)
    assert torch.equal(first.steps["number"], second.steps["number"])
    assert torch.equal(first.weights, second.weights)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"overlap": 4}, "cannot overlap by 4"), ({"capacity": 7}, "no room for sequences of 4")],
)
def test_sizes_that_are_not_accepted_raise_errors(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        filled(0, **given)
