"""Representations in which messages may end early: the end token is symbol V, and later symbols are padding.

A position counts if the message has not ended before it, so the end token itself counts. The length of a message is the
number of symbols before the end token. Symbols at positions that do not count are replaced by the end token.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.noise import Noise
from icy.core.representations.samples import counted

from .losses import Symbols, advantage, cross_entropy, end_of, entropy
from .samples import Losses, Meanings, Representation, Scores, Sent, StepScores, Targets, Words
from .symbols import ANSWERS, Discrete, Gumbel, Soft

LAZY_POWER, LAZY_DIVISOR = 45, 10  # beta 1 and beta 2 of Rita et al. 2020
Base = TypeVar("Base", Soft, Gumbel, Discrete)
Shares = Float[Tensor, "*stack batch end"]  # ends are the positions, and the end of the longest message
# A message, or a prefix of a message that an impatient receiver reads.
Readings = Float[Tensor, "*stack reading place choice"]
ReadAnswers = Float[Tensor, "*stack reading attr value"]
Answers = Float[Tensor, "*stack prefix batch attr value"]
Weights = Float[Tensor, "*stack prefix batch"]


@dataclass(frozen=True)
class Ending(Symbols, Generic[Base]):
    """A representation that replaces symbols after the end token by the end token.

    SOFT and GUMB use probabilities: symbol t is replaced to the extent that the message has ended before it,
    1 - prod_{s<t} (1 - p_s), where p_s is the weight of the end token at position s. Gradients pass through.

    Attributes:
        base: the representation without ends.
        cost: cost of a symbol before the end token, which is added to the loss.
        lazy: add a cost that grows with the accuracy of the pair, accuracy ** 45 / 10, where accuracy is the share of
            the batch's meanings with correct answers for all attributes (Rita et al. 2020).
        impatient: the receiver also answers after every position, and the loss is the mean over positions up to the end
            token (Rita et al. 2020).
    """

    base: Base
    cost: float = 0.0
    lazy: bool = False
    impatient: bool = False

    @property
    def name(self) -> str:
        """The name of the representation without ends."""
        return self.base.name

    @property
    def description(self) -> str:
        """The description of the representation without ends."""
        return self.base.description

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return the feedback of the representation without ends."""
        return self.base.feed_back(scores, step, training)

    def message(self, scores: Scores, noise: Noise | None) -> Readings:
        """Return the messages; greedy if `noise` is None.

        In training with an impatient receiver, the batch is repeated for every prefix, the longest first, and symbols
        after a prefix are end tokens: [*stack, length * batch, length, vocab].
        """
        message = self.base.message(scores, noise)
        ended = padded(message, not_ended(message)[..., :-1])
        return with_prefixes(ended) if self.impatient and noise is not None else ended

    def greedy_words(self, sent: Sent) -> Words:
        """Return the symbol of the largest score at each position, and the end token after the first end token."""
        words, end = sent.argmax(-1), end_of(sent)
        return words.masked_fill(~counted(words, end), end)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of the representation without ends."""
        return self.base.sender_loss(scores, messages, noise)

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of the representation without ends."""
        return self.base.receiver_loss(scores, meanings, noise)

    def pair_loss(self, sent: Sent, answered: ReadAnswers, meanings: Meanings, noise: Noise) -> Losses:
        """Return the cross-entropy of the answers, mean over batch and attributes, plus the cost of the mean length.

        Args:
            sent: scores of the sender.
            answered: scores of the receiver for `message`, so of an impatient receiver for every prefix.
            meanings: the meanings.
            noise: noise of the update.
        """
        shares = not_ended(self.base.message(sent, noise))
        answers = by_prefix(answered, meanings)
        errors = cross_entropy(answers, _repeated(meanings, answers)).mean(-1)
        loss = (errors * self._weights(shares)).sum(-2).mean(-1)
        return loss + (self._length_cost(answers, meanings) * lengths_of(shares)).mean(-1)

    def _weights(self, shares: Shares) -> Weights:
        """Return the weight of the answers for each prefix, 1 in total. Gradients pass through, as lengths vary."""
        if not self.impatient:
            return torch.ones_like(shares[..., 0]).unsqueeze(-2)
        counts = shares[..., :-1]
        return (counts / counts.sum(-1, keepdim=True)).flip(-1).transpose(-1, -2)

    def _length_cost(self, answers: Answers, meanings: Meanings) -> Float[Tensor, "*stack 1"]:
        """Return the cost of a symbol for each pair."""
        right = (answers[..., 0, :, :, :].argmax(-1) == meanings).all(-1)
        accuracy = right.to(answers.dtype).mean(-1, keepdim=True)
        return self.cost + accuracy**LAZY_POWER / LAZY_DIVISOR * self.lazy


@dataclass(frozen=True)
class EndingDiscrete(Ending[Discrete]):
    """DISCR with ends: log-probabilities and entropies after the end token do not count.

    The cost of a message is subtracted from the reward of its tokens.
    """

    def pair_loss(self, sent: Sent, answered: ReadAnswers, meanings: Meanings, noise: Noise) -> Losses:
        """Return the REINFORCE loss of both models.

        The reward of a token is 1 for each correct attribute, minus the cost of the message. With an impatient receiver
        it is a mean over positions up to the end token, as are the reward and entropy of the receiver's values.
        """
        message = self.base.message(sent, noise)
        shares = not_ended(message)
        counts, weights, answers = shares[..., :-1], self._weights(shares).unsqueeze(-1), by_prefix(answered, meanings)
        tokens = message.argmax(-1)
        values = by_prefix(self.base.message(answered, noise.stream(ANSWERS)), meanings).argmax(-1)
        right = (values == _repeated(meanings, answers)).to(sent.dtype)
        costs = self._length_cost(answers, meanings) * lengths_of(shares)
        of_message = advantage((right * weights).sum(-3) - costs.unsqueeze(-1), axes=2).mean(-1, keepdim=True)
        of_tokens = of_message * -cross_entropy(sent, tokens) * counts
        of_values = advantage(right, axes=2) * -cross_entropy(answers, values) * weights
        reward = of_tokens.sum((-2, -1)) + of_values.sum((-3, -2, -1))
        entropies = entropy(sent, counts) + entropy(answers, weights).sum(-1)
        return -self.base.reward_weight * reward - self.base.entropy_weight * entropies


def with_ends(base: Representation, cost: float = 0.0, lazy: bool = False, impatient: bool = False) -> Representation:
    """Return a representation with ends; see `Ending`.

    Raises:
        TypeError: the representation has no end token; only SOFT, GUMB and DISCR have one.
    """
    kind: Any = {Soft: Ending, Gumbel: Ending, Discrete: EndingDiscrete}.get(type(base))
    if kind is None:
        raise TypeError(f"{type(base).__name__} has no end token")
    return cast(Representation, kind(base, cost, lazy, impatient))  # its name cannot be set, unlike in the protocol


def not_ended(message: Scores) -> Shares:
    """Return to which extent each message has not ended before each position, and by the end: 1 at position 0."""
    shares = [torch.ones_like(message[..., 0, 0])]
    for goes_on in (1 - message[..., -1]).unbind(-1):
        shares.append(shares[-1] * goes_on)
    return torch.stack(shares, -1)


def lengths_of(shares: Shares) -> Float[Tensor, "*stack batch"]:
    """Return the number of symbols before the end token; for probabilities, the expected number."""
    return shares[..., 1:].sum(-1)


def padded(
    message: Float[Tensor, "*#lead place choice"], counts: Float[Tensor, "*#lead place"]
) -> Float[Tensor, "*lead place choice"]:
    """Replace symbols by the end token where `counts` is 0, and partly where it is less than 1."""
    kept = message * counts.unsqueeze(-1)
    return torch.cat([kept[..., :-1], kept[..., -1:] + (1 - counts).unsqueeze(-1)], -1)


def with_prefixes(message: Scores) -> Readings:
    """Return every prefix of every message, the longest first, followed by end tokens."""
    length = message.shape[-2]
    kept = torch.ones(length, length, dtype=message.dtype, device=message.device).tril().flip(0)
    return padded(message.unsqueeze(-4), kept.unsqueeze(-2)).flatten(-4, -3)


def by_prefix(answered: ReadAnswers, meanings: Meanings) -> Answers:
    """Separate the prefixes from the batch."""
    parts: Tensor = answered.unflatten(-3, (-1, meanings.shape[-2]))
    return parts


def _repeated(meanings: Meanings, answers: Answers) -> Tensor:
    """Return the meanings for each prefix, [*stack, prefix, batch, attribute]."""
    return meanings.unsqueeze(-3).expand(answers.shape[:-1])
