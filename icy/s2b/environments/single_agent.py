"""Environments of Gymnasium for one agent, with one episode or with a batch of episodes."""

from collections.abc import Sequence
from typing import Unpack

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from icy.s2b.episode_streams import checked_seed
from icy.s2b.options import ParallelOptions, RecallEnvOptions
from icy.s2b.players.interface import Player
from icy.s2b.recall import RecallSettings
from icy.s2b.settings import GameSettings

from .adapter import METADATA, GameAdapter, RecallAdapter, Rendered
from .spaces import AnyArray, Infos, Mask, Observed, OneObserved, PerEpisode, Pixels, checked_options, one_of

Seeds = int | Sequence[int] | None


class AgentEnv(gymnasium.Env[OneObserved, object]):
    """An environment of Gymnasium with one agent and one episode at a time.

    Args:
        adapter: adapter of one episode.
    """

    metadata = METADATA

    def __init__(self, adapter: GameAdapter | RecallAdapter) -> None:
        self.adapter, self.render_mode = adapter, adapter.render_mode
        self.observation_space, self.action_space = adapter.spaces

    def reset(self, *, seed: int | None = None, options: Infos | None = None) -> tuple[OneObserved, Infos]:
        """Begin the first episode of a seed, or without a seed the next episode.

        Raises:
            InvalidSettingError: the seed is not a whole number from 0 to 2**64 - 1, or options are given.
        """
        checked_options(options)
        super().reset(seed=None if seed is None else checked_seed(seed))
        self.adapter.reset(seed)
        return one_of(self.adapter.observed()), one_of(self.adapter.infos())

    def step(self, action: object) -> tuple[OneObserved, float, bool, bool, Infos]:
        """Play one step with the agent's action. In the referential game, the inner speaker acts too.

        Raises:
            IcyError: before the first reset, or an action with the wrong shape.
        """
        turn = self.adapter.act([action])
        observation, info = one_of(self.adapter.observed()), one_of(self.adapter.infos())
        return observation, float(turn.reward[0]), bool(turn.done[0]), False, info

    def action_masks(self) -> Mask:
        """Return the action mask as one row, the format of sb3-contrib's MaskablePPO.

        Before the first reset, this is the mask of an episode's first step.
        """
        return np.asarray(self.adapter.masks()[0].copy())

    def render(self) -> Rendered:  # type: ignore[override]
        """Return the last step as text ("ansi"), or a picture of the last lines ("rgb_array")."""
        return self.adapter.render()


class AgentVectorEnv(VectorEnv[Observed, object, AnyArray]):
    """A vector environment of Gymnasium: one agent in a batch of episodes.

    Infos are arrays over episodes, each with a mask (`_zsct` for `zsct`) that is always True, as in Gymnasium's own
    vector environments. Scores are final where the step's `terminated` is True.

    Args:
        adapter: adapter of the episodes.
        num_envs: number of episodes.
    """

    metadata = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    autoreset_mode = AutoresetMode.NEXT_STEP

    def __init__(self, adapter: GameAdapter | RecallAdapter, num_envs: int) -> None:
        self.adapter, self.num_envs, self.render_mode = adapter, num_envs, adapter.render_mode
        self.single_observation_space, self.single_action_space = adapter.spaces
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: Seeds = None, options: Infos | None = None) -> tuple[Observed, Infos]:
        """Begin all episodes: of consecutive seeds from `seed` on, of a list of seeds, or the next episodes.

        Raises:
            InvalidSettingError: a seed is not a whole number from 0 to 2**64 - 1, a list does not have one seed per
                episode, or options are given.
        """
        checked_options(options)
        if isinstance(seed, (Sequence, np.ndarray)) and np.ndim(seed):
            self.adapter.reset(seeds=seed)
        else:
            self.adapter.reset(seed)  # type: ignore[arg-type]
        return self.adapter.observed(), self._infos()

    def step(self, actions: object) -> tuple[Observed, PerEpisode, PerEpisode, PerEpisode, Infos]:
        """Play one step in all episodes.

        Raises:
            IcyError: before the first reset, or actions with the wrong shape.
        """
        turn = self.adapter.act(actions)
        return self.adapter.observed(), turn.reward, turn.done, np.zeros(self.num_envs, dtype=bool), self._infos()

    def render(self) -> tuple[str | Pixels, ...] | None:
        """Return the last step of the first episode, as `AgentEnv.render` does."""
        shown = self.adapter.render()
        return None if shown is None else (shown,)

    def _infos(self) -> Infos:
        infos, everywhere = self.adapter.infos(), np.ones(self.num_envs, dtype=bool)
        return infos | {f"_{name}": everywhere for name in infos}


class ListenerEnv(AgentEnv):
    """
    # Listener

    | Import             | `import icy.s2b`                                                            |
    |--------------------|-----------------------------------------------------------------------------|
    | Creation           | `gymnasium.make("S2B/Listener-v0")`, `gymnasium.make_vec(..., num_envs=B)`  |
    | Action Space       | Discrete(K + 2); with `actions=`, factored or flat as in the parallel game  |
    | Observation Space  | a dictionary, the same as the listener's in the parallel game               |
    | Rewards            | 1 right; wrong: 0 in the support, -2 in the query                           |

    The meta-referential game of `icy.s2b.environments.parallel` for one agent, the listener. The speaker is part of the
    environment and does not learn; by default it is the posdis speaker (MetaRG22, the single-agent benchmark). The
    parallel game's page describes observations, actions, masks and rewards.

    ### Arguments

    ``` python
    gymnasium.make("S2B/Listener-v0", speaker="posdis", actions="role", observations="dict", shots=1, samples=1, ...)
    ```

    `speaker`: the name of a registered speaker (`icy list players`), or an `icy.s2b.Player`. With `actions="role"` the
    agent gives a decision at every step. It counts at round N and is ignored at other rounds. `messages`, `latents`,
    `observations`, `observe_mask` and `render_mode` are as in the parallel game.

    ### Info

    The infos of the parallel game, at every reset and step: `action_mask`, `game`, `illegal_actions`, `zsct`,
    `support_accuracy` and `yes_rate`.

    ### Many at once

    `gymnasium.make_vec("S2B/Listener-v0", num_envs=4096, vectorization_mode="vector_entry_point")` plays all episodes
    in one batch; the step after an episode's end begins the next episode (`AutoresetMode.NEXT_STEP`). `reset(seed=...)`
    takes the first of B consecutive seeds, or a list with one seed per environment. Infos are arrays over environments.

    ### Version history

    * v0: first release
    """

    def __init__(
        self,
        speaker: str | Player = "posdis",
        *,
        settings: GameSettings | None = None,
        **given: Unpack[ParallelOptions],
    ) -> None:
        given.setdefault("actions", "role")
        super().__init__(GameAdapter(settings, 1, False, speaker, **given))


class ListenerVectorEnv(AgentVectorEnv):
    """Many games of the listener in one batch; see ListenerEnv."""

    def __init__(
        self,
        num_envs: int = 1,
        speaker: str | Player = "posdis",
        *,
        settings: GameSettings | None = None,
        **given: Unpack[ParallelOptions],
    ) -> None:
        given.setdefault("actions", "role")
        super().__init__(GameAdapter(settings, num_envs, True, speaker, **given), num_envs)


class RecallEnv(AgentEnv):
    """
    # Recall

    | Import             | `import icy.s2b`                                                            |
    |--------------------|-----------------------------------------------------------------------------|
    | Creation           | `gymnasium.make("S2B/Recall-v0")`, `gymnasium.make_vec(..., num_envs=B)`    |
    | Action Space       | Discrete(V_max + 1): a value, or the last for no answer                     |
    | Observation Space  | a dictionary: `stimulus`, `step`, `previous_result`                         |
    | Rewards            | 1 for a right answer, 0 for a wrong one                                     |

    The recall task (MetaRG22, the binding-problem control). A game has two steps: the first shows a stimulus, the
    second asks for the stimulus's value in one dimension, and the agent answers. Every stimulus of the episode's space
    is shown once in each of two shots; the score is the accuracy in the second. Compare `representation="scs"` with
    `"ohe"`.

    ### Observation space

    | Key               | Space         | Meaning                                                                      |
    |-------------------|---------------|------------------------------------------------------------------------------|
    | `stimulus`        | Box, (W,)     | the stimulus; at a question, ones for the numbers of the queried dimension   |
    | `step`            | Discrete(2)   | 0 a stimulus is shown, 1 an answer is asked for                              |
    | `previous_result` | Discrete(3)   | result of the previous game: 0 none, 1 wrong, 2 right                        |

    ### Arguments

    ``` python
    gymnasium.make("S2B/Recall-v0", representation="scs", shots=2, latents=False, observations="dict", ...)
    ```

    `latents`, `observations`, `observe_mask` and `render_mode` are as in the parallel game. All others are settings,
    see `icy.s2b.RecallSettings`; `compat="near32"` takes the choices of the authors' program, except its third pass,
    which shows the last stimulus over and over.

    ### Info

    At every reset and step: `action_mask`, `illegal_actions`, `accuracy` and `first_accuracy`, and `answer` with
    `latents=True`. The accuracies are the shares of right answers in the last shot and in the first, so far.

    ### Version history

    * v0: first release
    """

    def __init__(self, settings: RecallSettings | None = None, **given: Unpack[RecallEnvOptions]) -> None:
        super().__init__(RecallAdapter(settings, **given))


class RecallVectorEnv(AgentVectorEnv):
    """Many recall tasks in one batch, without rendering; see RecallEnv."""

    metadata = {**AgentVectorEnv.metadata, "render_modes": []}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, settings: RecallSettings | None = None, **given: Unpack[RecallEnvOptions]
    ) -> None:
        super().__init__(RecallAdapter(settings, num_envs, True, **given), num_envs)
