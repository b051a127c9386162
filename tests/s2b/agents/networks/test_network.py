"""The papers' networks: widths, inputs of the core, and unrolling from observations."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.registry import CORE, registry
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.networks.network import Network, NetworkSettings, each_once, perceptron
from icy.s2b.agents.networks.observations import Actions, Observation, observe

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
        blocks = told.legal.float().split(actions.sizes, -1)
        previous = torch.cat([torch.multinomial(block, 1, generator=generator) for block in blocks], -1)
        said, decided = actions.taken(previous.numpy())
        if role == "listener":
            said = torch.randint(1, settings.vocab_size + 1, (3, settings.length), generator=generator).numpy()
        turn = game.step(said, decided)
        earned = turn.reward
    found = Observation.stack(seen)
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
@pytest.mark.parametrize(("form", "role"), [("decision", "listener"), ("tokens", "speaker"), ("both", "speaker")])
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
    repeated = Observation.stack([seen[t // 3] for t in range(72)])  # messages and stimuli repeat exactly
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


def test_a_dueling_head_is_value_and_advantages_of_each_choice() -> None:
    torch.manual_seed(0)
    actions = Actions(SMALL, "tokens")
    network = Network(actions)
    scores, value = network.head(torch.randn(5, 128), torch.ones(5, actions.width, dtype=torch.bool))
    for block in scores.split(actions.sizes, -1):
        torch.testing.assert_close(block.mean(-1), value)
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
        ({"head": "duelling"}, UnknownNameError, "did you mean dueling"),
        ({"joint": (0,)}, InvalidSettingError, "size of a layer of `joint`"),
        ({"extra": -1}, InvalidSettingError, "width of extra input"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(
    settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        NetworkSettings(**settings)


def test_an_unknown_preset_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean metarg"):
        NetworkSettings.preset("metarg2")


def test_dcem_needs_separate_parts() -> None:
    with pytest.raises(IncompatibleError, match="take the preset 'near32'"):
        Network(Actions(SMALL), NetworkSettings(core="DCEM"))


def test_equal_inputs_of_consecutive_steps_are_encoded_once_with_the_same_result() -> None:
    torch.manual_seed(0)
    network, rows = perceptron(2, (8, 3)), []
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
    assert torch.equal(each_once(perceptron(2, ()), xs), xs)
