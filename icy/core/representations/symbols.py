"""SOFT, GUMB, GS and DISCR: representations in which a word is one symbol."""

from dataclasses import dataclass

from torch import Tensor

from icy.core.fused import traceable
from icy.core.noise import Noise, current_noise
from icy.core.representations.samples import counted, counted_mean

from .losses import (
    Answering,
    SpokenSymbols,
    Symbols,
    advantage,
    cross_entropy,
    end_of,
    entropy,
    raw_squared_error,
    squared_error,
)
from .samples import (
    Answered,
    Losses,
    Meanings,
    Scores,
    Sent,
    StepScores,
    Targets,
    Words,
    largest,
    one_hot,
    relaxed,
    straight_through,
    without_start,
)

# -- SOFT: probabilities -----------------------------------------------------------------------------------------------


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


# -- GUMB and GS: symbols drawn by the Gumbel-softmax, one-hot or relaxed ----------------------------------------------


TEMPERATURE = 1.2  # of the Gumbel-softmax, as in the authors' program


@dataclass(frozen=True)
class Gumbel(SpokenSymbols):
    """GUMB: one-hot samples, straight-through Gumbel-softmax; the loss is their squared error (Perkins21 2.8).

    Attributes:
        temperature: temperature of the softmax for the gradient.
        least_squares: compute a receiver's squared error on the raw scores, without sampling, as the authors' program
            does. All published results of receivers with GUMB used this.
    """

    name = "gumb"
    description = "One-hot samples, straight-through Gumbel-softmax; squared error."

    temperature: float = TEMPERATURE
    least_squares: bool = False

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return the sample with the gradient of the softmax; greedy if not training."""
        scores = self.allowed(scores)
        if not training:
            return largest(scores)
        return relaxed(scores, step, self.temperature)

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the samples of all positions; greedy if `noise` is None."""
        return largest(scores) if noise is None else straight_through(scores, noise.gumbels(scores), self.temperature)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the squared error of the samples, mean over batch, positions and symbols."""
        return squared_error(self.message(scores, noise), messages)

    def ended_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the squared error, mean over symbols and the positions that count: up to the first end token."""
        errors = self.message(scores, noise) - one_hot(messages, scores.shape[-1], scores.dtype)
        return counted_mean(errors.square().mean(-1), counted(messages, end_of(scores)))

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the squared error of the samples, mean over batch, attributes and values."""
        if self.least_squares:
            return raw_squared_error(scores, meanings)
        return squared_error(self.message(scores, noise), meanings)

    def pair_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, as with SOFT (Perkins21 table 6)."""
        return cross_entropy(answered, meanings).mean((-2, -1))


@dataclass(frozen=True)
class GumbelSoftmax(Symbols, Answering):
    """GS: relaxed one-hot samples in training, the most likely symbol in evaluation (CBM24 section 4, as in EGG).

    The start symbol is never emitted: its weight is zero.

    Attributes:
        tau: temperature of the softmax.
        straight_through: emit one-hot samples in training too, with the gradient of relaxed samples.
    """

    name = "gs"
    description = "Relaxed Gumbel-softmax samples, argmax after training; cross-entropy."

    tau: float = 1.0
    straight_through: bool = False

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return the sample of a step; greedy if not training."""
        return emitted_gumbel(scores, step, training, self.tau, self.straight_through)

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the samples of all positions; greedy if `noise` is None."""
        gumbels = None if noise is None else noise.gumbels(scores)
        return _gumbel_softmax(scores, gumbels, self.tau, self.straight_through)

    def greedy_words(self, sent: Sent) -> Words:
        """Return the symbol of the largest score at each position, except the start symbol."""
        return sent[..., :-1].argmax(-1)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the cross-entropy of the relaxed samples, mean over batch and positions."""
        noisy = (without_start(scores) + noise.gumbels(scores)) / self.tau
        return cross_entropy(noisy, messages).mean((-2, -1))


@traceable
def emitted_gumbel(scores: StepScores, step: int, training: bool, tau: float, hard: bool) -> StepScores:
    """Return the symbol that a sender with GS emits at a step."""
    gumbel = current_noise(scores.device).gumbel(scores, step) if training else None
    return _gumbel_softmax(scores, gumbel, tau, hard)


def _gumbel_softmax(scores: Tensor, gumbel: Tensor | None, tau: float, hard: bool) -> Tensor:
    allowed = without_start(scores)
    if gumbel is None:
        return largest(allowed)
    return straight_through(allowed, gumbel, tau) if hard else ((allowed + gumbel) / tau).softmax(-1)


# -- DISCR: sampled tokens, trained by REINFORCE -----------------------------------------------------------------------


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
