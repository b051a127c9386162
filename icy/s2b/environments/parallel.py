"""
# Meta-referential game

| Import             | `from icy.s2b import parallel_env`                                          |
|--------------------|-----------------------------------------------------------------------------|
| Creation           | `pettingzoo.make("parallel", "s2b/meta_referential_game-v0")`               |
| Actions            | Discrete                                                                    |
| Parallel API       | Yes                                                                         |
| Manual Control     | Yes, `icy s2b play`                                                         |
| Agents             | `agents = ['speaker', 'listener']`                                          |
| Number of agents   | 2                                                                           |
| Action Shape       | `(1 + L,)` factored, `()` flat                                              |
| Action Values      | decision in [0, K + 1], tokens in [0, V]; flat: [0, decisions * sentences]  |
| Observation Shape  | a dictionary, see below                                                     |
| Observation Values | stimuli in [-1, 1]                                                          |
| State Shape        | both observations, flattened                                                |
| State Values       | (-2, 1)                                                                     |

A speaker and a listener play referential games about stimuli without knowing their meanings (MetaRG22, MetaRG24). Every
episode has its own symbolic space, of N dimensions with varying numbers of values, and its own vocabulary. The support
phase shows every value at least S times; the query phase asks for combinations of values that the support never showed.
All that agents can carry from one episode to the next is how to learn: how to bind tokens to values within an episode,
and how to recombine them.

### Observation space

Each agent observes a dictionary:

| Key               | Space                         | Meaning                                                       |
|-------------------|-------------------------------|---------------------------------------------------------------|
| `stimulus`        | Box, (slots * W,)             | numbers of the stimuli it sees; the speaker's target first    |
| `message`         | MultiBinary(L * (V + 1))      | tokens heard; the speaker's own if the listener sends none    |
| `role`            | Discrete(2)                   | 0 speaker, 1 listener                                         |
| `phase`           | Discrete(2)                   | 0 support, 1 query                                            |
| `round`           | Discrete(N + 2)               | 0..N; N + 1 when the listener sees what the speaker saw       |
| `previous_result` | Discrete(3)                   | result of the previous game: 0 none, 1 failure, 2 success     |
| `previous_reward` | Box, (1,)                     | reward of the previous game                                   |

### Action space

`actions="factored"` (default): `[decision, token, ..., token]`, the same for both agents. `"flat"`: one number,
`decision * sentences + sentence`, the last for no action. `"role"`: the speaker's tokens, the listener's decision.
Token 0 ends a message; decision K + 1 says that the listener does not see the target's meaning.

`infos[agent]["action_mask"]` holds the mask of legal actions in the form that the action space's `sample` takes;
`action_masks()` returns all choices in one row. Messages are legal at rounds 0..N - 1, the listener's only with
`listener_messages`; decisions at round N. Illegal actions are ignored and counted in
`infos[agent]["illegal_actions"]`.

### Rewards

Both agents receive 1 for a right decision; for a wrong one 0 in the support and -2 in the query.

### Arguments

``` python
icy.s2b.parallel_env(actions="factored", messages="one-hot", latents=False, render_mode=None, shots=1, samples=1, ...)
```

`actions`: the form of actions. `messages="tokens"`: agents observe a message as its tokens, MultiDiscrete([V + 1] * L),
instead of a one-hot block per token. `latents=True` adds to the infos what no agent sees: meanings, numbers of values,
the right decision. All other arguments are those of `icy.s2b.GameSettings`; `compat="near32"` takes those of the
authors' program.

### Version history

* v0: first release
"""

from typing import Any, ClassVar, Unpack

import numpy as np
from gymnasium import spaces
from jaxtyping import Float32
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from icy.core.errors import IcyError
from icy.core.registry import LISTENER, PLAYERS
from icy.s2b.options import GameOptions, ParallelOptions
from icy.s2b.settings import GameSettings

from .adapter import METADATA, GameAdapter
from .spaces import Mask, one_of

Observations = dict[str, dict[str, Any]]


class MetaReferentialGame(ParallelEnv):  # type: ignore[misc]
    """The game as a parallel environment of PettingZoo; see the docstring of this module, and `parallel_env`."""

    metadata: ClassVar[dict[str, Any]] = {**METADATA, "name": "meta_referential_game_v0"}

    def __init__(
        self,
        settings: GameSettings | None = None,
        *,
        actions: str = "factored",
        messages: str = "one-hot",
        latents: bool = False,
        render_mode: str | None = None,
        **given: Unpack[GameOptions],
    ) -> None:
        self.adapter = GameAdapter(GameSettings.of(settings, **given), 1, actions, messages, latents, render_mode)
        self.render_mode = render_mode
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        self._action_spaces = {player: self.adapter.actions[player].space for player in PLAYERS}
        parts = [spaces.flatten_space(self.adapter.spaces[player]) for player in PLAYERS]
        low, high = (np.concatenate([getattr(part, end) for part in parts]) for end in ("low", "high"))
        self.state_space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, described above."""
        return self.adapter.spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's action space, described above."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Begin the episode of a seed, or the next one."""
        self.adapter.reset(seed)
        self.agents = list(PLAYERS)
        return self._observations(), self._infos(over=False)

    def step(self, actions: dict[str, Any]) -> tuple[Any, ...]:
        """Let both agents act. An agent without an action does nothing.

        Raises:
            IcyError: the episode is over, or has not begun.
        """
        if not self.agents:
            raise IcyError("The episode is over, or has not begun; call reset() first.")
        given = {p: np.asarray(actions[p])[None] if p in actions else self.adapter.nothing(p) for p in PLAYERS}
        turn = self.adapter.step(given)
        over, reward = bool(turn.done[0]), float(turn.reward[0])
        self.agents = [] if over else list(PLAYERS)
        ended = dict.fromkeys(PLAYERS, over)
        return (
            self._observations(),
            dict.fromkeys(PLAYERS, reward),
            ended,
            dict.fromkeys(PLAYERS, False),
            self._infos(over),
        )

    def state(self) -> Float32[NDArray[np.float32], " number"]:
        """Return both agents' observations in one row, for centralised training."""
        seen = self._observations()
        parts = [np.asarray(spaces.flatten(self.adapter.spaces[player], seen[player])) for player in PLAYERS]
        return np.concatenate(parts).astype(np.float32)

    def action_masks(self, agent: str = LISTENER) -> Mask:
        """Return the legal choices of an agent, all in one row."""
        mask: NDArray[np.int8] = self.adapter.infos(agent)["action_mask"][0]
        return mask

    def render(self) -> Any:
        """Return the last step in words ("ansi"), or a picture of the last lines ("rgb_array")."""
        return self.adapter.render()

    def close(self) -> None:
        """Do nothing, as nothing is open."""

    def _observations(self) -> Observations:
        return {player: one_of(self.adapter.observed(player)) for player in PLAYERS}

    def _infos(self, over: bool) -> dict[str, dict[str, Any]]:
        found = {player: one_of(self.adapter.infos(player)) for player in PLAYERS}
        for player, info in found.items():
            info["action_mask"] = self.adapter.actions[player].sampling_mask(info["action_mask"])
            if over:
                info.update(one_of(self.adapter.scores()))
        return found


def parallel_env(settings: GameSettings | None = None, **given: Unpack[ParallelOptions]) -> MetaReferentialGame:
    """Create the meta-referential game as a parallel environment of PettingZoo.

    Args:
        settings: settings of the game; or give them by name.
        **given: `actions`, `messages`, `latents`, `render_mode`, and settings by name; see this module's docstring.

    Raises:
        IcyError: settings that are not accepted.

    Example:
        >>> from icy.s2b import parallel_env
        >>> env = parallel_env(shots=2)
        >>> observations, infos = env.reset(seed=1)
        >>> observations["listener"]["stimulus"].shape, env.action_space("speaker")
        ((3,), MultiDiscrete([2 7 7 7]))
    """
    return MetaReferentialGame(settings, **given)
