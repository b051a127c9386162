"""DISCR: sampled tokens, trained by REINFORCE."""

from dataclasses import dataclass

from torch import Tensor

from icy.core.ends import counted
from icy.core.noise import Noise

from .losses import SpokenSymbols, advantage, cross_entropy, end_of, entropy
from .protocol import Answered, Losses, Meanings, Scores, Sent, StepScores, Targets
from .samples import largest

ANSWERS = 1  # noise stream of a receiver's values; tokens use the main noise


@dataclass(frozen=True)
class Discrete(SpokenSymbols):
    """DISCR: sampled tokens, trained by REINFORCE with the batch as baseline and an entropy term (Perkins21 2.8).

    Losses are sums over the batch and over positions or attributes, as in the authors' program.

    Attributes:
        reward_weight: factor of the reward term.
        entropy_weight: factor of the entropy that is added to the reward.
    """

    name = "discr"
    description = "Sampled tokens; REINFORCE."

    reward_weight: float = 1.0
    entropy_weight: float = 0.01

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the softmax of the scores. Senders that read sampled tokens draw these themselves (see `sampled`)."""
        return self.allowed(scores).softmax(-1)

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the sampled tokens as one-hot vectors, without a gradient; greedy if `noise` is None."""
        return largest(scores) if noise is None else largest(scores.detach() + noise.gumbels(scores))

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the REINFORCE loss; the reward of an example is its number of correct tokens."""
        return self._supervised(scores, messages, noise)

    def ended_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the REINFORCE loss of the tokens that count: up to the first end token of the target."""
        return self._supervised(scores, messages, noise, counted(messages, end_of(scores)))

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the REINFORCE loss; the reward of an example is its number of correct attributes."""
        return self._supervised(scores, meanings, noise)

    def _supervised(self, scores: Scores, targets: Targets, noise: Noise, counts: Tensor | None = None) -> Losses:
        samples = self.message(scores, noise).argmax(-1)
        right = samples == targets
        rewards = (right if counts is None else right & counts).sum(-1).to(scores.dtype)
        gain = advantage(rewards, axes=1).unsqueeze(-1) * -cross_entropy(scores, samples)
        gain = gain if counts is None else gain * counts
        return -self.reward_weight * gain.sum((-2, -1)) - self.entropy_weight * entropy(scores, counts)

    def pair_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise) -> Losses:
        """Return the REINFORCE loss of both models; each correct attribute is a reward (Perkins21 table 6).

        The advantage of a token is the mean over the attributes of its example. A sampled value has its own advantage.
        """
        tokens = self.message(sent, noise).argmax(-1)
        values = self.message(answered, noise.stream(ANSWERS)).argmax(-1)
        gains = advantage((values == meanings).to(answered.dtype), axes=2)
        of_tokens = gains.mean(-1, keepdim=True) * -cross_entropy(sent, tokens)
        of_values = gains * -cross_entropy(answered, values)
        reward = of_tokens.sum((-2, -1)) + of_values.sum((-2, -1))
        return -self.reward_weight * reward - self.entropy_weight * (entropy(sent) + entropy(answered))


DISCRETE = Discrete()
