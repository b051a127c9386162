"""Listeners that see what a prompt shows, and what players decided game by game."""

from __future__ import annotations

from typing import Any

import numpy as np

from icy.s2b import Action, BatchedGame, GameSettings, Player, play
from icy.s2b.game import Turn
from icy.s2b.players.listeners import NearestListener
from icy.s2b.text.prompt import rounded


class RoundedNearest(NearestListener):
    """The nearest listener, shown three decimals."""

    def numbers_of(self, seen: Any) -> Any:
        return rounded(super().numbers_of(seen))


def decisions(listener: Player | str, settings: GameSettings, seeds: range, speaker: str = "posdis") -> list[Any]:
    """The decision of every game, with its episode, in the order of play."""
    found: list[Any] = []

    def watch(game: BatchedGame, turn: Turn, said: Action, heard: Action) -> None:
        for row in np.flatnonzero(turn.listener.may_decide):
            assert heard.decision is not None
            found.append((int(row), int(game.game_number[row]), int(heard.decision[row])))

    play(BatchedGame(settings, episodes=len(seeds)), speaker, listener, seeds, watch)
    return found
