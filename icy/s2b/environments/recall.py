"""
# Recall

| Import             | `import icy.s2b`                                                            |
|--------------------|-----------------------------------------------------------------------------|
| Creation           | `gymnasium.make("S2B/Recall-v0")`, `gymnasium.make_vec(..., num_envs=B)`    |
| Action Space       | Discrete(V_max + 1): a value, or the last for no answer                     |
| Observation Space  | a dictionary: `stimulus`, `step`, `previous_result`                         |
| Rewards            | 1 for a right answer, 0 for a wrong one                                     |

The recall task (MetaRG22, the binding-problem control). A game has two steps: the first shows a stimulus, the second
asks for one dimension, and the agent answers with the stimulus's value in it. Every stimulus of the episode's space is
shown once in each of two shots; the score is the accuracy in the second. Compare `representation="scs"` with `"ohe"`.

### Observation space

| Key               | Space         | Meaning                                                                         |
|-------------------|---------------|---------------------------------------------------------------------------------|
| `stimulus`        | Box, (W,)     | the stimulus; at the second step, ones for the numbers of the dimension asked   |
| `step`            | Discrete(2)   | 0 a stimulus is shown, 1 an answer is asked for                                 |
| `previous_result` | Discrete(3)   | result of the previous game: 0 none, 1 wrong, 2 right                           |

### Arguments

``` python
gymnasium.make("S2B/Recall-v0", representation="scs", shots=2, latents=False, observations="dict", ...)
```

`latents`, `observations`, `observe_mask` and `render_mode` are as in the parallel game. All others are
settings, see `icy.s2b.RecallSettings`; `compat="near32"` takes the choices of the authors' program (except its third
pass, which shows the last stimulus over and over).

### Info

At every reset and step: `action_mask`, `illegal_actions`, `accuracy` and `first_accuracy`, and `answer` with
`latents=True`. The accuracies are the right answers so far in the last and in the first shot, as shares of its games.

### Version history

* v0: first release
"""

from collections.abc import Sequence
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from icy.core.checks import true_or_false
from icy.s2b.options import RecallOptions
from icy.s2b.recall import ASKED, BatchedRecall, RecallSettings, RecallTurn
from icy.s2b.streams import checked_seed
from icy.s2b.transcript import picture

from .adapter import METADATA, OF_MANY, checked_mode, of_all, settings_of
from .spaces import (
    WIDE,
    Arrays,
    Flags,
    Mask,
    Masks,
    ObservationForm,
    Observed,
    Rewards,
    checked_options,
    one_of,
    seed_or_seeds,
    whole_actions,
)


def _spaces(settings: RecallSettings) -> tuple[spaces.Dict, spaces.Discrete]:
    low = -WIDE if settings.truncate == "none" else -1.0
    observation = spaces.Dict(
        {
            "stimulus": spaces.Box(low, -low, (settings.width,), np.float32),
            "step": spaces.Discrete(2),
            "previous_result": spaces.Discrete(3),
        }
    )
    return observation, spaces.Discrete(settings.most + 1)


class _Adapter:
    """Adapts a recall task to observations and infos of Gymnasium."""

    def __init__(self, task: BatchedRecall, latents: bool, observations: str, observe_mask: bool) -> None:
        features, self.action_space = _spaces(task.settings)
        self.task, self.latents = task, true_or_false("latents", latents)
        self.form = ObservationForm(features, int(self.action_space.n), observations, observe_mask)

    def masks(self) -> Masks:
        """Return the legal answers, [B, choices]; before the first reset, the answers at an episode's first step."""
        turn = self.task.turn
        asked = np.zeros(self.task.episodes, dtype=bool) if turn is None else (turn.asked == ASKED) & ~turn.done
        mask = np.repeat(asked[:, None], self.task.settings.most + 1, axis=1)
        mask[:, -1] = ~asked
        return mask.astype(np.int8)

    def observed(self, turn: RecallTurn) -> Observed:
        """Return observations, with a leading axis of episodes."""
        features: Arrays = {"stimulus": turn.stimulus, "step": turn.asked, "previous_result": turn.result}
        return self.form.of(features, self.masks())

    def infos(self) -> Arrays:
        """Return the infos, with a leading axis of episodes: the same keys at every step."""
        task = self.task
        infos: Arrays = {
            "action_mask": self.masks(),
            "illegal_actions": task.illegal.copy(),
            "accuracy": task.accuracy(),
            "first_accuracy": task.accuracy(0),
        }
        return infos | {"answer": task.answers} if self.latents else infos

    def step(self, actions: Any) -> RecallTurn:
        """Answer, or at a shown stimulus do nothing, in all episodes."""
        return self.task.step(whole_actions(actions, (self.task.episodes,)))


class RecallEnv(gymnasium.Env[Any, Any]):
    """The recall task as an environment of Gymnasium; see the docstring of this module."""

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        settings: RecallSettings | None = None,
        *,
        latents: bool = False,
        observations: str = "dict",
        observe_mask: bool = False,
        render_mode: str | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        self.task = BatchedRecall(settings_of(RecallSettings, settings, given, type(self)))
        self._adapter = _Adapter(self.task, latents, observations, observe_mask)
        self.render_mode = checked_mode(render_mode)
        self.observation_space, self.action_space = self._adapter.form.space, self._adapter.action_space
        self._told: list[str] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of a seed, or the next one.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, or any option.
        """
        checked_options(options)
        super().reset(seed=None if seed is None else checked_seed(seed))
        turn = self.task.reset(seed)
        self._told = [f"shown {_numbers(turn)}"]
        return one_of(self._adapter.observed(turn)), one_of(self._adapter.infos())

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Answer, or at a shown stimulus do nothing.

        Raises:
            IcyError: before the first reset, or an action of another shape.
        """
        turn = self._adapter.step([action])
        over = bool(turn.done[0])
        if turn.asked[0] == ASKED and not over:
            self._told.append(f"asked {_numbers(turn)}")
        else:
            result = "right" if turn.result[0] == 2 else "wrong"
            self._told.append(f"answered {int(action)}, {result}" + ("" if over else f"; shown {_numbers(turn)}"))
        observation, info = one_of(self._adapter.observed(turn)), one_of(self._adapter.infos())
        return observation, float(turn.reward[0]), over, False, info

    def action_masks(self) -> Mask:
        """Return the legal answers, in the form that sb3-contrib's MaskablePPO takes.

        Before the first reset, these are the choices at the first step of an episode.
        """
        mask: NDArray[np.int8] = self._adapter.masks()[0]
        return mask

    def render(self) -> Any:
        """Return the last step in words ("ansi"), or a picture of the last lines ("rgb_array")."""
        if self.render_mode is None:
            return None
        return self._told[-1] if self.render_mode == "ansi" else picture(self._told)


def _numbers(turn: RecallTurn) -> str:
    return " ".join(f"{x:+.2f}" for x in turn.stimulus[0].tolist())


class RecallVectorEnv(VectorEnv[Any, NDArray[Any], NDArray[Any]]):
    """Many recall tasks in one batch; see the docstring of this module. Infos are arrays over episodes."""

    metadata: dict[str, Any] = {**OF_MANY, "render_modes": []}  # noqa: RUF012
    autoreset_mode = AutoresetMode.NEXT_STEP

    def __init__(
        self,
        num_envs: int = 1,
        settings: RecallSettings | None = None,
        *,
        latents: bool = False,
        observations: str = "dict",
        observe_mask: bool = False,
        render_mode: str | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        self.task = BatchedRecall(
            settings_of(RecallSettings, settings, given, type(self)), episodes=num_envs, autoreset=True
        )
        self._adapter = _Adapter(self.task, latents, observations, observe_mask)
        self.num_envs, self.render_mode = num_envs, checked_mode(render_mode, ())
        self.single_observation_space = self._adapter.form.space
        self.single_action_space = self._adapter.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes: of a seed and the seeds that follow, of a list of seeds, or the next ones.

        Raises:
            InvalidSettingError: a seed that is not a whole number from 0 to 2**64 - 1, not one seed per episode, or any
                option.
        """
        checked_options(options)
        turn = self.task.reset(*seed_or_seeds(seed))
        return self._adapter.observed(turn), of_all(self._adapter.infos())

    def step(self, actions: Any) -> tuple[Any, Rewards, Flags, Flags, dict[str, Any]]:
        """Answer, or at a shown stimulus do nothing, in all episodes.

        Raises:
            IcyError: before the first reset, or actions of another shape.
        """
        turn = self._adapter.step(actions)
        infos = of_all(self._adapter.infos())
        return self._adapter.observed(turn), turn.reward, turn.done, np.zeros(self.num_envs, dtype=bool), infos
