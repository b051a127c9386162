"""A speaker that learns by reward alone: at each position an attention memory of what was said there before.

A position speaks of one dimension for a whole episode. It looks up its own earlier games for numbers like the present
one, says again what it said there, and takes a fresh token for a number that is new. It sees neither answers nor
results. So what a game looks up depends on stimuli alone, and only the tokens are found game by game.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import real_number, whole_number
from icy.core.errors import IncompatibleError, InvalidSettingError, unknown
from icy.s2b.settings import GameSettings

from .attention import NUMBER, features

KINDS = ("positions", "whole")
ATTENTIONS = ("auto", "distance", "near", "square", "dot")
NEARNESS = ("near", "square")  # of the numbers themselves
ALIGNMENTS = ("drawn", "soft", "fixed")
SHARPNESS = {"distance": 4.0, "near": 10.0, "square": 200.0}  # of attention at the start, by distance
NEW = {"distance": -2.0, "near": -2.0, "square": -5.0, "dot": -2.0}  # score of no earlier game at the start
FRESH = 2.0  # weight of whether a token was said before, in the choice of a new one
FRESH_WIDTH = 32
SLIP = 1e-4  # least odds of any token


@dataclass(frozen=True)
class SpeakerSettings:
    """Settings of a speaker that learns.

    Attributes:
        kind: "positions": a position sees the number of one dimension; "whole": every position sees the whole stimulus,
            and which position it is.
        memory: whether it looks up its own earlier games.
        attention: score of an earlier game: by the "distance" of what is learned of both numbers; by how "near" the
            numbers themselves are, or by the "square" of their distance; or by the "dot" product of queries and keys.
            "auto" is "square" where a meaning has several samples, and "distance" elsewhere.
        alignment: which dimension a position speaks of: "drawn" in every episode from learned probabilities; "soft",
            the mean of all dimensions by those; or "fixed", in order.
        heads: number of attention heads.
        width: width of a head.
        hidden: width of the layer that a new token is chosen with.
        scale: factor of the scores of new tokens; with more, the speaker is surer of itself at the start.
    """

    kind: str = "positions"
    memory: bool = True
    attention: str = "auto"
    alignment: str = "drawn"
    heads: int = 2
    width: int = 32
    hidden: int = 64
    scale: float = 1.0

    def __post_init__(self) -> None:
        for what, given, accepted in (
            ("kind of speaker", self.kind, KINDS),
            ("attention", self.attention, ATTENTIONS),
            ("alignment", self.alignment, ALIGNMENTS),
        ):
            if given not in accepted:
                raise unknown(what, str(given), accepted)
        for name in ("heads", "width", "hidden"):
            whole_number(f"setting {name} of the speaker", getattr(self, name))
        real_number("setting scale of the speaker", self.scale)
        if self.kind == "whole" and self.attention in NEARNESS:
            raise InvalidSettingError("Attention to near numbers is of one number, and a whole stimulus has several.")


class Recall(NamedTuple):
    """What every game of whole episodes looks up.

    Attributes:
        weights: how much it reads of each other game, [B, L, G, G]: 0 of those that are not earlier.
        guess: its scores of new tokens, [B, L, G, V].
    """

    weights: Float[Tensor, "batch position game stored"]
    guess: Float[Tensor, "batch position game token"]


class MemorySpeaker(nn.Module):
    """Speaker that says again what it said of numbers like these, and something fresh of a number that is new.

    Everything but the alignment is shared by all positions. Tokens here are counted from 0, without the end token,
    which is never said: a message is these tokens plus 1.

    Args:
        game: settings of the game.
        settings: settings of the speaker.

    Raises:
        IncompatibleError: messages or a vocabulary too small to tell all meanings apart, position by position.
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

    # -- what a position sees ------------------------------------------------------------------------------------------

    def draw_dimensions(self, uniform: Float[Tensor, "batch position"]) -> Int[Tensor, "batch position"]:
        """Draw the dimension that each position speaks of in an episode, by uniform numbers."""
        if self.settings.alignment == "fixed":
            return (torch.arange(self.positions, device="cpu") % self.dimensions).expand(len(uniform), -1)
        return pick(self.alignment.detach().softmax(1).expand(len(uniform), -1, -1), uniform)

    def likeliest_dimensions(self, batch: int) -> Int[Tensor, "batch position"]:
        """Return the likeliest dimension of each position."""
        if self.settings.alignment == "fixed":
            return self.draw_dimensions(torch.zeros(batch, self.positions, dtype=torch.float32, device="cpu"))
        return self.alignment.argmax(1).expand(batch, -1)

    def see(
        self, stimuli: Float[Tensor, "batch game dimension"], dimensions: Int[Tensor, "batch position"]
    ) -> Float[Tensor, "batch position game feature"]:
        """Return what each position sees of stimuli."""
        batch, games = stimuli.shape[:2]
        if self.settings.kind == "whole":
            seen = features(stimuli).flatten(-2)[:, None].expand(-1, self.positions, -1, -1)
            which = torch.eye(self.positions, dtype=torch.float32, device="cpu")[None, :, None].expand(
                batch, -1, games, -1
            )
            return torch.cat([seen, which], -1)
        if self.settings.alignment == "soft":
            return features(torch.einsum("bgn,ln->blg", stimuli, self.alignment.softmax(1)))
        return features(stimuli.mT.gather(1, dimensions[..., None].expand(-1, -1, games)))

    # -- the memory ----------------------------------------------------------------------------------------------------

    def attend(
        self,
        asked: Float[Tensor, "batch position asked feature"],
        stored: Float[Tensor, "batch position stored feature"],
        known: Bool[Tensor, "..."],
    ) -> Float[Tensor, "batch position asked stored"]:
        """Return how much each earlier game is read, of those that are known; what is missing to 1 is new.

        Args:
            asked: what is seen now.
            stored: what was seen in earlier games.
            known: which of these are known, a mask that broadcasts against [batch, position, head, asked, stored].
        """
        scores = self._scores(asked, stored).masked_fill(~known, -math.inf)
        new = self.new.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        weights: Tensor = torch.cat([scores, new], -1).softmax(-1)[..., :-1].mean(-3)
        return weights

    def _scores(self, asked: Tensor, stored: Tensor) -> Tensor:
        if self.settings.attention in NEARNESS:
            distance = (asked[..., :1] - stored[..., :1].mT).abs().unsqueeze(-3)
            power = 2 if self.settings.attention == "square" else 1
            return -self.sharpness.exp().view(-1, 1, 1) * distance**power
        key = self._heads(self.key(stored))
        if self.settings.attention == "dot":
            return self._heads(self.query(asked)) @ key.mT / math.sqrt(self.settings.width)
        query = self._heads(self.key(asked))
        squares = query.square().sum(-1)[..., None] + key.square().sum(-1)[..., None, :] - 2 * query @ key.mT
        return -self.sharpness.exp().view(-1, 1, 1) * squares.clamp(min=0)

    def _heads(self, projected: Tensor) -> Tensor:
        heads: Tensor = projected.unflatten(-1, (-1, self.settings.width)).transpose(-2, -3)
        return heads

    def chances(
        self,
        read: Float[Tensor, "*lead token"],
        used: Float[Tensor, "*#lead token"],
        attended: Float[Tensor, "*lead"],
        guess: Float[Tensor, "*lead token"],
    ) -> Float[Tensor, "*lead token"]:
        """Return the probability of every token.

        Args:
            read: what the earlier games said, by how much each was read, [..., V].
            used: which tokens were said before, [..., V].
            attended: how much of earlier games was read in all, [...].
            guess: score of each token for what is seen, [..., V].
        """
        fresh = 0.0
        if self.settings.memory:
            never, before = self.freshness(torch.eye(2, dtype=torch.float32, device="cpu").flip(0)).squeeze(-1)
            fresh = FRESH * (never + (before - never) * used)
        chosen = (self.settings.scale * (guess + fresh)).softmax(-1)
        odds = read + (1 - attended).clamp(min=0).unsqueeze(-1) * chosen + SLIP
        return odds / odds.sum(-1, keepdim=True)

    # -- whole episodes ------------------------------------------------------------------------------------------------

    def recall(
        self, stimuli: Float[Tensor, "batch game dimension"], dimensions: Int[Tensor, "batch position"]
    ) -> Recall:
        """Return what whole episodes look up: all that a speaker's tokens depend on beside its earlier tokens."""
        seen = self.see(stimuli, dimensions)
        games = seen.shape[2]
        if not self.settings.memory:
            return Recall(seen.new_zeros(*seen.shape[:3], games), self.guess(seen))
        earlier = torch.ones(games, games, dtype=torch.bool, device="cpu").tril(-1)
        return Recall(self.attend(seen, seen, earlier), self.guess(seen))

    @torch.no_grad()
    def speak(
        self, recall: Recall, uniform: Float[Tensor, "batch position game"] | None = None
    ) -> Int[Tensor, "batch position game"]:
        """Return the tokens of whole episodes, drawn by uniform numbers; without them, the likeliest."""
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

    def log_chances(
        self, recall: Recall, tokens: Int[Tensor, "batch position game"]
    ) -> Float[Tensor, "batch position game token"]:
        """Return the log-probability of every token in each game of episodes in which these tokens were said."""
        weights, guess = recall
        said = F.one_hot(tokens, self.vocab).to(guess.dtype)
        used = ((said.cumsum(2) - said) > 0).to(guess.dtype)
        return self.chances(weights @ said, used, weights.sum(-1), guess).log()

    def speak_straight(
        self, recall: Recall, noise: Float[Tensor, "batch position game token"], temperature: float = 1.0
    ) -> tuple[Float[Tensor, "batch position game token"], Float[Tensor, "batch position game token"]]:
        """Return drawn tokens as one-hots through which gradients pass, and the log-probabilities of all tokens.

        Args:
            recall: what the episodes look up.
            noise: noise of a Gumbel distribution.
            temperature: temperature of the distribution whose gradient stands in for that of a choice.
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

    def dimension_log_chances(self, dimensions: Int[Tensor, "batch position"]) -> Float[Tensor, " batch"]:
        """Return the log-probability that the positions of an episode speak of these dimensions."""
        if self.settings.alignment != "drawn":
            return torch.zeros(len(dimensions), dtype=torch.float32, device="cpu")
        logs = self.alignment.log_softmax(1).expand(len(dimensions), -1, -1)
        return logs.gather(2, dimensions.unsqueeze(-1)).sum((1, 2))


def pick(chances: Float[Tensor, "*lead choice"], uniform: Float[Tensor, "*lead"]) -> Int[Tensor, "*lead"]:
    """Draw by uniform numbers in [0, 1): the choice at which the sum of chances passes it."""
    sums = chances.cumsum(-1)
    at = uniform.unsqueeze(-1).to(sums.dtype) * sums[..., -1:]
    return (sums <= at).sum(-1).clamp(max=chances.shape[-1] - 1)


def _check(game: GameSettings) -> None:
    if game.length < game.dimensions or game.vocab_size < game.most:
        raise IncompatibleError(
            "A speaker that says a token per dimension needs messages as long as there are dimensions, and a token per "
            f"value: a length of {game.dimensions} and a vocab_size of {game.most} at least."
        )
    if game.representation != "scs" or game.rounds != 1:
        raise IncompatibleError(
            "A speaker that learns plays games of one round, with stimuli of one number each (scs)."
        )
