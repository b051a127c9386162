"""Networks at the table: players that act greedily, step by step."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.core.text import counted, listed
from icy.s2b.agents.cores.core import begun
from icy.s2b.players.interface import Action, Meanings, Player, Seat, Sentences, Stimuli
from icy.s2b.settings import GameSettings
from icy.s2b.turn import Seen

from .actions import NEVER, Actions
from .network import Network
from .observations import Observation, observe
from .reconstruction import ReconstructionHead

# Properties of a game that a network sees.
LOOKS = ("width", "slots", "length", "rounds", "decisions", "representation", "listener_messages")


class NetworkPlayer(Player):
    """Plays as a network does that takes the best legal option at every step.

    Args:
        network: the network, on any device.
        role: "speaker" or "listener".
        reconstruction: predictor of stimuli from what the core holds, if it is to be judged.
        own: whether it sees the results, the rewards and the choices of its own before.

    Attributes:
        partner: the other player, if it is a network too whose choices this one is told (SAD); without it, none are.
    """

    def __init__(
        self,
        network: Network,
        role: str = LISTENER,
        reconstruction: ReconstructionHead | None = None,
        own: bool = True,
    ) -> None:
        self.network, self.role, self.reconstruction, self.own = network, role, reconstruction, own
        self.partner: NetworkPlayer | None = None
        self.acts = 0  # steps played, at any table

    def begin(self, seat: Seat) -> None:
        """Take a seat; the game must look to the network as the one that it was made for."""
        super().begin(seat)
        self._right, self._told = 0.0, 0
        check_game(self.network.actions, seat.settings, self.role)
        self.state = self.network.start(seat.episodes)
        nothing = torch.full((seat.episodes, len(self.network.actions.sizes)), NEVER, dtype=torch.int64, device="cpu")
        self.choices = {-1: nothing, 0: nothing}  # by number of the step, from 1; those of the last two steps
        self.asked = torch.zeros(
            seat.episodes, dtype=torch.bool, device="cpu"
        )  # whether the step before took a decision
        self.acts_of_partner = self.partner.acts if self.partner is not None else 0
        self.held = torch.zeros(seat.episodes, seat.settings.length, dtype=torch.long, device="cpu")

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
        self.acts += 1
        self.choices = {self.steps - 1: self.choices[self.steps - 1], self.steps: chosen}
        self.asked = torch.as_tensor((seen.round == self.seat.settings.rounds) & ~seen.over)
        self.last, self.held = told, told.message
        message, decision = actions.taken(chosen.numpy())
        if self.role == SPEAKER:
            return Action(message=message)
        return Action(message=message if self.seat.settings.listener_messages else None, decision=decision)

    @torch.no_grad()
    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return what a speaker would say of each stimulus in round 0 of a game that began now; see Player."""
        if self.role != SPEAKER:
            return super().utter(stimuli, meanings, episode)
        actions, count = self.network.actions, len(stimuli)
        last = self.last[torch.full((count,), episode, dtype=torch.int64, device="cpu")]
        first = torch.as_tensor(np.asarray(stimuli, dtype=np.float32))
        told = replace(
            last,
            stimulus=torch.cat([first, last.stimulus[:, first.shape[1] :]], 1),
            message=torch.zeros_like(last.message),
            round=torch.zeros_like(last.round),
            earned=torch.zeros_like(last.earned),
            previous=self.choices[self.steps][episode].expand(count, -1),
            legal=actions.legal_where(torch.ones_like(last.fresh), torch.zeros_like(last.fresh)),
            fresh=torch.zeros_like(last.fresh),
        )
        told = told if self.own else told.without_own()
        state = tuple(part[episode : episode + 1].expand(count, *part.shape[1:]) for part in self.state)
        (scores, _), _ = self.network.step(told.on(self.network.core.device), state)
        message, _ = actions.taken(actions.best(scores.cpu(), told.legal).numpy())
        return np.asarray(message)

    def _observed(self, seen: Seen) -> Observation:
        earned = torch.as_tensor(seen.reward).float() * self.asked
        given = {"held": self.held} if self.network.settings.hold else {}
        previous = self.choices[self.steps - 1]
        found = observe(seen, self.role, self.network.actions, previous, earned, self._told_of_partner(), **given)
        return found if self.own else found.without_own()

    def _told_of_partner(self) -> Float[Tensor, "batch told"] | None:
        """Return the partner's choice at the step before, if this network takes it."""
        if not self.network.settings.extra:
            return None
        partner = self.partner
        # One at another table has not acted since this player took its seat.
        if (
            partner is None
            or self.steps == 1
            or partner.acts - self.acts_of_partner not in (self.steps - 1, self.steps)
        ):
            return torch.zeros(self.seat.episodes, self.network.settings.extra, dtype=torch.float32, device="cpu")
        return partner.network.actions.told(partner.choices[self.steps - 1])

    @property
    def reconstructed(self) -> float:
        """Share of the stimuli's numbers that could be told from what the core held, since it took its seat."""
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
            if one.network.settings.extra != other.network.actions.told_width:
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
        apart = [name for name in LOOKS if getattr(made, name) != getattr(game, name)]
        raise IncompatibleError(
            f"This network was made for {_spelled(made, apart)}, and the game has {_spelled(game, apart)}."
        )
    fewer = role == LISTENER and actions.form == "decision"
    if game.vocab_size != made.vocab_size and not (fewer and game.vocab_size < made.vocab_size):
        raise IncompatibleError(
            f"This network was made for {counted(made.vocab_size, 'token')}, and the game has {game.vocab_size}; give "
            "both the same vocab_size, which need not follow `most`."
        )


def _looks(game: GameSettings) -> tuple[object, ...]:
    return tuple(getattr(game, name) for name in LOOKS)


def _spelled(game: GameSettings, names: Sequence[str]) -> str:
    words = {
        "width": f"stimuli of {counted(game.width, 'number')}",
        "slots": counted(game.slots, "slot"),
        "length": f"messages of {counted(game.length, 'token')}",
        "rounds": counted(game.rounds, "round"),
        "decisions": counted(game.decisions, "decision"),
        "representation": f"representation '{game.representation}'",
        "listener_messages": "messages of the listener" if game.listener_messages else "no messages of the listener",
    }
    return listed([words[name] for name in names])
