"""Training of one model on one language."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy import Language

BATCH = 128


class Training:
    """Training of one model on one language, with Adam."""

    def __init__(self, name: str, language: Language, seed: int) -> None:
        from . import make

        torch.manual_seed(seed)
        self.language, self.sends = language, name.startswith("sender")
        self.model = make(name, language)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        space = language.space
        self.messages = torch.tensor(language.messages.astype("int64"))
        self.place = space.values ** torch.arange(space.attributes - 1, -1, -1)

    def examples(self, count: int) -> tuple[Tensor, Tensor]:
        """Draw a batch of `count` inputs and targets."""
        space = self.language.space
        meanings = torch.randint(space.values, (count, space.attributes))
        messages = self.messages[(meanings * self.place).sum(1)]
        return (meanings, messages) if self.sends else (messages, meanings)

    def update(self) -> None:
        """Draw a batch, run forward and backward, clip the gradient, and step Adam."""
        inputs, targets = self.examples(BATCH)
        loss = F.cross_entropy(self.model(inputs).flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()

    @torch.no_grad()
    def accuracy(self, count: int) -> float:
        """Return the accuracy on `count` randomly drawn meanings."""
        inputs, targets = self.examples(count)
        return (self.model(inputs).argmax(-1) == targets).float().mean().item()


def train(
    name: str, language: Language, seed: int, updates: int, checks: Mapping[int, int] | None = None
) -> list[float]:
    """Train one model on one language.

    Args:
        name: name of the model.
        language: language to learn.
        seed: seed of weights and batches.
        updates: number of updates.
        checks: number of meanings of each evaluation, keyed by the number of updates before it.

    Returns:
        The accuracy of each evaluation.
    """
    training, checks, readings = Training(name, language, seed), checks or {}, []
    for update in range(1, updates + 1):
        training.update()
        if update in checks:
            readings.append(training.accuracy(checks[update]))
    return readings
