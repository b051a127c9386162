"""
# Listener

| Import             | `import icy.s2b`                                                            |
|--------------------|-----------------------------------------------------------------------------|
| Creation           | `gymnasium.make("S2B/Listener-v0")`, `gymnasium.make_vec(..., num_envs=B)`  |
| Action Space       | Discrete(K + 2); with `actions=`, factored or flat as in the parallel game  |
| Observation Space  | a dictionary, the same as the listener's in the parallel game               |
| Rewards            | 1 right; wrong: 0 in the support, -2 in the query                           |

The meta-referential game of `icy.s2b.environments.parallel` for one agent, the listener. The speaker is part of the
environment and does not learn; by default it is the posdis speaker (MetaRG22, the single-agent benchmark). The parallel
game's page describes observations, actions, masks and rewards.

### Arguments

``` python
gymnasium.make("S2B/Listener-v0", speaker="posdis", actions="role", observations="dict", shots=1, samples=1, ...)
```

`speaker`: the name of a registered speaker (`icy list players`), or an `icy.s2b.Player`. With `actions="role"` the
agent gives a decision at every step, which counts at round N and is ignored at the others. `messages`, `latents`,
`observations`, `observe_mask` and `render_mode` are as in the parallel game.

### Info

The infos of the parallel game, at every reset and step: `action_mask`, `game`, `illegal_actions`, `zsct`,
`support_accuracy` and `yes_rate`.

### Many at once

`gymnasium.make_vec("S2B/Listener-v0", num_envs=4096, vectorization_mode="vector_entry_point")` plays all episodes in
one batch; the step after an episode has ended begins another (`AutoresetMode.NEXT_STEP`). `reset(seed=...)` takes the
first of as many consecutive seeds, or a list of a seed per environment. Infos are arrays over environments.

### Version history

* v0: first release
"""

from collections.abc import Sequence
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from icy.core.errors import IcyError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.options import GameOptions
from icy.s2b.players.base import Player, seated
from icy.s2b.settings import GameSettings
from icy.s2b.streams import checked_seed
from icy.s2b.turn import Turn

from .adapter import METADATA, OF_MANY, GameAdapter, of_all, settings_of
from .spaces import Flags, Mask, Rewards, checked_options, one_of, seed_or_seeds


class _WithSpeaker:
    """A game with a speaker inside."""

    def __init__(self, adapter: GameAdapter, speaker: str | Player) -> None:
        self.adapter, self.asked = adapter, speaker
        self.speaker: Player | None = None

    def reset(self, seed: int | None, seeds: Any = None) -> Turn:
        """Begin an episode in every slot; the speaker takes a new seat if the seeds are new, and else keeps its own."""
        turn = self.adapter.reset(seed, seeds)
        if self.speaker is None or seed is not None or seeds is not None:
            self.speaker = seated(self.asked, SPEAKER, self.adapter.game)
        return turn

    def step(self, actions: Any) -> Turn:
        """Let the speaker act, and the listener by the given actions."""
        if self.speaker is None:
            raise IcyError("The game has not begun; call reset() first.")
        said = self.speaker.act(self.adapter.game.turn.speaker).message
        return self.adapter.step_said(said, actions)


class ListenerEnv(gymnasium.Env[Any, Any]):
    """The listener's game as an environment of Gymnasium; see the docstring of this module."""

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        speaker: str | Player = "posdis",
        *,
        settings: GameSettings | None = None,
        actions: str = "role",
        messages: str = "one-hot",
        latents: bool = False,
        observations: str = "dict",
        observe_mask: bool = False,
        render_mode: str | None = None,
        **given: Unpack[GameOptions],
    ) -> None:
        chosen = settings_of(GameSettings, settings, given, type(self))
        self.adapter = GameAdapter(chosen, 1, actions, messages, latents, render_mode, observations, observe_mask)
        self.render_mode = render_mode
        self.observation_space = self.adapter.forms[LISTENER].space
        self.action_space = self.adapter.actions[LISTENER].space
        self._seat = _WithSpeaker(self.adapter, speaker)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of a seed, or the next one.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, or any option.
        """
        checked_options(options)
        super().reset(seed=None if seed is None else checked_seed(seed))
        self._seat.reset(seed)
        return one_of(self.adapter.observed(LISTENER)), one_of(self.adapter.infos(LISTENER))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the speaker and the listener act.

        Raises:
            IcyError: before the first reset, or an action of another shape.
        """
        turn = self._seat.step([action])
        info = one_of(self.adapter.infos(LISTENER))
        return one_of(self.adapter.observed(LISTENER)), float(turn.reward[0]), bool(turn.done[0]), False, info

    def action_masks(self) -> Mask:
        """Return the legal choices, all in one row, in the form that sb3-contrib's MaskablePPO takes.

        Before the first reset, these are the choices at the first step of an episode.
        """
        mask: NDArray[np.int8] = self.adapter.masks(LISTENER)[0].copy()
        return mask

    def render(self) -> Any:
        """Return the last step in words ("ansi"), or a picture of the last lines ("rgb_array")."""
        return self.adapter.render()


class ListenerVectorEnv(VectorEnv[Any, NDArray[Any], NDArray[Any]]):
    """Many listeners' games in one batch; see the docstring of this module.

    Infos are arrays over episodes, each with a mask (`_zsct` for `zsct`) that is always True, as Gymnasium's own vector
    environments have them. Scores are complete where the step's `terminated` is True.
    """

    metadata: dict[str, Any] = OF_MANY
    autoreset_mode = AutoresetMode.NEXT_STEP

    def __init__(
        self,
        num_envs: int = 1,
        speaker: str | Player = "posdis",
        *,
        settings: GameSettings | None = None,
        actions: str = "role",
        messages: str = "one-hot",
        latents: bool = False,
        observations: str = "dict",
        observe_mask: bool = False,
        render_mode: str | None = None,
        **given: Unpack[GameOptions],
    ) -> None:
        chosen = settings_of(GameSettings, settings, given, type(self))
        self.adapter = GameAdapter(
            chosen, num_envs, actions, messages, latents, render_mode, observations, observe_mask, autoreset=True
        )
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space = self.adapter.forms[LISTENER].space
        self.single_action_space = self.adapter.actions[LISTENER].space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seat = _WithSpeaker(self.adapter, speaker)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes: of a seed and the seeds that follow, of a list of seeds, or the next ones.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, not one seed per episode, or any
                option.
        """
        checked_options(options)
        self._seat.reset(*seed_or_seeds(seed))
        return self.adapter.observed(LISTENER), of_all(self.adapter.infos(LISTENER))

    def step(self, actions: Any) -> tuple[Any, Rewards, Flags, Flags, dict[str, Any]]:
        """Let the speaker and the listener act, in all episodes.

        Raises:
            IcyError: before the first reset, or actions of another shape.
        """
        turn = self._seat.step(actions)
        infos = of_all(self.adapter.infos(LISTENER))
        return self.adapter.observed(LISTENER), turn.reward, turn.done, np.zeros(self.num_envs, dtype=bool), infos

    def render(self) -> tuple[Any, ...] | None:
        """Return the last step of the first episode, as `ListenerEnv.render` does."""
        return None if self.render_mode is None else (self.adapter.render(),)
