"""Custom players."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IcyError
from icy.core.register import register_listener
from icy.core.registry import registry
from icy.s2b import Action, Player, evaluate


class Yes(Player):
    """Listener that always decides yes."""

    def acting(self, seen: Any) -> Action:
        return Action(decision=np.zeros(self.seat.episodes, dtype=int))


def test_a_custom_player_plays_by_name_or_as_an_object() -> None:
    register_listener("yes", source="a test")(Yes)
    try:
        assert "listener/yes" in icy.list_players("*yes")
        named = evaluate("posdis", "yes", episodes=5, seeds=1)
        own = evaluate("posdis", Yes(), episodes=5, seeds=1)
        assert named.table().equals(own.table())
        assert (named.listener, own.listener) == ("yes", "Yes")
    finally:
        registry._entries.pop(("listener", "yes"))


def test_acting_must_return_an_action() -> None:
    class Wrong(Player):
        def acting(self, seen: Any) -> Any:
            return np.zeros(self.seat.episodes)

    with pytest.raises(IcyError, match="must return an Action, not ndarray"):
        evaluate("posdis", Wrong(), episodes=2, seeds=1)


def test_players_without_privileges_cannot_use_the_game() -> None:
    class Curious(Player):
        def acting(self, seen: Any) -> Action:
            return Action(decision=self.game.answer)

    with pytest.raises(IcyError, match="uses the game; set `privileged = True`"):
        evaluate("posdis", Curious(), episodes=2, seeds=1)
