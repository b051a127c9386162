"""The interface of a representation, and the types of what it takes and gives."""

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
StepScores = Float[Tensor, "*stack batch vocab"]  # of a sender's step, or weights over symbols
Words = Integer[Tensor, "*stack batch length"]


class Representation(Protocol):
    """Interface of a representation, for the training loop and for models with a feedback loop."""

    name: str
    description: str

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return what an autoregressive sender reads of the symbol it has just emitted, as weights over symbols.

        Args:
            scores: of this step.
            step: position in the message, from 0; selects the noise.
            training: False for greedy decoding.
        """

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the message that a receiver gets, as weights over symbols; greedy if `noise` is None."""

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of a sender against the language's messages."""

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the supervised loss of a receiver against the meanings."""

    def link_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise) -> Losses:
        """Return the joint loss of sender and receiver, from the scores of both."""

    def as_link(self, vocab_size: int, taught: bool = False) -> "Representation":
        """Return what joins two models: itself, or a module if it has parameters that are trained with them.

        Args:
            vocab_size: V.
            taught: whether both models have learnt a language before, each by itself.
        """

    def as_sent(self, scores: Scores) -> Sent:
        """Return scores as losses of a link and readings take them: a sender's, or those of words that are learnt."""

    def extra_loss(self, sent: Sent) -> Losses:
        """Return what a link costs beside what is answered; 0 if it learns nothing itself."""

    def words(self, message: Scores) -> Words:
        """Return the word at each position of a message as one number."""

    def greedy_words(self, sent: Sent) -> Words:
        """Return the words that are emitted without noise, by `as_sent` of the scores."""

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the word of each token of a language, as a sender that has learnt it emits it."""

    def word_count(self, vocab_size: int) -> int:
        """Return how many words there are; the start symbol, which a sender may emit in some, is not counted."""
