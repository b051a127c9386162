"""Targets of values, by hand on a toy sequence."""

from __future__ import annotations

import torch

from icy.s2b.agents.r2d2.r2d2_learning import n_step_targets, whole

REWARDS = torch.tensor([[1.0], [0.0], [2.0], [0.0], [-2.0], [4.0]])
WORTH = torch.tensor([[10.0], [20.0], [30.0], [40.0], [50.0], [60.0]])
ENDS = torch.tensor([[False], [False], [True], [False], [False], [False]])


def test_two_rewards_and_then_the_worth() -> None:
    found = n_step_targets(REWARDS, ENDS, WORTH, 2, 0.5)[:, 0].tolist()
    assert found == [
        1 + 0.5 * 0 + 0.25 * 30,
        0 + 0.5 * 2,  # the episode ends with the next reward
        2.0,
        0 + 0.5 * -2 + 0.25 * 60,
        -2 + 0.5 * 60,  # only one reward before the last state
        60.0,  # the last step has none
    ]


def test_an_episode_that_ends_with_the_sequence() -> None:
    ends = ENDS.clone()
    ends[-1] = True
    assert n_step_targets(REWARDS, ends, WORTH, 3, 0.5)[3:, 0].tolist() == [0 - 1 + 0.25 * 4, -2 + 0.5 * 4, 4.0]
    assert whole(ends, 3)[:, 0].tolist() == [True] * 6


def test_one_reward_is_the_target_of_q_learning() -> None:
    found = n_step_targets(REWARDS, ENDS, WORTH, 1, 0.9)
    expected = REWARDS[:-1] + 0.9 * WORTH[1:] * ~ENDS[:-1]
    torch.testing.assert_close(found[:-1], expected)


def test_which_steps_have_all_their_rewards() -> None:
    assert whole(ENDS, 1)[:, 0].tolist() == [True, True, True, True, True, False]
    assert whole(ENDS, 2)[:, 0].tolist() == [True, True, True, True, False, False]
    assert whole(ENDS, 3)[:, 0].tolist() == [True, True, True, False, False, False]


def test_rows_do_not_mix() -> None:
    both = [torch.cat([x, y], 1) for x, y in ((REWARDS, -REWARDS), (ENDS, ~ENDS), (WORTH, WORTH * 3))]
    rewards, ends, worth = both
    found = n_step_targets(rewards, ends, worth, 2, 0.5)
    for row in range(2):
        one = [x[:, row : row + 1] for x in both]
        assert torch.equal(found[:, row : row + 1], n_step_targets(one[0], one[1], one[2], 2, 0.5))
