"""Environments of Gymnasium for one agent: one episode, or many in a batch, over the same adapter."""

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
    """Observations and actions of one agent in B episodes; arrays have a leading axis of episodes."""

    render_mode: str | None

    @property
    def spaces(self) -> tuple[Space, Space]:
        """The spaces of one observation and of one action."""

    def reset(self, seed: int | None = None, seeds: Sequence[int] | None = None) -> Turn | RecallTurn:
        """Begin an episode in every slot; see BatchedGame.reset."""

    def act(self, actions: object) -> Turn | RecallTurn:
        """Act in all episodes, by actions of their form."""

    def observed(self) -> Observed:
        """Return the observations."""

    def masks(self) -> Masks:
        """Return the legal choices; before the first reset, those at the first step of an episode."""

    def infos(self) -> Arrays:
        """Return the infos, the same keys at every step."""

    def render(self) -> Rendered:
        """Return the last step of the first episode; None without a render mode."""


class AgentEnv(gymnasium.Env[OneObserved, object]):
    """One episode for one agent.

    Args:
        adapter: adapter of one episode.
    """

    metadata = METADATA

    def __init__(self, adapter: AgentAdapter) -> None:
        self.adapter, self.render_mode = adapter, adapter.render_mode
        self.observation_space, self.action_space = adapter.spaces

    def reset(self, *, seed: int | None = None, options: Infos | None = None) -> tuple[OneObserved, Infos]:
        """Begin the episode of a seed, or the next one.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, or any option.
        """
        checked_options(options)
        super().reset(seed=None if seed is None else checked_seed(seed))
        self.adapter.reset(seed)
        return one_of(self.adapter.observed()), one_of(self.adapter.infos())

    def step(self, action: object) -> tuple[OneObserved, float, bool, bool, Infos]:
        """Act; the other player acts as well.

        Raises:
            IcyError: before the first reset, or an action of another shape.
        """
        turn = self.adapter.act([action])
        observation, info = one_of(self.adapter.observed()), one_of(self.adapter.infos())
        return observation, float(turn.reward[0]), bool(turn.done[0]), False, info

    def action_masks(self) -> Mask:
        """Return the legal choices, all in one row, in the form that sb3-contrib's MaskablePPO takes.

        Before the first reset, these are the choices at the first step of an episode.
        """
        mask: Mask = self.adapter.masks()[0].copy()
        return mask

    def render(self) -> Rendered:  # type: ignore[override]
        """Return the last step in words ("ansi"), or a picture of the last lines ("rgb_array")."""
        return self.adapter.render()


class AgentVectorEnv(VectorEnv[Observed, object, AnyArray]):
    """Many episodes for one agent, in one batch.

    Infos are arrays over episodes, each with a mask (`_zsct` for `zsct`) that is always True, as in Gymnasium's own
    vector environments. Scores are complete where the step's `terminated` is True.

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
        """Begin all episodes: of a seed and the seeds that follow, of a list of seeds, or the next ones.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, not one seed per episode, or any
                option.
        """
        checked_options(options)
        if isinstance(seed, (Sequence, np.ndarray)) and np.ndim(seed):
            self.adapter.reset(seeds=seed)
        else:
            self.adapter.reset(seed)  # type: ignore[arg-type]
        return self.adapter.observed(), self._infos()

    def step(self, actions: object) -> tuple[Observed, PerEpisode, PerEpisode, PerEpisode, Infos]:
        """Act in all episodes.

        Raises:
            IcyError: before the first reset, or actions of another shape.
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
