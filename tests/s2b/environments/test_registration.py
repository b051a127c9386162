"""Names of the environments, and many of them at once."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.vector import AutoresetMode
from pettingzoo.utils.conversions import parallel_to_aec

from icy.s2b import parallel_env
from icy.s2b.environments.parallel import MetaReferentialGame
from tests.s2b.environments.helpers import VECTOR


def test_names_are_versioned_and_made_by_the_libraries() -> None:
    assert isinstance(pettingzoo.make("parallel", "s2b/meta_referential_game-v0", shots=2), MetaReferentialGame)
    common = pettingzoo.make("parallel", "s2b/referential_game-v0", games=7)
    common.reset(seed=1)
    steps = 0
    while common.agents:
        common.step({agent: common.action_space(agent).sample() for agent in common.agents})
        steps += 1
    assert steps == 3 * 7 - 1
    assert "s2b" in {spec.split("/")[0].lower() for spec in gymnasium.registry if "/" in spec}
    aec = parallel_to_aec(parallel_env())
    aec.reset(seed=1)
    assert aec.agent_selection == "speaker"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), [("S2B/Listener-v0", {"samples": 2}), ("S2B/Recall-v0", {"most": 3})])
def test_many_are_as_single_ones(name: str, given: dict[str, Any]) -> None:
    """Step by step, with the next episodes at the steps after they end."""
    count = 6
    many = gymnasium.make_vec(name, num_envs=count, **VECTOR, **given)
    assert many.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    singles = [gymnasium.make(name, **given) for _ in range(count)]
    observations, _ = many.reset(seed=20)
    alone = [single.reset(seed=20 + i)[0] for i, single in enumerate(singles)]
    many.action_space.seed(1)
    over, ended = np.zeros(count, dtype=bool), 0
    for _ in range(250):
        assert many.observation_space.contains(observations)
        for i, key in itertools.product(range(count), observations):
            assert np.array_equal(observations[key][i], alone[i][key]), key
        actions = many.action_space.sample()
        observations, rewards, terminated, _, infos = many.step(actions)
        for i, single in enumerate(singles):
            if over[i]:
                alone[i], reward, done = single.reset()[0], 0.0, False
            else:
                alone[i], reward, done, _, info = single.step(actions[i])
                score = "accuracy" if "Recall" in name else "zsct"
                assert not done or infos[score][i] == info[score]
            assert (rewards[i], terminated[i]) == (reward, done)
        over = terminated
        ended += int(over.sum())
    assert ended > 3
