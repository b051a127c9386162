"""A network that acts in many episodes at once, for one role or both, and what is recorded to learn from it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from icy.core.registry import SPEAKER
from icy.s2b.agents.cores.core import State, begun
from icy.s2b.agents.networks.actions import NEVER, Actions
from icy.s2b.agents.networks.network import Network
from icy.s2b.agents.networks.observations import Observation, observe
from icy.s2b.episode_streams import SavedState
from icy.s2b.settings import GameSettings
from icy.s2b.turn import Turn

KEPT = ("stimulus", "message", "query", "round", "result", "reward", "earned", "previous", "fresh")
Recorded = Mapping[str, Shaped[Tensor, "..."]]
Choices = Mapping[str, Int[Tensor, "episode choice"]]  # by role


@dataclass(frozen=True, eq=False)
class Step:
    """What an agent did at a step.

    Attributes:
        chosen: what was chosen, by role.
        greedy: the best options, by role.
        recorded: what to record of the step.
        states: the core's states before it, by name.
    """

    chosen: dict[str, Int[Tensor, "episode choice"]]
    greedy: dict[str, Int[Tensor, "episode choice"]]
    recorded: dict[str, Shaped[Tensor, "episode ..."]]
    states: dict[str, Shaped[Tensor, "episode ..."]]


class Agent:
    """A network that plays some roles in E episodes at once, all in one batch, and the network of its targets.

    Names of what is recorded begin with the role.

    Args:
        network: the network.
        roles: the roles that it plays.
        episodes: number of episodes, E.
        told: the actions of the other role, by role, where its greedy choices are told (SAD); none where they are not.
    """

    def __init__(self, network: Network, roles: Sequence[str], episodes: int, told: Mapping[str, Actions]) -> None:
        self.network, self.roles, self.episodes, self.told = network, tuple(roles), episodes, told
        self.target = deepcopy(network).requires_grad_(False)
        self.actions = network.actions
        self.state = network.start(episodes * len(self.roles))
        self.chosen = {role: self._never(self.actions) for role in self.roles}
        self.heard = {
            role: torch.zeros(episodes, self.game.length, dtype=torch.long, device="cpu") for role in self.roles
        }

    @property
    def game(self) -> GameSettings:
        """Settings of the game."""
        return self.actions.game

    @property
    def device(self) -> torch.device:
        """The device of the networks; what is recorded is on the CPU."""
        return self.network.core.device

    def _never(self, actions: Actions) -> Tensor:
        return torch.full((self.episodes, len(actions.sizes)), NEVER, dtype=torch.int64, device="cpu")

    # -- acting --------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(
        self, turn: Turn, told: Choices, explores: Bool[Tensor, "role episode"], random: torch.Generator, keep: bool
    ) -> Step:
        """Choose in all roles and episodes: the best option, or where it explores any that is legal.

        Args:
            turn: what is observed.
            told: the greedy choices of the step before, by role.
            explores: where to explore, by role and episode.
            random: what explorers draw from.
            keep: whether the states before the step are asked for.
        """
        by_role = {role: self._observe(turn, role, told) for role in self.roles}
        seen = _side_by_side(list(by_role.values()))
        self._begin(seen.fresh)
        states = self._split_state() if keep else {}
        (scores, _), self.state = self.network.step(seen.on(self.device), self.state)
        best = self.actions.best(scores.cpu(), seen.legal)
        chosen = self._explored(best, seen.legal, explores.flatten(), random)
        recorded: dict[str, Tensor] = {}
        for role, one in by_role.items():
            recorded |= {f"{role}.{name}": getattr(one, name) for name in KEPT}
            at = turn.seen_by(role)
            recorded |= {
                f"{role}.speak": torch.as_tensor(at.may_speak),
                f"{role}.decide": torch.as_tensor(at.may_decide),
            }
            if self.told:
                recorded[f"{role}.told"] = self._told(role, told).masked_fill(one.fresh[:, None], NEVER)
        greedy = self._by_role(best)
        self.chosen = self._by_role(chosen)
        self.heard = {role: one.message for role, one in by_role.items()}
        recorded |= {f"{role}.chosen": value for role, value in self.chosen.items()}
        return Step(self.chosen, greedy, recorded, states)

    def _observe(self, turn: Turn, role: str, told: Choices) -> Observation:
        extra = self.told[role].told(self._told(role, told)) if self.told else None
        held = {"held": self.heard[role]} if self.network.settings.hold else {}
        return observe(turn.seen_by(role), role, self.actions, self.chosen[role], turn.reward, extra, **held)

    def _told(self, role: str, told: Choices) -> Tensor:
        """Return the other role's greedy choice at the step before."""
        others = [choice for name, choice in told.items() if name != role]
        return others[0] if others else self._never(self.told[role])

    def _begin(self, fresh: Tensor) -> None:
        if fresh.any():
            self.state = begun(self.state, self.network.start(len(fresh)), fresh.to(self.device))

    def _explored(self, best: Tensor, legal: Tensor, explores: Tensor, random: torch.Generator) -> Tensor:
        if not explores.any():
            return best
        blocks = legal[explores].float().split(self.actions.sizes, -1)
        drawn = best.clone()
        drawn[explores] = torch.cat([torch.multinomial(block, 1, generator=random) for block in blocks], -1)
        return drawn

    def _by_role(self, values: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.roles, values.split(self.episodes), strict=True))

    def _split_state(self) -> dict[str, Tensor]:
        parts = [self._by_role(part.cpu()) for part in self.state]
        return {f"{role}.{i}": part[role] for i, part in enumerate(parts) for role in self.roles}

    # -- learning ------------------------------------------------------------------------------------------------------

    def observation(self, steps: Recorded) -> Observation:
        """Return what the network was told at recorded steps, one role after the other, [T, roles * B]."""
        return _side_by_side([self._recorded(steps, role) for role in self.roles]).on(self.device)

    def _recorded(self, steps: Recorded, role: str) -> Observation:
        here = {name: steps[f"{role}.{name}"] for name in KEPT}
        fresh = here["fresh"]
        return Observation(
            **here,
            speaks=torch.full_like(fresh, role == SPEAKER),
            legal=self.actions.legal_where(steps[f"{role}.speak"], steps[f"{role}.decide"]),
            extra=self.told[role].told(steps[f"{role}.told"])
            if self.told
            else torch.zeros(*fresh.shape, 0, dtype=torch.float32, device="cpu"),
        )

    def choices(self, steps: Recorded) -> Int[Tensor, "step batch choice"]:
        """Return what was chosen at recorded steps, one role after the other, [T, roles * B, choices]."""
        return torch.cat([steps[f"{role}.chosen"] for role in self.roles], 1).to(self.device)

    def states(self, held: Recorded) -> State:
        """Return the core's states as they were recorded, [roles * B, ...]."""
        count = len(self.state)
        return tuple(torch.cat([held[f"{role}.{i}"] for role in self.roles]).to(self.device) for i in range(count))

    # -- state ---------------------------------------------------------------------------------------------------------

    def held(self) -> SavedState:
        """Return all that it goes on from."""
        return {
            "network": _copied(self.network.state_dict()),
            "target": _copied(self.target.state_dict()),
            "state": [part.clone() for part in self.state],
            "chosen": dict(self.chosen),
            "heard": dict(self.heard),
        }

    def load(self, held: SavedState) -> None:
        """Go on as another did."""
        self.network.load_state_dict(held["network"])
        self.target.load_state_dict(held["target"])
        self.state = tuple(part.to(self.device) for part in held["state"])
        self.chosen, self.heard = dict(held["chosen"]), dict(held["heard"])


def _copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in weights.items()}


def _side_by_side(parts: Sequence[Observation]) -> Observation:
    """Return observations of several batches as those of one; the batch is the last axis before the numbers."""
    if len(parts) == 1:
        return parts[0]
    axis = parts[0].fresh.dim() - 1
    return Observation(**{name: torch.cat([getattr(p, name) for p in parts], axis) for name in vars(parts[0])})
