"""Terms of losses: cross-entropy, squared error, advantages, entropy; and base classes of representations."""

from dataclasses import dataclass, field
from typing import Self

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, differentiated
from icy.core.noise import Noise

from .samples import (
    Answered,
    Losses,
    Meanings,
    Scores,
    Sent,
    StepScores,
    Targets,
    Words,
    one_hot,
    without_start,
)

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
            vocabulary. This class restricts the feedback of a sender; `icy.training.task_models.make_model` restricts
            its scores.
    """

    symbols: str = field(default=WITH_START, kw_only=True)

    def allowed(self, scores: StepScores) -> StepScores:
        """Set the scores of symbols that are not allowed to minus infinity."""
        return without_start(scores) if self.symbols == VOCABULARY else scores
