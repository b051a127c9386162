"""R2D2 (Kapturowski et al. 2019), the learner of the papers: Q-learning from a replay buffer of sequences.

If both players learn, their values are summed (VDN; Sunehag et al. 2018), and each may see the other's greedy choice
(SAD). Actors step in lockstep; each plays one episode after another.
"""

from abc import abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.errors import IncompatibleError, InvalidSettingError, require_known
from icy.core.fields import check_fields, setting
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.core.streams import stream_key
from icy.core.surroundings import no_subnormals
from icy.s2b.agents.cores.core import Device
from icy.s2b.agents.networks.network import (
    Network,
    NetworkPlayer,
    NetworkSettings,
    ReconstructionHead,
    ReconstructionSettings,
    linked,
)
from icy.s2b.agents.networks.observations import Actions, Observation
from icy.s2b.agents.training import AgentTraining, GameTraining, first_episode
from icy.s2b.episode_streams import SavedState
from icy.s2b.evaluation import evaluate
from icy.s2b.game import BatchedGame, Turn
from icy.s2b.players.interface import Player, seated
from icy.s2b.settings import GameSettings, Sizes

from .agent import Agent, Flags, OfSteps, Replay, Sequences, mixed_priority

# -- settings of R2D2: how an agent plays, stores and learns, with the presets of the papers ---------------------------


@dataclass(frozen=True, kw_only=True)
class R2D2Settings:
    """Settings of R2D2. Defaults are from MetaRG22 where it gives them.

    Attributes:
        network: settings of the networks.
        players: the players that learn: "listener" or "both".
        shared: whether both players share one network. The network gets the role as input, and has the options of both
            players.
        sad: whether each player sees the other's greedy choice, if both learn.
        speaker: name of the speaker if only the listener learns; this speaker must not have a memory.
        reconstruction: settings of the reconstruction loss; None to train without it.
        observations: length of the training in observations: steps, summed over all episodes.
        observations_per_update: number of observations from one update to the next.
        learning_starts: number of observations before the first update.
        actors: number of episodes that are played at once.
        length: number of steps of a sequence, including the burn-in.
        overlap: number of steps that consecutive sequences share.
        burn_in: number of steps at the start of a sequence that only update the core's state.
        steps: number of rewards in a target, n.
        capacity: capacity of the replay buffer in observations.
        batch: number of sequences in an update.
        priority: exponent of priorities.
        importance: exponent of importance weights.
        eta: weight of a sequence's highest error in its priority; the mean error has weight 1 - eta.
        discount: discount of later rewards.
        double: double Q-learning: the network selects the next option, and the target network gives its value.
        greedy: the options that this selection considers: "legal": legal options only; "raw": all options, as in the
            authors' program.
        tail: treatment of steps with fewer than n following rewards in their sequence: "masked": left out; "short":
            their targets have fewer rewards. A sequence's last step is always left out.
        learning_rate: learning rate of Adam.
        adam_epsilon: epsilon of Adam.
        max_grad_norm: largest norm of a gradient.
        target: update of the target network: "hard": a copy every `target_interval` updates; "soft": a step towards the
            network by 1 / `target_interval` at every update.
        target_interval: number of updates, see `target`.
        epsilon: probability x with which the first actor explores. Actor i of A explores with probability
            x^(1 + e i / (A - 1)).
        explore_exponent: the exponent e in this probability.

    Raises:
        UnknownNameError, InvalidSettingError: settings that are not accepted.
    """

    old_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"rate": "learning_rate", "least": "learning_starts", "explore": "epsilon", "clip": "max_grad_norm"}
    )

    network: NetworkSettings = field(default_factory=NetworkSettings)
    players: Literal["listener", "both"] = setting("listener", "players that learn")
    shared: bool = True
    sad: bool = False
    speaker: str = "posdis"
    reconstruction: ReconstructionSettings | None = None
    observations: int = setting(5_000_000, least=1)
    observations_per_update: int = setting(320, least=1)
    learning_starts: int = setting(2_000, least=0)
    actors: int = setting(32, least=1)
    length: int = 20
    overlap: int = setting(10, least=0)
    burn_in: int = setting(10, least=0)
    steps: int = setting(3, least=1)
    capacity: int = 50_000
    batch: int = setting(32, least=1)
    priority: float = setting(0.9, least=0)
    importance: float = setting(0.6, least=0)
    eta: float = setting(0.9, least=0, most=1)
    discount: float = setting(0.997, least=0, most=1)
    double: bool = True
    greedy: Literal["legal", "raw"] = setting("legal", "greedy option")
    tail: Literal["masked", "short"] = setting("masked", "tail of sequences")
    learning_rate: float = setting(6.25e-5, above=0)
    adam_epsilon: float = setting(1e-12, above=0)
    max_grad_norm: float = setting(5.0, above=0)
    target: Literal["hard", "soft"] = setting("hard", "update of target networks")
    target_interval: int = setting(2_500, least=1)
    epsilon: float = setting(0.4, least=0, most=1)
    explore_exponent: float = setting(7.0, least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.players == LISTENER:
            registry.get(self.speaker, SPEAKER)
            if self.sad:
                raise InvalidSettingError("sad needs a speaker that learns; take players='both' or sad=False.")
        if not self.burn_in < self.length - 1:
            raise InvalidSettingError(
                f"A burn-in of {self.burn_in} leaves no step to learn from in a sequence of {self.length} steps; take "
                "a shorter burn_in, or a longer length."
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "R2D2Settings":
        """Return the settings of a preset, with changes.

        Args:
            name: "metarg22" or "metarg24": as printed in both papers; "near32": as in the authors' later program.
            **changes: settings by name.

        Raises:
            UnknownNameError: no preset has this name.

        Example:
            >>> from icy.s2b.agents.r2d2.r2d2_learning import R2D2Settings
            >>> later = R2D2Settings.preset("near32", observations=500_000)
            >>> later.length, later.burn_in, later.steps, later.network.core
            (40, 20, 7, 'LSTM-512')
        """
        require_known("preset of R2D2", name, PRESETS)
        return replace(PRESETS[name], **changes)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that learn."""
        return (SPEAKER, LISTENER) if self.players == "both" else (LISTENER,)

    @property
    def first_update(self) -> int:
        """Number of observations before the first update."""
        return max(self.learning_starts, self.length * self.actors)

    @property
    def updates(self) -> int:
        """Number of updates."""
        return max(0, (self.observations - self.first_update) // self.observations_per_update + 1)


PRESETS: Mapping[str, R2D2Settings] = {
    "metarg22": R2D2Settings(),
    "metarg24": R2D2Settings(),
    "near32": R2D2Settings(
        network=NetworkSettings.preset("near32"),
        length=40,
        overlap=20,
        burn_in=20,
        steps=7,
        capacity=10_000,
        batch=64,
        greedy="raw",
        target="soft",
        explore_exponent=2.0,
    ),
}


class R2D2(AgentTraining):
    """Training by R2D2 from any source of turns. A subclass creates the source, and plays and evaluates it.

    Args:
        game: settings of the source of turns.
        sizes: sizes of observations and actions.
        settings: settings of the training.
        seed: seed of weights, episodes and random choices.
        device: torch device of the networks; games and the replay buffer stay on the CPU.

    Attributes:
        agents: the networks that learn, with their actors.
        players: greedy players with these networks, linked with each other: the speaker if it learns, then the
            listener.
    """

    settings: R2D2Settings

    def __init__(
        self, game: Any, sizes: GameSettings | Sizes, settings: R2D2Settings, seed: int = 0, device: Device = None
    ) -> None:
        self.game, self.practice, self.sizes, self.settings, self.seed = game, game, sizes, settings, seed
        self.updates = self._steps = 0
        s = self.settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_key(seed, "weights") % 2**63)
            self.agents = self._agents(device)
            if s.reconstruction is not None:
                for agent in self.agents:
                    width = agent.network.core.latent_width
                    agent.predictor = ReconstructionHead(width, sizes, s.reconstruction).to(device)
        self.players = [NetworkPlayer(a.network, role, a.predictor) for a in self.agents for role in a.roles]
        if len(self.players) == 2:
            linked(*self.players)
        self.weights = [w for a in self.agents for w in a.network.parameters()]
        self.weights += [w for a in self.agents if a.predictor is not None for w in a.predictor.parameters()]
        self.optimizer = torch.optim.Adam(self.weights, s.learning_rate, eps=s.adam_epsilon)
        self.random = torch.Generator().manual_seed(stream_key(seed, "choices") % 2**63)
        self.replay = Replay(s.actors, s.capacity, s.length, s.overlap, s.priority, s.importance)
        place = torch.arange(s.actors) / max(s.actors - 1, 1)
        self._exploring = s.epsilon ** (1 + s.explore_exponent * place)
        self._greedy: dict[str, Tensor] = {}  # greedy choices of the previous step, by role, with `sad`
        self._batched = self._make_source()
        first = first_episode(seed)
        self._turn = self._batched.reset(seeds=range(first, first + s.actors))

    @abstractmethod
    def _make_source(self) -> Any:
        """Create the source of turns, with autoreset."""

    @abstractmethod
    def _play(self, turn: Any) -> Any:
        """Play the agents' choices at a turn, and return the next turn."""

    def _agents(self, device: Device) -> list[Agent]:
        s, roles = self.settings, self.settings.roles
        together = s.shared and len(roles) > 1
        actions = {r: Actions(self.sizes, "both") if together else Actions.of_role(self.sizes, r) for r in roles}
        partner = {r: actions[LISTENER if r == SPEAKER else SPEAKER] for r in roles} if s.sad else {}
        agents = []
        for group in [roles] if together else [(role,) for role in roles]:
            settings = replace(s.network, extra=partner[group[0]].shared_width) if partner else s.network
            network = Network(actions[group[0]], settings).to(device)
            agents.append(Agent(network, group, s.actors, partner))
        return agents

    # -- interface of trainings ----------------------------------------------------------------------------------------

    @property
    def observations(self) -> int:
        """Number of observations so far."""
        return self._steps * self.settings.actors

    def update(self) -> float:
        """Play until the next update is due, make it, and return the loss of the values."""
        s = self.settings
        while self.observations < s.first_update + self.updates * s.observations_per_update:
            self.step()
        return self.learn()

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks by role, as in "speaker_listener" for a shared network."""
        return {"_".join(agent.roles): agent.network for agent in self.agents}

    def state(self) -> SavedState:
        """Return the state to resume from: weights, optimizer, replay buffer, counters, generators and games."""
        state = {
            "settings": self._describe(),
            "updates": self.updates,
            "steps": self._steps,
            "agents": [agent.saved_state() for agent in self.agents],
            "predictors": [{} if a.predictor is None else a.predictor.state_dict() for a in self.agents],
            "optimiser": self.optimizer.state_dict(),
            "replay": self.replay.state(),
            "random": self.random.get_state(),
            "greedy": dict(self._greedy),
            "game": self._batched.state(),
        }
        return deepcopy(state)  # which does not change when training continues

    def load(self, state: SavedState) -> None:
        """Resume from the state of a training with the same settings.

        Raises:
            IncompatibleError: the state is from a training with other settings, another game or another seed.
        """
        if state["settings"] != self._describe():
            raise IncompatibleError("The state is from a training with other settings; this training cannot resume it.")
        self.updates, self._steps = state["updates"], state["steps"]
        for agent, saved, weights in zip(self.agents, state["agents"], state["predictors"], strict=True):
            agent.load(saved)
            if agent.predictor is not None:
                agent.predictor.load_state_dict(weights)
        self.optimizer.load_state_dict(state["optimiser"])
        self.replay.load(state["replay"])
        self.random.set_state(state["random"])
        self._greedy = dict(state["greedy"])
        self._turn = self._batched.load(state["game"])

    def _describe(self) -> str:
        return f"{self.game} {self.settings} {self.seed}"

    # -- acting --------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Play one step in all actors, and record it in the replay buffer."""
        turn, keep = self._turn, self.replay.begins
        shape = len(self.settings.roles), self.settings.actors
        explores = torch.rand(shape, generator=self.random, dtype=torch.float32, device="cpu") < self._exploring
        recorded: dict[str, Tensor] = {}
        states: dict[str, Tensor] = {}
        for agent, some in zip(self.agents, explores.split([len(a.roles) for a in self.agents]), strict=True):
            step, before = agent.act(turn, self._greedy, some, self.random, keep)
            recorded, states = {**recorded, **step}, {**states, **before}
        if self.settings.sad:
            self._greedy = {role: choice for agent in self.agents for role, choice in agent.greedy.items()}
        self._turn = self._play(turn)
        self._steps += 1
        recorded |= {
            "gained": torch.as_tensor(self._turn.reward),
            "ends": torch.as_tensor(self._turn.done | turn.done),
            "counts": torch.as_tensor(~turn.done),  # the game ignores choices after the end of an episode
        }
        self.replay.add(recorded, states if keep else None)

    # -- learning ------------------------------------------------------------------------------------------------------

    @no_subnormals()
    def learn(self) -> float:
        """Make one update on sequences from the replay buffer, and return the loss of the values."""
        drawn = self.replay.draw(self.settings.batch, self.random)
        errors, counted, others = self._errors(drawn)
        weighed = 0.5 * drawn.weights.to(errors.device) * counted * errors.square()
        loss = weighed.mean()
        self.optimizer.zero_grad()
        (loss + sum(others)).backward()
        nn.utils.clip_grad_norm_(self.weights, self.settings.max_grad_norm)
        self.optimizer.step()
        self.replay.set_priorities(drawn.places, mixed_priority(errors.detach(), counted, self.settings.eta))
        self.updates += 1
        self._follow()
        return float(loss.detach())

    def _errors(self, drawn: Sequences) -> tuple[OfSteps, Flags, list[Tensor]]:
        """Return the TD errors of the players' summed values, a mask of the errors that count, and other losses."""
        s, burn = self.settings, self.settings.burn_in
        device = self.agents[0].device
        gained, ends, counts = (drawn.steps[name][burn:].to(device) for name in ("gained", "ends", "counts"))
        values, worth, others = torch.zeros_like(gained), torch.zeros_like(gained), []
        for agent in self.agents:
            predictor = agent.predictor
            seen, scores, latents, targets = self._unroll(agent, drawn)
            chosen = agent.choices(drawn.steps)[burn:]
            values = values + _summed(agent, scores.gather(-1, chosen)[..., 0])
            legal = seen.legal if s.greedy == "legal" else torch.ones_like(seen.legal)
            best = agent.actions.best(scores if s.double else targets, legal)
            worth = worth + _summed(agent, targets.gather(-1, best)[..., 0])
            if predictor is not None and self.updates % predictor.settings.period == 0:
                others.append(predictor.loss(latents, seen, counts.repeat(1, len(agent.roles))))
        # Each player gets the reward, and the target is the sum over the players.
        targets = n_step_targets(gained * len(s.roles), ends, worth, s.steps, s.discount)
        counted = counts & complete_targets(ends, s.steps if s.tail == "masked" else 1)
        return targets - values, counted, others

    def _unroll(self, agent: Agent, drawn: Sequences) -> tuple[Observation, Tensor, Tensor, Tensor]:
        """Run an agent's networks over sequences, from the recorded states.

        Returns:
            After the burn-in: the observations, the scores, the latents of the core, and the target network's scores.
        """
        seen, start, burn = agent.observation(drawn.steps), agent.states(drawn.states), self.settings.burn_in
        with torch.no_grad():
            state = agent.network.unroll(seen[:burn], start)[1] if burn else start
            (targets, _), _ = agent.target.unroll(seen, start)
        (scores, _), latents, _ = agent.network.trace(seen[burn:], state)
        return seen[burn:], scores, latents, targets[burn:]

    @torch.no_grad()
    def _follow(self) -> None:
        """Update the target networks, if they are due."""
        soft = self.settings.target == "soft"
        if not soft and self.updates % self.settings.target_interval:
            return
        share = 1 / self.settings.target_interval if soft else 1.0
        for agent in self.agents:
            pairs = zip(agent.target.parameters(), agent.network.parameters(), strict=True)
            for target, weight in pairs:
                target.lerp_(weight, share)


class R2D2Learning(R2D2, GameTraining):
    """Training of the listener of the referential game, or of both players, by R2D2.

    Args:
        game: settings of the game.
        settings: settings of the training.
        seed: seed of weights, episodes and random choices.
        device: torch device of the networks; games and the replay buffer stay on the CPU.

    Example:
        >>> from icy.s2b import GameSettings
        >>> from icy.s2b.agents.r2d2.r2d2_learning import R2D2Learning, R2D2Settings
        >>> few = {"actors": 2, "learning_starts": 0, "observations": 100, "observations_per_update": 10}
        >>> settings = R2D2Settings.preset("near32", **few)
        >>> learning = R2D2Learning(GameSettings(most=2), settings)
        >>> loss = learning.run(2)
        >>> learning.updates, learning.observations, learning.total
        (2, 90, 3)
    """

    def __init__(
        self, game: GameSettings, settings: R2D2Settings | None = None, seed: int = 0, device: Device = None
    ) -> None:
        super().__init__(game, game, settings or R2D2Settings(), seed, device)
        s = self.settings
        # The speaker that does not learn, if there is one.
        self._beside = seated(s.speaker, SPEAKER, self._batched) if s.players == LISTENER else None

    def _make_source(self) -> BatchedGame:
        return BatchedGame(self.game, episodes=self.settings.actors, autoreset=True)

    def _play(self, turn: Turn) -> Turn:
        taken = {role: a.actions.taken(chosen.numpy()) for a in self.agents for role, chosen in a.chosen.items()}
        answered, decided = taken[LISTENER]
        said = taken[SPEAKER][0] if self._beside is None else self._beside.act(turn.speaker).message
        turn = self._batched.step(said, decided, answered if self.game.listener_messages else None)
        return turn

    def listener(self) -> NetworkPlayer:
        """Return the listener as a player. It shares its weights with the training, so further updates change it."""
        return self.players[-1]

    def speaker(self) -> str | Player:
        """Return the speaker: the player that learns, or the name of a speaker that does not learn."""
        return self.settings.speaker if self.settings.players == LISTENER else self.players[0]

    def read(self, episodes: int = 200, seed: int = 123, game: GameSettings | None = None) -> dict[str, float]:
        """Evaluate the best decisions: `zsct` and `support`; see `AgentTraining`.

        With a reconstruction loss, also return `reconstructed`, the fraction of the listener's stimulus components
        that the reconstruction head predicts from the core's state.
        """
        listener = self.listener()
        table = evaluate(self.speaker(), listener, game or self.game, episodes=episodes, seeds=[seed]).table()
        scores = {name: float(table[name].mean()) for name in ("zsct", "support")}
        if self.settings.reconstruction is not None:
            scores["reconstructed"] = listener.reconstructed
        return scores

    def state(self) -> SavedState:
        """Return the state to resume from."""
        return super().state() | {"beside": 0 if self._beside is None else self._beside.steps}

    def load(self, state: SavedState) -> None:
        """Resume from the state of a training with the same settings; see `R2D2.load`."""
        super().load(state)
        if self._beside is not None:
            self._beside.steps = state["beside"]


def _summed(agent: Agent, values: Float[Tensor, "step rows"]) -> OfSteps:
    """Sum values over the roles of an agent."""
    by_role: Tensor = values.unflatten(1, (len(agent.roles), -1))
    return by_role.sum(1)


def n_step_targets(rewards: OfSteps, ends: Flags, worth: OfSteps, steps: int, discount: float) -> OfSteps:
    """Return n-step targets: the discounted sum of the next n rewards and the value of the state after them.

    The sum ends with the episode. Near the end of a sequence, it has fewer rewards and then the value of the sequence's
    last state. The target of the last step is its own value, unless an episode ends there.

    Args:
        rewards: reward of the action of each step.
        ends: whether the episode ends with the action of each step.
        worth: value of the state of each step.
        steps: number of rewards, n.
        discount: discount of later rewards.
    """
    targets = worth
    for _ in range(steps):
        later = torch.cat([rewards[:-1] + discount * targets[1:] * ~ends[:-1], worth[-1:]])
        targets = torch.where(ends, rewards, later)
    return targets


def complete_targets(ends: Flags, steps: int) -> Flags:
    """Return a mask of steps that are followed by `steps` rewards, or by the episode's end, in their sequence."""
    complete = torch.ones_like(ends)
    for _ in range(steps):
        complete = ends | torch.cat([complete[1:], torch.zeros_like(complete[:1])])
    return complete
