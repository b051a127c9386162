"""Receivers: messages [batch, length] -> scores [batch, attributes, values].

Of a pair, a receiver reads weights over symbols [batch, length, symbols].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .cells import Layers, make_cell
from .senders import mix, sinusoids


class Receiver(nn.Module):
    """Base class of receivers: an embedding of symbols, and a linear layer from `features` [batch, size] to scores."""

    def __init__(
        self, attributes: int, values: int, length: int, symbols: int, hidden: int, size: int | None = None
    ) -> None:
        super().__init__()
        self.shape, self.length, self.hidden = (attributes, values), length, hidden
        self.embed, self.out = nn.Embedding(symbols, hidden), nn.Linear(size or hidden, attributes * values)

    def features(self, x: Tensor) -> Tensor:
        """Return the input of the last layer [batch, size], for the embedded message `x` [batch, length, hidden]."""
        raise NotImplementedError

    def forward(self, message: Tensor) -> Tensor:
        read = message @ self.embed.weight if message.is_floating_point() else self.embed(message)
        return self.out(self.features(read)).unflatten(1, self.shape)


class FC2L(Receiver):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes, size=sizes[2] * sizes[-1])

    def features(self, x: Tensor) -> Tensor:
        return torch.tanh(x).flatten(1)


class CNN(Receiver):
    """Convolution, max-pooling and ReLU while more than four positions remain."""

    def __init__(self, *sizes: int) -> None:
        length, hidden, blocks = sizes[2], sizes[-1], []
        while length > 4:
            blocks += [nn.Conv1d(hidden, hidden, 3, padding=1), nn.MaxPool1d(2), nn.ReLU()]
            length //= 2
        super().__init__(*sizes, size=length * hidden)
        self.blocks = nn.Sequential(*blocks)

    def features(self, x: Tensor) -> Tensor:
        return self.blocks(x.transpose(1, 2)).flatten(1)


class RNN(Receiver):
    def __init__(self, *sizes: int, cell: str, layers: int = 1) -> None:
        super().__init__(*sizes)
        self.net = Layers(cell, self.hidden, layers)

    def features(self, x: Tensor) -> Tensor:
        return self.net(x, torch.zeros_like(x[:, 0]), self.length)[:, -1]


class Hier(Receiver):
    """A lower cell that reads the symbols one by one, and an upper cell that reads the lower cell's words."""

    def __init__(self, *sizes: int, cell: str) -> None:
        super().__init__(*sizes)
        self.lower, self.upper = make_cell(cell, self.hidden), make_cell(cell, self.hidden)
        self.stop = nn.Linear(self.hidden, 1)

    def features(self, x: Tensor) -> Tensor:
        nothing = torch.zeros_like(x[:, 0])
        lower, upper = self.lower.start(nothing), self.upper.start(nothing)
        gate = nothing.new_ones(len(nothing), 1)
        for symbol in x.unbind(1):
            lower = self.lower(symbol, tuple((1 - gate) * part for part in lower))
            gate = torch.sigmoid(self.stop(lower[0]))
            upper = mix(upper, self.upper(lower[0], upper), gate)
        return upper[0]


class Transformer(Receiver):
    """A pre-norm Transformer encoder, followed by the mean over positions."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        hidden = self.hidden
        layer = nn.TransformerEncoderLayer(
            hidden, 4, 4 * hidden, dropout=0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(hidden), enable_nested_tensor=False)
        self.register_buffer("positions", sinusoids(self.length, hidden))

    def features(self, x: Tensor) -> Tensor:
        return self.encoder(x + self.positions).mean(1)
