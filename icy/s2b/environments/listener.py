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
agent gives a decision at every step. It counts at round N and is ignored at other rounds. `messages`, `latents`,
`observations`, `observe_mask` and `render_mode` are as in the parallel game.

### Info

The infos of the parallel game, at every reset and step: `action_mask`, `game`, `illegal_actions`, `zsct`,
`support_accuracy` and `yes_rate`.

### Many at once

`gymnasium.make_vec("S2B/Listener-v0", num_envs=4096, vectorization_mode="vector_entry_point")` plays all episodes in
one batch; the step after an episode's end begins the next episode (`AutoresetMode.NEXT_STEP`). `reset(seed=...)` takes
the first of B consecutive seeds, or a list with one seed per environment. Infos are arrays over environments.

### Version history

* v0: first release
"""

from typing import Unpack

from icy.s2b.options import ParallelOptions
from icy.s2b.players.interface import Player
from icy.s2b.settings import GameSettings

from .adapter import GameAdapter
from .single_agent import AgentEnv, AgentVectorEnv


class ListenerEnv(AgentEnv):
    """The listener's game as an environment of Gymnasium; see the docstring of this module."""

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
    """Many games of the listener in one batch; see the docstring of this module."""

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
