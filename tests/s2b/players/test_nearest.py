"""The nearest-number listener: memory without inference."""

from __future__ import annotations

import numpy as np
import pytest

from icy.core.errors import IncompatibleError
from icy.s2b import BatchedGame, play
from icy.s2b.players.nearest import NearestListener
from tests.s2b.players.helpers import accuracy


@pytest.mark.slow
def test_memory_without_inference() -> None:
    """With one sample the nearest number is the number itself; with more, sections keep values apart."""
    assert accuracy("posdis", "nearest") == 1
    assert accuracy("posdis", "nearest", representation="ohe") == 1
    assert accuracy("posdis", "nearest", samples=4) > 0.995
    assert accuracy("posdis", "nearest", "support", samples=4) < accuracy("posdis", "binding", "support", samples=4)
    assert accuracy("holistic", "nearest") < 0.6
    with pytest.raises(IncompatibleError, match="needs feedback"):
        accuracy("posdis", "nearest", feedback=False)


def test_an_episode_that_has_ended_teaches_nothing_more() -> None:
    listener, game = NearestListener(), BatchedGame(most=3, episodes=6)
    play(game, "posdis", listener, range(6))
    expected = game.games - (game.games == game.games.max())  # nobody acts once all have ended
    assert (~np.isnan(listener.numbers)).any(2).sum(1).tolist() == expected.tolist()
