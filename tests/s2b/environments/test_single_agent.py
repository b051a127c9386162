"""The environments of Gymnasium, and the names of all environments."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.utils.conversions import parallel_to_aec

from icy.s2b import parallel_env
from icy.s2b.environments.parallel import MetaReferentialGame
from icy.s2b.environments.single_agent import RecallEnv
from icy.s2b.environments.spaces import FORMS
from tests.helpers import mark_others
from tests.s2b.environments.helpers import GAMES, RECALL


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", mark_others("slow", GAMES, lambda name: name in ("default", "both speak")))
def test_the_listener_passes_gymnasium(name: str, form: str) -> None:
    check_env(gymnasium.make("S2B/Listener-v0", actions=form, render_mode="ansi", **GAMES[name]).unwrapped)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_an_environment_that_plays_can_be_copied(way: Any) -> None:
    env = gymnasium.make("S2B/Listener-v0").unwrapped
    env.reset(seed=1)
    env.step(0)
    other = way(env)
    for _ in range(20):
        (one, *rest), (two, *others) = env.step(1), other.step(1)
        assert all(np.array_equal(one[key], two[key]) for key in one)
        assert rest[0] == others[0]


def test_a_picture_of_the_words() -> None:
    env = gymnasium.make("S2B/Listener-v0", render_mode="rgb_array")
    env.reset(seed=1)
    first = env.render()
    env.step(0)
    env.step(0)
    second = env.render()
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    assert first.shape == second.shape == (*first.shape[:2], 3)
    assert first.dtype == np.uint8
    assert (first != second).any()


@pytest.mark.slow
def test_recurrent_ppo_of_sb3_learns_on_it_unchanged() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contrib = pytest.importorskip("sb3_contrib")
        model = contrib.RecurrentPPO("MultiInputLstmPolicy", "S2B/Listener-v0", n_steps=64, batch_size=32, seed=1)
        before = [p.detach().clone() for p in model.policy.parameters()]
        model.learn(192)
        assert any(not bool((a == b).all()) for a, b in zip(before, model.policy.parameters(), strict=True))
        masked = contrib.MaskablePPO("MultiInputPolicy", gymnasium.make("S2B/Listener-v0", actions="flat"), n_steps=64)
        masked.learn(128)


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
