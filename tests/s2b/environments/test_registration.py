"""Names of the environments."""

from __future__ import annotations

import gymnasium
import pettingzoo
from pettingzoo.utils.conversions import parallel_to_aec

from icy.s2b import parallel_env
from icy.s2b.environments.parallel import MetaReferentialGame


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
