"""Attention memories at the table: what they remember of episodes that end at different times."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.memories.attention import MemoryListener
from icy.s2b.agents.memories.memory_players import MemoryPlayer
from icy.s2b.evaluation import play

GAME = GameSettings(most=3)


@pytest.mark.slow
def test_every_game_is_remembered_once_however_long_the_others_play() -> None:
    """The last games too, but of the longest episodes, as nobody acts once all have ended."""
    game, player = BatchedGame(GAME, episodes=6), MemoryPlayer(MemoryListener(GAME))
    play(game, "posdis", player, range(6))
    expected = game.games - (game.games == game.games.max())
    assert len(np.unique(expected)) > 1
    assert torch.equal(player.memory.known.sum(1), torch.as_tensor(expected))
