"""The recall task for Gymnasium."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from icy.s2b.environments.recall import RecallEnv
from tests.s2b.environments.helpers import RECALL


@pytest.mark.parametrize("name", RECALL)
def test_recall_passes_gymnasium(name: str) -> None:
    check_env(gymnasium.make("S2B/Recall-v0", render_mode="ansi", **RECALL[name]).unwrapped)


def test_a_one_hot_stimulus_tells_its_value() -> None:
    env = RecallEnv(representation="ohe", latents=True, render_mode="ansi")
    observation, _ = env.reset(seed=3)
    accuracy = None
    while accuracy is None:
        stimulus = observation["stimulus"].reshape(3, 5)
        observation, _, _, _, info = env.step(5)
        asked = observation["stimulus"].reshape(3, 5)[:, 0].argmax()
        assert info["answer"] == stimulus[asked].argmax()
        observation, _, over, _, info = env.step(info["answer"])
        assert env.render() is not None
        accuracy = info["accuracy"] if over else None
    assert accuracy == 1
