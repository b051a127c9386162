"""The papers' networks: widths, inputs of the core, and unrolling from observations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import CORE, LISTENER, SPEAKER, registry
from icy.s2b import BatchedGame, GameSettings, evaluate, probe_language
from icy.s2b.agents.memories.attention import MemoryListener, MemoryPlayer
from icy.s2b.agents.memories.dealt_learning import read
from icy.s2b.agents.networks.network import (
    Network,
    NetworkPlayer,
    NetworkSettings,
    Perceptron,
    ReconstructionHead,
    ReconstructionSettings,
    each_once,
)
from icy.s2b.agents.networks.observations import Actions, Observation, observe
from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings
from icy.s2b.evaluation import play
from icy.s2b.players.interface import seated
from tests.s2b.helpers import stacked

SMALL = GameSettings(most=2)


def episode(actions: Actions, role: str = "listener", steps: int = 24) -> Observation:
    """Return a player's observations in three episodes with autoreset; at least one ends. Both players act randomly."""
    settings = actions.game
    game = BatchedGame(settings, episodes=3, autoreset=True)
    turn, seen, previous, earned = game.reset(seed=2), [], None, None
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        told = observe(turn.seen_by(role), role, actions, previous, earned)
        seen.append(told)
        previous = torch.multinomial(told.legal.float(), 1, generator=generator)
        said, decided = actions.taken(previous.numpy())
        if role == "listener":
            said = torch.randint(1, settings.vocab_size + 1, (3, settings.length), generator=generator).numpy()
        turn = game.step(said, decided)
        earned = turn.reward
    found = stacked(seen)
    assert found.fresh[1:].any()
    return found


@pytest.mark.parametrize(("most", "width"), [(5, 593), (3, 245)])
def test_widths_of_the_later_program(most: int, width: int) -> None:
    network = Network(Actions(GameSettings(most=most), "both"), NetworkSettings.preset("near32"))
    assert network.encoder.width == width  # s2b-facts 10.2 and 10.5
    assert network.core.output == 512
    assert network.head.value.in_features == 512 + network.actions.width


def test_widths_of_the_papers() -> None:
    network = Network(Actions(GameSettings(), "both"))
    sizes = [[m.out_features for m in part if isinstance(m, torch.nn.Linear)] for part in (
        network.encoder.stimulus, network.encoder.message, network.encoder.joint)]  # fmt: skip
    assert sizes == [[512, 256, 128], [], [512, 256, 256]]
    first = network.encoder.joint[0]
    assert isinstance(first, torch.nn.Linear)
    assert first.in_features == 128 + 21 + 10 + 2 * 519
    assert (network.encoder.width, network.core.output) == (256, 128)
    assert network.head.value.in_features == 128


@pytest.mark.contract
@pytest.mark.parametrize("core", [entry.name for entry in registry.entries(CORE)])
@pytest.mark.parametrize(("form", "role"), [("decision", "listener"), ("sentence", "speaker"), ("both", "speaker")])
def test_unrolling_every_core_equals_stepping(core: str, form: Any, role: str) -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL, form)
    network = Network(actions, NetworkSettings.preset("near32", core=core, capacity=8)).double()
    seen = episode(actions, role)
    seen = change(seen, **{name: getattr(seen, name).double() for name in ("stimulus", "earned", "reward", "extra")})
    with torch.no_grad():
        (scores, value), state = network.unroll(seen, network.start(3))
        assert scores.shape == (24, 3, actions.width)
        assert value.shape == (24, 3)
        now = network.start(3)
        for t in range(24):
            if seen[t].fresh.any():
                first = network.start(3)
                now = tuple(
                    torch.where(seen[t].fresh.view(-1, *[1] * (m.dim() - 1)), f, m)
                    for m, f in zip(now, first, strict=True)
                )
            step, now = network.step(seen[t], now)
            torch.testing.assert_close(step.scores, scores[t])
        again, latents, _ = network.trace(seen, network.start(3))
        assert torch.equal(again.scores, scores)
        torch.testing.assert_close(latents[-1], network.core.latent(state))


@pytest.mark.slow
@pytest.mark.parametrize("core", [entry.name for entry in registry.entries(CORE)])
def test_gradients_of_an_episode_are_finite(core: str) -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL)
    network = Network(actions, NetworkSettings.preset("near32", core=core))
    seen = episode(actions)
    repeated = stacked([seen[t // 3] for t in range(72)])  # messages and stimuli repeat exactly
    (scores, _), _ = network.unroll(repeated, network.start(3))
    scores.square().sum().backward()
    for name, p in network.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name


def change(seen: Observation, **changes: Any) -> Observation:
    return Observation(**{**vars(seen), **changes})


def test_every_part_of_an_observation_affects_the_scores() -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL)
    network = Network(actions, NetworkSettings(extra=2))
    seen = change(episode(actions)[1], extra=torch.zeros(3, 2))
    before = network.step(seen, network.start(3))[0].scores
    changed: dict[str, Any] = {
        "stimulus": seen.stimulus + 1, "message": (seen.message + 1) % 3, "speaks": ~seen.speaks, "query": ~seen.query,
        "round": 1 - seen.round.clamp(max=1), "result": seen.result + 1, "reward": seen.reward + 1,
        "earned": seen.earned + 1, "previous": (seen.previous + 1) % 3, "legal": ~seen.legal, "extra": seen.extra + 1,
    }  # fmt: skip
    for name, value in changed.items():
        assert not torch.equal(network.step(change(seen, **{name: value}), network.start(3))[0].scores, before), name


def test_a_deaf_network_ignores_messages() -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL)
    network = Network(actions, NetworkSettings(deaf=True))
    seen = episode(actions)
    silent = change(seen, message=torch.zeros_like(seen.message))
    one, other = (network.unroll(s, network.start(3))[0].scores for s in (seen, silent))
    assert torch.equal(one, other)


def test_the_round_is_encoded_as_zeros_at_the_feedback() -> None:
    actions = Actions(SMALL)
    network = Network(actions, NetworkSettings(stimulus=(), joint=(), mask="none"))
    seen = episode(actions)[:3]
    assert seen.round[:, 0].tolist() == [0, 1, 2]
    start = 3 + 3 * 4 + 1  # after the stimulus, the one-hot message and the reward
    assert network.encoder(seen)[:, 0, start : start + 2].tolist() == [[1, 0], [0, 1], [0, 0]]


def test_a_dueling_head_is_value_and_advantages() -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL)
    network = Network(actions)
    scores, value = network.head(torch.randn(5, 128), torch.ones(5, actions.width, dtype=torch.bool))
    torch.testing.assert_close(scores.mean(-1), value)
    policy = Network(actions, NetworkSettings(head="policy"))
    y = torch.randn(5, 128)
    scores, value = policy.head(y, torch.ones(5, actions.width, dtype=torch.bool))
    assert torch.equal(scores, policy.head.options(y))
    assert torch.equal(value, policy.head.value(y)[:, 0])


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"core": "LSTMM"}, UnknownNameError, "did you mean LSTM"),
        ({"mask": "heads"}, UnknownNameError, "did you mean head"),
        ({"joint": (0,)}, InvalidSettingError, "size of a layer of `joint`"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(
    settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        NetworkSettings(**settings)


def test_dcem_needs_separate_parts() -> None:
    with pytest.raises(IncompatibleError, match="take the preset 'near32'"):
        Network(Actions(SMALL), NetworkSettings(core="DCEM"))


def test_equal_inputs_of_consecutive_steps_are_encoded_once_with_the_same_result() -> None:
    torch.manual_seed(0)
    network, rows = Perceptron(2, (8, 3)), []
    network.register_forward_pre_hook(lambda _, given: rows.append(given[0].shape))
    first, second = torch.randn(2, 2)
    xs = torch.stack([first, first, second, first, first]).unsqueeze(1).repeat(1, 3, 1)
    xs[4, 1] = second
    encoded = each_once(network, xs)
    assert rows == [(10, 2)]  # three inputs of each episode, and one more of the second
    torch.testing.assert_close(encoded, network(xs))
    weight = torch.randn_like(encoded)
    of_once, expected = (
        torch.autograd.grad((ys * weight).sum(), list(network.parameters())) for ys in (encoded, network(xs))
    )
    torch.testing.assert_close(of_once, expected)
    assert torch.equal(each_once(network, xs[0]), network(xs[0]))
    assert torch.equal(each_once(Perceptron(2, ()), xs), xs)


# -- the reconstruction loss and accuracy equal hand-computed values ---------------------------------------------------


ACTIONS = Actions(SMALL)


def seen() -> Observation:
    """Return observations of five steps of four episodes."""
    game = BatchedGame(SMALL, episodes=4)
    turn, found = game.reset(seed=1), []
    for _ in range(5):
        found.append(observe(turn.listener, "listener", ACTIONS))
        turn = game.step(said=torch.randint(1, 3, (4, 3)).numpy() * turn.speaker.may_speak[:, None])
    return stacked(found)


@pytest.mark.parametrize("message", [False, True])
def test_the_loss_uses_counted_steps_only(message: bool) -> None:
    torch.manual_seed(0)
    settings = ReconstructionSettings(weight=2.0, hidden=8, message=message)
    predictor, told, latents = ReconstructionHead(6, SMALL, settings), seen(), torch.randn(5, 4, 6)
    counted = torch.rand(5, 4) < 0.5
    total, number = torch.zeros(2), int(counted.sum())
    for t, b in counted.nonzero().tolist():
        out = predictor.out(predictor.hidden(latents[t, b]))
        total[0] += (out[:3] - told.stimulus[t, b]).square().mean() / number
        if message:
            total[1] += F.cross_entropy(out[3:].view(3, 4), told.message[t, b]) / number
    loss = predictor.loss(latents, told, counted)
    torch.testing.assert_close(loss, 2 * total.sum())
    assert predictor(latents).shape == (5, 4, 15 if message else 3)


@pytest.mark.parametrize("core", ["LSTM", "DNC", "ESBN", "DCEM"])
def test_gradients_reach_core_and_encoder(core: str) -> None:
    torch.manual_seed(0)
    network = Network(ACTIONS, NetworkSettings.preset("near32", core=core, capacity=6))
    predictor, told = ReconstructionHead(network.core.latent_width, SMALL, ReconstructionSettings()), seen()
    _, latents, _ = network.trace(told, network.start(4))
    predictor.loss(latents, told, torch.ones(5, 4, dtype=torch.bool)).backward()
    for part in (network.core, network.encoder.stimulus):
        assert any(w.grad is not None and bool(w.grad.any()) for w in part.parameters())
    assert all(w.grad is None for w in network.head.parameters())


def test_a_prediction_is_right_if_its_error_is_small() -> None:
    predictor, told = ReconstructionHead(3, SMALL, ReconstructionSettings(hidden=6)), seen()
    with torch.no_grad():  # hidden units hold x and -x, whose difference is x
        predictor.hidden[0].weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)]))  # type: ignore[operator]
        predictor.hidden[0].bias.zero_()  # type: ignore[operator]
        predictor.out.weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)], 1))
        predictor.out.bias.zero_()
    off = torch.tensor([0.0, 0.049, 0.051])
    torch.testing.assert_close(predictor.right(told.stimulus + off, told), torch.full((5, 4), 2 / 3))


# -- networks as players -----------------------------------------------------------------------------------------------


GAME = GameSettings(dimensions=2, most=2)
TINY = NetworkSettings.preset("near32", stimulus=(8,), message=(8,), options={"sizes": (8,)})
SETTINGS = R2D2Settings(
    network=TINY, actors=3, learning_starts=0, length=8, overlap=4, burn_in=4, capacity=3000, epsilon=0.0
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, network=replace(TINY, hold=True)),
        replace(SETTINGS, players="both", sad=True),
        replace(SETTINGS, players="both", sad=True, shared=False),
    ],
    ids=["listener", "held", "one network", "two networks"],
)
def test_a_player_makes_the_choices_of_an_actor_that_does_not_explore(settings: R2D2Settings) -> None:
    """The choices are compared step by step over several episodes with autoreset."""
    learning = R2D2Learning(GAME, settings)
    game = BatchedGame(GAME, episodes=3, autoreset=True)
    turn = game.reset(seeds=learning._batched.seeds)
    speaker, listener = seated(learning.speaker(), SPEAKER, game), seated(learning.listener(), LISTENER, game)
    for step in range(60):
        learning.step()
        said, heard = speaker.act(turn.speaker), listener.act(turn.listener)
        held = learning.replay.state()["steps"]
        for player in (speaker, listener):
            if isinstance(player, NetworkPlayer):
                assert torch.equal(player.choices[player.steps], held[f"{player.role}.chosen"][step])
        turn = game.step(said.message, heard.decision, heard.message)
    assert game.episode_number.max() > 0
    assert game.illegal == {SPEAKER: pytest.approx(0), LISTENER: pytest.approx(0)}


def test_partners_see_the_last_choice_and_never_the_present_choice() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    speaker, listener = learning.speaker(), learning.listener()
    assert isinstance(speaker, NetworkPlayer)
    extras: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    for player in (speaker, listener):
        player._observe = _watched(player, extras[player.role])  # type: ignore[method-assign]
    choices: dict[str, list[Any]] = {SPEAKER: [], LISTENER: []}
    game = BatchedGame(GAME, episodes=2)

    def watch(*_: Any) -> None:
        for player in (speaker, listener):
            choices[player.role].append(player.choices[player.steps])

    play(game, speaker, listener, [1, 2], watch)
    width = learning.agents[0].actions.width
    for role, other in ((SPEAKER, LISTENER), (LISTENER, SPEAKER)):
        assert not extras[role][0].any()
        assert len(extras[role]) > 10
        for step in range(1, len(extras[role])):
            assert extras[role][step][:, :width].argmax(-1).tolist() == choices[other][step - 1][:, 0].tolist()
            assert extras[role][step][:, width:].tolist() == [[0.0, 1.0]] * 2


def _watched(player: NetworkPlayer, into: list[Any]) -> Any:
    observed = player._observe

    def watch(seen: Any) -> Any:
        found = observed(seen)
        into.append(found.extra)
        return found

    return watch


def test_without_its_partner_a_player_gets_zeros() -> None:
    learning = R2D2Learning(GAME, replace(SETTINGS, players="both", sad=True))
    listener = learning.listener()
    extras: list[Any] = []
    listener._observe = _watched(listener, extras)  # type: ignore[method-assign]
    evaluate(learning.speaker(), listener, GAME, episodes=4, seeds=1)
    assert all(extra.any() for extra in extras[1:])
    extras.clear()
    evaluate("posdis", listener, GAME, episodes=4, seeds=1)
    assert len(extras) > 10
    assert not any(extra.any() for extra in extras)


def test_read_equals_evaluate() -> None:
    learning = R2D2Learning(GAME, SETTINGS)
    found = evaluate("posdis", learning.listener(), GAME, episodes=30, seeds=[5]).table()
    assert learning.read(30, seed=5) == {"zsct": found["zsct"][0], "support": found["support"][0]}


def test_reconstruction_is_measured_on_whole_episodes() -> None:
    network = Network(Actions(GAME), TINY)
    predictor = ReconstructionHead(network.core.latent_width, GAME, ReconstructionSettings(near=3.0))
    player = NetworkPlayer(network, LISTENER, predictor)
    game = BatchedGame(GAME, episodes=5)
    play(game, "posdis", player, range(5))
    assert player.reconstructed == 1.0  # everything is within 3 of anything
    longest = int((game.games == game.games.max()).sum())
    assert player._count == 3 * int(game.games.sum()) - longest  # players do not act when all episodes have ended


# -- games of another size ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_network_with_enough_tokens_plays_with_more_values() -> None:
    few, many = GameSettings(most=3, vocab_size=11), GameSettings(most=10)
    assert few.vocab_size == many.vocab_size
    player = NetworkPlayer(Network(Actions(few), TINY))
    assert evaluate("posdis", player, many, episodes=2, seeds=1).table()["illegal"].tolist() == [0.0]
    smaller = GameSettings(most=2, vocab_size=3)
    assert np.isfinite(evaluate("posdis", player, smaller, episodes=2, seeds=1).table()["zsct"]).all()


@pytest.mark.slow
def test_a_memory_with_enough_tokens_plays_with_more_values() -> None:
    memory = MemoryListener(GameSettings(most=3, vocab_size=11))
    many = GameSettings(most=10)
    played = evaluate("posdis", MemoryPlayer(memory), many, episodes=2, seeds=[123]).table()
    assert read(memory, many, episodes=2)["zsct"] == pytest.approx(played["zsct"][0])


@pytest.mark.parametrize(
    ("role", "changes", "said"),
    [
        (LISTENER, {"most": 3}, "4 tokens, and the game has 3|3 tokens, and the game has 4"),
        (LISTENER, {"dimensions": 3}, "stimuli of 2 numbers"),
        (LISTENER, {"length": 3}, "messages of 2 tokens"),
        (LISTENER, {"rounds": 2}, "1 round"),
        (LISTENER, {"distractors": 1}, "2 slots"),
        (SPEAKER, {"vocab_size": 2}, "created for 3 tokens"),
    ],
)
def test_a_game_with_other_sizes_raises_an_error(role: str, changes: dict[str, Any], said: str) -> None:
    player = NetworkPlayer(Network(Actions.of_role(GAME, role), TINY), role)
    game = BatchedGame(**{"dimensions": 2, "most": 2, **changes})
    game.reset(seed=1)
    with pytest.raises(IncompatibleError, match=said):
        seated(player, role, game)


def test_utter_returns_the_next_message_and_keeps_the_state() -> None:
    """`utter` for the stimulus of the next game equals the message that the speaker then sends."""
    torch.manual_seed(0)
    player = NetworkPlayer(Network(Actions.of_role(GAME, SPEAKER), TINY), SPEAKER)
    for weight in player.network.parameters():
        weight.data *= 4  # so that its messages differ
    game = BatchedGame(GAME, episodes=12)
    turn = game.reset(seed=1)
    seated(player, SPEAKER, game)
    compared = set()
    for step in range(4):
        if step == 3:
            state = tuple(part.clone() for part in player.state)
            uttered = [player.utter(turn.speaker.stimulus[e], np.zeros((1, 2), dtype=np.int64), e) for e in range(12)]
            assert all(map(torch.equal, state, player.state))
        said = player.act(turn.speaker).message
        if step == 3:
            assert np.array_equal(np.concatenate(uttered), said)
            compared |= {tuple(row) for row in said.tolist()}
        turn = game.step(said)
    assert len(compared) > 1
    found = probe_language(player, GAME, episodes=4)
    assert found["topsim"].notna().any()


def test_a_listener_has_no_language() -> None:
    player = NetworkPlayer(Network(Actions.of_role(GAME, LISTENER), TINY), LISTENER)
    with pytest.raises(IncompatibleError, match="utter"):
        player.utter(np.zeros((1, 2)), np.zeros((1, 2), dtype=np.int64), 0)
