"""Players with a network, which act greedily, step by step."""

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
from icy.s2b.settings import GameSettings, Sizes
from icy.s2b.turn import Seen

from .actions import NEVER, Actions
from .network import Network, ReconstructionHead
from .observations import Observation, observe

# Settings of a game that determine the sizes of a network.
LOOKS = ("width", "slots", "length", "rounds", "decisions", "representation", "listener_messages")


class NetworkPlayer(Player):
    """Player that takes its network's best legal option at every step.

    Args:
        network: the network, on any device.
        role: "speaker" or "listener".
        reconstruction: head that predicts stimuli from the core's state, to measure reconstruction; None: not measured.
        own: whether the player sees its previous choice and the result and reward of its previous decision.

    Attributes:
        partner: the other player, if this network sees its greedy choices (SAD); otherwise None.
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
        self.acts = 0  # steps played, in all games

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have observations and actions of the network's sizes."""
        super().begin(seat)
        check_game(self.network.actions, seat.settings, self.role)
        self.start(seat.episodes)

    def start(self, episodes: int) -> None:
        """Prepare for a batch of episodes of any source of observations with the network's sizes."""
        actions = self.network.actions
        self.steps, self._right, self._count = 0, 0.0, 0
        self.state = self.network.start(episodes)
        nothing = torch.full((episodes, len(actions.sizes)), NEVER, dtype=torch.int64, device="cpu")
        self.choices = {-1: nothing, 0: nothing}  # choices of the last two steps, by number of the step from 1
        self.decided = torch.zeros(episodes, dtype=torch.bool, device="cpu")  # a decision at the previous step
        self.acts_of_partner = self.partner.acts if self.partner is not None else 0
        self.last_message = torch.zeros(episodes, actions.game.length, dtype=torch.long, device="cpu")

    @torch.no_grad()
    def acting(self, seen: Seen) -> Action:
        """Score the options, and take the best legal option."""
        network, actions = self.network, self.network.actions
        observed = self._observe(seen)
        if observed.fresh.any():
            self.state = begun(self.state, network.start(len(observed.fresh)), observed.fresh.to(network.core.device))
        (scores, _), self.state = network.step(observed.on(network.core.device), self.state)
        chosen = actions.best(scores.cpu(), observed.legal)
        self._measure_reconstruction(observed, seen)
        self.acts += 1
        self.choices = {self.steps - 1: self.choices[self.steps - 1], self.steps: chosen}
        self.decided = torch.as_tensor((seen.round == actions.game.rounds) & ~seen.over)
        self.last, self.last_message = observed, observed.message
        message, decision = actions.taken(chosen.numpy())
        if self.role == SPEAKER:
            return Action(message=message)
        return Action(message=message if actions.game.listener_messages else None, decision=decision)

    @torch.no_grad()
    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the speaker's message about each stimulus in round 0 of a new game; see Player."""
        if self.role != SPEAKER:
            return super().utter(stimuli, meanings, episode)
        actions, count = self.network.actions, len(stimuli)
        last = self.last[torch.full((count,), episode, dtype=torch.int64, device="cpu")]
        first = torch.as_tensor(np.asarray(stimuli, dtype=np.float32))
        observed = replace(
            last,
            stimulus=torch.cat([first, last.stimulus[:, first.shape[1] :]], 1),
            message=torch.zeros_like(last.message),
            round=torch.zeros_like(last.round),
            earned=torch.zeros_like(last.earned),
            previous=self.choices[self.steps][episode].expand(count, -1),
            legal=actions.legal_where(torch.ones_like(last.fresh), torch.zeros_like(last.fresh)),
            fresh=torch.zeros_like(last.fresh),
        )
        observed = observed if self.own else observed.without_own()
        state = tuple(part[episode : episode + 1].expand(count, *part.shape[1:]) for part in self.state)
        (scores, _), _ = self.network.step(observed.on(self.network.core.device), state)
        message, _ = actions.taken(actions.best(scores.cpu(), observed.legal).numpy())
        return np.asarray(message)

    def _observe(self, seen: Seen) -> Observation:
        earned = torch.as_tensor(seen.reward).float() * self.decided
        last_message = self.last_message if self.network.settings.hold else None
        previous = self.choices[self.steps - 1]
        observed = observe(
            seen, self.role, self.network.actions, previous, earned, self._partner_choice(), last_message=last_message
        )
        return observed if self.own else observed.without_own()

    def _partner_choice(self) -> Float[Tensor, "batch shared"] | None:
        """Return the encoded choice of the partner at the previous step; None if this network does not see it."""
        if not self.network.settings.extra:
            return None
        partner = self.partner
        # A partner in another game has not acted since this player took its seat.
        if (
            partner is None
            or self.steps == 1
            or partner.acts - self.acts_of_partner not in (self.steps - 1, self.steps)
        ):
            return torch.zeros(len(self.decided), self.network.settings.extra, dtype=torch.float32, device="cpu")
        return partner.network.actions.shared(partner.choices[self.steps - 1])

    @property
    def reconstructed(self) -> float:
        """Fraction of stimulus components predicted from the core's state since `begin`."""
        return self._right / max(self._count, 1)

    def _measure_reconstruction(self, observed: Observation, seen: Seen) -> None:
        if self.reconstruction is not None:
            active = ~torch.as_tensor(seen.idle)
            latent = self.network.core.latent(self.state)
            right = self.reconstruction.right(latent, observed.on(self.network.core.device))
            self._right += float(right.cpu()[active].sum())
            self._count += int(active.sum())


def linked(speaker: NetworkPlayer, listener: NetworkPlayer) -> tuple[NetworkPlayer, NetworkPlayer]:
    """Connect two players for SAD: each sees the other's greedy choices, if its network has this input."""
    for player, other in ((speaker, listener), (listener, speaker)):
        if player.network.settings.extra:
            if player.network.settings.extra != other.network.actions.shared_width:
                raise IncompatibleError(
                    "These networks cannot see each other's choices (SAD), because their options have other sizes; "
                    "give two players of one training."
                )
            player.partner = other
    return speaker, listener


def check_game(actions: Actions, game: GameSettings, role: str) -> None:
    """Check that a network has the sizes of a game's observations and actions.

    Numbers of values may differ, because a network does not depend on them. If a listener sends no messages, the game
    may have a smaller vocabulary than the network.

    Raises:
        IncompatibleError: the sizes differ.
    """
    own = actions.game
    differences = [name for name in LOOKS if getattr(own, name) != getattr(game, name)]
    if differences:
        raise IncompatibleError(
            f"This network was created for {_describe(own, differences)}, and the game has "
            f"{_describe(game, differences)}."
        )
    fewer = role == LISTENER and actions.form == "decision"
    if game.vocab_size != own.vocab_size and not (fewer and game.vocab_size < own.vocab_size):
        raise IncompatibleError(
            f"This network was created for {counted(own.vocab_size, 'token')}, and the game has {game.vocab_size}; "
            "give both the same vocab_size. It can be larger than `most`."
        )


def _describe(game: GameSettings | Sizes, names: Sequence[str]) -> str:
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
