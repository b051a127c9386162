"""A sender that stores examples (Perkins21 table 13, row Hashtable)."""

import torch
from jaxtyping import Integer
from torch import Tensor

from icy.core.representations import one_hot
from icy.languages.meanings import MeaningSpace
from icy.models.base import Meanings, MemoryModel, MessageScores, Sender


class Hashtable(Sender, MemoryModel):
    """A table of the first message of each meaning; a new meaning has scores of zero."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int = 0) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.messages: Tensor
        self.seen: Tensor
        token = torch.uint8 if vocab_size < 256 else torch.long
        self.register_buffer("messages", torch.zeros(space.size, message_length, dtype=token))
        self.register_buffer("seen", torch.zeros(space.size, dtype=torch.bool))

    def _index(self, meanings: Tensor) -> Tensor:
        place = torch.from_numpy(self.space.strides).to(meanings.device)
        return (meanings.long() * place).sum(-1)

    def observe(self, inputs: Meanings, targets: Integer[Tensor, "batch length"]) -> None:
        # In reverse, so that the first of equal meanings in a batch is written last.
        index, messages = self._index(inputs).flip(0), targets.flip(0).to(self.messages.dtype)
        fresh = ~self.seen[index]
        for i, message in zip(index[fresh].tolist(), messages[fresh], strict=True):
            self.messages[i] = message
        self.seen[index] = True

    def forward(self, meanings: Meanings) -> MessageScores:
        index = self._index(meanings)
        return one_hot(self.messages[index], self.symbols) * self.seen[index][..., None, None]
