"""Games that tests play."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icy.study.game import Event, GameState, StudyGame, StudyGameSettings, Trial, instance_of

Answer = Callable[[Trial], str]


def game_of(preset: str = "clean", seed: int = 0, number: int = 0, **settings: Any) -> StudyGame:
    """Return a game on an instance of the list."""
    chosen = StudyGameSettings.of(preset, **settings)
    return StudyGame(chosen, instance_of(chosen, number), seed)


def perfect(trial: Trial) -> str:
    """Return the right code, which no player knows."""
    return trial.code


def play_out(
    game: StudyGame, answer: Answer = perfect, adds: bool = False, start: GameState | None = None
) -> GameState:
    """Play a game to its end, adding all cards at once if asked."""
    state = start or game.apply(game.new(), Event("start"))
    while state.phase == "open":
        while adds and state.cards < game.settings.cap:
            state = game.apply(state, Event("add"))
        state = game.apply(state, Event("answer", answer(state.trial), at=state.trial.example))
        state = game.apply(state, Event("next", at=state.trial.example))
    return state
