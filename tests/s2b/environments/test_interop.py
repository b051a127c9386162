"""Other libraries' checks and trainers on the environments; most need the extra interop."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from icy.s2b import parallel_env
from icy.s2b.environments.spaces import FORMS, OBSERVATIONS
from tests.pages import code

pytestmark = pytest.mark.slow
NAMES = ("S2B/Listener-v0", "S2B/Recall-v0")
GAMES = ("s2b/meta_referential_game-v0", "s2b/referential_game-v0")
SMALL: dict[str, Any] = {"most": 3, "length": 2}


@pytest.fixture(autouse=True)
def _strict() -> Iterator[None]:
    """Warnings of other libraries are not errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def library(name: str) -> Any:
    """Return a library, or skip the test."""
    return pytest.importorskip(name, reason="other trainers' libraries are missing; install the extra interop")


# -- the documentation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(code("docs/environments.md"))))
def test_the_code_of_the_page_of_environments_runs(number: int) -> None:
    block = code("docs/environments.md")[number]
    imported = re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)
    for name in (*imported, *(["tree"] if "ray" in imported else [])):  # RLlib imports tree
        library(name)
    names: dict[str, Any] = {}
    exec(compile(block.replace("learn(1000)", "learn(256)"), "environments.md", "exec"), names)
    assert names.get("illegal", 0) == 0
    assert 0 <= names.get("score", 0) <= 1


# -- PettingZoo and Gymnasium ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observe_mask", [False, True])
@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("actions", FORMS)
@pytest.mark.parametrize("name", GAMES)
def test_pettingzoo_accepts_the_games(name: str, actions: str, observations: str, observe_mask: bool) -> None:
    def make() -> Any:
        return pettingzoo.make("parallel", name, actions=actions, observations=observations, observe_mask=observe_mask)

    parallel_api_test(make(), num_cycles=100)
    parallel_seed_test(make, num_cycles=100)
    api_test(parallel_to_aec(make()), num_cycles=100)
    seed_test(lambda: parallel_to_aec(make()), num_cycles=100)


@pytest.mark.parametrize("observe_mask", [False, True])
@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_accepts_the_environments(name: str, observations: str, observe_mask: bool) -> None:
    given = {"observations": observations, "observe_mask": observe_mask}
    check_env(gymnasium.make(name, render_mode="ansi", **given).unwrapped)
    for mode in ("sync", "vector_entry_point"):
        many = gymnasium.wrappers.vector.RecordEpisodeStatistics(
            gymnasium.make_vec(name, num_envs=2, vectorization_mode=mode, **given)
        )
        many.reset(seed=2735729614)
        keys = {frozenset(many.step(many.action_space.sample())[-1]) - {"episode", "_episode"} for _ in range(150)}
        assert len(keys) == 1


# -- stable-baselines3 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_stable_baselines3_trains_on_drawn_seeds(name: str, observations: str) -> None:
    """Half of the seeds that VecEnv.seed() draws are larger than 2**31."""
    library("sb3_contrib")
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    many = make_vec_env(name, n_envs=2, env_kwargs={"observations": observations})
    drawn = []
    for _ in range(10):
        drawn += many.seed()
        many.reset()
    assert max(seed or 0 for seed in drawn) > 2**31
    policy = "MultiInputPolicy" if observations == "dict" else "MlpPolicy"
    for trainer in (PPO, MaskablePPO):
        many.seed()
        trainer(policy, many, n_steps=32, batch_size=32, n_epochs=1).learn(64)
    assert many.buf_infos[0]["illegal_actions"] == 0


# -- torchrl -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_torchrl_plays_one_agent(name: str, observations: str) -> None:
    library("torchrl")
    from torchrl.envs import GymWrapper, SerialEnv
    from torchrl.envs.utils import check_env_specs

    def make() -> Any:
        return GymWrapper(gymnasium.make(name, observations=observations))

    env = make()
    check_env_specs(env)
    for _ in range(3):
        assert env.rollout(1000)["next", "done"].sum() == 1
    many = SerialEnv(4, make)
    many.set_seed(0)
    assert many.rollout(10).shape == (4, 10)


def test_torchrl_masks_the_actions_of_one_agent() -> None:
    library("torchrl")
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv

    inner = gymnasium.make("S2B/Listener-v0", observe_mask=True, actions="flat")
    env = TransformedEnv(GymWrapper(inner), ActionMask())
    for _ in range(3):
        assert env.rollout(1000)["next", "done"].sum() == 1
        assert inner.unwrapped.adapter.illegal["listener"][0] == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("observations", OBSERVATIONS)
@pytest.mark.parametrize("actions", ["factored", "flat"])
def test_torchrl_plays_both_agents_by_their_masks(actions: str, observations: str) -> None:
    """It takes masks from infos or from observations, not from both; in the form "role" it wants two dimensions."""
    library("torchrl")
    from torchrl.envs import PettingZooWrapper
    from torchrl.envs.utils import check_env_specs

    env = PettingZooWrapper(parallel_env(actions=actions, observations=observations, **SMALL))
    check_env_specs(env)
    for _ in range(3):
        played = env.rollout(1000)
        assert played["next", "done"].sum() == 1
        for agent in ("speaker", "listener"):
            infos = played["next", agent, "info"]
            assert infos["illegal_actions"].sum() == 0
            assert played[agent, "action_mask"].any(-1).all()
            assert infos["support_accuracy"][-1] >= 0


# -- SuperSuit ---------------------------------------------------------------------------------------------------------

WRAPPERS: dict[str, tuple[Any, ...]] = {
    "agent_indicator_v0": (),
    "black_death_v3": (),
    "clip_reward_v0": (),
    "delay_observations_v0": (2,),
    "dtype_v0": ("float64",),
    "flatten_v0": (),
    "frame_skip_v0": (2,),
    "frame_stack_v2": (4,),
    "max_observation_v0": (2,),
    "nan_random_v0": (),
    "normalize_obs_v0": (),
    "pad_action_space_v0": (),
    "pad_observations_v0": (),
    "sticky_actions_v0": (0.1,),
}
OF_MASKS = ("clip_reward_v0", "delay_observations_v0", "frame_skip_v0", "nan_random_v0", "sticky_actions_v0")


@pytest.mark.parametrize(("wrapper", "masked"), [*((name, False) for name in WRAPPERS), *((n, True) for n in OF_MASKS)])
def test_supersuit_wraps_boxes(wrapper: str, masked: bool) -> None:
    """The wrappers of OF_MASKS also take observations with a mask."""
    supersuit = library("supersuit")
    given = SMALL | ({"view": "partial", "distractors": 1} if wrapper == "pad_observations_v0" else {})
    env = parallel_env(actions="flat", observations="box", observe_mask=masked, **given)
    env = getattr(supersuit, wrapper)(env, *WRAPPERS[wrapper])
    for seed in (1, 2):
        env.reset(seed=seed)
        over = False
        while not over:
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}
            seen, _, ends, _, _ = env.step(actions)
            assert all(env.observation_space(agent).contains(seen[agent]) for agent in seen)
            over = all(ends.values())


def test_supersuit_makes_vector_environments_for_stable_baselines3() -> None:
    supersuit = library("supersuit")
    from stable_baselines3 import PPO

    one = supersuit.pettingzoo_env_to_vec_env_v1(parallel_env(actions="flat", observations="box", **SMALL))
    many = supersuit.concat_vec_envs_v1(one, 2, num_cpus=1, base_class="stable_baselines3")
    PPO("MlpPolicy", many, n_steps=32, batch_size=32, n_epochs=1).learn(128)
