"""Memory of pairs of a number that was seen and a token that was heard, behind the interface of cores.

An entry joins what is seen at a step with what was heard the step before: at the end of a game, the target and its
message. What is asked at a step is whether what is seen goes with what is heard now.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.s2b.agents.memories.attention import (
    NUMBER,
    TOKEN,
    Lookup,
    MemorySettings,
    by_dimension,
    features,
    odds_of_all,
    paired,
)

from .core import CAPACITY, Device, Inputs, Parts, Resets, SequenceCore, State, Traced
from .entries import appended, remembered, view


class PairMemory(SequenceCore):
    """Attention over earlier pairs of a number and a token, shared by all dimensions and positions.

    Which position is about which dimension is learned. An entry also holds the flags, by which steps at the end of a
    game can be told from others.

    Args:
        width: width of an input.
        parts: which parts of the input are seen, heard and flags, and of how many stimuli and tokens; by default its
            two halves. Networks that leave stimuli and messages as they are give them (`stimulus=(), message=(),
            joint=()`).
        capacity: number of earlier steps that the memory holds.
        heads: number of attention heads.
        size: width of a head's queries and keys.
        hidden: width of the layers that judge what was read.
        output: width of an output.

    Raises:
        InvalidSettingError: parts that do not fit the input.
    """

    raw = True

    def __init__(
        self,
        width: int,
        parts: Parts | None = None,
        capacity: int = CAPACITY,
        heads: int = 2,
        size: int = 32,
        hidden: int = 64,
        output: int = 64,
    ) -> None:
        given = parts or Parts.halves(whole_number("width of an input", width, least=2))
        super().__init__(width, output, output)
        self.dimensions, left = divmod(given.vision, given.stimuli)
        token, left_over = divmod(given.language, given.tokens)
        if left or left_over or not self.dimensions * token or given.width > width:
            raise InvalidSettingError(f"{given} do not fit an input of {width} numbers.")
        self.parts, self.capacity = given, whole_number("capacity", capacity)
        self.embedding = nn.Linear(token, TOKEN, bias=False)
        self.lookup = Lookup(NUMBER + TOKEN + given.flags, MemorySettings(heads=heads, width=size, hidden=hidden))
        if given.tokens > 1:
            self.alignment = nn.Parameter(torch.zeros(self.dimensions, given.tokens))
        judged = given.stimuli * (1 + self.dimensions)
        self.answer = nn.Sequential(nn.Linear(judged + width, output), nn.ReLU())

    def start(self, episodes: int, device: Device = None) -> State:
        """Return an empty memory, a count of steps, what was heard the step before, and the last output: none yet."""
        held = self.dimensions + self.parts.language + self.parts.flags
        memory = self.zeros(episodes, self.capacity, held, device=device)
        count = torch.zeros(episodes, dtype=torch.int64, device=memory.device)
        return memory, count, memory.new_zeros(episodes, self.parts.language), memory.new_zeros(episodes, self.output)

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the last output."""
        return state[-1]

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read several inputs in one parallel pass."""
        memory, count, heard, _ = state
        seen = view(count, resets, len(xs), self.capacity)
        stimuli, words, flags = xs[..., : self.parts.width].split(self.parts.sizes, -1)
        stimuli = stimuli.unflatten(-1, (self.parts.stimuli, self.dimensions))
        before = torch.cat([heard[None], words[:-1]])
        if resets is not None:
            before = before.masked_fill(resets.unsqueeze(-1), 0.0)
        entries = appended(memory, torch.cat([stimuli[..., 0, :], before, flags], -1))
        stored = self._pairs(*entries.split((self.dimensions, self.parts.language, self.parts.flags), -1))
        agree = torch.stack([
            self._agreement(one.transpose(0, 1), words.transpose(0, 1), flags.transpose(0, 1), stored, seen.earlier)
            for one in stimuli.unbind(-2)
        ], -1)  # [B, dimensions, T, stimuli]  # fmt: skip
        read = torch.cat([odds_of_all(agree).transpose(0, 1), agree.permute(2, 0, 1, 3).flatten(-2)], -1)
        ys = self.answer(torch.cat([read, xs], -1))
        return ys, ys, (remembered(entries, seen), seen.count, words[-1], ys[-1])

    def _agreement(
        self, stimuli: Tensor, words: Tensor, flags: Tensor, stored: Tensor, earlier: Tensor
    ) -> Float[Tensor, "batch dimension step"]:
        """Return how well the numbers of a stimulus go with the tokens about them, by each dimension."""
        scores: Tensor = self.lookup(self._pairs(stimuli, words, flags), stored, earlier[:, None])
        if self.parts.tokens == 1:
            return scores
        return by_dimension(scores, self.alignment.softmax(1))

    def _pairs(self, stimuli: Tensor, words: Tensor, flags: Tensor) -> Float[Tensor, "batch pair step entry"]:
        """Return an entry for each pair of a dimension and a token, of stimuli [B, T, dimensions] with words."""
        tokens = self.embedding(words.unflatten(-1, (self.parts.tokens, -1)))
        return paired(features(stimuli), tokens, flags).transpose(1, 2)
