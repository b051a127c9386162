"""Base classes of representations."""

from dataclasses import dataclass, field
from typing import Self

from icy.core.noise import Noise

from .losses import cross_entropy
from .protocol import Answered, Losses, Meanings, Scores, Sent, StepScores, Targets, Words
from .samples import without_start

WITH_START, VOCABULARY = "V+1", "V"


def end_of(scores: Scores) -> int:
    """Return the end token of messages of different lengths: the last symbol, which is also the start symbol."""
    return scores.shape[-1] - 1


class Answering:
    """Cross-entropy losses of a receiver's answers, which do not depend on the type of words."""

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy, mean over the batch and summed over the attributes."""
        return cross_entropy(scores, meanings).mean(-2).sum(-1)

    def pair_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, mean over batch and attributes (Perkins21 table 6)."""
        return cross_entropy(answered, meanings).mean((-2, -1))


class WithoutParameters:
    """A representation without parameters."""

    def for_pair(self, vocab_size: int, taught: bool = False) -> Self:
        """Return this representation, because it does the same in a probe and in a pair."""
        return self

    def as_sent(self, scores: Scores) -> Sent:
        """Return the scores."""
        return scores

    def extra_loss(self, sent: Sent) -> Losses:
        """Return 0: the representation has no parameters."""
        return sent.new_zeros(sent.shape[:-3])


class Symbols(WithoutParameters):
    """A representation in which a word is one symbol."""

    def words(self, message: Scores) -> Words:
        """Return the symbol of the largest weight at each position."""
        return message.argmax(-1)

    def greedy_words(self, sent: Sent) -> Words:
        """Return the symbol of the largest score at each position."""
        return sent.argmax(-1)

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the tokens."""
        return tokens

    def word_count(self, vocab_size: int) -> int:
        """Return V."""
        return vocab_size


@dataclass(frozen=True)
class SpokenSymbols(Symbols):
    """A representation in which a sender may also emit the start symbol.

    Attributes:
        symbols: symbols that a sender can emit: "V+1", the vocabulary and the start symbol, or "V", only the
            vocabulary. This class restricts the feedback of a sender; `icy.training.engine.make_model` restricts its
            scores.
    """

    symbols: str = field(default=WITH_START, kw_only=True)

    def allowed(self, scores: StepScores) -> StepScores:
        """Set the scores of symbols that are not allowed to minus infinity."""
        return without_start(scores) if self.symbols == VOCABULARY else scores
