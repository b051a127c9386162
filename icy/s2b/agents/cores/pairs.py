"""A core with a memory of pairs of a stimulus component and a token.

An entry joins the stimulus of a step with the message of the previous step: at the end of a game, the target with its
message. At each step, the memory scores whether the current stimulus matches the current message.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.s2b.agents.memories import attention
from icy.s2b.agents.memories.attention import NUMBER, TOKEN, Lookup, MemorySettings

from .core import CAPACITY, Device, Inputs, Parts, Resets, State, Traced
from .entries import RememberingCore, appended, remembered, view


class PairMemory(RememberingCore):
    """Attention over earlier pairs of a number and a token, shared by all dimensions and positions.

    The alignment of positions with dimensions is learned. An entry also holds the flags, which distinguish steps at the
    end of a game from other steps.

    Args:
        width: width of an input.
        parts: widths of stimuli, message and flags in the input, and numbers of stimuli and tokens; by default, the
            halves of the input. Networks without encoding layers pass them (`stimulus=(), message=(), joint=()`).
        capacity: capacity of the memory in steps.
        heads: number of attention heads.
        size: width of a head's queries and keys.
        hidden: width of the layers that score the result of attention.
        output: width of an output.

    Raises:
        InvalidSettingError: the widths in `parts` exceed the input or cannot be divided.
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
        parts = parts or Parts.halves(whole_number("width of an input", width, least=2))
        super().__init__(width, output, output, capacity)
        self.dimensions, left = divmod(parts.vision, parts.stimuli)
        token, left_over = divmod(parts.language, parts.tokens)
        if left or left_over or not self.dimensions * token or parts.width > width:
            raise InvalidSettingError(f"{parts} does not fit an input of {width} numbers.")
        self.parts = parts
        self.embedding = nn.Linear(token, TOKEN, bias=False)
        self.lookup = Lookup(NUMBER + TOKEN + parts.flags, MemorySettings(heads=heads, width=size, hidden=hidden))
        if parts.tokens > 1:
            self.alignment = nn.Parameter(torch.zeros(self.dimensions, parts.tokens))
        scores = parts.stimuli * (1 + self.dimensions)
        self.answer = nn.Sequential(nn.Linear(scores + width, output), nn.ReLU())

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state: an empty memory, a step count of 0, and zeros for the last message and output."""
        held = self.dimensions + self.parts.language + self.parts.flags
        last = (self.zeros(episodes, width, device=device) for width in (self.parts.language, self.output))
        return *self.empty(episodes, [held], device), *last

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the last output."""
        return state[-1]

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs in one parallel pass."""
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
            self._agreement(each.transpose(0, 1), words.transpose(0, 1), flags.transpose(0, 1), stored, seen.earlier)
            for each in stimuli.unbind(-2)
        ], -1)  # [B, dimensions, T, stimuli]  # fmt: skip
        read = torch.cat([attention.odds_of_all(agree).transpose(0, 1), agree.permute(2, 0, 1, 3).flatten(-2)], -1)
        ys = self.answer(torch.cat([read, xs], -1))
        return ys, ys, (remembered(entries, seen), seen.count, words[-1], ys[-1])

    def _agreement(
        self, stimuli: Tensor, words: Tensor, flags: Tensor, stored: Tensor, earlier: Tensor
    ) -> Float[Tensor, "batch dimension step"]:
        """Score how well a stimulus matches the tokens in each dimension."""
        scores: Tensor = self.lookup(self._pairs(stimuli, words, flags), stored, earlier[:, None])
        if self.parts.tokens == 1:
            return scores
        return attention.by_dimension(scores, self.alignment.softmax(1))

    def _pairs(self, stimuli: Tensor, words: Tensor, flags: Tensor) -> Float[Tensor, "batch pair step entry"]:
        """Create an entry for each pair of a dimension and a token, from stimuli [B, T, dimensions]."""
        tokens = self.embedding(words.unflatten(-1, (self.parts.tokens, -1)))
        return attention.paired(attention.features(stimuli), tokens, flags).transpose(1, 2)
