"""The reconstruction loss and accuracy equal hand-computed values."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.networks.network import Network, NetworkSettings, ReconstructionHead, ReconstructionSettings
from icy.s2b.agents.networks.observations import Actions, Observation, observe

GAME = GameSettings(most=2)
ACTIONS = Actions(GAME)


def seen() -> Observation:
    """Return observations of five steps of four episodes."""
    game = BatchedGame(GAME, episodes=4)
    turn, found = game.reset(seed=1), []
    for _ in range(5):
        found.append(observe(turn.listener, "listener", ACTIONS))
        turn = game.step(said=torch.randint(1, 3, (4, 3)).numpy() * turn.speaker.may_speak[:, None])
    return Observation.stack(found)


@pytest.mark.parametrize("message", [False, True])
def test_the_loss_uses_counted_steps_only(message: bool) -> None:
    torch.manual_seed(0)
    settings = ReconstructionSettings(weight=2.0, hidden=8, message=message)
    predictor, told, latents = ReconstructionHead(6, GAME, settings), seen(), torch.randn(5, 4, 6)
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
    predictor, told = ReconstructionHead(network.core.latent_width, GAME, ReconstructionSettings()), seen()
    _, latents, _ = network.trace(told, network.start(4))
    predictor.loss(latents, told, torch.ones(5, 4, dtype=torch.bool)).backward()
    for part in (network.core, network.encoder.stimulus):
        assert any(w.grad is not None and bool(w.grad.any()) for w in part.parameters())
    assert all(w.grad is None for w in network.head.parameters())


def test_a_prediction_is_right_if_its_error_is_small() -> None:
    predictor, told = ReconstructionHead(3, GAME, ReconstructionSettings(hidden=6)), seen()
    with torch.no_grad():  # hidden units hold x and -x, whose difference is x
        predictor.hidden[0].weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)]))  # type: ignore[operator]
        predictor.hidden[0].bias.zero_()  # type: ignore[operator]
        predictor.out.weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)], 1))
        predictor.out.bias.zero_()
    off = torch.tensor([0.0, 0.049, 0.051])
    torch.testing.assert_close(predictor.right(told.stimulus + off, told), torch.full((5, 4), 2 / 3))


@pytest.mark.parametrize("given", [{"weight": 0.0}, {"near": -1.0}, {"period": 0}, {"hidden": 0}])
def test_settings_that_are_not_accepted_raise_errors(given: dict[str, float]) -> None:
    with pytest.raises(InvalidSettingError):
        ReconstructionSettings(**given)  # type: ignore[arg-type]
