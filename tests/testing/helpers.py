"""A sender, a receiver and a grammar as a stranger would write them, and a sender that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.languages.meanings import MeaningSpace
from icy.models.layers import flat_one_hot
from tests.testing.mistakes import add_unused, spoiled


class Plain(nn.Module):
    """A sender as a stranger would write it: a plain module that knows nothing of icy."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.values, self.shape = space.values, (message_length, vocab_size + 1)
        self.hidden = nn.Linear(space.attributes * space.values, hidden_size)
        self.out = nn.Linear(hidden_size, message_length * (vocab_size + 1))

    def forward(self, meanings: Tensor) -> Tensor:
        one_hot = flat_one_hot(meanings, self.values, self.out.weight.dtype)
        scores: Tensor = self.out(self.hidden(one_hot).tanh()).unflatten(-1, self.shape)
        return scores


class PlainReceiver(nn.Module):
    """A receiver as a stranger would write it, with the library's embedding."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.shape = (space.attributes, space.values)
        self.embed = nn.Embedding(vocab_size + 1, hidden_size)
        self.out = nn.Linear(message_length * hidden_size, space.attributes * space.values)

    def forward(self, message: Tensor) -> Tensor:
        if message.is_floating_point():
            raise IncompatibleError("PlainReceiver takes tokens only.")
        scores: Tensor = self.out(self.embed(message).flatten(1)).unflatten(-1, self.shape)
        return scores


Unused = spoiled(Plain, add_unused, "Unused")


def seedless(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.zeros((space.size, space.attributes * word_length), dtype=int)
