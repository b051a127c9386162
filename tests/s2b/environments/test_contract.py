"""What trainers rely on in all environments: seeds, infos, action masks, forms of observations, and clear errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

from icy.core.errors import IcyError
from icy.s2b import BatchedGame, BatchedRecall, GameSettings, parallel_env
from icy.s2b.environments.single_agent import ListenerEnv, ListenerVectorEnv, RecallEnv, RecallVectorEnv
from icy.s2b.environments.spaces import FORMS
from tests.helpers import mark_others
from tests.s2b.environments.helpers import GAMES, VECTOR

Make = Callable[..., Any]
SINGLE: dict[str, Make] = {"listener": ListenerEnv, "recall": RecallEnv, "parallel": parallel_env}
MANY: dict[str, Make] = {"listener": ListenerVectorEnv, "recall": RecallVectorEnv}
LARGEST = 2**64 - 1


def first(make: Make, seed: Any, **given: Any) -> Any:
    """Return the first observation of a seed."""
    return make(**given).reset(seed=seed)[0]


# -- seeds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGLE)
def test_seeds_have_up_to_64_bits(name: str) -> None:
    """Also those of NumPy; none is taken for another."""
    seeds = [0, 2**31 + 1, 2735729614, 2**63 - 1, 2**63, LARGEST]
    firsts = [first(SINGLE[name], seed) for seed in seeds]
    for seed, observation in zip(seeds, firsts, strict=True):
        assert data_equivalence(first(SINGLE[name], np.uint64(seed)), observation)
    for one, other in itertools.combinations(firsts, 2):
        assert not data_equivalence(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_seeds_of_many_follow_the_same_rule(name: str) -> None:
    """One seed and a list of seeds begin the same episodes as single environments of these seeds."""
    for start in (5, 2735729614, 2**63 - 2, LARGEST - 2):
        seeds = [start, start + 1, start + 2]
        for given in (start, seeds, tuple(seeds), np.array(seeds, dtype=np.uint64)):
            many = first(MANY[name], given, num_envs=3)
            for i, seed in enumerate(seeds):
                alone = first(SINGLE[name], seed)
                assert all(np.array_equal(many[key][i], alone[key]) for key in alone)


WRONG_SEEDS = (-1, -(2**70), 2**64, 10**30, 1.5, 1.0, True, "1")


@pytest.mark.parametrize("seed", WRONG_SEEDS)
def test_other_seeds_are_refused_with_the_largest(seed: Any, subtests: pytest.Subtests) -> None:
    resets: dict[str, Callable[[], Any]] = {
        **{name: lambda make=make: make().reset(seed=seed) for name, make in SINGLE.items()},
        **{f"many {name}": lambda make=make: make(num_envs=2).reset(seed=seed) for name, make in MANY.items()},
        **{f"list {name}": lambda make=make: make(num_envs=2).reset(seed=[1, seed]) for name, make in MANY.items()},
        "batched": lambda: BatchedGame(episodes=2).reset(seeds=[seed, 1]),
        "batched recall": lambda: BatchedRecall().reset(seed),
        "space": lambda: GameSettings(kind="common", space_seed=seed),
    }
    for name, reset in resets.items():
        with subtests.test(name), pytest.raises(IcyError, match=rf"from 0 to {LARGEST} \(64 bits\), not"):
            reset()


def test_seeds_that_are_too_few_or_exceed_the_largest_are_refused() -> None:
    env = ListenerVectorEnv(num_envs=3)
    for seeds in ([1], [1, 2, 3, 4], []):
        with pytest.raises(IcyError, match=f"3 episodes need as many seeds, not {len(seeds)}"):
            env.reset(seed=seeds)
    with pytest.raises(IcyError, match=f"exceed the largest, {LARGEST}"):
        env.reset(seed=LARGEST - 1)


def test_a_game_of_a_large_seed_goes_on_from_its_state() -> None:
    game = BatchedGame(episodes=2)
    game.reset(seeds=[LARGEST, 3])
    game.step(said=np.array([[1, 2, 3], [3, 2, 1]]))
    other = BatchedGame(episodes=2)
    other.load(game.state())
    assert other.seeds.tolist() == [LARGEST, 3]
    one, two = game.step(decided=np.array([0, 1])), other.step(decided=np.array([0, 1]))
    assert np.array_equal(one.listener.stimulus, two.listener.stimulus)


def test_a_common_game_has_a_space_of_64_bits() -> None:
    spaces_of = [BatchedGame(kind="common", space_seed=seed) for seed in (2**63, LARGEST)]
    one, other = (game.reset(seed=1).listener.stimulus for game in spaces_of)
    assert not np.array_equal(one, other)


# -- infos -------------------------------------------------------------------------------------------------------------

SPLITS = {f"common {split}": {"kind": "common", "games": 3, "split": split} for split in ("support", "query", "all")}
SHORT: dict[str, dict[str, Any]] = {"most": 3, "dimensions": 2}  # episodes of few steps
INFOS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("parallel", given) for name, given in {**GAMES, **SPLITS}.items()},
    "listener": ("listener", SHORT),
    "listener with latents": ("listener", {"latents": True, **SHORT}),
    "recall": ("recall", SHORT),
    "recall with latents": ("recall", {"latents": True, **SHORT}),
}


def act(env: Any, seed: int) -> Any:
    """Return an action of every agent, or one."""
    if not hasattr(env, "possible_agents"):
        env.action_space.seed(seed)
        return env.action_space.sample()
    for agent in env.agents:
        env.action_space(agent).seed(seed)
    return {agent: env.action_space(agent).sample() for agent in env.agents}


def ended(over: Any) -> bool:
    """Return whether an episode has ended, for one agent or several."""
    return all(over.values()) if isinstance(over, dict) else bool(over)


@pytest.mark.parametrize(
    "name", mark_others("slow", INFOS, lambda name: name in ("default", "common all", "listener", "recall"))
)
def test_infos_have_the_same_keys_and_shapes_and_no_nan_at_every_step(name: str) -> None:
    kind, given = INFOS[name]
    env = SINGLE[kind](**given)
    found: set[Any] = set()
    for seed in (1, 2):
        _, infos = env.reset(seed=seed)
        over, steps = False, 0
        while True:
            each = infos if kind == "parallel" else {"": infos}
            found |= {
                (a, tuple((k, np.shape(v), np.asarray(v).dtype.str) for k, v in i.items())) for a, i in each.items()
            }
            assert all(np.isfinite(value).all() for info in each.values() for value in info.values())
            if over:
                break
            _, _, over, _, infos = env.step(act(env, steps))
            over, steps = ended(over), steps + 1
        assert steps > 2
    assert len(found) == (2 if kind == "parallel" else 1)


def test_scores_in_infos_are_those_of_the_game() -> None:
    """Complete at the end, -1 until a game of the phase has been played."""
    env = ListenerEnv(most=3)
    _, info = env.reset(seed=4)
    scores = ("zsct", "support_accuracy", "yes_rate")
    assert [info[name] for name in scores] == [-1, -1, -1]
    over, support = False, []
    while not over:
        seen, _, over, _, info = env.step(1)
        if seen["phase"] == 0 and seen["previous_result"]:
            support.append(info["support_accuracy"])
            assert info["zsct"] == -1
    whole = env.adapter.game.scores()
    assert [info[name] for name in scores] == [whole.zsct[0], whole.support[0], whole.yes[0]]
    assert support[0] in (0, 1)
    assert support[-1] == info["support_accuracy"]


MODES = {
    "listener": ("S2B/Listener-v0", {"observations": "box", "observe_mask": True, **SHORT}),
    "recall": ("S2B/Recall-v0", {"latents": True, **SHORT}),
}


@pytest.mark.parametrize("name", MODES)
def test_many_at_once_are_as_in_gymnasiums_own_vector_environment(name: str) -> None:
    """Observations, rewards, ends and infos, with their keys, in the steps after episodes end too."""
    of, given = MODES[name]
    batch = gymnasium.make_vec(of, num_envs=2, **VECTOR, **given)
    one_by_one = gymnasium.make_vec(of, num_envs=2, vectorization_mode="sync", **given)
    assert batch.autoreset_mode == one_by_one.autoreset_mode == AutoresetMode.NEXT_STEP  # type: ignore[attr-defined]
    assert batch.observation_space == one_by_one.observation_space
    seed = 2735729614
    result, other, over = batch.reset(seed=seed), one_by_one.reset(seed=seed), 0
    batch.action_space.seed(1)
    for _ in range(60):
        assert data_equivalence(result[0], other[0])
        assert all(np.array_equal(one, two) for one, two in zip(result[1:-1], other[1:-1], strict=True))
        infos, others = result[-1], other[-1]
        assert infos.keys() == others.keys()
        assert all(np.array_equal(infos[key], others[key]) for key in infos)
        actions = batch.action_space.sample()
        result, other = batch.step(actions), one_by_one.step(actions)
        over += int(result[2].sum())
    assert over > 1


def test_infos_of_many_fit_gymnasiums_wrappers() -> None:
    env = gymnasium.wrappers.vector.DictInfoToList(
        gymnasium.make_vec("S2B/Listener-v0", num_envs=2, **VECTOR, **SHORT)  # type: ignore[arg-type]
    )
    _, infos = env.reset(seed=1)
    _, _, _, _, later = env.step(np.ones(2, dtype=np.int64))
    assert [set(info) for info in (*infos, *later)] == [set(infos[0])] * 4


def test_changing_infos_and_observations_changes_no_count() -> None:
    env = parallel_env(actions="flat", observe_mask=True)
    seen, infos = env.reset(seed=1)
    infos["speaker"]["action_mask"][:] = 0
    seen["speaker"]["action_mask"][:] = 0
    env.action_masks("speaker")[:] = 0
    assert env.action_masks("speaker").sum() == 259
    assert env.step({"speaker": 0})[-1]["speaker"]["illegal_actions"] == 0


# -- masks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["default", "near32", "both speak"])
def test_a_mask_is_one_row_that_the_action_space_samples_by(name: str, form: str) -> None:
    """In infos, in observations and by action_masks(), which also answers before the first reset."""
    env = parallel_env(actions=form, observe_mask=True, **GAMES[name])
    before = {agent: env.action_masks(agent) for agent in env.possible_agents}
    seen, infos = env.reset(seed=3)
    for agent in env.agents:
        assert np.array_equal(before[agent], env.action_masks(agent))
    for step in range(9):
        actions = {}
        for agent in env.agents:
            space, mask = env.action_space(agent), infos[agent]["action_mask"]
            assert mask.shape == (space.n if isinstance(space, spaces.Discrete) else int(space.nvec.sum()),)
            assert mask.dtype == np.int8
            assert np.array_equal(mask, seen[agent]["action_mask"])
            assert np.array_equal(mask, env.action_masks(agent))
            space.seed(step)
            actions[agent] = space.sample(mask=mask)
        seen, *_, infos = env.step(actions)
        assert [infos[agent]["illegal_actions"] for agent in infos] == [0, 0]


@pytest.mark.parametrize("make", [ListenerEnv, RecallEnv])
def test_masks_of_one_agent_are_there_before_the_first_reset(make: Make) -> None:
    env = make()
    before = env.action_masks()
    _, info = env.reset(seed=2)
    assert np.array_equal(before, env.action_masks())
    assert np.array_equal(before, info["action_mask"])


def test_a_space_still_takes_masks_as_gymnasium_has_them() -> None:
    space = parallel_env().action_space("speaker")
    row = np.array([0, 1, *[0] * 6, 1, *[1] * 7, *[0] * 3, 1, *[0] * 3], dtype=np.int8)
    space.seed(1)
    one = space.sample(mask=row)
    space.seed(1)
    assert np.array_equal(one, space.sample(mask=tuple(np.split(row, [2, 9, 16]))))
    assert (one[0], one[1], one[3]) == (1, 6, 3)
    assert space == spaces.MultiDiscrete([2, 7, 7, 7])


# -- forms of observations ---------------------------------------------------------------------------------------------

VIEWS = {
    "listener": (ListenerEnv, {"distractors": 1, "representation": "ohe"}),
    "listener, tokens": (ListenerEnv, {"messages": "tokens", "truncate": "none"}),
    "recall": (RecallEnv, {}),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_box_is_the_flattened_dictionary(name: str) -> None:
    make, given = VIEWS[name]
    envs = [make(observations=form, observe_mask=mask, **given) for form in ("dict", "box") for mask in (False, True)]
    results = [env.reset(seed=5)[0] for env in envs]
    features = envs[0].observation_space
    for _ in range(20):
        assert all(env.observation_space.contains(seen) for env, seen in zip(envs, results, strict=True))
        whole, masked, box, masked_box = results
        flat = np.asarray(spaces.flatten(features, whole), dtype=np.float32)
        assert box.dtype == np.float32
        assert np.array_equal(box, flat)
        assert np.array_equal(masked_box["observation"], flat)
        assert set(masked_box) == {"observation", "action_mask"}
        assert set(masked) == {*whole, "action_mask"}
        assert all(np.array_equal(masked[key], whole[key]) for key in whole)
        masks = envs[0].action_masks()
        assert all(np.array_equal(masks, seen["action_mask"]) for seen in (masked, masked_box))
        results = [env.step(1)[0] for env in envs]


def test_both_agents_have_boxes_and_the_state_is_the_same_in_every_form() -> None:
    whole = parallel_env(view="partial", distractors=2)
    box = parallel_env(view="partial", distractors=2, observations="box")
    seen, flat = whole.reset(seed=1)[0], box.reset(seed=1)[0]
    for agent in box.agents:
        space = box.observation_space(agent)
        assert isinstance(space, spaces.Box)
        assert space.contains(flat[agent])
        assert np.array_equal(flat[agent], spaces.flatten(whole.observation_space(agent), seen[agent]))
    assert np.array_equal(whole.state(), box.state())
    assert np.array_equal(box.state(), np.concatenate([flat[agent] for agent in box.agents]))


# -- mistakes ----------------------------------------------------------------------------------------------------------


def begun(**given: Any) -> Any:
    """Return a parallel game at the first step of an episode."""
    env = parallel_env(**given)
    env.reset(seed=1)
    return env


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "agent of an action": (lambda: begun().step({"lisener": 0}), "No agent is called 'lisener'; did you mean listener"),
    "agent of masks": (lambda: begun().action_masks("speeker"), "did you mean speaker"),
    "agent of actions": (lambda: parallel_env().action_space("Listener"), "did you mean listener"),
    "no dictionary": (lambda: begun().step([0, 0]), "takes a dictionary of an action per agent"),
    "shape": (lambda: begun().step({"speaker": [0, 1, 1]}), r"shape \(4,\), not \(3,\)"),
    "fraction": (lambda: begun(actions="role").step({"listener": 0.5}), "whole numbers, not"),
    "nan": (lambda: begun(actions="flat").step({"listener": float("nan")}), "whole numbers, not"),
    "step before reset": (lambda: parallel_env().step({}), r"call reset\(\) first"),
    "render mode": (lambda: parallel_env(render_mode="human"), "render mode"),  # type: ignore[arg-type]
    "vocabulary": (lambda: ListenerEnv(vocab_size=4).reset(), "a vocabulary of 5 tokens"),
    "many": (lambda: many().step([0, 1]), r"shape \(3,\), not \(2,\)"),
    "recall": (lambda: recall().step([1, 2]), r"shape \(\), not \(2,\)"),
    "option of reset": (lambda: parallel_env().reset(options={"shots": 2}), "has no option 'shots'"),
    "option of the listener": (lambda: ListenerEnv().reset(options={"seed": 2}), "has no option 'seed'"),
    "option of many": (lambda: ListenerVectorEnv().reset(options={"reset_mask": [True]}), "no option 'reset_mask'"),
    "setting": (
        lambda: parallel_env(observe_masks=True),
        "No option of the environment is called 'observe_masks'; did you mean observe_mask",
    ),  # type: ignore[call-arg]
    "setting of recall": (lambda: gymnasium.make("S2B/Recall-v0", most_=2), "did you mean most"),
    "setting beside the game's": (lambda: gymnasium.make("S2B/Listener-v0", speakr="posdis"), "did you mean speaker"),
    "options": (lambda: RecallEnv().reset(options=1), "must be a dictionary, not 1"),  # type: ignore[arg-type]
    "settings": (lambda: ListenerEnv(settings={"shots": 2}), "settings must be GameSettings, not"),  # type: ignore[arg-type]
    "speaker": (lambda: ListenerEnv(speaker=3).reset(), "A speaker must be the name of a player or an icy.s2b.Player"),  # type: ignore[arg-type]
    "form of actions": (lambda: parallel_env(actions=None), "No form of actions is called 'None'"),  # type: ignore[arg-type]
    "form": (lambda: RecallEnv(observations="boxes"), "No form of observations is called 'boxes'; did you mean box"),
    "mask": (lambda: ListenerEnv(observe_mask="no"), "observe_mask must be True or False, not 'no'"),  # type: ignore[arg-type]
    "latents": (lambda: RecallVectorEnv(latents=1), "latents must be True or False, not 1"),  # type: ignore[arg-type]
}


def many() -> Any:
    """Return three listeners' games at their first step."""
    env = ListenerVectorEnv(num_envs=3)
    env.reset(seed=1)
    return env


def recall() -> Any:
    """Return a recall task at its first step."""
    env = RecallEnv()
    env.reset(seed=1)
    return env


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_in_a_sentence(name: str) -> None:
    call, sentence = MISTAKES[name]
    with pytest.raises(IcyError, match=sentence):
        call()


def test_whole_numbers_of_any_type_are_actions() -> None:
    results = []
    for given in (1, True, 1.0, np.float32(1), np.uint8(1), np.array(1)):
        env = begun(actions="role")
        env.step({"speaker": [1, 2, 3]})
        results.append(env.step({"listener": given})[1])
    assert all(result == results[0] for result in results)


def test_after_an_episode_no_action_has_no_result() -> None:
    """PettingZoo's own environments answer so; an action is an error."""
    env = begun(kind="common", games=1, feedback=False)
    while env.agents:
        env.step({})
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(IcyError, match="The episode is over"):
        env.step({"speaker": [0] * 4})
