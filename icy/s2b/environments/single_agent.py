"""Environments of Gymnasium for one agent, with one episode or with a batch of episodes."""

from collections.abc import Sequence
from typing import Protocol

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from icy.s2b.episode_streams import checked_seed
from icy.s2b.recall import RecallTurn
from icy.s2b.turn import Turn

from .adapter import METADATA, Rendered
from .spaces import (
    AnyArray,
    Arrays,
    Infos,
    Mask,
    Masks,
    Observed,
    OneObserved,
    PerEpisode,
    Pixels,
    Space,
    checked_options,
    one_of,
)

Seeds = int | Sequence[int] | None


class AgentAdapter(Protocol):
    """Interface between a batched task and the environments of one agent. Arrays have a leading axis of B episodes."""

    render_mode: str | None

    @property
    def spaces(self) -> tuple[Space, Space]:
        """The observation space and the action space of one episode."""

    def reset(self, seed: int | None = None, seeds: Sequence[int] | None = None) -> Turn | RecallTurn:
        """Begin an episode in every slot; see BatchedGame.reset."""

    def act(self, actions: object) -> Turn | RecallTurn:
        """Play one step in all episodes with the agent's actions."""

    def observed(self) -> Observed:
        """Return the observations."""

    def masks(self) -> Masks:
        """Return the action masks, [B, choices]; before the first reset, the masks of an episode's first step."""

    def infos(self) -> Arrays:
        """Return the infos. The keys are the same at every step."""

    def render(self) -> Rendered:
        """Return the last step of the first episode; None without a render mode."""


class AgentEnv(gymnasium.Env[OneObserved, object]):
    """An environment of Gymnasium with one agent and one episode at a time.

    Args:
        adapter: adapter of one episode.
    """

    metadata = METADATA

    def __init__(self, adapter: AgentAdapter) -> None:
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
        mask: Mask = self.adapter.masks()[0].copy()
        return mask

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

    def __init__(self, adapter: AgentAdapter, num_envs: int) -> None:
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
