"""Episodic attention memories: listeners that attend to earlier games of the episode, and their players.

The listeners do not know how many values a dimension has, or which position of a message describes which dimension.
They do not see results or rewards, so a decision does not depend on earlier decisions. A whole episode is then one
parallel pass, with the same result as playing it step by step.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.core.fields import check_fields, setting
from icy.s2b.agents.dealt import DealtGames
from icy.s2b.game import Seen
from icy.s2b.players.interface import Decisions, Seat
from icy.s2b.players.listeners import Decider, Which
from icy.s2b.settings import GameSettings

OCTAVES = 6  # number of frequencies of a number's sines and cosines
TOKEN = 16  # width of a token's embedding
NUMBER = 1 + 2 * OCTAVES  # width of a number's features
Pairs = Float[Tensor, "*lead pair entry"]


@dataclass(frozen=True)
class MemorySettings:
    """Settings of an attention memory.

    Attributes:
        kind: "pairs": a memory that all pairs of a dimension and a message position share; "joint": a memory of whole
            games.
        heads: number of attention heads.
        width: width of a head's queries and keys.
        hidden: width of the layers of the perceptron.
        waves: whether numbers are encoded with sines and cosines; otherwise they are used directly.
        difference: whether the perceptron also gets the absolute difference between the query and the result of
            attention.
        aligned: whether position d of a message is fixed to dimension d; otherwise the alignment is learned.
        deaf: whether messages are replaced by empty messages.
    """

    kind: str = setting("pairs", "kind of memory", among=("pairs", "joint"))
    heads: int = setting(2, least=1)
    width: int = setting(32, least=1)
    hidden: int = setting(64, least=1)
    waves: bool = True
    difference: bool = True
    aligned: bool = False
    deaf: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.aligned and self.kind == "joint":
            raise IncompatibleError("A joint memory stores whole games and has no alignment; leave out `aligned`.")


def features(numbers: Float[Tensor, "*lead"], waves: bool = True) -> Float[Tensor, "*lead feature"]:
    """Return the features of each number: itself, and its sines and cosines with periods 4, 2, 1, ..."""
    x = numbers.unsqueeze(-1)
    if not waves:
        return x
    phases = x * (math.pi / 2 * 2.0 ** torch.arange(OCTAVES, device=x.device))
    return torch.cat([x, phases.sin(), phases.cos()], -1)


class Lookup(nn.Module):
    """Attention over earlier entries, and a perceptron that compares the result with the query entry.

    Args:
        entry: width of an entry and of a query entry.
        settings: heads and widths.
    """

    def __init__(self, entry: int, settings: MemorySettings) -> None:
        super().__init__()
        self.heads, self.width, self.difference = settings.heads, settings.width, settings.difference
        self.query = nn.Linear(entry, self.heads * self.width)
        self.key = nn.Linear(entry, self.heads * self.width, bias=False)
        self.nothing = nn.Parameter(torch.zeros(self.heads))  # score of a learned entry that is always in memory
        self.empty = nn.Parameter(torch.zeros(self.heads, entry))  # content of this entry
        read = self.heads * entry * (2 if self.difference else 1)
        self.judge = nn.Sequential(
            nn.Linear(entry + read, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, settings.hidden), nn.ReLU(),
            nn.Linear(settings.hidden, 1),
        )  # fmt: skip

    def forward(
        self,
        inputs: Float[Tensor, "*lead query entry"],
        entries: Float[Tensor, "*lead stored entry"],
        known: Bool[Tensor, "*#lead #query stored"],
    ) -> Float[Tensor, "*lead query"]:
        """Score each query entry by comparison with the stored entries in its mask `known`."""
        query = self.query(inputs).unflatten(-1, (self.heads, self.width)).transpose(-2, -3)
        key = self.key(entries).unflatten(-1, (self.heads, self.width)).transpose(-2, -3)
        scores = query @ key.mT / math.sqrt(self.width)
        scores = scores.masked_fill(~known.unsqueeze(-3), -math.inf)
        nothing = self.nothing.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        weights = torch.cat([nothing, scores], -1).softmax(-1)
        read = weights[..., 1:] @ entries.unsqueeze(-3) + weights[..., :1] * self.empty.unsqueeze(-2)
        read = read.transpose(-2, -3)
        parts = [inputs, read.flatten(-2)]
        if self.difference:
            parts.append((read - inputs.unsqueeze(-2)).abs().flatten(-2))
        score: Tensor = self.judge(torch.cat(parts, -1)).squeeze(-1)
        return score


class MemoryListener(nn.Module):
    """Listener that scores each slot with an attention memory of the earlier games of the episode.

    Args:
        game: settings of the game.
        settings: settings of the memory.
    """

    def __init__(self, game: GameSettings, settings: MemorySettings | None = None) -> None:
        super().__init__()
        self.settings = settings or MemorySettings()
        self.descriptive = game.descriptive
        self.embedding = nn.Embedding(game.vocab_size + 1, TOKEN)
        self.tokens, self.dimensions = game.rounds * game.length, game.width
        number = NUMBER if self.settings.waves else 1
        if self.settings.kind == "pairs":
            self.lookup = Lookup(number + TOKEN, self.settings)
            self.alignment = nn.Parameter(torch.zeros(self.dimensions, self.tokens))
        else:
            self.lookup = Lookup(self.dimensions * number + self.tokens * TOKEN, self.settings)

    def entries(self, stimuli: Float[Tensor, "*lead dimension"], messages: Shaped[Tensor, "*said"]) -> Pairs:
        """Create memory entries from stimuli and messages: one per pair of dimension and token, or one per game.

        Messages may also be one-hots over 0..V, [..., token, V + 1], through which gradients pass.
        """
        if self.settings.deaf:
            messages = torch.zeros(*stimuli.shape[:-1], self.tokens, dtype=torch.long, device=stimuli.device)
        numbers = features(stimuli, self.settings.waves)
        straight = messages.is_floating_point()
        tokens = messages @ self.embedding.weight if straight else self.embedding(messages)
        if self.settings.kind == "joint":
            return torch.cat([numbers.flatten(-2), tokens.flatten(-2)], -1).unsqueeze(-2)
        return paired(numbers, tokens)

    def forward(self, games: DealtGames) -> Float[Tensor, "batch game decision"]:
        """Return the logits of all decisions in whole episodes."""
        count = games.there.shape[1]
        earlier = torch.ones(count, count, dtype=torch.bool, device=games.there.device).tril(-1)
        stored = self.entries(games.shown, games.messages).transpose(1, 2)  # [B, pairs, G, entry]
        return self.logits(games.stimuli, games.messages, stored, earlier)

    def logits(
        self,
        stimuli: Float[Tensor, "batch query slot dimension"],
        messages: Shaped[Tensor, "batch query *said"],
        stored: Float[Tensor, "batch pair stored entry"],
        known: Bool[Tensor, "*#lead #query stored"],
        descriptive: bool | None = None,
    ) -> Float[Tensor, "batch query decision"]:
        """Return the logits of decisions about stimuli, given the stored entries.

        Args:
            stimuli: the listener's stimuli.
            messages: the message received in each game.
            stored: the stored entries.
            known: mask of the entries that each decision may use.
            descriptive: whether "none" is a decision; by default as in the memory's game.
        """
        scores = []
        for slot in range(stimuli.shape[2]):
            inputs = self.entries(stimuli[:, :, slot], messages).transpose(1, 2)
            scores.append(self._pooled(self.lookup(inputs, stored, known)))
        if self.descriptive if descriptive is None else descriptive:
            scores.append(torch.zeros_like(scores[0]))
        return torch.stack(scores, -1)

    def _pooled(self, agree: Float[Tensor, "batch pair query"]) -> Float[Tensor, "batch query"]:
        """Return the log-odds that a stimulus has the target's meaning, i.e. matches in every dimension."""
        if self.settings.kind == "joint":
            return agree.squeeze(1)
        if self.settings.aligned:
            weights = torch.eye(self.dimensions, self.tokens, device=agree.device, dtype=torch.float32)
        else:
            weights = self.alignment.softmax(1)
        return odds_of_all(by_dimension(agree, weights))


def paired(
    numbers: Float[Tensor, "*lead dimension feature"],
    tokens: Float[Tensor, "*lead token embedding"],
    flags: Float[Tensor, "*lead flag"] | None = None,
) -> Pairs:
    """Create an entry for every pair of a dimension and a token: the features of both, and the flags."""
    of_pair = (*numbers.shape[:-1], tokens.shape[-2])
    parts = [numbers.unsqueeze(-2).expand(*of_pair, -1), tokens.unsqueeze(-3).expand(*of_pair, -1)]
    if flags is not None:
        parts.append(flags[..., None, None, :].expand(*of_pair, -1))
    return torch.cat(parts, -1).flatten(-3, -2)


def by_dimension(
    of_pairs: Float[Tensor, "batch pair query"], weights: Float[Tensor, "dimension token"]
) -> Float[Tensor, "batch dimension query"]:
    """Return a score per dimension: the weighted sum over the dimension's pairs."""
    scores: Tensor = (of_pairs.unflatten(1, weights.shape) * weights[..., None]).sum(2)
    return scores


def odds_of_all(odds: Float[Tensor, "batch each ..."]) -> Float[Tensor, "batch ..."]:
    """Return the log-odds that several independent events all occur, given the log-odds of each."""
    together = F.logsigmoid(odds).sum(1)
    return together - torch.log(-torch.expm1(together.clamp(max=-1e-6)))


def pick(chances: Float[Tensor, "*lead choice"], uniform: Float[Tensor, "*lead"]) -> Int[Tensor, "*lead"]:
    """Sample choices with uniform numbers in [0, 1): the first with a cumulative probability above the number."""
    sums = chances.cumsum(-1)
    at = uniform.unsqueeze(-1).to(sums.dtype) * sums[..., -1:]
    return (sums <= at).sum(-1).clamp(max=chances.shape[-1] - 1)


# -- the player --------------------------------------------------------------------------------------------------------


class EpisodeMemory:
    """The earlier games of B episodes, each with a stimulus and a message.

    Args:
        batch: number of episodes.
        width: length of a stimulus.
        tokens: number of tokens in a message.
    """

    def __init__(self, batch: int, width: int, tokens: int) -> None:
        self.stimuli = torch.zeros(batch, 0, width, dtype=torch.float32, device="cpu")
        self.messages = torch.zeros(batch, 0, tokens, dtype=torch.long, device="cpu")
        self.known = torch.zeros(batch, 0, dtype=torch.bool, device="cpu")

    def forget(self, which: Which) -> None:
        """Remove the games of the episodes in the mask `which`."""
        self.known[torch.as_tensor(which)] = False
        some = self.known.any(0)
        self.stimuli, self.messages, self.known = self.stimuli[:, some], self.messages[:, some], self.known[:, some]

    def add(
        self, stimuli: Float[Tensor, "batch dimension"], messages: Int[Tensor, "batch token"], which: Which
    ) -> None:
        """Add a game to the episodes in the mask `which`."""
        self.stimuli = torch.cat([self.stimuli, stimuli[:, None]], 1)
        self.messages = torch.cat([self.messages, messages[:, None]], 1)
        self.known = torch.cat([self.known, torch.as_tensor(which)[:, None]], 1)


class MemoryPlayer(Decider):
    """Listener that takes the most likely decision, by an attention memory of the episode's earlier games.

    It can play games with any number of stimuli, because the memory scores each stimulus in the same way.

    Args:
        model: the attention memory.
    """

    def __init__(self, model: MemoryListener) -> None:
        self.model = model.eval()

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have feedback, and the sizes of the memory's game."""
        super().begin(seat)
        settings, model = seat.settings, self.model
        shape = settings.width, settings.rounds * settings.length
        made, words = (model.dimensions, model.tokens), model.embedding.num_embeddings - 1
        if shape != made or settings.vocab_size > words:
            raise IncompatibleError(
                "This memory was created for stimuli of {} numbers, {} tokens per game and a vocabulary of {}; the "
                "game has {} numbers, {} tokens (rounds times length) and a vocabulary of {} (vocab_size).".format(
                    *made, words, *shape, settings.vocab_size
                )
            )
        if not settings.feedback or settings.listener_messages:
            raise IncompatibleError(
                "An attention memory needs games with feedback and without messages of the listener (feedback=True, "
                "listener_messages=False)."
            )
        self.memory = EpisodeMemory(seat.episodes, settings.width, model.tokens)

    @torch.no_grad()
    def decide(self, seen: Seen) -> Decisions:
        """Return the memory's decisions; see Decider."""
        model, memory, settings = self.model, self.memory, self.seat.settings
        stored = model.entries(memory.stimuli, memory.messages).transpose(1, 2)
        stimuli, words = torch.as_tensor(seen.stimulus)[:, None], torch.as_tensor(self.words)[:, None]
        logits = model.logits(stimuli, words, stored, memory.known[:, None, None], settings.descriptive)
        return np.asarray(logits[:, 0].argmax(-1))

    def forget(self, which: Which) -> None:
        """Remove the games of earlier episodes; see Decider."""
        self.memory.forget(which)

    def learn(self, seen: Seen) -> None:
        """Store the target at the end of a game; see Decider."""
        self.memory.add(torch.as_tensor(seen.stimulus[:, 0]), torch.as_tensor(self.words), seen.feedback)
