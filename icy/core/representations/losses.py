"""Types, symbols and losses that representations share, and their base classes."""

from dataclasses import dataclass, field
from typing import Protocol, Self

import torch
from jaxtyping import Bool, Float, Integer, Shaped
from torch import Tensor
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, differentiated, traceable
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
        >>> from icy.core.representations.losses import counted
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


# -- terms of losses: cross-entropy, squared error, advantages, entropy ------------------------------------------------


SMALLEST_DEVIATION = 0.1  # advantages are not normalized if the standard deviation of rewards is smaller
INSIDE_LOG = 1e-8  # added to probabilities before the logarithm
ABSENT = -5e3  # raw scores below are of values that an attribute does not have; models/native/losses.h has the same


def squared_error(scores: Scores, targets: Targets) -> Losses:
    """Return the mean squared difference from the one-hot targets."""
    return (scores - one_hot(targets, scores.shape[-1], scores.dtype)).square().mean((-3, -2, -1))


def raw_squared_error(scores: Scores, targets: Targets) -> Losses:
    """Return `squared_error` of raw scores, without an error of values that an attribute does not have."""
    return squared_error(torch.where(scores < ABSENT, 0.0, scores), targets)


def advantage(rewards: Float[Tensor, "*axes"], axes: int) -> Float[Tensor, "*axes"]:
    """Subtract the mean of rewards over the last `axes` axes. Divide by the standard deviation, unless it is small."""
    over = tuple(range(-axes, 0))
    centered = rewards - rewards.mean(over, keepdim=True)
    deviation = rewards.std(over, keepdim=True)
    return torch.where(deviation > SMALLEST_DEVIATION, centered / deviation, centered)


def entropy(scores: Scores, weights: Shaped[Tensor, "*#stack batch #place"] | None = None) -> Losses:
    """Return the entropy of the softmax in nats, summed over batch and places, with a weight per place if given."""
    probabilities = scores.softmax(-1)
    terms = probabilities * (probabilities + INSIDE_LOG).log()
    return -(terms if weights is None else terms * weights.unsqueeze(-1)).sum((-3, -2, -1))


class _CrossEntropy(Fused):
    """Cross-entropy with few choices.

    PyTorch's cross-entropy works along the last axis, which has only V + 1 or K entries here. With the choices on the
    first axis, every operation runs along whole columns, in about half the time.
    """

    @staticmethod
    def forward(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        columns = scores.t().contiguous()
        largest = columns.amax(0)
        probabilities = (columns - largest).exp_()
        total = probabilities.sum(0)
        probabilities.div_(total)
        chosen = scores.gather(1, targets.unsqueeze(1)).squeeze(1)
        return total.log().add_(largest).sub_(chosen), probabilities

    @staticmethod
    def plain(scores: Tensor, targets: Tensor) -> tuple[Tensor]:
        return (F.cross_entropy(scores, targets, reduction="none"),)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1], inputs[1])

    @staticmethod
    def backward(ctx: Context, grad: Tensor | None, of_probabilities: Tensor | None) -> Gradients:
        probabilities, targets = ctx.saved_tensors
        if grad is None or of_probabilities is not None or differentiated():
            found = probabilities.t()
            to_scores = torch.zeros_like(found)
            if grad is not None:
                to_scores = (found - one_hot(targets, found.shape[1], found.dtype)) * grad.unsqueeze(1)
            if of_probabilities is not None:
                grads = of_probabilities.t()
                to_scores = to_scores + found * (grads - (found * grads).sum(1, keepdim=True))
            return to_scores, None
        to_scores = probabilities.t().contiguous()
        rows = torch.arange(len(targets), device=targets.device)
        to_scores[rows, targets] -= 1
        return to_scores.mul_(grad.unsqueeze(1)), None


def cross_entropy(
    scores: Float[Tensor, "*places choices"], targets: Integer[Tensor, "*places"]
) -> Float[Tensor, "*places"]:
    """Return the cross-entropy of each target, without a reduction."""
    flat: Tensor = apply(_CrossEntropy, scores.flatten(0, -2), targets.flatten().long())[0]
    return flat.view(targets.shape)


# -- base classes of representations -----------------------------------------------------------------------------------


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
