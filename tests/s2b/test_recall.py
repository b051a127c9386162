"""The recall task."""

from __future__ import annotations

import numpy as np
import pytest

from icy.core.errors import IcyError
from icy.s2b import BatchedRecall, RecallSettings


def test_recall_shows_every_stimulus_once_in_each_of_two_shots() -> None:
    task = BatchedRecall(episodes=1, most=3)
    turn = task.reset(seed=7)
    shown, rewards = [], 0.0
    while not turn.done[0]:
        if turn.asked[0] == 0:
            shown.append(tuple(turn.stimulus[0].tolist()))
            turn = task.step(np.array([3]))
        else:
            assert sorted(turn.stimulus[0].tolist()) == [0, 0, 1]
            turn = task.step(task.answers)
        rewards += float(turn.reward[0])
    half = len(shown) // 2
    assert len(set(shown[:half])) == half
    assert set(shown[:half]) == set(shown[half:])
    assert rewards == len(shown)
    assert task.illegal[0] == 0
    assert task.accuracy()[0] == 1


def test_recall_of_the_authors() -> None:
    """s2b-facts 8: the support of 5x5x5, 81 stimuli a shot, drawn with replacement; no right answer is rewarded."""
    task = BatchedRecall(episodes=2, compat="near32", representation="ohe")
    turn = task.reset(seed=1)
    steps, low = 0, 0.0
    while not turn.done.all():
        turn = task.step(np.full(2, 5))
        low = min(low, float(turn.reward.min()))
        steps += 1
    assert steps == 81 * 2 * 2
    assert low == -1
    assert task.illegal.tolist() == [162, 162]
    assert task.settings.least == 5


@pytest.mark.parametrize("compat", [None, "near32"])
def test_an_episode_of_recall_is_the_same_alone_and_in_a_batch(compat: str | None) -> None:
    together, alone = BatchedRecall(episodes=3, compat=compat), BatchedRecall(compat=compat)
    theirs, own = together.reset(seeds=[4, 8, 15]), alone.reset(seeds=[8])
    while not own.done[0]:
        for name in ("stimulus", "asked", "result", "reward", "done"):
            assert np.array_equal(getattr(theirs, name)[1], getattr(own, name)[0]), name
        theirs, own = together.step(together.answers), alone.step(alone.answers)


def test_settings_of_recall_that_do_not_go() -> None:
    with pytest.raises(IcyError, match="did you mean shots"):
        RecallSettings.of(shot=1)
    with pytest.raises(IcyError, match="must not be above the largest"):
        BatchedRecall(least=4, most=3)
    with pytest.raises(IcyError, match="split 'all'"):
        BatchedRecall(dimensions=1, split="support")
    with pytest.raises(IcyError, match=r"call reset\(\) first"):
        BatchedRecall().step([1])
