"""
# Recall

| Import             | `import icy.s2b`                                                            |
|--------------------|-----------------------------------------------------------------------------|
| Creation           | `gymnasium.make("S2B/Recall-v0")`, `gymnasium.make_vec(..., num_envs=B)`    |
| Action Space       | Discrete(V_max + 1): a value, or the last for no answer                     |
| Observation Space  | a dictionary: `stimulus`, `step`, `previous_result`                         |
| Rewards            | 1 for a right answer, 0 for a wrong one                                     |

The recall task (MetaRG22, the binding-problem control). A game has two steps: the first shows a stimulus, the second
asks for the stimulus's value in one dimension, and the agent answers. Every stimulus of the episode's space is shown
once in each of two shots; the score is the accuracy in the second. Compare `representation="scs"` with `"ohe"`.

### Observation space

| Key               | Space         | Meaning                                                                         |
|-------------------|---------------|---------------------------------------------------------------------------------|
| `stimulus`        | Box, (W,)     | the stimulus; at the second step, ones for the numbers of the queried dimension |
| `step`            | Discrete(2)   | 0 a stimulus is shown, 1 an answer is asked for                                 |
| `previous_result` | Discrete(3)   | result of the previous game: 0 none, 1 wrong, 2 right                           |

### Arguments

``` python
gymnasium.make("S2B/Recall-v0", representation="scs", shots=2, latents=False, observations="dict", ...)
```

`latents`, `observations`, `observe_mask` and `render_mode` are as in the parallel game. All others are settings, see
`icy.s2b.RecallSettings`; `compat="near32"` takes the choices of the authors' program, except its third pass, which
shows the last stimulus over and over.

### Info

At every reset and step: `action_mask`, `illegal_actions`, `accuracy` and `first_accuracy`, and `answer` with
`latents=True`. The accuracies are the shares of right answers in the last shot and in the first, so far.

### Version history

* v0: first release
"""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from gymnasium import spaces

from icy.core.checks import true_or_false
from icy.s2b.options import RecallEnvOptions, RecallOptions
from icy.s2b.recall import ASKED, BatchedRecall, RecallSettings, RecallTurn
from icy.s2b.transcript import picture
from icy.s2b.turn import SUCCESS

from .adapter import RENDER_MODES, Rendered, RenderMode, checked_mode, settings_of
from .single_agent import AgentEnv, AgentVectorEnv
from .spaces import WIDE, Arrays, Masks, ObservationForm, ObservationsName, Observed, Space, whole_actions


class RecallAdapter:
    """Adapts recall tasks to the actions, observations and infos of Gymnasium; see AgentAdapter.

    Args:
        settings: settings of the task; or give them by name.
        episodes: number of episodes to play at once, B.
        autoreset: see BatchedRecall; such tasks cannot be rendered.
        latents: whether infos include the right answers.
        observations: form of observations, "dict" or "box", see ObservationForm.
        observe_mask: whether observations include the action mask, see ObservationForm.
        render_mode: None, "ansi" or "rgb_array".
        **given: settings by name, see RecallSettings.
    """

    def __init__(
        self,
        settings: RecallSettings | None,
        episodes: int = 1,
        autoreset: bool = False,
        /,
        *,
        latents: bool = False,
        observations: ObservationsName = "dict",
        observe_mask: bool = False,
        render_mode: RenderMode | None = None,
        **given: Unpack[RecallOptions],
    ) -> None:
        settings = settings_of(RecallSettings, settings, given, type(self), ["num_envs"] * autoreset)
        self.task = BatchedRecall(settings, episodes=episodes, autoreset=autoreset)
        self.latents, wide = true_or_false("latents", latents), WIDE if settings.truncate == "none" else 1.0
        features = spaces.Dict(
            {
                "stimulus": spaces.Box(-wide, wide, (settings.width,), np.float32),
                "step": spaces.Discrete(2),
                "previous_result": spaces.Discrete(3),
            }
        )
        self.form = ObservationForm(features, settings.most + 1, observations, observe_mask)
        self.spaces: tuple[Space, Space] = self.form.space, spaces.Discrete(settings.most + 1)
        self.render_mode = checked_mode(render_mode, () if autoreset else RENDER_MODES)
        self._lines: list[str] = []  # text of the first task, line by line

    def reset(self, seed: int | None = None, seeds: Sequence[int] | None = None) -> RecallTurn:
        """Begin an episode in every slot; see BatchedGame.reset."""
        turn = self.task.reset(seed, seeds)
        self._lines = [f"shown {_numbers(turn)}"]
        return turn

    def act(self, actions: object) -> RecallTurn:
        """Play one step in all episodes: an answer at a question, or the action for no answer.

        Raises:
            IcyError: before the first reset, or actions with the wrong shape.
        """
        given = whole_actions(actions, (self.task.episodes,))
        turn = self.task.step(given)
        if self.render_mode is not None:
            self._describe(turn, int(given[0]))
        return turn

    def _describe(self, turn: RecallTurn, action: int) -> None:
        over = bool(turn.done[0])
        if turn.asked[0] == ASKED and not over:
            self._lines.append(f"asked {_numbers(turn)}")
        else:
            result = "right" if turn.result[0] == SUCCESS else "wrong"
            self._lines.append(f"answered {action}, {result}" + ("" if over else f"; shown {_numbers(turn)}"))

    def masks(self) -> Masks:
        """Return the action masks, [B, choices]; before the first reset, the masks of an episode's first step."""
        turn = self.task.turn
        asked = np.zeros(self.task.episodes, dtype=bool) if turn is None else (turn.asked == ASKED) & ~turn.done
        mask = np.repeat(asked[:, None], self.task.settings.most + 1, axis=1)
        mask[:, -1] = ~asked
        return mask.astype(np.int8)

    def observed(self) -> Observed:
        """Return observations, with a leading axis of episodes."""
        turn = self.task.turn
        assert turn is not None
        features: Arrays = {"stimulus": turn.stimulus, "step": turn.asked, "previous_result": turn.result}
        return self.form.of(features, self.masks())

    def infos(self) -> Arrays:
        """Return the infos, with a leading axis of episodes. The keys are the same at every step."""
        task = self.task
        infos: Arrays = {
            "action_mask": self.masks(),
            "illegal_actions": task.illegal.copy(),
            "accuracy": task.accuracy(),
            "first_accuracy": task.accuracy(0),
        }
        return infos | {"answer": task.answers} if self.latents else infos

    def render(self) -> Rendered:
        """Return the last step as text, or a picture of the last lines; None without a render mode."""
        if self.render_mode is None:
            return None
        return self._lines[-1] if self.render_mode == "ansi" else picture(self._lines)


def _numbers(turn: RecallTurn) -> str:
    return " ".join(f"{x:+.2f}" for x in turn.stimulus[0].tolist())


class RecallEnv(AgentEnv):
    """The recall task as an environment of Gymnasium; see the docstring of this module."""

    def __init__(self, settings: RecallSettings | None = None, **given: Unpack[RecallEnvOptions]) -> None:
        super().__init__(RecallAdapter(settings, **given))


class RecallVectorEnv(AgentVectorEnv):
    """Many recall tasks in one batch, without rendering; see the docstring of this module."""

    metadata = {**AgentVectorEnv.metadata, "render_modes": []}  # noqa: RUF012

    def __init__(
        self, num_envs: int = 1, settings: RecallSettings | None = None, **given: Unpack[RecallEnvOptions]
    ) -> None:
        super().__init__(RecallAdapter(settings, num_envs, True, **given), num_envs)
