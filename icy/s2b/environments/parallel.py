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
From one episode to the next, agents can only reuse how to learn: how to bind tokens to values within an episode, and
how to recombine them.

### Observation space

Each agent observes a dictionary:

| Key               | Space                         | Meaning                                                       |
|-------------------|-------------------------------|---------------------------------------------------------------|
| `stimulus`        | Box, (slots * W,)             | numbers of the stimuli it sees; the speaker's target first    |
| `message`         | MultiBinary(L * (V + 1))      | tokens heard; the speaker's own if the listener sends none    |
| `role`            | Discrete(2)                   | 0 speaker, 1 listener                                         |
| `phase`           | Discrete(2)                   | 0 support, 1 query                                            |
| `round`           | Discrete(N + 2)               | 0..N; N + 1 when the listener sees the speaker's stimuli      |
| `previous_result` | Discrete(3)                   | result of the previous game: 0 none, 1 failure, 2 success     |
| `previous_reward` | Box, (1,)                     | reward of the previous game                                   |

`observations="box"`: one float32 Box with the same features in a row, in the layout of `gymnasium.spaces.flatten`.
`observe_mask=True` adds the action mask: as one more key of the dictionary, or with `"box"` as
`{"observation": row, "action_mask": mask}`, the layout of PettingZoo's own games.

### Action space

`actions="factored"` (default): `[decision, token, ..., token]`, the same for both agents. `"flat"`: one number,
`decision * sentences + sentence`, the last for no action. `"role"`: the speaker's tokens, the listener's decision.
Token 0 ends a message; decision K + 1 says that the listener does not see the target's meaning.

The action mask is one row of int8: the choices of the decision, then the choices of each token; in the flat form one
number per action. `action_space(agent).sample(mask=mask)` takes it. `action_masks(agent)` returns it too, and before
the first reset the mask of an episode's first step. Messages are legal at rounds 0..N - 1, the listener's only with
`listener_messages`; decisions at round N. Illegal actions are ignored and counted.

### Infos

Every reset and every step returns these infos. None of them is NaN:

| Key                | Meaning                                                                                       |
|--------------------|-----------------------------------------------------------------------------------------------|
| `action_mask`      | legal actions of the agent                                                                    |
| `game`             | number of the current game in its episode, from 0                                             |
| `illegal_actions`  | number of illegal actions of the agent in this episode                                        |
| `zsct`             | zero-shot compositional test accuracy: share of right decisions in the query                  |
| `support_accuracy` | share of right decisions in the support                                                       |
| `yes_rate`         | share of query games in which the listener said that it saw the target's meaning              |

Scores cover the episode so far. They are -1 before the first game of their phase, and final when the episode ends.

### Seeds

`reset(seed=...)` takes whole numbers from 0 to `2**64 - 1`. Without a seed it begins the next episode of the last seed,
and at the first reset an episode of a random seed.

### Rewards

Both agents receive 1 for a right decision; for a wrong decision, 0 in the support and -2 in the query.

### Arguments

``` python
icy.s2b.parallel_env(
    actions="factored", messages="one-hot", latents=False, observations="dict", observe_mask=False, render_mode=None,
    shots=1, samples=1, ...
)
```

`actions`: the form of actions. `messages="tokens"`: agents observe a message as its tokens, MultiDiscrete([V + 1] * L),
instead of a one-hot block per token. `latents=True` adds hidden facts to the infos: meanings, numbers of values, the
right decision. `observations` and `observe_mask`: the form of observations, see above. All others are settings, see
`icy.s2b.GameSettings`; `compat="near32"` takes the choices of the authors' program.

### Version history

* v0: first release
"""

from collections.abc import Mapping
from typing import ClassVar, Unpack

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from jaxtyping import Float32
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from icy.core.errors import IcyError, InvalidSettingError, quoted, require_known
from icy.core.registry import LISTENER, PLAYERS
from icy.s2b.episode_streams import checked_seed
from icy.s2b.options import ParallelOptions
from icy.s2b.settings import GameSettings

from .adapter import METADATA, GameAdapter, Rendered
from .spaces import Infos, Mask, OneObserved, Space, checked_options, flat_space, flattened, one_of

API_TEST_OPTIONS = ("options",)  # PettingZoo's API tests call reset(options={"options": 1})


Outcome = tuple[dict[str, OneObserved], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Infos]]


class MetaReferentialGame(ParallelEnv):  # type: ignore[misc]
    """The game as a parallel environment of PettingZoo; see the docstring of this module, and `parallel_env`."""

    metadata: ClassVar[Infos] = {**METADATA, "name": "meta_referential_game_v0"}

    def __init__(self, settings: GameSettings | None = None, **given: Unpack[ParallelOptions]) -> None:
        self.adapter = GameAdapter(settings, **given)
        self.render_mode = self.adapter.render_mode
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        self._action_spaces = {player: self.adapter.actions[player].space for player in PLAYERS}
        parts = [flat_space(self.adapter.features[player]) for player in PLAYERS]
        low, high = (np.concatenate([getattr(part, end) for part in parts]) for end in ("low", "high"))
        self.state_space = spaces.Box(low, high, dtype=np.float32)
        self.np_random, _ = seeding.np_random(0)  # for wrappers that draw from it, such as SuperSuit's frame_skip

    def observation_space(self, agent: str) -> Space:
        """Return the agent's observation space, described above.

        Raises:
            UnknownNameError: an unknown agent.
        """
        return self.adapter.forms[_agent(agent)].space

    def action_space(self, agent: str) -> Space:
        """Return the agent's action space, described above.

        Raises:
            UnknownNameError: an unknown agent.
        """
        return self._action_spaces[_agent(agent)]

    def reset(
        self, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, OneObserved], dict[str, Infos]]:
        """Begin the first episode of a seed, or without a seed the next episode.

        Raises:
            InvalidSettingError: the seed is not a whole number from 0 to 2**64 - 1, or options are given.
        """
        checked_options(options, API_TEST_OPTIONS)
        self.adapter.reset(seed)
        if seed is not None:
            self.np_random, _ = seeding.np_random(checked_seed(seed))
        self.agents = list(PLAYERS)
        return self._observations(), self._infos()

    def step(self, actions: dict[str, object]) -> Outcome:
        """Play one step with the agents' actions. An agent without an action does nothing.

        Raises:
            IcyError: the episode is over, or has not begun.
            UnknownNameError: an action of an unknown agent.
            InvalidSettingError: `actions` is not a dictionary, or an action has the wrong shape.
        """
        if self.adapter.game.begun and not self.agents and not actions:
            return {}, {}, {}, {}, {}  # as in PettingZoo's environments; SuperSuit's black_death relies on it
        if not self.agents:
            raise IcyError("The episode is over, or has not begun; call reset() first.")
        if not isinstance(actions, Mapping):
            raise InvalidSettingError(f"step() takes a dictionary of an action per agent, not {quoted(actions)}.")
        for agent in actions:
            _agent(agent)
        given = {p: [actions[p]] if p in actions else self.adapter.nothing(p) for p in PLAYERS}
        turn = self.adapter.step(given)
        over, reward = bool(turn.done[0]), float(turn.reward[0])
        self.agents = [] if over else list(PLAYERS)
        rewards, ended = dict.fromkeys(PLAYERS, reward), dict.fromkeys(PLAYERS, over)
        return self._observations(), rewards, ended, dict.fromkeys(PLAYERS, False), self._infos()

    def state(self) -> Float32[NDArray[np.float32], " number"]:
        """Return the observations of both agents as one row, for centralized training."""
        features = self.adapter.features
        return np.concatenate([flattened(features[p], self.adapter.features_of(p))[0] for p in PLAYERS])

    def action_masks(self, agent: str = LISTENER) -> Mask:
        """Return the action mask of an agent as one row.

        Before the first reset, this is the mask of an episode's first step.

        Raises:
            UnknownNameError: an unknown agent.
        """
        return np.asarray(self.adapter.masks(_agent(agent))[0].copy())

    def render(self) -> Rendered:
        """Return the last step as text ("ansi"), or a picture of the last lines ("rgb_array")."""
        return self.adapter.render()

    def close(self) -> None:
        """Do nothing: the environment has no resources to close."""

    def _observations(self) -> dict[str, OneObserved]:
        return {player: one_of(self.adapter.observed(player)) for player in PLAYERS}

    def _infos(self) -> dict[str, Infos]:
        return {player: one_of(self.adapter.infos(player)) for player in PLAYERS}


def _agent(name: object) -> str:
    require_known("agent", name, PLAYERS)
    return str(name)


def parallel_env(settings: GameSettings | None = None, **given: Unpack[ParallelOptions]) -> MetaReferentialGame:
    """Create the meta-referential game as a parallel environment of PettingZoo.

    Args:
        settings: settings of the game; or give them by name.
        **given: `actions`, `messages`, `latents`, `observations`, `observe_mask`, `render_mode`, and settings by name;
            see this module's docstring.

    Returns:
        The environment, with the agents "speaker" and "listener".

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
