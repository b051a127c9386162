"""Attention memories at the table: what they remember of episodes that end at different times."""

from __future__ import annotations

import numpy as np
import torch

from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.memory import MemoryListener
from icy.s2b.agents.player import MemoryPlayer
from icy.s2b.agents.stepped import TrainedListener
from icy.s2b.evaluation import play

GAME = GameSettings(most=3)


def test_every_game_is_remembered_once_however_long_the_others_play() -> None:
    """The last games too, but of the longest episodes, as nobody acts once all have ended."""
    network, game = MemoryListener(GAME), BatchedGame(GAME, episodes=6)
    memory, trained = MemoryPlayer(network), TrainedListener(network)
    play(game, "posdis", memory, range(6))
    expected = game.games - (game.games == game.games.max())
    assert len(np.unique(expected)) > 1
    assert torch.equal(memory.there.sum(1), torch.as_tensor(expected))
    play(game, "posdis", trained, range(6))
    assert torch.equal(trained.memory.known.sum(1), torch.as_tensor(expected))
