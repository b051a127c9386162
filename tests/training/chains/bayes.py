"""A sender with a known prior over two languages, for chains whose long-run behavior is known exactly."""

from __future__ import annotations

import torch
from torch import Tensor

from icy.core.register import register_sender
from icy.languages.meanings import MeaningSpace
from icy.models.base import MemoryModel, Sender

PRIOR = (0.3, 0.7)
NOISE = 0.1  # probability of the wrong token
LANGUAGES = torch.tensor([[[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 0], [1, 1], [0, 0], [0, 1]]])  # of the space 2x2


class Bayes(Sender, MemoryModel):
    """A learner that knows two languages, their prior, and how often tokens are wrong.

    Args:
        space: 2x2.
        message_length: 2.
        vocab_size: 2.
        hidden_size: not used.
        choice: "sample", to draw a language from the posterior; or "maximum", to take the most probable one.
    """

    def __init__(
        self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int, choice: str = "sample"
    ) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.choice = choice
        self.drawn: Tensor
        self.heard: Tensor
        self.register_buffer("drawn", torch.rand(()))  # decides which language is drawn from the posterior
        self.register_buffer("heard", torch.full((4, 2), -1))

    def observe(self, meanings: Tensor, messages: Tensor) -> None:
        """Remember the message of each meaning."""
        self.heard[meanings[:, 0] * 2 + meanings[:, 1]] = messages

    def posterior(self) -> Tensor:
        """Return the probability of each language after the messages heard."""
        known = self.heard >= 0
        right = ((self.heard == LANGUAGES) & known).sum((1, 2))
        wrong = known.sum() - right
        weights = torch.tensor(PRIOR) * (1 - NOISE) ** right * NOISE**wrong
        return weights / weights.sum()

    def forward(self, meanings: Tensor) -> Tensor:
        """Return log-probabilities of tokens and the start symbol: shape [batch, 2, 3]."""
        posterior = self.posterior()
        language = int(self.drawn > posterior[0]) if self.choice == "sample" else int(posterior.argmax())
        messages = LANGUAGES[language][meanings[:, 0] * 2 + meanings[:, 1]]
        right = torch.nn.functional.one_hot(messages, 3).bool()
        scores = torch.where(right, 1 - NOISE, NOISE).log()
        scores[..., 2] = -torch.inf
        return scores


def register() -> None:
    """Register the learner."""
    register_sender("Bayes")(Bayes)
