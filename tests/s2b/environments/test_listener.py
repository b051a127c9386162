"""The listener's environment for Gymnasium."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from icy.s2b.environments.spaces import FORMS
from tests.helpers import mark_others
from tests.s2b.environments.helpers import GAMES


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
