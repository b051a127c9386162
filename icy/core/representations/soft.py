"""SOFT: probabilities."""

from dataclasses import dataclass

from icy.core.ends import counted, counted_mean
from icy.core.noise import Noise

from .losses import Answering, SpokenSymbols, cross_entropy, end_of
from .protocol import Losses, Scores, StepScores, Targets


@dataclass(frozen=True)
class Soft(SpokenSymbols, Answering):
    """SOFT: probability vectors are emitted and fed back; the loss is cross-entropy (Icy22 appendix B)."""

    name = "soft"
    description = "Probability vectors; cross-entropy."

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the softmax of the scores, with its gradient."""
        return self.allowed(scores).softmax(-1)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the softmax of the scores, in training and in evaluation."""
        return scores.softmax(-1)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy, mean over batch and positions."""
        return cross_entropy(scores, messages).mean((-2, -1))

    def ended_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy, mean over the positions that count: up to the first end token."""
        return counted_mean(cross_entropy(scores, messages), counted(messages, end_of(scores)))


SOFT = Soft()
