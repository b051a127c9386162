"""The plain way to measure a row: ordinary PyTorch modules, one model after another, all cores for each.

Written as a researcher would write it, with the library's cells, optimiser and losses, to have something honest to
compare icy's speed with. No part of icy's training is used.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy import Language

BATCH, EVALUATION = 128, 1024


class FC2L(nn.Module):
    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.values, self.shape = values, (length, symbols)
        self.net = nn.Sequential(nn.Linear(attributes * values, hidden), nn.Tanh(), nn.Linear(hidden, length * symbols))

    def forward(self, meanings: Tensor) -> Tensor:
        return self.net(F.one_hot(meanings, self.values).flatten(1).float()).unflatten(1, self.shape)


class Embedding(nn.Module):
    def __init__(self, attributes: int, values: int, hidden: int) -> None:
        super().__init__()
        self.table = nn.Embedding(attributes * values, hidden)
        self.register_buffer("offsets", torch.arange(attributes) * values)

    def forward(self, meanings: Tensor) -> Tensor:
        return self.table(meanings + self.offsets).sum(1)


class HierZeroGRU(nn.Module):
    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.length = length
        self.embed = Embedding(attributes, values, hidden)
        self.upper, self.lower = nn.GRUCell(1, hidden), nn.GRUCell(1, hidden)
        self.stop, self.out = nn.Linear(hidden, 1), nn.Linear(hidden, symbols)

    def forward(self, meanings: Tensor) -> Tensor:
        upper = self.embed(meanings)
        lower, zero = torch.zeros_like(upper), upper.new_zeros(len(upper), 1)
        gate, scores = torch.ones_like(zero), []
        for _ in range(self.length):
            upper = gate * self.upper(zero, upper) + (1 - gate) * upper
            lower = self.lower(zero, gate * upper + (1 - gate) * lower)
            gate = torch.sigmoid(self.stop(lower))
            scores.append(self.out(lower))
        return torch.stack(scores, 1)


class RNNAutoRegLSTM(nn.Module):
    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.length, self.symbols = length, symbols
        self.embed = Embedding(attributes, values, hidden)
        self.feed, self.cell = nn.Linear(symbols, hidden), nn.LSTMCell(hidden, hidden)
        self.out = nn.Linear(hidden, symbols)

    def forward(self, meanings: Tensor) -> Tensor:
        h = self.embed(meanings)
        c, symbol, scores = torch.zeros_like(h), h.new_zeros(len(h), self.symbols), []
        symbol[:, -1] = 1
        for _ in range(self.length):
            h, c = self.cell(self.feed(symbol), (h, c))
            scores.append(self.out(h))
            symbol = scores[-1].softmax(-1)
        return torch.stack(scores, 1)


MODELS = {"sender/FC2L": FC2L, "sender/HierZero:GRU": HierZeroGRU, "sender/RNNAutoReg:LSTM": RNNAutoRegLSTM}


def train(name: str, language: Language, seed: int, updates: int, check_every: int, hidden: int = 128) -> float:
    """Train one sender on one language; returns its last reading."""
    torch.manual_seed(seed)
    space = language.space
    model = MODELS[name](space.attributes, space.values, language.message_length, language.vocab_size + 1, hidden)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    messages = torch.tensor(language.messages.astype("int64"))
    place = space.values ** torch.arange(space.attributes - 1, -1, -1)
    reading = 0.0
    for update in range(1, updates + 1):
        meanings = torch.randint(space.values, (BATCH, space.attributes))
        loss = F.cross_entropy(model(meanings).flatten(0, 1), messages[(meanings * place).sum(1)].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        if update % check_every == 0:
            with torch.no_grad():
                meanings = torch.randint(space.values, (EVALUATION, space.attributes))
                right = model(meanings).argmax(-1) == messages[(meanings * place).sum(1)]
                reading = right.float().mean().item()
    return reading
