"""Networks at the table: players that act greedily, step by step."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.core.text import counted
from icy.s2b.players.base import Action, Player, Seat
from icy.s2b.settings import GameSettings
from icy.s2b.turn import Seen

from .actions import NEVER, Actions
from .cores.base import begun
from .network import Network
from .observations import Observation, observe
from .reconstruction import Reconstruction
from .sad import told_of, told_width


class NetworkPlayer(Player):
    """Plays as a network does that takes the best legal option at every step.

    Args:
        network: the network, on any device.
        role: "speaker" or "listener".
        reconstruction: predictor of stimuli from what the core holds, if it is to be judged.

    Attributes:
        partner: the other player, if it is a network too whose choices this one is told (SAD); without it, none are.
    """

    def __init__(self, network: Network, role: str = LISTENER, reconstruction: Reconstruction | None = None) -> None:
        self.network, self.role, self.reconstruction = network, role, reconstruction
        self.partner: NetworkPlayer | None = None
        self._right, self._told = 0.0, 0

    def begin(self, seat: Seat) -> None:
        """Take a seat; the game must look to the network as the one that it was made for."""
        super().begin(seat)
        check_game(self.network.actions, seat.settings, self.role)
        self.state = self.network.start(seat.episodes)
        nothing = torch.full((seat.episodes, len(self.network.actions.sizes)), NEVER)
        self.choices = {-1: nothing, 0: nothing}  # by number of the step, from 1; those of the last two steps
        self.asked = torch.zeros(seat.episodes, dtype=torch.bool)  # whether the step before took a decision
        self.held = torch.zeros(seat.episodes, seat.settings.length, dtype=torch.long)

    @torch.no_grad()
    def acting(self, seen: Seen) -> Action:
        """Score the options, and take the best."""
        network, actions = self.network, self.network.actions
        told = self._observed(seen)
        if told.fresh.any():
            self.state = begun(self.state, network.start(len(told.fresh)), told.fresh.to(network.core.device))
        (scores, _), self.state = network.step(told.on(network.core.device), self.state)
        chosen = actions.best(scores.cpu(), told.legal)
        self._judge(told, seen)
        self.choices = {self.steps - 1: self.choices[self.steps - 1], self.steps: chosen}
        self.asked = torch.as_tensor((seen.round == self.seat.settings.rounds) & ~seen.over)
        self.held = told.message
        message, decision = actions.taken(chosen.numpy())
        if self.role == SPEAKER:
            return Action(message=message)
        return Action(message=message if self.seat.settings.listener_messages else None, decision=decision)

    def _observed(self, seen: Seen) -> Observation:
        earned = torch.as_tensor(seen.reward).float() * self.asked
        given = {"held": self.held} if self.network.settings.hold else {}
        previous = self.choices[self.steps - 1]
        return observe(seen, self.role, self.network.actions, previous, earned, self._told_of_partner(), **given)

    def _told_of_partner(self) -> Float[Tensor, "batch told"] | None:
        """Return the partner's choice at the step before, if this network takes it."""
        if not self.network.settings.extra:
            return None
        if self.partner is None:
            return torch.zeros(self.seat.episodes, self.network.settings.extra)
        actions = self.partner.network.actions
        return told_of(actions, self.partner.choice_before(self.steps, self.seat.episodes))

    def choice_before(self, step: int, episodes: int) -> Int[Tensor, "batch choice"]:
        """Return what was chosen before a step; NEVER if this player is not at the table."""
        there: Tensor | None = getattr(self, "choices", {}).get(step - 1)
        if there is None or len(there) != episodes:
            return torch.full((episodes, len(self.network.actions.sizes)), NEVER)
        return there

    @property
    def reconstructed(self) -> float:
        """Share of the stimuli's numbers that could be told from what the core held, of all steps so far."""
        return self._right / max(self._told, 1)

    def _judge(self, told: Observation, seen: Seen) -> None:
        if self.reconstruction is not None:
            going = ~torch.as_tensor(seen.idle)
            right = self.reconstruction.right(self.network.core.latent(self.state), told.on(self.network.core.device))
            self._right += float(right.cpu()[going].sum())
            self._told += int(going.sum())


def linked(speaker: NetworkPlayer, listener: NetworkPlayer) -> tuple[NetworkPlayer, NetworkPlayer]:
    """Let two players tell each other what they choose, if they learned with that."""
    for one, other in ((speaker, listener), (listener, speaker)):
        if one.network.settings.extra:
            if one.network.settings.extra != told_width(other.network.actions):
                raise IncompatibleError("These networks were not made to be told of each other's choices.")
            one.partner = other
    return speaker, listener


def check_game(actions: Actions, game: GameSettings, role: str) -> None:
    """Require that a game looks to a network as the one that it was made for.

    Numbers of values may differ, as a network does not know them. A listener that sends no messages may hear fewer
    tokens than it could.

    Raises:
        IncompatibleError: it does not.
    """
    made = actions.game
    if _looks(made) != _looks(game):
        raise IncompatibleError(
            "This network was made for stimuli of {} in {}, messages of {} in {}, and {}; the game has {}, {}, {}, {} "
            "and {}.".format(*_spelt(made), *_spelt(game))
        )
    fewer = role == LISTENER and actions.form == "decision"
    if game.vocab_size != made.vocab_size and not (fewer and game.vocab_size < made.vocab_size):
        raise IncompatibleError(
            f"This network was made for {counted(made.vocab_size, 'token')}, and the game has {game.vocab_size}; give "
            "both the same vocab_size, which need not follow `most`."
        )


def _looks(game: GameSettings) -> tuple[Any, ...]:
    return game.width, game.slots, game.length, game.rounds, game.decisions, game.representation, game.listener_messages


def _spelt(game: GameSettings) -> tuple[str, ...]:
    return (
        counted(game.width, "number"),
        counted(game.slots, "slot"),
        counted(game.length, "token"),
        counted(game.rounds, "round"),
        counted(game.decisions, "decision"),
    )
