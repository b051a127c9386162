"""The interface of representations and its types, symbols made from scores, and the end of messages."""

from typing import Protocol

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from icy.core.fused import traceable
from icy.core.noise import Noise, current_noise

# -- the interface of a representation, and the types of its arguments and results -------------------------------------


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


@traceable
def linked(scores: Scores, link: Representation, codes: Float[Tensor, "code size"] | None) -> Scores:
    """Return the message of a representation in training, as one operation of a native program.

    Args:
        scores: scores of the sender.
        link: the representation.
        codes: its parameters, if it has any.
    """
    return link.message(scores, current_noise(scores.device))


# -- make symbols from scores: samples, argmax, one-hot vectors --------------------------------------------------------


@traceable
def sampled(scores: StepScores, step: int, training: bool) -> StepScores:
    """Return the token that a sampling sender emits at a step, one-hot and without a gradient; greedy if not training.

    The loss of `Discrete` scores the same token.

    Returns:
        The one-hot token, [..., batch, vocab], with 0 and 1 as floats.
    """
    if not training:
        return largest(scores)
    return largest(scores.detach() + current_noise(scores.device).gumbel(scores, step))


@traceable
def relaxed(scores: StepScores, step: int, temperature: float) -> StepScores:
    """Return the sampled token of a step, one-hot, with the gradient of the Gumbel-softmax."""
    return straight_through(scores, current_noise(scores.device).gumbel(scores, step), temperature)


def straight_through(
    scores: Float[Tensor, "*places choice"], gumbel: Float[Tensor, "*places choice"], temperature: float
) -> Float[Tensor, "*places choice"]:
    """Return the argmax of scores plus noise, one-hot, with the gradient of their softmax at a temperature."""
    soft = ((scores + gumbel) / temperature).softmax(-1)
    return largest(soft.detach()) - soft.detach() + soft  # value of the one-hot, gradient of the softmax


@traceable
def largest(scores: Float[Tensor, "*places choice"]) -> Float[Tensor, "*places choice"]:
    """Return the one-hot vector of the largest score."""
    return one_hot(scores.argmax(-1), scores.shape[-1], scores.dtype)


@traceable
def without_start(scores: Float[Tensor, "*places vocab"]) -> Float[Tensor, "*places vocab"]:
    """Set the last score, of the start symbol, to minus infinity, so that the start symbol is never drawn."""
    last = torch.arange(scores.shape[-1], device=scores.device) == scores.shape[-1] - 1
    return scores.masked_fill(last, -torch.inf)


def one_hot(
    index: Integer[Tensor, "*places"], size: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*places size={size}"]:
    """Return one-hot vectors on a new last axis, without the range check of PyTorch, which waits for the device."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device)).to(dtype)


# -- the end token of messages of different lengths: the positions that count ------------------------------------------


UNCOUNTED = -1  # target at a position that does not count; no score has this index


def counted(messages: Integer[Tensor, "*lead length"], end: int) -> Bool[Tensor, "*lead length"]:
    """Return the positions up to the first end token, which counts too.

    Args:
        messages: tokens; tokens after an end token are ignored.
        end: the end token.

    Example:
        >>> import torch
        >>> from icy.core.representations.samples import counted
        >>> counted(torch.tensor([[0, 4, 4], [1, 0, 4], [1, 0, 2]]), end=4).int().tolist()
        [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    """
    ends = (messages == end).long()
    return ends.cumsum(-1) == ends


def counted_mean(
    values: Float[Tensor, "*stack batch length"], counts: Bool[Tensor, "*stack batch length"]
) -> Float[Tensor, "*stack"]:
    """Return the mean of the values at the positions that count, over batch and positions."""
    return (values * counts).sum((-2, -1)) / counts.sum((-2, -1))
