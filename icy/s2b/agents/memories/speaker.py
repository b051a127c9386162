"""A speaker that learns, with an attention memory of the earlier tokens of each message position.

A position describes one dimension in a whole episode. It attends to earlier games with similar numbers, repeats their
tokens, and picks an unused token for a new number. The speaker does not see answers or results. So its attention
weights depend only on the stimuli, and only the tokens are computed game by game.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.fields import check_fields, setting
from icy.s2b.game import Seen
from icy.s2b.players.interface import Action, Meanings, Player, Seat, Sentences, Stimuli
from icy.s2b.settings import GameSettings

from .attention import NUMBER, EpisodeMemory, features, pick

NEARNESS = ("near", "square")  # attention by the distance of numbers, without an embedding
SHARPNESS = {"distance": 4.0, "near": 10.0, "square": 200.0}  # initial sharpness of attention by distance
NEW = {"distance": -2.0, "near": -2.0, "square": -5.0, "dot": -2.0}  # initial score of "no earlier game"
FRESH = 2.0  # weight of a token's earlier use in the choice of a new token
FRESH_WIDTH = 32  # hidden width of the network that scores earlier use
SLIP = 1e-4  # lower bound of the odds of a token
Shown = Float[Tensor, "batch game dimension"]
Dimensions = Int[Tensor, "batch position"]
Tokens = Int[Tensor, "batch position game"]
OfTokens = Float[Tensor, "batch position game token"]
Choice = Float[Tensor, "*lead token"]


@dataclass(frozen=True)
class SpeakerSettings:
    """Settings of a speaker that learns.

    Attributes:
        kind: "positions": each position sees the number of one dimension; "whole": each position sees the whole
            stimulus and its own index.
        memory: whether the speaker attends to earlier games.
        attention: score of an earlier game: "distance": squared distance of learned embeddings of both numbers; "near":
            distance of the numbers; "square": squared distance of the numbers; "dot": dot product of queries and keys;
            "auto": "square" if a meaning has several samples, otherwise "distance".
        alignment: the dimension that a position describes: "drawn": sampled in every episode from learned
            probabilities; "soft": a mean over dimensions with these probabilities; "fixed": dimension i at position i.
        heads: number of attention heads.
        width: width of a head.
        hidden: width of the hidden layer of the network that scores new tokens.
        scale: factor of the scores of new tokens; with a larger factor the initial choices are less random.
    """

    kind: str = setting("positions", "kind of speaker", among=("positions", "whole"))
    memory: bool = True
    attention: str = setting("auto", among=("auto", "distance", "near", "square", "dot"))
    alignment: str = setting("drawn", among=("drawn", "soft", "fixed"))
    heads: int = setting(2, "setting heads of the speaker", least=1)
    width: int = setting(32, "setting width of the speaker", least=1)
    hidden: int = setting(64, "setting hidden of the speaker", least=1)
    scale: float = setting(1.0, "setting scale of the speaker", least=0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind == "whole" and self.attention in NEARNESS:
            raise InvalidSettingError(
                f"attention='{self.attention}' compares single numbers, and kind='whole' has several per stimulus; "
                "take attention 'distance' or 'dot'."
            )


class Recall(NamedTuple):
    """Attention weights and token scores for all games of whole episodes.

    Attributes:
        weights: attention weights from each game to the other games, [B, L, G, G]; 0 except for earlier games.
        guess: scores of new tokens, [B, L, G, V].
    """

    weights: Float[Tensor, "batch position game stored"]
    guess: OfTokens


class MemorySpeaker(nn.Module):
    """Speaker that reuses its earlier tokens for similar numbers and picks an unused token for a new number.

    All positions share all parameters except the alignment. Here tokens count from 0 and have no end token, so a
    message consists of these tokens plus 1. The speaker never uses the end token.

    Args:
        game: settings of the game.
        settings: settings of the speaker.

    Raises:
        IncompatibleError: messages or vocabulary are too small for one token per dimension and value.
    """

    def __init__(self, game: GameSettings, settings: SpeakerSettings | None = None) -> None:
        super().__init__()
        settings = settings or SpeakerSettings()
        if settings.attention == "auto":
            whole = settings.kind == "whole"
            settings = replace(settings, attention="square" if game.samples > 1 and not whole else "distance")
        self.settings = settings
        _check(game)
        self.vocab, self.positions, self.dimensions = game.vocab_size, game.length, game.width
        seen = NUMBER if settings.kind == "positions" else self.dimensions * NUMBER + self.positions
        self.alignment = nn.Parameter(torch.zeros(self.positions, self.dimensions))
        self.guess = nn.Sequential(
            nn.Linear(seen, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, self.vocab)
        )  # fmt: skip
        if not settings.memory:
            return
        self.freshness = nn.Sequential(nn.Linear(2, FRESH_WIDTH), nn.ReLU(), nn.Linear(FRESH_WIDTH, 1))
        heads = 1 if settings.attention in NEARNESS else settings.heads
        self.new = nn.Parameter(torch.full((heads,), NEW[settings.attention]))
        if settings.attention not in NEARNESS:
            self.key = nn.Linear(seen, heads * settings.width, bias=False)
        if settings.attention == "dot":
            self.query = nn.Linear(seen, heads * settings.width)
        else:
            self.sharpness = nn.Parameter(torch.full((heads,), math.log(SHARPNESS[settings.attention])))

    # -- inputs of a position ------------------------------------------------------------------------------------------

    def draw_dimensions(self, uniform: Float[Tensor, "batch position"]) -> Dimensions:
        """Sample the dimension that each position describes in an episode, with uniform random numbers."""
        if self.settings.alignment == "fixed":
            return (torch.arange(self.positions, device="cpu") % self.dimensions).expand(len(uniform), -1)
        return pick(self.alignment.detach().softmax(1).expand(len(uniform), -1, -1), uniform)

    def likeliest_dimensions(self, batch: int) -> Dimensions:
        """Return the most likely dimension of each position, for `batch` episodes."""
        if self.settings.alignment == "fixed":
            return self.draw_dimensions(torch.zeros(batch, self.positions, dtype=torch.float32, device="cpu"))
        return self.alignment.argmax(1).expand(batch, -1)

    def see(self, stimuli: Shown, dimensions: Dimensions) -> Float[Tensor, "batch position game feature"]:
        """Compute the input features of each position."""
        batch, games = stimuli.shape[:2]
        if self.settings.kind == "whole":
            seen = features(stimuli).flatten(-2)[:, None].expand(-1, self.positions, -1, -1)
            which = torch.eye(self.positions, dtype=torch.float32, device="cpu")[None, :, None]
            return torch.cat([seen, which.expand(batch, -1, games, -1)], -1)
        if self.settings.alignment == "soft":
            return features(torch.einsum("bgn,ln->blg", stimuli, self.alignment.softmax(1)))
        return features(stimuli.mT.gather(1, dimensions[..., None].expand(-1, -1, games)))

    # -- the memory ----------------------------------------------------------------------------------------------------

    def attend(
        self,
        inputs: Float[Tensor, "batch position query feature"],
        stored: Float[Tensor, "batch position stored feature"],
        known: Bool[Tensor, "..."],
    ) -> Float[Tensor, "batch position query stored"]:
        """Compute the attention weights of earlier games. One minus their sum is the weight of "new number".

        Args:
            inputs: features of the current game.
            stored: features of earlier games.
            known: mask of the games that may be used; it broadcasts to [batch, position, head, query, stored].
        """
        scores = self._scores(inputs, stored).masked_fill(~known, -math.inf)
        new = self.new.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        weights: Tensor = torch.cat([scores, new], -1).softmax(-1)[..., :-1].mean(-3)
        return weights

    def _scores(self, inputs: Tensor, stored: Tensor) -> Tensor:
        if self.settings.attention in NEARNESS:
            distance = (inputs[..., :1] - stored[..., :1].mT).abs().unsqueeze(-3)
            power = 2 if self.settings.attention == "square" else 1
            return -self.sharpness.exp().view(-1, 1, 1) * distance**power
        key = self._heads(self.key(stored))
        if self.settings.attention == "dot":
            return self._heads(self.query(inputs)) @ key.mT / math.sqrt(self.settings.width)
        query = self._heads(self.key(inputs))
        squares = query.square().sum(-1)[..., None] + key.square().sum(-1)[..., None, :] - 2 * query @ key.mT
        return -self.sharpness.exp().view(-1, 1, 1) * squares.clamp(min=0)

    def _heads(self, projected: Tensor) -> Tensor:
        heads: Tensor = projected.unflatten(-1, (-1, self.settings.width)).transpose(-2, -3)
        return heads

    def chances(
        self, read: Choice, used: Float[Tensor, "*#lead token"], attended: Float[Tensor, "*lead"], guess: Choice
    ) -> Choice:
        """Compute the probability of every token.

        Args:
            read: sum of the earlier games' one-hot tokens, weighted by attention, [..., V].
            used: 1 for tokens used before in the episode, [..., V].
            attended: sum of the attention weights of earlier games, [...].
            guess: score of each token for the current input, [..., V].
        """
        fresh = 0.0
        if self.settings.memory:
            never, before = self.freshness(torch.eye(2, dtype=torch.float32, device="cpu").flip(0)).squeeze(-1)
            fresh = FRESH * (never + (before - never) * used)
        chosen = (self.settings.scale * (guess + fresh)).softmax(-1)
        odds = read + (1 - attended).clamp(min=0).unsqueeze(-1) * chosen + SLIP
        return odds / odds.sum(-1, keepdim=True)

    # -- whole episodes ------------------------------------------------------------------------------------------------

    def recall(self, stimuli: Shown, dimensions: Dimensions) -> Recall:
        """Compute the attention weights and token scores of whole episodes. They do not depend on tokens."""
        seen = self.see(stimuli, dimensions)
        games = seen.shape[2]
        if not self.settings.memory:
            return Recall(seen.new_zeros(*seen.shape[:3], games), self.guess(seen))
        earlier = torch.ones(games, games, dtype=torch.bool, device="cpu").tril(-1)
        return Recall(self.attend(seen, seen, earlier), self.guess(seen))

    @torch.no_grad()
    def speak(self, recall: Recall, uniform: Float[Tensor, "batch position game"] | None = None) -> Tokens:
        """Choose the tokens of whole episodes: sampled with `uniform` random numbers, or the most likely if None."""
        weights, guess = recall
        attended, said = weights.sum(-1), torch.zeros_like(guess)
        tokens, used = torch.zeros(guess.shape[:3], dtype=torch.long, device="cpu"), torch.zeros_like(guess[:, :, 0])
        for now in range(guess.shape[2]):
            read = (weights[:, :, now, None, :now] @ said[:, :, :now]).squeeze(-2)
            chances = self.chances(read, used, attended[:, :, now], guess[:, :, now])
            token = chances.argmax(-1) if uniform is None else pick(chances, uniform[:, :, now])
            said[:, :, now].scatter_(-1, token.unsqueeze(-1), 1.0)
            tokens[:, :, now], used = token, torch.maximum(used, said[:, :, now])
        return tokens

    def log_chances(self, recall: Recall, tokens: Tokens) -> OfTokens:
        """Return the log-probability of every token in each game, given the earlier tokens of the episode."""
        weights, guess = recall
        said = F.one_hot(tokens, self.vocab).to(guess.dtype)
        used = ((said.cumsum(2) - said) > 0).to(guess.dtype)
        return self.chances(weights @ said, used, weights.sum(-1), guess).log()

    def speak_straight(self, recall: Recall, noise: OfTokens, temperature: float = 1.0) -> tuple[OfTokens, OfTokens]:
        """Sample tokens as one-hots through which gradients pass; also return the log-probabilities of all tokens.

        Args:
            recall: attention weights and token scores of the episodes.
            noise: Gumbel noise.
            temperature: temperature of the Gumbel softmax, which gives a sampled token's gradient.
        """
        weights, guess = recall
        attended, used = weights.sum(-1), torch.zeros_like(guess[:, :, 0])
        said: list[Tensor] = []
        logs: list[Tensor] = []
        for now in range(guess.shape[2]):
            read = torch.zeros_like(used)
            if now:
                read = (weights[:, :, now, None, :now] @ torch.stack(said, 2)).squeeze(-2)
            log = self.chances(read, used, attended[:, :, now], guess[:, :, now]).log()
            soft = ((log + noise[:, :, now]) / temperature).softmax(-1)
            hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
            said.append(hard + soft - soft.detach())
            logs.append(log)
            used = used + (1 - used) * said[-1]
        return torch.stack(said, 2), torch.stack(logs, 2)

    def dimension_log_chances(self, dimensions: Dimensions) -> Float[Tensor, " batch"]:
        """Return the log-probability that the positions of an episode describe these dimensions."""
        if self.settings.alignment != "drawn":
            return torch.zeros(len(dimensions), dtype=torch.float32, device="cpu")
        logs = self.alignment.log_softmax(1).expand(len(dimensions), -1, -1)
        return logs.gather(2, dimensions.unsqueeze(-1)).sum((1, 2))


def _check(game: GameSettings) -> None:
    if game.length < game.dimensions or game.vocab_size < game.most:
        raise IncompatibleError(
            "This speaker uses one token per dimension and value, so it needs a length of at least "
            f"{game.dimensions} and a vocab_size of at least {game.most}."
        )
    if game.representation != "scs" or game.rounds != 1:
        raise IncompatibleError(
            "A speaker that learns plays games of one round, with stimuli of one number per dimension (scs)."
        )


# -- the player --------------------------------------------------------------------------------------------------------


class TrainedSpeaker(Player):
    """Trained speaker that acts step by step, with the most likely tokens and dimensions of positions.

    Args:
        network: the speaker.
    """

    def __init__(self, network: MemorySpeaker) -> None:
        self.network = network

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have one round, and the speaker's length and vocabulary."""
        super().begin(seat)
        settings, network = seat.settings, self.network
        if (settings.vocab_size, settings.length) != (network.vocab, network.positions) or settings.rounds != 1:
            raise IncompatibleError(
                f"This speaker was trained for one round with {network.positions} tokens from a vocabulary of "
                f"{network.vocab}; the game has rounds={settings.rounds}, length={settings.length} and "
                f"vocab_size={settings.vocab_size}."
            )
        self.memory = EpisodeMemory(seat.episodes, settings.width, settings.length)
        self.dimensions = torch.zeros(seat.episodes, settings.length, dtype=torch.long, device="cpu")

    @torch.no_grad()
    def acting(self, seen: Seen) -> Action:
        """Send a message about the target, and store the target and the message."""
        if seen.fresh.any():
            self.memory.forget(seen.fresh)
            likeliest = self.network.likeliest_dimensions(self.seat.episodes)
            self.dimensions = torch.where(torch.as_tensor(seen.fresh)[:, None], likeliest, self.dimensions)
        speaks = seen.may_speak & (seen.round == 0)
        if not speaks.any():
            return Action()
        target = torch.as_tensor(seen.stimulus[:, 0])
        tokens = self._chances(target[:, None], slice(None))[:, :, 0].argmax(-1)
        self.memory.add(target, tokens, speaks)
        return Action(message=(tokens.numpy() + 1) * speaks[:, None])

    @torch.no_grad()
    def utter(self, stimuli: Stimuli, meanings: Meanings, episode: int) -> Sentences:
        """Return the most likely message about each stimulus; see Player."""
        inputs = torch.as_tensor(np.asarray(stimuli, dtype=np.float32))[None]
        tokens = self._chances(inputs, slice(episode, episode + 1))[0].argmax(-1)
        return np.asarray(tokens.T.numpy() + 1)

    def _chances(self, stimuli: Tensor, rows: slice) -> Tensor:
        """Return the probabilities of the next tokens, [b, L, n, V], for stimuli [b, n, W]."""
        network, memory, dimensions = self.network, self.memory, self.dimensions[rows]
        inputs = network.see(stimuli, dimensions)
        there = memory.known[rows, None, :, None]
        said = (F.one_hot(memory.messages[rows].mT, network.vocab) * there).to(inputs.dtype)
        weights = inputs.new_zeros(*inputs.shape[:3], said.shape[2])
        if network.settings.memory:
            stored = network.see(memory.stimuli[rows], dimensions)
            weights = network.attend(inputs, stored, memory.known[rows, None, None, None])
        used = (said.sum(2, keepdim=True) > 0).to(inputs.dtype)
        return network.chances(weights @ said, used, weights.sum(-1), network.guess(inputs))
