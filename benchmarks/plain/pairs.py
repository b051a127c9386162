"""Training of a pair from scratch: two ordinary modules, a representation and Adam."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from icy import Language

from .training import BATCH

TEMPERATURE = 1.2  # of GUMB


class PairTraining:
    """Training of a sender and a receiver together. The receiver reads probabilities (SOFT) or samples (GUMB).

    Args:
        link: "SOFT" or "GUMB".
        pair: names of both models, as in "FC2L+FC2L".
        language: a language in the space of the pair; only its sizes matter.
        seed: seed of weights and batches.
    """

    def __init__(self, link: str, pair: str, language: Language, seed: int) -> None:
        from . import make

        torch.manual_seed(seed)
        sender, receiver = pair.split("+")
        self.models = nn.ModuleList([make(f"sender/{sender}", language), make(f"receiver/{receiver}", language)])
        self.optimizer = torch.optim.Adam(self.models.parameters(), lr=1e-3)
        self.space, self.samples = language.space, link == "GUMB"

    def update(self) -> None:
        """Draw a batch of meanings, send messages, and train both models."""
        meanings = torch.randint(self.space.values, (BATCH, self.space.attributes))
        sender, receiver = self.models
        scores = sender(meanings)
        sent = F.gumbel_softmax(scores, TEMPERATURE, hard=True) if self.samples else scores.softmax(-1)
        loss = F.cross_entropy(receiver(sent).flatten(0, 1), meanings.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.models.parameters(), 5.0)
        self.optimizer.step()
