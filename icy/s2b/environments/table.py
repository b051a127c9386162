"""What all faces of the game share: the batched game, and actions, observations and infos in their terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from icy.errors import unknown
from icy.registry import LISTENER, PLAYERS, SPEAKER

from ..channel import Array
from ..game import BatchedGame, Turn
from ..rendering import Transcript, picture
from ..settings import GameSettings
from .spaces import MESSAGES, Actions, Arrays, observation_space, observed, privileged

RENDER_MODES = ("ansi", "rgb_array")
METADATA: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}
OF_MANY: dict[str, Any] = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}


class Table:
    """A batched game whose players act in the terms of Gymnasium.

    Args:
        settings: of the game.
        episodes: at once, B.
        form: of actions, see Actions.
        messages: how they are observed, "one-hot" or as "tokens".
        latents: whether infos hold what no player sees.
        render_mode: None, or "ansi".
        autoreset: see BatchedGame.
    """

    def __init__(
        self,
        settings: GameSettings,
        episodes: int,
        form: str,
        messages: str,
        latents: bool,
        render_mode: str | None,
        autoreset: bool = False,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise unknown("render mode", render_mode, RENDER_MODES)
        if messages not in MESSAGES:
            raise unknown("way to observe messages", messages, MESSAGES)
        self.settings, self.latents, self.messages = settings, latents, messages
        self.game = BatchedGame(settings, episodes=episodes, autoreset=autoreset)
        self.actions = {player: Actions(settings, player, form) for player in PLAYERS}
        self.spaces = {player: observation_space(settings, player, messages) for player in PLAYERS}
        self.render_mode = render_mode
        self.transcript = None if render_mode is None else Transcript(self.game)

    def reset(self, seed: int | None = None, seeds: Any = None) -> Turn:
        """Begin; see BatchedGame.reset."""
        turn = self.game.reset(seed, seeds)
        if self.transcript is not None:
            self.transcript.begin(turn)
        return turn

    def step(self, given: Mapping[str, Any]) -> Turn:
        """Both players act, by actions with a leading axis of episodes."""
        self._note_illegal(SPEAKER, given[SPEAKER])
        return self.step_said(self.actions[SPEAKER].read(given[SPEAKER]).message, given[LISTENER])

    def step_said(self, said: Array, given: Any) -> Turn:
        """The speaker says tokens [B, L], and the listener acts."""
        before = self.game.turn
        self._note_illegal(LISTENER, given)
        heard = self.actions[LISTENER].read(given)
        turn = self.game.step(said, heard.decision, heard.message)
        if self.transcript is not None:
            self.transcript.add(before, turn, said, heard.decision)
        return turn

    def _note_illegal(self, player: str, given: Any) -> None:
        """Count actions that are none where one is asked for, which the game cannot tell from others."""
        turn = self.game.turn
        nothing = self.actions[player].illegal_nothing(given, turn.seen_by(player))
        self.game.illegal[player] = self.game.illegal[player] + (nothing & ~turn.done)

    def render(self) -> Any:
        """What has happened in the last step, in words, or as a picture of the last words; None without a mode."""
        if self.transcript is None:
            return None
        return self.transcript.text() if self.render_mode == "ansi" else picture(self.transcript.told)

    def observed(self, player: str) -> Arrays:
        """What a player sees now, with a leading axis of episodes."""
        return observed(self.game.turn.seen_by(player), player, self.settings, self.messages)

    def infos(self, player: str) -> Arrays:
        """What a player is told beside, with a leading axis of episodes."""
        game = self.game
        told: Arrays = {
            "action_mask": self.actions[player].masks(game.turn.seen_by(player)),
            "game": game.game_number,
            "illegal_actions": game.illegal[player],
        }
        return told | privileged(game) if self.latents else told

    def scores(self) -> Arrays:
        """How the episodes went, by name; for those that have ended."""
        scores = self.game.scores()
        return {"zsct": scores.zsct, "support_accuracy": scores.support, "yes_rate": scores.yes}

    def nothing(self, player: str) -> Any:
        """The action of a player that does nothing, for all episodes."""
        space = self.actions[player].space
        none = int(getattr(space, "n", 1)) - 1 if self.actions[player].form == "flat" else 0
        return np.full((self.game.episodes, *(space.shape or ())), none, dtype=np.int64)
