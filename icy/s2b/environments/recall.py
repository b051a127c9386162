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
gymnasium.make("S2B/Recall-v0", representation="scs", shots=2, latents=False, ...)
```

Arguments are those of `icy.s2b.RecallSettings`; `compat="near32"` takes those of the authors' program (except its third
pass, which shows the last stimulus over and over).

### Info

`action_mask` and `illegal_actions` at every step, `answer` with `latents=True`; `accuracy` (of the last shot) and
`first_accuracy` when the episode ends.

### Version history

* v0: first release
"""

from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from icy.core.errors import IcyError
from icy.s2b.options import RecallOptions
from icy.s2b.recall import ASKED, BatchedRecall, RecallSettings, RecallTurn
from icy.s2b.transcript import picture

from .adapter import METADATA, OF_MANY, checked_mode
from .spaces import WIDE, Arrays, Flags, Mask, Rewards, one_of


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


def _observed(turn: RecallTurn) -> Arrays:
    return {"stimulus": turn.stimulus, "step": turn.asked, "previous_result": turn.result}


def _infos(task: BatchedRecall, latents: bool) -> Arrays:
    """Return the infos, with a leading axis of episodes."""
    if task.turn is None:
        raise IcyError("The task has not begun; call reset() first.")
    asked = (task.turn.asked == ASKED) & ~task.turn.done
    mask = np.repeat(asked[:, None], task.settings.most + 1, axis=1)
    mask[:, -1] = ~asked
    told: Arrays = {"action_mask": mask.astype(np.int8), "illegal_actions": task.illegal.copy()}
    if latents:
        told["answer"] = task.answers
    if task.turn.done.any():
        told |= {"accuracy": task.accuracy(), "first_accuracy": task.accuracy(0)}
    return told


class RecallEnv(gymnasium.Env[dict[str, Any], Any]):
    """The recall task as an environment of Gymnasium; see the docstring of this module."""

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        settings: RecallSettings | None = None,
        *,
        latents: bool = False,
        render_mode: str | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        self.task, self.latents = BatchedRecall(settings, **given), latents
        self.render_mode = checked_mode(render_mode)
        self.observation_space, self.action_space = _spaces(self.task.settings)
        self._told: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the episode of a seed, or the next one."""
        super().reset(seed=seed)
        turn = self.task.reset(seed)
        self._told = [f"shown {_numbers(turn)}"]
        return one_of(_observed(turn)), one_of(_infos(self.task, self.latents))

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Answer, or at a shown stimulus do nothing."""
        turn = self.task.step(np.asarray(action)[None])
        over = bool(turn.done[0])
        if turn.asked[0] == ASKED and not over:
            self._told.append(f"asked {_numbers(turn)}")
        else:
            result = "right" if turn.result[0] == 2 else "wrong"
            self._told.append(f"answered {int(action)}, {result}" + ("" if over else f"; shown {_numbers(turn)}"))
        return one_of(_observed(turn)), float(turn.reward[0]), over, False, one_of(_infos(self.task, self.latents))

    def action_masks(self) -> Mask:
        """Return the legal answers, in the form that sb3-contrib's MaskablePPO takes."""
        mask: NDArray[np.int8] = _infos(self.task, False)["action_mask"][0]
        return mask

    def render(self) -> Any:
        """Return the last step in words ("ansi"), or a picture of the last lines ("rgb_array")."""
        if self.render_mode is None:
            return None
        return self._told[-1] if self.render_mode == "ansi" else picture(self._told)


def _numbers(turn: RecallTurn) -> str:
    return " ".join(f"{x:+.2f}" for x in turn.stimulus[0].tolist())


class RecallVectorEnv(VectorEnv[dict[str, NDArray[Any]], NDArray[Any], NDArray[Any]]):
    """Many recall tasks in one batch; see the docstring of this module. Infos are arrays over episodes."""

    metadata: dict[str, Any] = {**OF_MANY, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        settings: RecallSettings | None = None,
        *,
        latents: bool = False,
        render_mode: str | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        self.task = BatchedRecall(settings, episodes=num_envs, autoreset=True, **given)
        self.num_envs, self.latents, self.render_mode = num_envs, latents, checked_mode(render_mode, ())
        self.single_observation_space, self.single_action_space = _spaces(self.task.settings)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Begin all episodes: of a seed and those after it, of a list of seeds, or the next ones."""
        turn = self.task.reset(*((None, seed) if isinstance(seed, list) else (seed, None)))
        return _observed(turn), _infos(self.task, self.latents)

    def step(self, actions: Any) -> tuple[Arrays, Rewards, Flags, Flags, dict[str, Any]]:
        """Answer, or at a shown stimulus do nothing, in all episodes."""
        turn = self.task.step(actions)
        infos: dict[str, Any] = _infos(self.task, self.latents)
        if turn.done.any():
            infos |= {"_accuracy": turn.done, "_first_accuracy": turn.done}
        return _observed(turn), turn.reward, turn.done, np.zeros(self.num_envs, dtype=bool), infos
