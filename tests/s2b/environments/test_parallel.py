"""The game for PettingZoo: its own checks, observations, masks and forms of actions."""

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
from pettingzoo.test import parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

from icy.s2b import parallel_env
from icy.s2b.environments.parallel import MetaReferentialGame
from icy.s2b.environments.single_agent import RecallEnv
from icy.s2b.environments.spaces import FORMS, MESSAGES
from tests.helpers import mark_others
from tests.s2b.environments.helpers import GAMES, RECALL

# -- their own checks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", mark_others("slow", GAMES, lambda name: name in ("default", "both speak")))
def test_the_parallel_game_passes_pettingzoo(name: str, form: str) -> None:
    parallel_api_test(parallel_env(actions=form, **GAMES[name]), num_cycles=200)
    parallel_seed_test(lambda: parallel_env(actions=form, **GAMES[name]), num_cycles=100)


# -- observations ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GAMES)
def test_observations_states_and_legal_actions_lie_in_their_spaces(name: str, form: str) -> None:
    env = parallel_env(actions=form, **GAMES[name])
    observations, infos = env.reset(seed=11)
    while env.agents:
        for agent in env.agents:
            assert env.observation_space(agent).contains(observations[agent]), observations[agent]
            mask = env.action_masks(agent)
            assert mask.any()
            assert np.array_equal(mask, infos[agent]["action_mask"])
        assert env.state_space.contains(env.state())
        actions = {a: env.action_space(a).sample(mask=infos[a]["action_mask"]) for a in env.agents}
        observations, _, _, _, infos = env.step(actions)
    assert [infos[agent]["illegal_actions"] for agent in infos] == [0, 0]
    assert 0 <= infos["listener"]["support_accuracy"] <= 1


def test_samples_that_may_leave_their_section_have_a_wider_space() -> None:
    space = parallel_env(truncate="none").observation_space("listener")["stimulus"]
    assert (space.low == -2).all()
    assert (parallel_env().observation_space("listener")["stimulus"].low == -1).all()


def test_messages_are_one_hot_or_tokens() -> None:
    envs = {way: parallel_env(messages=way) for way in MESSAGES}
    for env in envs.values():
        env.reset(seed=1)
        env.step({"speaker": np.array([0, 5, 2, 0])})
    heard = {way: env.observation_space("listener")["message"] for way, env in envs.items()}
    assert heard["tokens"].nvec.tolist() == [7, 7, 7]
    tokens, bits = (env.step({})[0]["speaker"]["message"] for env in (envs["tokens"], envs["one-hot"]))
    assert bits.reshape(3, 7).argmax(1).tolist() == tokens.tolist()
    assert bits.sum() == 3


def test_latents_are_shown_only_where_they_are_asked_for() -> None:
    _, infos = parallel_env().reset(seed=1)
    scores = {"zsct", "support_accuracy", "yes_rate"}
    assert set(infos["listener"]) == {"action_mask", "game", "illegal_actions", *scores}
    _, infos = parallel_env(latents=True, distractors=2).reset(seed=1)
    assert infos["listener"]["speaker_latents"].shape == (3, 3)
    assert infos["listener"]["sizes"].shape == (3,)
    assert infos["speaker"]["answer"] == infos["listener"]["answer"]


# -- masks -------------------------------------------------------------------------------------------------------------


def test_flat_actions_are_those_of_the_authors() -> None:
    """s2b-facts 6.2: 519 actions; theirs let the speaker do anything, the papers messages before round N only."""
    env = parallel_env(actions="flat")
    assert env.action_space("speaker").n == env.action_space("listener").n == 519
    assert parallel_env(actions="flat", length=4).action_space("speaker").n == 3111
    counts = []
    env.reset(seed=1)
    for _ in range(3):
        counts.append((int(env.action_masks("speaker").sum()), int(env.action_masks("listener").sum())))
        env.step({"speaker": 518, "listener": 518})
    assert counts == [(259, 1), (1, 2), (1, 1)]
    theirs = parallel_env(actions="flat", compat="near32")
    counts = []
    theirs.reset(seed=1)
    for _ in range(3):
        counts.append((int(theirs.action_masks("speaker").sum()), int(theirs.action_masks("listener").sum())))
        theirs.step({"speaker": 0, "listener": 518})
    assert counts == [(518, 1), (518, 518), (518, 1)]


@pytest.mark.parametrize(
    ("form", "speaker", "listener"),
    [
        ("flat", [518, 518], [518, 518]),  # nothing, where something is asked for
        ("flat", [259, 518], [518, 5]),  # a decision of the speaker; a sentence of the listener with its decision
        ("flat", [0, 999], [518, -1]),  # what there is not
        ("factored", [[1, 2, 2, 2], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 5, 0, 0]]),
        ("factored", [[0, 2, 2, 2], [0, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 0, 0]]),
        ("role", [[2, 2, 9], [0, 0, 0]], [1, 0]),
    ],
)
def test_masked_actions_are_counted(form: str, speaker: list[Any], listener: list[Any]) -> None:
    """One of the two actions of each player."""
    env = parallel_env(actions=form)
    _, infos = env.reset(seed=1)
    for one, other in zip(speaker, listener, strict=True):
        _, _, _, _, infos = env.step({"speaker": np.array(one), "listener": np.array(other)})
    assert [infos[agent]["illegal_actions"] for agent in ("speaker", "listener")] == [1, 1]


def test_all_forms_of_actions_mean_the_same() -> None:
    """One and the same play in the three forms."""
    rng = np.random.default_rng(0)
    envs = {form: parallel_env(actions=form, messages="tokens") for form in FORMS}
    for env in envs.values():
        env.reset(seed=4)
    while envs["flat"].agents:
        seen = {}
        said, decided = rng.integers(1, 7, 3), int(rng.integers(0, 2))
        masks = envs["role"].action_masks("speaker"), envs["role"].action_masks("listener")
        said, decided = said * (masks[0].sum() > 3), decided * (masks[1].sum() > 1)
        number = int(sum(((said[j] - 1) * 6**j) for j in range(3)) + 43) if said.any() else 518
        acts = {
            "factored": {"speaker": np.array([0, *said]), "listener": np.array([decided, 0, 0, 0])},
            "flat": {"speaker": number, "listener": decided * 259 if masks[1].sum() > 1 else 518},
            "role": {"speaker": said, "listener": decided},
        }
        for form, env in envs.items():
            observations, rewards, *_, infos = env.step(acts[form])
            seen[form] = (observations["listener"]["message"].tolist(), rewards, infos["speaker"]["illegal_actions"])
        assert seen["flat"] == seen["factored"] == seen["role"]
        assert seen["role"][2] == 0


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_person_can_follow() -> None:
    env = parallel_env(render_mode="ansi")
    env.reset(seed=3)
    assert str(env.render()).startswith("Episode of seed 3: ")
    env.step({"speaker": np.array([0, 3, 0, 2]), "listener": np.array([0, 0, 0, 0])})
    assert "the speaker says       3 0 0" in str(env.render())
    env.step({})
    assert "the listener decides   the same meaning: " in str(env.render())


# -- the environments of Gymnasium, and the names of all environments --------------------------------------------------


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
