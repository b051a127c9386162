"""Actors of R2D2: a network that plays one or both roles in many episodes, and the replay buffer of its steps."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from icy.core.errors import InvalidSettingError
from icy.core.registry import SPEAKER
from icy.s2b.agents.cores.core import State, begun
from icy.s2b.agents.networks.network import Network, ReconstructionHead
from icy.s2b.agents.networks.observations import NEVER, Actions, Observation, observe
from icy.s2b.episode_streams import SavedState
from icy.s2b.game import Turn
from icy.s2b.recall import RecallTurn

# -- prioritized replay buffer of sequences of steps, with the core's state at the start of each sequence --------------

# Each actor plays one episode after another, so its steps are a stream. In each stream, a sequence begins every
# `stride` steps and may continue across ends of episodes. A step is stored once, even if it belongs to several
# sequences.


LEAST = 1e-6  # lowest priority; a positive value lets every sequence be drawn

OfActors = Mapping[str, Shaped[Tensor, "actor ..."]]
OfSteps = Float[Tensor, "step batch"]
Flags = Bool[Tensor, "step batch"]


@dataclass(frozen=True, eq=False)
class Sequences:
    """A batch of sequences from a replay buffer.

    Attributes:
        steps: recorded data of the steps, by name, [T, B, ...].
        states: states of the core before the first step, by name, [B, ...].
        weights: importance weights with a maximum of 1, [B].
        places: indices of the sequences in the replay buffer, [B].
    """

    steps: dict[str, Shaped[Tensor, "step batch ..."]]
    states: dict[str, Shaped[Tensor, "batch ..."]]
    weights: Float[Tensor, " batch"]
    places: Int[Tensor, " batch"]


class Replay:
    """Replay buffer with the last steps of several actors, from which sequences are drawn by priority.

    Args:
        actors: number of actors, which step in lockstep.
        capacity: largest number of stored steps, summed over actors.
        length: number of steps of a sequence.
        overlap: number of steps that consecutive sequences share.
        priority: exponent of priorities.
        importance: exponent of importance weights.

    Attributes:
        stride: number of steps between the starts of consecutive sequences.
        count: number of steps that each actor has made.

    Raises:
        InvalidSettingError: the capacity is too small for a sequence of each actor, or the overlap is not less than the
            length.
    """

    def __init__(
        self, actors: int, capacity: int, length: int, overlap: int, priority: float = 0.9, importance: float = 0.6
    ) -> None:
        if not 0 <= overlap < length:
            raise InvalidSettingError(
                f"Sequences of {length} steps cannot overlap by {overlap}; take an overlap from 0 to {length - 1}."
            )
        self.actors, self.length, self.stride = actors, length, length - overlap
        self.priority, self.importance = priority, importance
        self.steps_per_actor = capacity // actors // self.stride * self.stride
        if self.steps_per_actor < length:
            raise InvalidSettingError(
                f"A replay buffer of {capacity:,} observations of {actors} actors has no room for sequences of "
                f"{length} steps; raise its capacity."
            )
        self.count = 0
        self._steps: dict[str, Tensor] = {}
        self._states: dict[str, Tensor] = {}
        # Priorities to the power `priority`.
        self._chances = torch.zeros(self.steps_per_actor // self.stride, actors, dtype=torch.float64, device="cpu")
        self._highest = 1.0  # highest priority so far

    @property
    def begins(self) -> bool:
        """Whether a sequence begins with the next step; `add` then needs states."""
        return self.count % self.stride == 0

    @property
    def ready(self) -> bool:
        """Whether the buffer has a complete sequence."""
        return self.count >= self.length

    def add(self, step: OfActors, states: OfActors | None = None) -> None:
        """Add a step of every actor. If the buffer is full, it replaces the oldest step.

        New sequences get the highest priority so far.

        Args:
            step: recorded data of the step, by name.
            states: states of the core before the step, by name, if a sequence begins with it.
        """
        place = self.count % self.steps_per_actor
        if states is not None:
            self._put(self._states, place // self.stride, len(self._chances), states)
            self._chances[place // self.stride] = 0
        self._put(self._steps, place, self.steps_per_actor, step)
        self.count += 1
        begun = self.count - self.length
        if begun >= 0 and begun % self.stride == 0:
            self._chances[begun % self.steps_per_actor // self.stride] = self._highest**self.priority

    def _put(self, into: dict[str, Tensor], place: int, room: int, values: OfActors) -> None:
        for name, value in values.items():
            if name not in into:
                into[name] = value.new_zeros(room, *value.shape)
            into[name][place] = value

    def draw(self, count: int, random: torch.Generator) -> Sequences:
        """Draw `count` sequences by priority, with replacement."""
        chances = self._chances.flatten()
        places = torch.multinomial(chances, count, replacement=True, generator=random)
        begun, actor = places // self.actors, places % self.actors
        weights = (int((chances > 0).sum()) * chances[places] / chances.sum()) ** -self.importance
        steps = (begun * self.stride + torch.arange(self.length, device="cpu")[:, None]) % self.steps_per_actor
        return Sequences(
            steps={name: value[steps, actor] for name, value in self._steps.items()},
            states={name: value[begun, actor] for name, value in self._states.items()},
            weights=(weights / weights.max()).float(),
            places=places,
        )

    def set_priorities(self, places: Int[Tensor, " batch"], priorities: Float[Tensor, " batch"]) -> None:
        """Set the priorities of the sequences at `places`, see `Sequences.places`."""
        clipped = priorities.detach().cpu().double().clamp(min=LEAST)
        self._highest = max(self._highest, float(clipped.max()))
        self._chances.view(-1)[places] = clipped**self.priority

    def state(self) -> SavedState:
        """Return the content and the priorities, for `load`. They are not copied."""
        held = {"chances": self._chances, "steps": self._steps, "states": self._states}
        return {"count": self.count, "highest": self._highest, **held}

    def load(self, state: SavedState) -> None:
        """Load the state of a replay buffer with the same settings."""
        self.count, self._highest = state["count"], state["highest"]
        self._chances, self._steps, self._states = (deepcopy(state[name]) for name in ("chances", "steps", "states"))


def mixed_priority(errors: OfSteps, counted: Flags, eta: float) -> Float[Tensor, " batch"]:
    """Return the priorities of sequences: eta * highest error + (1 - eta) * mean error (Kapturowski et al. 2019).

    Args:
        errors: temporal-difference errors, [T, B].
        counted: mask of the steps that count, [T, B].
        eta: weight of the highest error.
    """
    size = errors.abs() * counted
    mean = size.sum(0) / counted.sum(0).clamp(min=1)
    return eta * size.max(0).values + (1 - eta) * mean


# -- a network that plays one or both roles in many episodes at once, and records data for the replay buffer -----------


RECORDED_FIELDS = ("stimulus", "message", "query", "round", "result", "reward", "earned", "previous", "fresh")
Recorded = Mapping[str, Shaped[Tensor, "..."]]
Choices = Mapping[str, Int[Tensor, "episode 1"]]  # by role


class Agent:
    """A network that plays one or both roles in a batch of E episodes, and its target network.

    The names of recorded data begin with the role, as in "listener.message".

    Args:
        network: the network.
        roles: the roles to play.
        episodes: number of episodes, E.
        partner: for each role, the actions of the other role, if the network sees the other's greedy choices (SAD);
            otherwise empty.

    Attributes:
        chosen: the choices of the last step, by role.
        greedy: the best options at the last step, by role.
        predictor: head that reconstructs stimuli, if the training has this loss.
    """

    predictor: ReconstructionHead | None = None

    def __init__(self, network: Network, roles: Sequence[str], episodes: int, partner: Mapping[str, Actions]) -> None:
        self.network, self.roles, self.episodes, self.partner = network, tuple(roles), episodes, partner
        self.target = deepcopy(network).requires_grad_(False)
        self.actions = network.actions
        self.device = network.core.device  # of the networks; recorded data is on the CPU
        self.state = network.start(episodes * len(self.roles))
        self.chosen: Choices = dict.fromkeys(self.roles, self._never())
        self.greedy: Choices = {}
        silent = torch.zeros(episodes, self.actions.game.length, dtype=torch.long, device="cpu")
        self.last_messages = dict.fromkeys(self.roles, silent)

    def _never(self) -> Tensor:
        return torch.full((self.episodes, 1), NEVER, dtype=torch.int64, device="cpu")

    # -- acting --------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(
        self,
        turn: Turn | RecallTurn,
        greedy: Choices,
        explores: Bool[Tensor, "role episode"],
        random: torch.Generator,
        keep: bool,
    ) -> tuple[Recorded, Recorded]:
        """Choose an option for every role and episode: the best, or a random legal option to explore.

        Return the data of the step for the replay buffer, and the core's states before the step, by name.

        Args:
            turn: the observations.
            greedy: the greedy choices of the previous step, by role.
            explores: mask of exploring choices, [roles, E].
            random: generator for exploration.
            keep: whether to return these states; otherwise they are empty.
        """
        by_role = {role: self._observe(turn, role, greedy) for role in self.roles}
        seen = _side_by_side(list(by_role.values()))
        if seen.fresh.any():
            self.state = begun(self.state, self.network.start(len(seen.fresh)), seen.fresh.to(self.device))
        states = {}
        if keep:
            parts = [self._by_role(part.cpu()) for part in self.state]
            states = {f"{role}.{i}": part[role] for i, part in enumerate(parts) for role in self.roles}
        (scores, _), self.state = self.network.step(seen.on(self.device), self.state)
        best = self.actions.best(scores.cpu(), seen.legal)
        chosen, where = best.clone(), explores.flatten()
        if where.any():
            chosen[where] = torch.multinomial(seen.legal[where].float(), 1, generator=random)
        recorded: dict[str, Tensor] = {}
        for role, own in by_role.items():
            recorded |= {f"{role}.{name}": getattr(own, name) for name in RECORDED_FIELDS}
            at = turn.seen_by(role)
            legal = {"speak": at.may_speak, "decide": at.may_decide}
            recorded |= {f"{role}.{name}": torch.as_tensor(mask) for name, mask in legal.items()}
            if self.partner:
                recorded[f"{role}.told"] = self._partner_choice(role, greedy).masked_fill(own.fresh[:, None], NEVER)
        self.chosen, self.greedy = self._by_role(chosen), self._by_role(best)
        self.last_messages = {role: own.message for role, own in by_role.items()}
        recorded |= {f"{role}.chosen": value for role, value in self.chosen.items()}
        return recorded, states

    def _observe(self, turn: Turn | RecallTurn, role: str, greedy: Choices) -> Observation:
        extra = self.partner[role].shared(self._partner_choice(role, greedy)) if self.partner else None
        last_message = self.last_messages[role] if self.network.settings.hold else None
        return observe(
            turn.seen_by(role), role, self.actions, self.chosen[role], turn.reward, extra, last_message=last_message
        )

    def _partner_choice(self, role: str, greedy: Choices) -> Tensor:
        """Return the other role's greedy choice at the previous step."""
        others = [choice for name, choice in greedy.items() if name != role]
        return others[0] if others else self._never()

    def _by_role(self, values: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.roles, values.split(self.episodes), strict=True))

    # -- learning ------------------------------------------------------------------------------------------------------

    def observation(self, steps: Recorded) -> Observation:
        """Return the observations of recorded steps, with the roles concatenated, [T, roles * B]."""
        return _side_by_side([self._recorded(steps, role) for role in self.roles]).on(self.device)

    def _recorded(self, steps: Recorded, role: str) -> Observation:
        here = {name: steps[f"{role}.{name}"] for name in RECORDED_FIELDS}
        extra = torch.zeros(*here["fresh"].shape, 0, dtype=torch.float32, device="cpu")
        if self.partner:
            extra = self.partner[role].shared(steps[f"{role}.told"])
        legal = self.actions.legal_where(steps[f"{role}.speak"], steps[f"{role}.decide"])
        return Observation(**here, speaks=torch.full_like(here["fresh"], role == SPEAKER), legal=legal, extra=extra)

    def choices(self, steps: Recorded) -> Int[Tensor, "step batch 1"]:
        """Return the choices of recorded steps, with the roles concatenated, [T, roles * B, 1]."""
        return torch.cat([steps[f"{role}.chosen"] for role in self.roles], 1).to(self.device)

    def states(self, recorded: Recorded) -> State:
        """Return the recorded states of the core, [roles * B, ...]."""
        count = len(self.state)
        return tuple(torch.cat([recorded[f"{role}.{i}"] for role in self.roles]).to(self.device) for i in range(count))

    # -- state ---------------------------------------------------------------------------------------------------------

    def saved_state(self) -> SavedState:
        """Return the state for `load`. It is not copied."""
        return {
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "state": list(self.state),
            "chosen": dict(self.chosen),
            "heard": dict(self.last_messages),
        }

    def load(self, saved: SavedState) -> None:
        """Resume from a state of `saved_state`."""
        self.network.load_state_dict(saved["network"])
        self.target.load_state_dict(saved["target"])
        self.state = tuple(part.to(self.device) for part in saved["state"])
        self.chosen, self.last_messages = dict(saved["chosen"]), dict(saved["heard"])


def _side_by_side(parts: Sequence[Observation]) -> Observation:
    """Concatenate observations along the batch axis, the last axis of `fresh`."""
    if len(parts) == 1:
        return parts[0]
    axis = parts[0].fresh.dim() - 1
    return Observation(**{name: torch.cat([getattr(p, name) for p in parts], axis) for name in vars(parts[0])})
