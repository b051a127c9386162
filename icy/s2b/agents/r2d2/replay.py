"""Prioritized replay buffer of sequences of steps, with the core's state at the start of each sequence.

Each actor plays one episode after another, so its steps are a stream. In each stream, a sequence begins every `stride`
steps and may continue across ends of episodes. A step is stored once, even if it belongs to several sequences.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from icy.core.errors import InvalidSettingError
from icy.s2b.episode_streams import SavedState

LEAST = 1e-6  # lowest priority; a positive value lets every sequence be drawn

OfActors = Mapping[str, Shaped[Tensor, "actor ..."]]


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
        self._chances = torch.zeros(
            self.steps_per_actor // self.stride, actors, dtype=torch.float64, device="cpu"
        )  # priorities to the power `priority`
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
        """Return the content and the priorities, for `load`."""
        return {
            "count": self.count,
            "highest": self._highest,
            "chances": self._chances.clone(),
            "steps": {name: value.clone() for name, value in self._steps.items()},
            "states": {name: value.clone() for name, value in self._states.items()},
        }

    def load(self, state: SavedState) -> None:
        """Load the state of a replay buffer with the same settings."""
        self.count, self._highest = state["count"], state["highest"]
        self._chances = state["chances"].clone()
        self._steps, self._states = ({n: v.clone() for n, v in state[part].items()} for part in ("steps", "states"))


def mixed_priority(
    errors: Float[Tensor, "step batch"], counted: Bool[Tensor, "step batch"], eta: float
) -> Float[Tensor, " batch"]:
    """Return the priorities of sequences: eta * highest error + (1 - eta) * mean error (Kapturowski et al. 2019).

    Args:
        errors: temporal-difference errors, [T, B].
        counted: mask of the steps that count, [T, B].
        eta: weight of the highest error.
    """
    size = errors.abs() * counted
    mean = size.sum(0) / counted.sum(0).clamp(min=1)
    return eta * size.max(0).values + (1 - eta) * mean
