"""The plain way to train a row: ordinary PyTorch modules, one model after another, each on all cores.

This is what a researcher would write with the library's cells, optimiser and losses: a fair baseline for icy's speed.
It uses no part of icy's training.
"""

from __future__ import annotations

import math

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


class TransDecSoft(nn.Module):
    """Runs over the whole prefix at every step, as the library's decoder requires."""

    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int, layers: int = 1) -> None:
        super().__init__()
        self.length, self.symbols = length, symbols
        self.embed = Embedding(attributes, values, hidden)
        self.feed, self.out = nn.Linear(symbols, hidden), nn.Linear(hidden, symbols)
        layer = nn.TransformerDecoderLayer(hidden, 1, 4 * hidden, dropout=0, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, layers)
        angles = torch.arange(length).unsqueeze(1) * torch.exp(torch.arange(0, hidden, 2) * (-math.log(10000) / hidden))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, meanings: Tensor) -> Tensor:
        memory = self.embed(meanings).unsqueeze(1)
        seen, scores = memory.new_zeros(len(memory), 1, self.symbols), []
        seen[..., -1] = 1
        for t in range(1, self.length + 1):
            y = self.decoder(self.feed(seen) + self.positions[:t], memory, tgt_mask=self.mask[:t, :t])
            scores.append(self.out(y[:, -1]))
            seen = torch.cat([seen, scores[-1].softmax(-1).unsqueeze(1)], 1)
        return torch.stack(scores, 1)


class HierGRU(nn.Module):
    """A receiver: it reads the symbols of a message one by one."""

    def __init__(self, attributes: int, values: int, length: int, symbols: int, hidden: int) -> None:
        super().__init__()
        self.shape = (attributes, values)
        self.embed = nn.Embedding(symbols, hidden)
        self.lower, self.upper = nn.GRUCell(hidden, hidden), nn.GRUCell(hidden, hidden)
        self.stop, self.out = nn.Linear(hidden, 1), nn.Linear(hidden, attributes * values)

    def forward(self, message: Tensor) -> Tensor:
        symbols = self.embed(message)
        lower = upper = torch.zeros_like(symbols[:, 0])
        gate = lower.new_ones(len(lower), 1)
        for x in symbols.unbind(1):
            lower = self.lower(x, (1 - gate) * lower)
            gate = torch.sigmoid(self.stop(lower))
            upper = gate * self.upper(lower, upper) + (1 - gate) * upper
        return self.out(upper).unflatten(1, self.shape)


MODELS = {
    "sender/FC2L": FC2L,
    "sender/HierZero:GRU": HierZeroGRU,
    "sender/RNNAutoReg:LSTM": RNNAutoRegLSTM,
    "sender/TransDecSoft": TransDecSoft,
    "receiver/Hier:GRU": HierGRU,
}


def make(name: str, language: Language, hidden: int = 128) -> nn.Module:
    """Return the model for a language."""
    space = language.space
    return MODELS[name](space.attributes, space.values, language.message_length, language.vocab_size + 1, hidden)


def train(name: str, language: Language, seed: int, updates: int, check_every: int) -> float:
    """Train one model on one language; return its accuracy at the last evaluation."""
    torch.manual_seed(seed)
    space, model = language.space, make(name, language)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    messages = torch.tensor(language.messages.astype("int64"))
    place = space.values ** torch.arange(space.attributes - 1, -1, -1)

    def examples(count: int) -> tuple[Tensor, Tensor]:
        meanings = torch.randint(space.values, (count, space.attributes))
        said = messages[(meanings * place).sum(1)]
        return (meanings, said) if name.startswith("sender") else (said, meanings)

    reading = 0.0
    for update in range(1, updates + 1):
        inputs, targets = examples(BATCH)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        if update % check_every == 0:
            with torch.no_grad():
                inputs, targets = examples(EVALUATION)
                reading = (model(inputs).argmax(-1) == targets).float().mean().item()
    return reading
