"""R2D2 with one and two learning players: published settings, hand-computed targets, exact resumption, learning."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b import GameSettings
from icy.s2b.agents.cores import make_core
from icy.s2b.agents.networks.network import NetworkSettings, ReconstructionSettings
from icy.s2b.agents.networks.observations import NEVER
from icy.s2b.agents.r2d2.agent import Replay, Sequences, mixed_priority
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings, complete_targets, n_step_targets

# -- the replay buffer -------------------------------------------------------------------------------------------------


def filled(steps: int, **given: Any) -> Replay:
    """Return a replay buffer of two actors. A step stores its number, plus 100 for the second actor."""
    replay = Replay(**{"actors": 2, "capacity": 24, "length": 4, "overlap": 2, **given})
    for step in range(steps):
        number = torch.tensor([step, 100 + step])
        replay.add({"number": number}, {"core": number * 10} if replay.begins else None)
    return replay


def draw(replay: Replay, count: int = 200) -> Any:
    return replay.draw(count, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("steps", [4, 5, 11, 12, 13, 14, 25, 38])
def test_only_complete_sequences_in_the_buffer_are_drawn(steps: int) -> None:
    drawn = draw(filled(steps))
    found = {tuple(row) for row in drawn.steps["number"].T.tolist()}
    held = range(steps // 2 * 2 - 12 + 2 * (steps % 2), steps)  # a new sequence replaces the whole oldest one
    begun = [first for first in range(0, steps, 2) if first in held and first + 4 <= steps]
    assert found == {tuple(range(a + first, a + first + 4)) for first in begun for a in (0, 100)}
    assert torch.equal(drawn.states["core"], drawn.steps["number"][0] * 10)


def test_sequences_with_a_small_overlap_start_at_every_stride() -> None:
    drawn = draw(filled(16, overlap=1))
    assert {row[0] for row in drawn.steps["number"].T.tolist()} == {6, 9, 12, 106, 109, 112}


def test_draw_probabilities_and_importance_weights() -> None:
    replay = filled(8, priority=0.5, importance=2.0)  # sequences begin at 0, 2 and 4
    places = draw(replay).places.unique()
    assert len(places) == 6
    priorities = torch.tensor([16.0, 1.0, 4.0, 1.0, 1.0, 9.0])
    replay.set_priorities(places, priorities)
    chances = priorities.sqrt() / priorities.sqrt().sum()  # 4 1 2 1 1 3 of 12
    drawn = draw(replay, 60_000)
    shares = torch.stack([(drawn.places == place).float().mean() for place in places])
    torch.testing.assert_close(shares, chances, atol=0.01, rtol=0)
    weights = (6 * chances) ** -2
    for place, weight in zip(places, weights / weights.max(), strict=True):
        torch.testing.assert_close(drawn.weights[drawn.places == place].unique(), weight[None])


def test_new_sequences_have_the_highest_priority() -> None:
    replay = filled(4, priority=1.0)
    replay.set_priorities(draw(replay).places.unique(), torch.tensor([3.0, 0.5]))
    for step in (4, 5):
        replay.add({"number": torch.tensor([step, step])}, {"core": torch.zeros(2)} if replay.begins else None)
    assert replay.state()["chances"][:2].tolist() == [[3.0, 0.5], [3.0, 3.0]]


def test_a_sequence_without_error_can_still_be_drawn() -> None:
    replay = filled(4)
    replay.set_priorities(torch.tensor([0, 1]), torch.zeros(2))
    assert draw(replay).weights.isfinite().all()


def test_priorities_mix_the_highest_and_the_mean_error() -> None:
    errors = torch.tensor([[3.0, 1.0], [-5.0, 9.0], [100.0, -1.0]])
    counted = torch.tensor([[True, True], [True, False], [False, True]])
    found = mixed_priority(errors, counted, 0.9)
    torch.testing.assert_close(found, torch.tensor([0.9 * 5 + 0.1 * 4, 0.9 * 1 + 0.1 * 1]))
    assert mixed_priority(errors, torch.zeros_like(counted), 0.9).tolist() == [0.0, 0.0]


def test_the_state_can_be_saved_and_loaded() -> None:
    replay, other = filled(17), filled(0)
    held = io.BytesIO()
    torch.save(replay.state(), held)
    held.seek(0)
    other.load(torch.load(held, weights_only=True))
    for one in (replay, other):
        one.add({"number": torch.tensor([17, 117])}, {"core": torch.zeros(2)} if one.begins else None)
    first, second = draw(replay), draw(other)
    assert torch.equal(first.steps["number"], second.steps["number"])
    assert torch.equal(first.weights, second.weights)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"overlap": 4}, "cannot overlap by 4"), ({"capacity": 7}, "no room for sequences of 4")],
)
def test_sizes_that_are_not_accepted_raise_errors(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        filled(0, **given)


GAME = GameSettings(dimensions=2, most=2)
SMALL = NetworkSettings.preset("near32", stimulus=(8,), message=(8,), options={"sizes": (8,)})
FEW = R2D2Settings(
    network=SMALL, observations=480, observations_per_update=16, learning_starts=64, actors=4, length=8, overlap=4,
    burn_in=4, steps=2, capacity=320, batch=4, learning_rate=1e-2, target_interval=5,
)  # fmt: skip
BOTH = replace(FEW, players="both", sad=True)
KINDS: dict[str, R2D2Settings] = {
    "listener": FEW,
    "random speaker": replace(FEW, speaker="random", target="soft", tail="short", greedy="raw"),
    "holistic speaker, hold": replace(FEW, speaker="holistic", network=replace(SMALL, hold=True)),
    "both": replace(BOTH, reconstruction=ReconstructionSettings(hidden=8, message=True)),
    "two networks": replace(BOTH, shared=False),
    "DCEM": replace(FEW, network=NetworkSettings.preset("near32", core="DCEM", capacity=4, stimulus=(4,))),
}


def saved(learning: R2D2Learning) -> dict[str, Any]:
    """Return the state after saving to and loading from a file of tensors, numbers and text only."""
    held = io.BytesIO()
    torch.save(learning.state(), held)
    held.seek(0)
    found: dict[str, Any] = torch.load(held, weights_only=True)
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two states are equal to the bit."""
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# -- resuming ----------------------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("kind", [k if k != "DCEM" else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_killed_and_resumed_equals_uninterrupted(kind: str) -> None:
    settings = KINDS[kind]
    whole, first = (R2D2Learning(GAME, settings, seed=3) for _ in range(2))
    whole.run(100)
    first.run(7)
    again = R2D2Learning(GAME, settings, seed=3)
    again.load(saved(first))
    assert again.updates == 7
    while not again.done:
        again.run(9)
    assert again.observations == whole.observations == 480
    assert again.updates == whole.updates == whole.total == 27
    assert int(whole.state()["game"]["episodes"][0]) > 1
    assert same(whole.state(), again.state())


def test_a_state_does_not_change_when_training_continues() -> None:
    learning = R2D2Learning(GAME, FEW)
    learning.run(3)
    state, held = learning.state(), saved(learning)
    learning.run(3)
    assert same(state["replay"], held["replay"])
    assert same(state["agents"], held["agents"])


def test_a_state_of_other_settings_raises_an_error() -> None:
    with pytest.raises(IncompatibleError, match="other settings"):
        R2D2Learning(GAME, FEW).load(R2D2Learning(GAME, replace(FEW, eta=0.5)).state())


# -- recorded data -----------------------------------------------------------------------------------------------------


def recorded(settings: R2D2Settings, game: GameSettings = GAME, steps: int = 60) -> dict[str, Tensor]:
    """Return the data of `steps` steps of actors before any update, [T, E, ...]."""
    learning = R2D2Learning(game, replace(settings, capacity=10_000))
    for _ in range(steps):
        learning.step()
    found: dict[str, Tensor] = {name: held[:steps] for name, held in learning.replay.state()["steps"].items()}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_only_legal_actions_are_taken(shared: bool) -> None:
    settings = replace(BOTH, shared=shared, epsilon=1.0, explore_exponent=0.0)
    learning = R2D2Learning(GAME, settings)
    held = recorded(settings)
    for agent in learning.agents:
        for role in agent.roles:
            legal = agent.actions.legal_where(held[f"{role}.speak"], held[f"{role}.decide"])
            chosen = held[f"{role}.chosen"]
            assert legal.gather(-1, chosen).all()
            assert len(chosen.unique()) > 3 - (role == LISTENER)
    for _ in range(20):
        learning.step()
    assert [int(count.sum()) for count in learning._batched.illegal.values()] == [0, 0]


def test_choices_and_rewards_of_an_episode_follow_each_other() -> None:
    held = recorded(FEW)
    fresh, ends, counts = held["listener.fresh"], held["ends"], held["counts"]
    assert fresh[0].all()
    assert fresh[1:].any()
    assert torch.equal(fresh[1:], ~counts[:-1])  # an episode begins after a step that does not count
    assert torch.equal(ends[:-1] & counts[:-1], ~counts[1:])
    going = ~fresh[1:]
    assert torch.equal(held["listener.previous"][1:][going], held["listener.chosen"][:-1][going])
    assert torch.equal(held["listener.earned"][1:][going], held["gained"][:-1][going])
    assert (held["listener.previous"][fresh] == NEVER).all()
    assert not held["gained"][~counts].any()


@pytest.mark.slow
def test_the_partners_choice_is_empty_at_the_beginning_of_an_episode() -> None:
    held = recorded(BOTH)
    learning = R2D2Learning(GAME, BOTH)
    for role, other in ((SPEAKER, LISTENER), (LISTENER, SPEAKER)):
        shared, fresh = held[f"{role}.told"], held[f"{role}.fresh"]
        assert (shared[fresh] == NEVER).all()
        assert (shared[~fresh] != NEVER).all()
        seen = learning.agents[0].observation(held)
        extra = seen.extra.unflatten(1, (2, -1))[:, learning.agents[0].roles.index(role)]
        assert not extra[fresh].any()
        assert extra[~fresh].sum(-1).unique().tolist() == [2.0]  # the choice, and which player it is of
        never_explores = replace(BOTH, epsilon=0.0)
        greedy = recorded(never_explores)
        going = ~greedy[f"{role}.fresh"][1:]
        assert torch.equal(greedy[f"{role}.told"][1:][going], greedy[f"{other}.chosen"][:-1][going])


def test_partners_see_the_greedy_choice_even_if_the_other_explores() -> None:
    settings = replace(BOTH, epsilon=1.0, explore_exponent=0.0)
    learning, seen = R2D2Learning(GAME, settings), []
    for _ in range(12):
        learning.step()
        seen.append(learning._greedy[SPEAKER])
    held = learning.replay.state()["steps"]
    for step in range(1, 12):
        going = ~held["listener.fresh"][step]
        assert torch.equal(held["listener.told"][step][going], seen[step - 1][going])
    assert not torch.equal(torch.stack(seen), held["speaker.chosen"][:12])


def test_values_from_stored_states_equal_unrolling_from_the_start() -> None:
    """With unchanged weights, the values of a sequence equal those of its actor."""
    settings = replace(BOTH, length=8, burn_in=3)
    learning = R2D2Learning(GAME, settings)
    for _ in range(40):
        learning.step()
    agent = learning.agents[0]
    held = {name: value[:40] for name, value in learning.replay.state()["steps"].items()}
    (whole, _), _ = agent.network.unroll(agent.observation(held), agent.network.start(8))
    by_role = whole.unflatten(1, (2, 4))  # [T, role, actor, option]
    drawn = learning.replay.draw(16, torch.Generator().manual_seed(1))
    _, scores, _, targets = learning._unroll(agent, drawn)
    for i, place in enumerate(drawn.places.tolist()):
        first, actor = place // 4 * 4 + 3, place % 4
        expected = by_role[first : first + 5, :, actor]
        torch.testing.assert_close(scores.unflatten(1, (2, 16))[:, :, i], expected)
        torch.testing.assert_close(targets.unflatten(1, (2, 16))[:, :, i], expected)


# -- targets -----------------------------------------------------------------------------------------------------------


def errors_by_hand(learning: R2D2Learning, drawn: Sequences, double: bool, legal: bool) -> Tensor:
    """Return targets minus values, summed over players, step by step; NaN where nothing is learned."""
    s, (agent,) = learning.settings, learning.agents
    seen, chosen = agent.observation(drawn.steps), agent.choices(drawn.steps)
    start = agent.states(drawn.states)
    online, target = (n.unroll(seen, start)[0].scores.detach() for n in (agent.network, agent.target))
    found = torch.full((s.length, s.batch), float("nan"))
    for row in range(s.batch):
        for t in range(s.burn_in, s.length):
            if not drawn.steps["counts"][t, row]:
                continue
            total = 0.0
            for role in range(len(agent.roles)):
                column, reward, at = role * s.batch + row, 0.0, t
                for k in range(s.steps):
                    reward += s.discount**k * float(drawn.steps["gained"][at, row])
                    at += 1
                    if drawn.steps["ends"][at - 1, row] or at == s.length:
                        break
                ended = bool(drawn.steps["ends"][at - 1, row])
                if not ended and (at == s.length or at - t < s.steps):
                    total = float("nan")
                    break
                worth = 0.0
                if not ended:
                    ranked = online if double else target
                    some = seen.legal[at, column] if legal else torch.ones_like(seen.legal[at, column])
                    best = int(ranked[at, column].masked_fill(~some, -torch.inf).argmax())
                    worth = s.discount**s.steps * float(target[at, column, best])
                total += reward + worth - float(online[t, column, int(chosen[t, column])])
            found[t, row] = total
    return found[s.burn_in :]


@pytest.mark.slow
@pytest.mark.parametrize(("double", "greedy"), [(True, "legal"), (True, "raw"), (False, "legal")])
@pytest.mark.parametrize("players", ["listener", "both"])
def test_targets_for_one_player_and_for_the_sum_of_two(players: Any, double: bool, greedy: Any) -> None:
    settings = replace(
        FEW, players=players, double=double, greedy=greedy, length=10, burn_in=3, steps=3, discount=0.9, batch=12
    )
    learning = R2D2Learning(GAME, settings)
    learning.run(8)  # the target network was last updated after five
    drawn = learning.replay.draw(12, torch.Generator().manual_seed(2))
    errors, counted, others = learning._errors(drawn)
    expected = errors_by_hand(learning, drawn, double, greedy == "legal")
    assert others == []
    assert torch.equal(counted, ~expected.isnan())
    assert (drawn.steps["ends"][3:] & counted).any()
    torch.testing.assert_close(errors.detach()[counted], expected[counted], atol=1e-5, rtol=1e-4)


def test_the_loss_is_weighted_and_the_gradient_is_clipped() -> None:
    learning = R2D2Learning(GAME, replace(FEW, max_grad_norm=1e-3))
    while learning.observations < learning.settings.first_update:
        learning.step()
    drawn = learning.replay.draw(4, torch.Generator().manual_seed(2))
    errors, counted, _ = learning._errors(drawn)
    drawn.weights[:] = torch.tensor([1.0, 0.5, 0.25, 0.125])
    learning.replay.draw = lambda *_: drawn  # type: ignore[method-assign]
    loss = learning.learn()
    expected = 0.5 * (errors.detach().square() * counted * drawn.weights).sum() / errors.numel()
    torch.testing.assert_close(torch.tensor(loss), expected)
    gradient = torch.cat([w.grad.flatten() for w in learning.weights if w.grad is not None])
    assert float(gradient.norm()) == pytest.approx(1e-3, rel=1e-3)


def test_the_target_network_is_updated() -> None:
    hard, soft = (R2D2Learning(GAME, replace(FEW, target=way, target_interval=4)) for way in ("hard", "soft"))
    before = hard.agents[0].target.head.value.weight.clone()
    hard.run(3)
    assert torch.equal(hard.agents[0].target.head.value.weight, before)
    assert not torch.equal(hard.agents[0].network.head.value.weight, before)
    hard.run(1)
    assert torch.equal(hard.agents[0].target.head.value.weight, hard.agents[0].network.head.value.weight)
    before = soft.agents[0].target.head.value.weight.clone()
    soft.run(1)
    now = soft.agents[0].network.head.value.weight.detach()
    torch.testing.assert_close(soft.agents[0].target.head.value.weight, 0.75 * before + 0.25 * now)


def test_actors_have_different_exploration_rates() -> None:
    learning = R2D2Learning(GAME, replace(FEW, actors=3, epsilon=0.4, explore_exponent=2.0))
    torch.testing.assert_close(learning._exploring, 0.4 ** torch.tensor([1.0, 2.0, 3.0]))


def test_reconstruction_reaches_the_core_at_its_period() -> None:
    settings = replace(FEW, reconstruction=ReconstructionSettings(hidden=8, period=3))
    learning = R2D2Learning(GAME, settings)
    assert set(learning.read(4)) == {"zsct", "support", "reconstructed"}
    learning.run(1)
    losses = []
    for _ in range(5):
        *_, others = learning._errors(learning.replay.draw(4, torch.Generator().manual_seed(0)))
        losses.append(len(others))
        if others:
            learning.optimizer.zero_grad()
            others[0].backward()
            core = [w.grad for w in learning.agents[0].network.core.parameters()]
            assert all(grad is not None and grad.any() for grad in core)
            assert learning.agents[0].network.head.value.weight.grad is None
        learning.learn()
    assert losses == [0, 0, 1, 0, 0]


# -- settings ----------------------------------------------------------------------------------------------------------


def test_presets_match_the_published_settings() -> None:
    """The values are in s2b-facts 10.1 to 10.3."""
    papers, later = (R2D2Settings.preset(name) for name in ("metarg22", "near32"))
    names = ("actors", "length", "overlap", "burn_in", "steps", "capacity", "priority", "importance", "discount",
             "batch", "learning_rate", "adam_epsilon", "max_grad_norm", "eta", "target", "target_interval",
             "greedy")  # fmt: skip
    assert [getattr(papers, name) for name in names] == [
        32, 20, 10, 10, 3, 50_000, 0.9, 0.6, 0.997, 32, 6.25e-5, 1e-12, 5.0, 0.9, "hard", 2500, "legal",
    ]  # fmt: skip
    assert (later.length, later.burn_in, later.steps, later.batch, later.capacity) == (40, 20, 7, 64, 10_000)
    assert (later.target, later.learning_rate, later.discount, later.greedy) == ("soft", 6.25e-5, 0.997, "raw")
    assert later.network.core == "LSTM-512"
    assert R2D2Settings.preset("metarg24") == papers  # MetaRG22, table 3; MetaRG24, table 5
    assert (papers.network.stimulus, papers.network.joint) == ((512, 256, 128), (512, 256, 256))
    assert make_core(papers.network.core, 20).output == 128
    assert papers.double
    assert papers.network.head == "dueling"


@pytest.mark.slow
def test_the_number_of_updates_follows_from_the_observations() -> None:
    settings = replace(FEW, observations=1000, observations_per_update=100, learning_starts=200)
    assert settings.updates == 9
    learning = R2D2Learning(GAME, settings)
    learning.run(1)
    assert learning.observations == 200
    learning.run(100)
    assert (learning.updates, learning.observations, learning.done) == (9, 1000, True)
    assert learning.run(5) == 0.0
    assert replace(settings, observations=199).updates == 0
    often = R2D2Learning(GAME, replace(FEW, observations_per_update=1))
    often.run(9)
    assert often.observations == 64 + 8


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"target": "softly"}, UnknownNameError, "did you mean soft"),
        ({"sad": True}, InvalidSettingError, "needs a speaker that learns"),
        ({"burn_in": 7}, InvalidSettingError, "leaves no step to learn from"),
        ({"eta": 1.5}, InvalidSettingError, "eta must be .* at most 1"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(
    changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        replace(FEW, **changes)


def test_an_unknown_preset_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean metarg"):
        R2D2Settings.preset("metarg2")


# -- learning ----------------------------------------------------------------------------------------------------------


EASY = GameSettings(dimensions=2, most=2, permutation=False)
QUICK = R2D2Settings(
    network=NetworkSettings.preset("near32", stimulus=(32,), message=(32,), options={"sizes": (32,)}),
    observations=20_000, observations_per_update=64, learning_starts=1_000, length=12, overlap=8, burn_in=4, steps=2,
    learning_rate=2e-3, capacity=20_000, target_interval=100, tail="short", discount=0.5,
)  # fmt: skip


@pytest.mark.stress
@pytest.mark.parametrize("deaf", [False, True])
def test_a_listener_learns_fixed_words_and_a_deaf_listener_does_not(deaf: bool) -> None:
    learning = R2D2Learning(EASY, replace(QUICK, network=replace(QUICK.network, deaf=deaf)))
    learning.run(learning.total)
    found = learning.read(200)["zsct"]
    assert 0.4 < found < 0.6 if deaf else found > 0.95


@pytest.mark.stress
def test_two_players_learn_to_communicate() -> None:
    learning = R2D2Learning(EASY, replace(QUICK, players="both", observations=100_000))
    learning.run(learning.total)
    found = learning.read(200)
    assert min(found["zsct"], found["support"]) > 0.8


REWARDS = torch.tensor([[1.0], [0.0], [2.0], [0.0], [-2.0], [4.0]])
WORTH = torch.tensor([[10.0], [20.0], [30.0], [40.0], [50.0], [60.0]])
ENDS = torch.tensor([[False], [False], [True], [False], [False], [False]])


def test_targets_of_two_rewards_and_the_value_of_the_next_state() -> None:
    found = n_step_targets(REWARDS, ENDS, WORTH, 2, 0.5)[:, 0].tolist()
    assert found == [
        1 + 0.5 * 0 + 0.25 * 30,
        0 + 0.5 * 2,  # the episode ends with the next reward
        2.0,
        0 + 0.5 * -2 + 0.25 * 60,
        -2 + 0.5 * 60,  # only one reward before the last state
        60.0,  # the last step has no reward
    ]


def test_targets_of_an_episode_that_ends_with_the_sequence() -> None:
    ends = ENDS.clone()
    ends[-1] = True
    assert n_step_targets(REWARDS, ends, WORTH, 3, 0.5)[3:, 0].tolist() == [0 - 1 + 0.25 * 4, -2 + 0.5 * 4, 4.0]
    assert complete_targets(ends, 3)[:, 0].tolist() == [True] * 6


def test_with_one_reward_the_target_is_that_of_q_learning() -> None:
    found = n_step_targets(REWARDS, ENDS, WORTH, 1, 0.9)
    expected = REWARDS[:-1] + 0.9 * WORTH[1:] * ~ENDS[:-1]
    torch.testing.assert_close(found[:-1], expected)


def test_complete_targets_marks_the_steps_with_all_their_rewards() -> None:
    assert complete_targets(ENDS, 1)[:, 0].tolist() == [True, True, True, True, True, False]
    assert complete_targets(ENDS, 2)[:, 0].tolist() == [True, True, True, True, False, False]
    assert complete_targets(ENDS, 3)[:, 0].tolist() == [True, True, True, False, False, False]


def test_targets_of_one_row_do_not_depend_on_other_rows() -> None:
    both = [torch.cat([x, y], 1) for x, y in ((REWARDS, -REWARDS), (ENDS, ~ENDS), (WORTH, WORTH * 3))]
    rewards, ends, worth = both
    found = n_step_targets(rewards, ends, worth, 2, 0.5)
    for row in range(2):
        one = [x[:, row : row + 1] for x in both]
        assert torch.equal(found[:, row : row + 1], n_step_targets(one[0], one[1], one[2], 2, 0.5))
