"""The networks of the papers: an encoder of observations, a core and heads. Players with a network act greedily."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import whole_number
from icy.core.errors import IncompatibleError, require_known
from icy.core.fields import CheckedFields, check_fields, setting
from icy.core.registry import CORE, LISTENER, SPEAKER, registry
from icy.core.text import counted, listed
from icy.s2b.agents.cores.core import CAPACITY, Core, Device, Parts, State, begun, made_of, takes
from icy.s2b.game import Seen
from icy.s2b.players.interface import Action, Meanings, Player, Seat, Sentences, Stimuli
from icy.s2b.settings import GameSettings, Sizes

from .observations import NEVER, Actions, Observation, observe, one_hot

# -- the networks of the papers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Settings of a network, with the papers' defaults.

    Attributes:
        core: name of the core (`icy list cores`).
        options: further options of the core.
        capacity: capacity of the core's memory in steps.
        stimulus: sizes of the layers that encode the stimuli.
        message: sizes of the layers that encode the message; () to use one-hot tokens directly.
        joint: sizes of the layers that encode all inputs together; () to concatenate them only.
        mask: the layers that get the mask of legal options as input: "input", the joint layers; "head"; or "none".
        head: "dueling": scores are action values, computed from a state value and advantages; "policy": scores are
            logits, and the value is separate.
        deaf: whether messages are replaced by empty messages.
        hold: whether the input at a game's end repeats the last message if no new message arrives (see `observe`).
        extra: width of extra input, such as the partner's choice.

    Raises:
        UnknownNameError, InvalidSettingError: settings that are not accepted.
    """

    core: str = "LSTM"
    options: Mapping[str, Any] = field(default_factory=dict)
    capacity: int = setting(CAPACITY, "capacity", least=1)
    stimulus: tuple[int, ...] = (512, 256, 128)
    message: tuple[int, ...] = ()
    joint: tuple[int, ...] = (512, 256, 256)
    mask: Literal["input", "head", "none"] = setting("input", "place of the mask")
    head: Literal["dueling", "policy"] = "dueling"
    deaf: bool = False
    hold: bool = False
    extra: int = setting(0, "width of extra input", least=0)

    def __post_init__(self) -> None:
        registry.get(self.core, CORE)
        check_fields(self)
        for name in ("stimulus", "message", "joint"):
            for size in getattr(self, name):
                whole_number(f"size of a layer of `{name}`", size)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "NetworkSettings":
        """Return the settings of a preset, with changes.

        Args:
            name: "metarg22" or "metarg24": as printed in these papers; "near32": as in the authors' later program,
                which does not mix the encodings of stimuli and messages; "pairs": icy's PairMemory, without encoding
                layers.
            **changes: settings by name.

        Raises:
            UnknownNameError: no preset has this name.
        """
        require_known("preset of networks", name, PRESETS)
        return replace(PRESETS[name], **changes)


PRESETS: Mapping[str, NetworkSettings] = {
    "metarg22": NetworkSettings(),
    "metarg24": NetworkSettings(),
    "near32": NetworkSettings(core="LSTM-512", stimulus=(64, 32), message=(64, 32), joint=(), mask="head"),
    "pairs": NetworkSettings(core="PairMemory", stimulus=(), joint=(), mask="head"),
}


class Scored(NamedTuple):
    """Output of a network at each step.

    Attributes:
        scores: the action value or logit of each option, also of illegal options.
        value: state value.
    """

    scores: Float[Tensor, "*lead option"]
    value: Float[Tensor, "*lead"]


class Encoder(nn.Module):
    """Perceptrons that map an observation to the input of a core.

    Attributes:
        width: width of the output.
        parts: widths of the stimuli and the message in the output; None if joint layers mix them.
    """

    def __init__(self, actions: Actions, settings: NetworkSettings) -> None:
        super().__init__()
        game = actions.game
        self.actions, self.deaf, self.mask = actions, settings.deaf, settings.mask == "input"
        self.rounds, self.tokens = game.rounds, game.vocab_size + 1
        self.stimulus = Perceptron(game.slots * game.width, settings.stimulus)
        self.message = Perceptron(game.length * self.tokens, settings.message)
        vision, language = self.stimulus.width, self.message.width
        flags = 1 + (game.rounds + 1) + 2 + 2 + 2 + 1
        width = vision + language + flags + actions.width * (1 + self.mask) + settings.extra
        self.joint = Perceptron(width, settings.joint)
        raw = {"stimuli": 1 if settings.stimulus else game.slots, "tokens": 1 if settings.message else game.length}
        self.parts = None if settings.joint else Parts(vision, language, flags, **raw)
        self.width = self.joint.width

    def forward(self, seen: Observation) -> Float[Tensor, "*lead width"]:
        """Encode an observation."""
        message = torch.zeros_like(seen.message) if self.deaf else seen.message
        parts = [
            each_once(self.stimulus, seen.stimulus),
            self.message(one_hot(message, self.tokens).flatten(-2).to(seen.stimulus.dtype)),
            seen.earned[..., None],
            one_hot(seen.round, self.rounds + 1),  # zeros at feedback
            one_hot(1 - 1 * seen.speaks, 2),
            one_hot(1 * seen.query, 2),
            one_hot(seen.result - 1, 2),  # zeros before the first result
            seen.reward[..., None],
            self.actions.one_hot(seen.previous),
            seen.extra,
        ]
        if self.mask:
            parts.append(seen.legal.float())
        encoded: Tensor = self.joint(torch.cat(parts, -1))
        return encoded


class Head(nn.Module):
    """A linear layer that maps the core's output to scores and a state value.

    Args:
        width: width of the core's output.
        actions: the player's options.
        settings: settings of the network.
    """

    def __init__(self, width: int, actions: Actions, settings: NetworkSettings) -> None:
        super().__init__()
        self.dueling, self.mask = settings.head == "dueling", settings.mask == "head"
        width += actions.width * self.mask
        self.value, self.options = nn.Linear(width, 1), nn.Linear(width, actions.width)

    def forward(self, y: Float[Tensor, "*lead output"], legal: Bool[Tensor, "*lead option"]) -> Scored:
        """Score the options."""
        if self.mask:
            y = torch.cat([y, legal.to(y.dtype)], -1)
        value, scores = self.value(y), self.options(y)
        if self.dueling:
            scores = value + scores - scores.mean(-1, keepdim=True)
        return Scored(scores, value.squeeze(-1))


class Network(nn.Module):
    """Network of a player: encoder, core and head.

    Args:
        actions: the player's options, with the settings of the game.
        settings: settings of the network.

    Raises:
        IncompatibleError: the core needs stimuli and messages in separate parts, and the network mixes them.

    Example:
        >>> from icy.s2b import BatchedGame
        >>> from icy.s2b.agents.networks.network import Network, NetworkSettings
        >>> from icy.s2b.agents.networks.observations import Actions, observe
        >>> game = BatchedGame(episodes=4)
        >>> actions = Actions.of_role(game.settings, "listener")
        >>> network = Network(actions, NetworkSettings.preset("near32"))
        >>> seen = observe(game.reset(seed=1).listener, "listener", actions)
        >>> (scores, value), state = network.step(seen, network.start(4))
        >>> actions.best(scores, seen.legal).squeeze(-1).tolist()  # the listener has no decision in round 0
        [2, 2, 2, 2]
    """

    def __init__(self, actions: Actions, settings: NetworkSettings | None = None) -> None:
        super().__init__()
        self.actions, self.settings = actions, settings or NetworkSettings()
        self.encoder = Encoder(actions, self.settings)
        entry, parts = registry.get(self.settings.core, CORE), self.encoder.parts
        if parts is None and takes(entry, "parts"):
            raise IncompatibleError(
                f"The core {entry.name} needs stimuli and messages in separate parts of its input, and this network's "
                "joint layers mix them; take the preset 'near32', or joint=()."
            )
        options = {"capacity": self.settings.capacity, "parts": parts, **self.settings.options}
        self.core: Core = made_of(entry, self.encoder.width, **options)
        self.head = Head(self.core.output, actions, self.settings)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the state of the core at the beginning of episodes."""
        return self.core.start(episodes, device)

    def step(self, seen: Observation, state: State) -> tuple[Scored, State]:
        """Score the options at one step of B episodes, and return the scores and the new state."""
        y, state = self.core.step(self.encoder(seen), state)
        return self.head(y, seen.legal), state

    def unroll(self, seen: Observation, state: State) -> tuple[Scored, State]:
        """Score the options at T steps of B episodes, and return the scores and the state after the last step.

        The state is reset before a `fresh` observation, which begins an episode.
        """
        ys, state = self.core.unroll(self.encoder(seen), state, seen.fresh)
        return self.head(ys, seen.legal), state

    def trace(self, seen: Observation, state: State) -> tuple[Scored, Float[Tensor, "step batch latent"], State]:
        """Score the options like `unroll`, and also return the core's latents after each step (see `Core.latent`)."""
        ys, latents, state = self.core.trace(self.encoder(seen), state, seen.fresh)
        return self.head(ys, seen.legal), latents, state


class Perceptron(nn.Sequential):
    """Linear layers of these sizes, each followed by a ReLU. Without layers, the output is the input.

    Attributes:
        width: width of the output.
    """

    def __init__(self, width: int, sizes: Sequence[int]) -> None:
        super().__init__(*(layer for a, b in pairwise([width, *sizes]) for layer in (nn.Linear(a, b), nn.ReLU())))
        self.width = sizes[-1] if sizes else width


def each_once(network: Perceptron, inputs: Float[Tensor, "*lead width"]) -> Float[Tensor, "*lead output"]:
    """Apply a perceptron to inputs; in sequences [T, B, D] on the CPU, once to equal inputs of consecutive steps.

    In a game of S2B, most stimuli are equal at two or three steps.
    """
    encoded: Tensor
    if inputs.dim() != 3 or inputs.requires_grad or inputs.device.type != "cpu" or not len(network):
        encoded = network(inputs)
        return encoded
    rows = inputs.transpose(0, 1)
    new = torch.ones(rows.shape[:2], dtype=torch.bool, device="cpu")
    new[:, 1:] = (rows[:, 1:] != rows[:, :-1]).any(-1)
    places = new.flatten().cumsum(0).view(new.shape).mT - 1
    encoded = network(rows[new]).index_select(0, places.flatten())
    return encoded.view(*places.shape, network.width)


# -- reconstruction ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings(CheckedFields):
    """Settings of the reconstruction loss.

    Attributes:
        weight: weight of the reconstruction loss relative to the loss of values.
        period: number of updates from one use of the loss to the next.
        hidden: size of the predictor's hidden layer.
        message: whether the tokens of the message are predicted as well.
        near: largest absolute error of a prediction that counts as right.
    """

    weight: float = setting(1.0, "setting weight of the reconstruction", above=0)
    period: int = setting(2, "setting period of the reconstruction", least=1)
    hidden: int = setting(512, "setting hidden of the reconstruction", least=1)
    message: bool = False
    near: float = setting(0.05, "setting near of the reconstruction", above=0)


class ReconstructionHead(nn.Module):
    """Predicts the stimulus of a step, and optionally the message, from the core's state after the step.

    Args:
        latent: width of the core's latent state.
        game: settings of the game.
        settings: settings of the loss.
    """

    def __init__(self, latent: int, game: GameSettings | Sizes, settings: ReconstructionSettings) -> None:
        super().__init__()
        self.settings, self.tokens = settings, game.vocab_size + 1
        self.stimulus = game.slots * game.width
        words = game.length * self.tokens if settings.message else 0
        self.hidden = Perceptron(latent, (settings.hidden,))
        self.out = nn.Linear(settings.hidden, self.stimulus + words)

    def forward(self, latents: Float[Tensor, "*lead latent"]) -> Float[Tensor, "*lead predicted"]:
        """Return the predicted stimuli, followed by the logits of the tokens, position by position."""
        predicted: Tensor = self.out(self.hidden(latents))
        return predicted

    def loss(
        self, latents: Float[Tensor, "*lead latent"], seen: Observation, counted: Bool[Tensor, "*lead"]
    ) -> Float[Tensor, ""]:
        """Return the weighted loss over steps in `counted`: squared error of stimuli plus cross-entropy of tokens."""
        predicted, some = self(latents[counted]), seen[counted]
        loss = F.mse_loss(predicted[:, : self.stimulus], some.stimulus)
        if self.settings.message:
            logits = predicted[:, self.stimulus :].unflatten(-1, (-1, self.tokens))
            loss = loss + F.cross_entropy(logits.flatten(0, 1), some.message.flatten())
        weighed: Tensor = self.settings.weight * loss
        return weighed

    @torch.no_grad()
    def right(self, latents: Float[Tensor, "*lead latent"], seen: Observation) -> Float[Tensor, "*lead"]:
        """Return, for each step, the fraction of stimulus components with an error below `near`."""
        predicted = self(latents)[..., : self.stimulus]
        close: Tensor = (predicted - seen.stimulus).abs() < self.settings.near
        return close.float().mean(-1)


# -- players with a network, which act greedily, step by step ----------------------------------------------------------


# Settings of a game that determine the sizes of a network, and texts that describe them.
LOOKS: Mapping[str, Callable[[GameSettings | Sizes], str]] = {
    "width": lambda game: f"stimuli of {counted(game.width, 'number')}",
    "slots": lambda game: counted(game.slots, "slot"),
    "length": lambda game: f"messages of {counted(game.length, 'token')}",
    "rounds": lambda game: counted(game.rounds, "round"),
    "decisions": lambda game: counted(game.decisions, "decision"),
    "representation": lambda game: f"representation '{game.representation}'",
    "listener_messages": lambda game: f"{'' if game.listener_messages else 'no '}messages of the listener",
}


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
        self, network: Network, role: str = LISTENER, reconstruction: ReconstructionHead | None = None, own: bool = True
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
        nothing = torch.full((episodes, 1), NEVER, dtype=torch.int64, device="cpu")
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
        if self.reconstruction is not None:
            active = ~torch.as_tensor(seen.idle)
            right = self.reconstruction.right(network.core.latent(self.state), observed.on(network.core.device))
            self._right += float(right.cpu()[active].sum())
            self._count += int(active.sum())
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
        given = previous, earned, self._partner_choice(), last_message
        observed = observe(seen, self.role, self.network.actions, *given)
        return observed if self.own else observed.without_own()

    def _partner_choice(self) -> Float[Tensor, "batch shared"] | None:
        """Return the encoded choice of the partner at the previous step; None if this network does not see it."""
        partner, width = self.partner, self.network.settings.extra
        if not width:
            return None
        acts = -1 if partner is None else partner.acts - self.acts_of_partner
        # A partner in another game has not acted since this player took its seat.
        if partner is None or self.steps == 1 or acts not in (self.steps - 1, self.steps):
            return torch.zeros(len(self.decided), width, dtype=torch.float32, device="cpu")
        return partner.network.actions.shared(partner.choices[self.steps - 1])

    @property
    def reconstructed(self) -> float:
        """Fraction of stimulus components predicted from the core's state since `begin`."""
        return self._right / max(self._count, 1)


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
    differences = [text for name, text in LOOKS.items() if getattr(own, name) != getattr(game, name)]
    if differences:
        mine, other = (listed([text(one) for text in differences]) for one in (own, game))
        raise IncompatibleError(f"This network was created for {mine}, and the game has {other}.")
    fewer = role == LISTENER and actions.form == "decision"
    if game.vocab_size != own.vocab_size and not (fewer and game.vocab_size < own.vocab_size):
        raise IncompatibleError(
            f"This network was created for {counted(own.vocab_size, 'token')}, and the game has {game.vocab_size}; "
            "give both the same vocab_size. It can be larger than `most`."
        )
