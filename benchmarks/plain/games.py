"""Training of the agents of CBM24 in games with many targets. Turns are drawn by icy."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.games.playing import observe_objects, pack_objects
from icy.games.settings import GamesSettings
from icy.games.turns import TRAINING, Turns

CHUNK = 64  # turns are drawn for so many updates at once


class Agents(nn.Module):
    """The agents of Thing, for one seed."""

    def __init__(self, features: int, words: int, length: int, bits: str | bool) -> None:
        super().__init__()
        self.sees = nn.Sequential(nn.Linear(features, 60), nn.ReLU(), nn.Linear(60, 60))
        self.start, self.cell, self.out = nn.Linear(60, 60), nn.LSTMCell(60, 60), nn.Linear(60, words)
        self.embed, self.first = nn.Linear(words, 60), nn.Parameter(torch.randn(60) * 0.1)
        self.reads, self.lstm, self.wants = nn.Linear(words, 40), nn.LSTM(40, 40, batch_first=True), nn.Linear(40, 40)
        self.judges = nn.Sequential(nn.Linear(features, 40), nn.ReLU(), nn.Linear(40, 40))
        self.length, self.bits = length, bits

    def forward(self, objects: Tensor, targets: int) -> Tensor:
        """Return the score of each candidate [turn, candidate]."""
        hidden = self.start(self.sees(objects[:, :targets]).mean(1))
        memory, given, words = torch.zeros_like(hidden), self.first.expand_as(hidden), []
        for _ in range(self.length):
            hidden, memory = self.cell(given, (hidden, memory))
            words.append(self.word(self.out(hidden)))
            given = self.embed(words[-1])
        read = self.wants(self.lstm(self.reads(torch.stack(words, 1)))[0][:, -1])
        return (self.judges(objects) * read[:, None]).sum(-1)

    def word(self, scores: Tensor) -> Tensor:
        """Return a word: bits with a straight-through gradient, or a relaxed symbol."""
        if not self.bits:
            return F.gumbel_softmax(scores, 1.0)
        if self.bits == "batch":
            above = scores - scores.min()
            soft = above / above.max()
        else:
            soft = scores.sigmoid()
        return (soft.round() - soft).detach() + soft


class GameTraining:
    """Training of the agents of one seed."""

    def __init__(self, settings: GamesSettings, condition: str, seed: int) -> None:
        torch.manual_seed(seed)
        turns = settings.of_turns(condition)
        self.world, self.turns = settings.made_world, Turns(settings.made_world, turns, [seed])
        self.batch, self.targets, self.updates = settings.learning.batch_size, turns.targets, 0
        candidates = torch.arange(turns.targets + turns.distractors)
        self.labels = (candidates < turns.targets).float().expand(self.batch, -1)
        bits = settings.representation == "qt" and settings.representation_options.get("normalise", "each")
        self.agents = Agents(270, settings.words, settings.message_length, bits)
        self.optimizer = torch.optim.Adam(self.agents.parameters(), lr=5e-4)

    def update(self) -> None:
        """Train both agents on a batch of turns."""
        if self.updates % CHUNK == 0:
            self.drawn = pack_objects(self.turns.batch(TRAINING, self.updates, CHUNK, self.batch))[:, 0]
        objects = observe_objects(self.drawn[self.updates % CHUNK], self.world)
        self.optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(self.agents(objects, self.targets), self.labels).backward()
        self.optimizer.step()
        self.updates += 1
