"""A network that plays one or both roles in many episodes at once, and records data for the replay buffer."""

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
from icy.s2b.recall import RecallTurn
from icy.s2b.settings import GameSettings, Sizes
from icy.s2b.turn import Turn

RECORDED_FIELDS = ("stimulus", "message", "query", "round", "result", "reward", "earned", "previous", "fresh")
Recorded = Mapping[str, Shaped[Tensor, "..."]]
Choices = Mapping[str, Int[Tensor, "episode choice"]]  # by role


@dataclass(frozen=True, eq=False)
class Step:
    """An agent's choices at a step, and the data for the replay buffer.

    Attributes:
        chosen: the choices that are played, by role.
        greedy: the best options, by role.
        recorded: data of the step for the replay buffer, by name.
        states: the core's states before the step, by name; empty unless requested.
    """

    chosen: dict[str, Int[Tensor, "episode choice"]]
    greedy: dict[str, Int[Tensor, "episode choice"]]
    recorded: dict[str, Shaped[Tensor, "episode ..."]]
    states: dict[str, Shaped[Tensor, "episode ..."]]


class Agent:
    """A network that plays one or both roles in a batch of E episodes, and its target network.

    The names of recorded data begin with the role, as in "listener.message".

    Args:
        network: the network.
        roles: the roles to play.
        episodes: number of episodes, E.
        partner: for each role, the actions of the other role, if the network sees the other's greedy choices (SAD);
            otherwise empty.
    """

    def __init__(self, network: Network, roles: Sequence[str], episodes: int, partner: Mapping[str, Actions]) -> None:
        self.network, self.roles, self.episodes, self.partner = network, tuple(roles), episodes, partner
        self.target = deepcopy(network).requires_grad_(False)
        self.actions = network.actions
        self.device = network.core.device  # of the networks; recorded data is on the CPU
        self.state = network.start(episodes * len(self.roles))
        self.chosen = {role: self._never(self.actions) for role in self.roles}
        self.last_messages = {
            role: torch.zeros(episodes, self.game.length, dtype=torch.long, device="cpu") for role in self.roles
        }

    @property
    def game(self) -> GameSettings | Sizes:
        """Settings of the game, or sizes of a task."""
        return self.actions.game

    def _never(self, actions: Actions) -> Tensor:
        return torch.full((self.episodes, len(actions.sizes)), NEVER, dtype=torch.int64, device="cpu")

    # -- acting --------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def act(
        self,
        turn: Turn | RecallTurn,
        greedy: Choices,
        explores: Bool[Tensor, "role episode"],
        random: torch.Generator,
        keep: bool,
    ) -> Step:
        """Choose an option for every role and episode: the best, or a random legal option to explore.

        Args:
            turn: the observations.
            greedy: the greedy choices of the previous step, by role.
            explores: mask of exploring choices, [roles, E].
            random: generator for exploration.
            keep: whether to return the core's states before the step.
        """
        by_role = {role: self._observe(turn, role, greedy) for role in self.roles}
        seen = _side_by_side(list(by_role.values()))
        self._begin(seen.fresh)
        states = self._split_state() if keep else {}
        (scores, _), self.state = self.network.step(seen.on(self.device), self.state)
        best = self.actions.best(scores.cpu(), seen.legal)
        chosen = self._explored(best, seen.legal, explores.flatten(), random)
        recorded: dict[str, Tensor] = {}
        for role, own in by_role.items():
            recorded |= {f"{role}.{name}": getattr(own, name) for name in RECORDED_FIELDS}
            at = turn.seen_by(role)
            recorded |= {
                f"{role}.speak": torch.as_tensor(at.may_speak),
                f"{role}.decide": torch.as_tensor(at.may_decide),
            }
            if self.partner:
                recorded[f"{role}.told"] = self._partner_choice(role, greedy).masked_fill(own.fresh[:, None], NEVER)
        self.chosen = self._by_role(chosen)
        self.last_messages = {role: own.message for role, own in by_role.items()}
        recorded |= {f"{role}.chosen": value for role, value in self.chosen.items()}
        return Step(self.chosen, self._by_role(best), recorded, states)

    def _observe(self, turn: Turn | RecallTurn, role: str, greedy: Choices) -> Observation:
        extra = self.partner[role].shared(self._partner_choice(role, greedy)) if self.partner else None
        last_message = self.last_messages[role] if self.network.settings.hold else None
        return observe(
            turn.seen_by(role), role, self.actions, self.chosen[role], turn.reward, extra, last_message=last_message
        )

    def _partner_choice(self, role: str, greedy: Choices) -> Tensor:
        """Return the other role's greedy choice at the previous step."""
        others = [choice for name, choice in greedy.items() if name != role]
        return others[0] if others else self._never(self.partner[role])

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
        """Return the observations of recorded steps, with the roles concatenated, [T, roles * B]."""
        return _side_by_side([self._recorded(steps, role) for role in self.roles]).on(self.device)

    def _recorded(self, steps: Recorded, role: str) -> Observation:
        here = {name: steps[f"{role}.{name}"] for name in RECORDED_FIELDS}
        fresh = here["fresh"]
        return Observation(
            **here,
            speaks=torch.full_like(fresh, role == SPEAKER),
            legal=self.actions.legal_where(steps[f"{role}.speak"], steps[f"{role}.decide"]),
            extra=self.partner[role].shared(steps[f"{role}.told"])
            if self.partner
            else torch.zeros(*fresh.shape, 0, dtype=torch.float32, device="cpu"),
        )

    def choices(self, steps: Recorded) -> Int[Tensor, "step batch choice"]:
        """Return the choices of recorded steps, with the roles concatenated, [T, roles * B, choices]."""
        return torch.cat([steps[f"{role}.chosen"] for role in self.roles], 1).to(self.device)

    def states(self, recorded: Recorded) -> State:
        """Return the recorded states of the core, [roles * B, ...]."""
        count = len(self.state)
        return tuple(torch.cat([recorded[f"{role}.{i}"] for role in self.roles]).to(self.device) for i in range(count))

    # -- state ---------------------------------------------------------------------------------------------------------

    def saved_state(self) -> SavedState:
        """Return the state for `load`."""
        return {
            "network": _copied(self.network.state_dict()),
            "target": _copied(self.target.state_dict()),
            "state": [part.clone() for part in self.state],
            "chosen": dict(self.chosen),
            "heard": dict(self.last_messages),
        }

    def load(self, saved: SavedState) -> None:
        """Resume from a state of `saved_state`."""
        self.network.load_state_dict(saved["network"])
        self.target.load_state_dict(saved["target"])
        self.state = tuple(part.to(self.device) for part in saved["state"])
        self.chosen, self.last_messages = dict(saved["chosen"]), dict(saved["heard"])


def _copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in weights.items()}


def _side_by_side(parts: Sequence[Observation]) -> Observation:
    """Concatenate observations along the batch axis, the last axis of `fresh`."""
    if len(parts) == 1:
        return parts[0]
    axis = parts[0].fresh.dim() - 1
    return Observation(**{name: torch.cat([getattr(p, name) for p in parts], axis) for name in vars(parts[0])})
