"""Senders: meanings [batch, attributes] -> scores [batch, length, symbols]."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .cells import Layers, State, make_cell


class FC2L(nn.Module):
    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.values, self.shape = values, (length, symbols)
        self.net = nn.Sequential(nn.Linear(attributes * values, hidden), nn.Tanh(), nn.Linear(hidden, length * symbols))

    def forward(self, meanings: Tensor) -> Tensor:
        return self.net(F.one_hot(meanings, self.values).flatten(1).float()).unflatten(1, self.shape)


class Sender(nn.Module):
    """Base class of other senders: a sum of embeddings of the meaning, and a linear layer from each state to scores."""

    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.length, self.symbols = length, symbols
        self.table, self.out = nn.Embedding(attributes * values, hidden), nn.Linear(hidden, symbols)
        self.register_buffer("offsets", torch.arange(attributes) * values)

    def embed(self, meanings: Tensor) -> Tensor:
        return self.table(meanings + self.offsets).sum(1)

    def first_symbol(self, like: Tensor) -> Tensor:
        symbol = like.new_zeros(len(like), self.symbols)
        symbol[:, -1] = 1
        return symbol


class RNNZero(Sender):
    def __init__(self, *sizes: int, cell: str) -> None:
        super().__init__(*sizes)
        self.net = Layers(cell, sizes[-1], fed=False)

    def forward(self, meanings: Tensor) -> Tensor:
        return self.out(self.net(None, self.embed(meanings), self.length))


class RNNAutoReg(Sender):
    def __init__(self, *sizes: int, cell: str, layers: int = 1) -> None:
        super().__init__(*sizes)
        self.feed = nn.Linear(self.symbols, sizes[-1])
        self.cells = nn.ModuleList(make_cell(cell, sizes[-1]) for _ in range(layers))

    def forward(self, meanings: Tensor) -> Tensor:
        h = self.embed(meanings)
        states = [cell.start(torch.zeros_like(h) if i else h) for i, cell in enumerate(self.cells)]
        symbol, scores = self.first_symbol(h), []
        for _ in range(self.length):
            x = self.feed(symbol)
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            scores.append(self.out(x))
            symbol = scores[-1].softmax(-1)
        return torch.stack(scores, 1)


def mix(old: State, new: State, gate: Tensor) -> State:
    """Return (1 - gate) old + gate new."""
    return tuple(gate * b + (1 - gate) * a for a, b in zip(old, new, strict=True))


class HierZero(Sender):
    fed = False

    def __init__(self, *sizes: int, cell: str) -> None:
        super().__init__(*sizes)
        hidden = sizes[-1]
        self.upper, self.lower = make_cell(cell, hidden, fed=False), make_cell(cell, hidden, fed=self.fed)
        self.stop = nn.Linear(hidden, 1)

    def read(self, scores: Tensor | None, like: Tensor) -> Tensor | None:
        """Return the input of the lower cell, given the scores of the previous symbol."""
        return None

    def forward(self, meanings: Tensor) -> Tensor:
        h = self.embed(meanings)
        upper, lower = self.upper.start(h), self.lower.start(torch.zeros_like(h))
        gate, scores = h.new_ones(len(h), 1), list[Tensor]()
        for _ in range(self.length):
            upper = mix(upper, self.upper(None, upper), gate)
            lower = self.lower(self.read(scores[-1] if scores else None, h), mix(lower, upper, gate))
            gate = torch.sigmoid(self.stop(lower[0]))
            scores.append(self.out(lower[0]))
        return torch.stack(scores, 1)


class HierAutoReg(HierZero):
    fed = True

    def __init__(self, *sizes: int, cell: str) -> None:
        super().__init__(*sizes, cell=cell)
        self.feed = nn.Linear(self.symbols, sizes[-1])

    def read(self, scores: Tensor | None, like: Tensor) -> Tensor:
        return self.feed(self.first_symbol(like) if scores is None else scores.softmax(-1))


def sinusoids(length: int, size: int) -> Tensor:
    """Return the sinusoidal position encodings [length, size] of Vaswani et al. 2017."""
    angles = torch.arange(length).unsqueeze(1) * torch.exp(torch.arange(0, size, 2) * (-math.log(10000) / size))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Decoder(Sender):
    """A decoder that runs over the whole prefix at every step, as PyTorch's layers require."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.register_buffer("positions", sinusoids(self.length, sizes[-1]))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(self.length))


class TransDecSoft(Decoder):
    """A post-norm decoder with the meaning as memory."""

    def __init__(self, *sizes: int, layers: int = 1) -> None:
        super().__init__(*sizes)
        hidden = sizes[-1]
        self.feed = nn.Linear(self.symbols, hidden)
        layer = nn.TransformerDecoderLayer(hidden, 1, 4 * hidden, dropout=0, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, layers)

    def forward(self, meanings: Tensor) -> Tensor:
        memory = self.embed(meanings)
        seen, scores = self.first_symbol(memory).unsqueeze(1), []
        for t in range(1, self.length + 1):
            x = self.feed(seen) + self.positions[:t]
            scores.append(self.out(self.decoder(x, memory.unsqueeze(1), tgt_mask=self.mask[:t, :t])[:, -1]))
            seen = torch.cat([seen, scores[-1].softmax(-1).unsqueeze(1)], 1)
        return torch.stack(scores, 1)


class Transformer(Decoder):
    """A pre-norm decoder with the meaning at its first position."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        hidden = sizes[-1]
        self.feed = nn.Linear(self.symbols, hidden, bias=False)
        layer = nn.TransformerEncoderLayer(
            hidden, 4, 4 * hidden, dropout=0, activation="gelu", batch_first=True, norm_first=True
        )
        self.decoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(hidden), enable_nested_tensor=False)

    def forward(self, meanings: Tensor) -> Tensor:
        x, scores = self.embed(meanings).unsqueeze(1), []
        for t in range(1, self.length + 1):
            y = self.decoder(x + self.positions[:t], mask=self.mask[:t, :t], is_causal=True)
            scores.append(self.out(y[:, -1]))
            x = torch.cat([x, self.feed(scores[-1].softmax(-1)).unsqueeze(1)], 1)
        return torch.stack(scores, 1)
