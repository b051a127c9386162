"""The interface of a representation, and the types of its arguments and results."""

from typing import Protocol

from jaxtyping import Float, Integer
from torch import Tensor

from icy.core.noise import Noise

Scores = Float[Tensor, "*stack batch place choice"]  # places are a sender's positions or a receiver's attributes
Targets = Integer[Tensor, "*stack batch place"]
Sent = Float[Tensor, "*stack batch length vocab"]
Answered = Float[Tensor, "*stack batch attr value"]
Meanings = Integer[Tensor, "*stack batch attr"]
Losses = Float[Tensor, "*stack"]
StepScores = Float[Tensor, "*stack batch vocab"]  # scores of one step of a sender, or weights over symbols
Words = Integer[Tensor, "*stack batch length"]


class Representation(Protocol):
    """Interface of a representation, for the training loop and for models with a feedback loop."""

    name: str
    description: str

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return the next input of an autoregressive sender: the emitted symbol, as weights over symbols.

        Args:
            scores: scores of this step.
            step: position in the message, from 0; selects the noise.
            training: False for greedy decoding.
        """

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the message that a receiver gets, as weights over symbols; greedy if `noise` is None."""

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of a sender against the language's messages."""

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of a receiver against the meanings."""

    def pair_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise) -> Losses:
        """Return the joint loss of sender and receiver, from the scores of both."""

    def for_pair(self, vocab_size: int, taught: bool = False) -> "Representation":
        """Return the representation for a pair: itself, or a module if it has parameters.

        Args:
            vocab_size: size of the vocabulary, V.
            taught: whether both models were pre-trained on a language, separately.
        """

    def as_sent(self, scores: Scores) -> Sent:
        """Convert a sender's scores to the scores of words that losses and evaluations of a pair use."""

    def extra_loss(self, sent: Sent) -> Losses:
        """Return the loss of the representation itself, without that of the answers; 0 if it has no parameters."""

    def words(self, message: Scores) -> Words:
        """Return the word at each position of a message as one number."""

    def greedy_words(self, sent: Sent) -> Words:
        """Return the words that are emitted without noise, from the result of `as_sent`."""

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the word of each token of a language, as emitted by a sender that has learned the language."""

    def word_count(self, vocab_size: int) -> int:
        """Return the number of words, without the start symbol, which senders may emit in some representations."""
