"""Representations: what a sender emits and reads back, and which loss trains it (Perkins21 section 4, Icy22).

A model always returns scores. What it emits is a function of the scores and the noise of the update (`icy.core.noise`),
so a sender's feedback loop, the loss, and the receiver at the other end of the link all see the same sample.

Every loss keeps leading axes, so the same call serves one model or a stack: scores `[..., batch, place, choice]` give
losses `[...]`, one per model.
"""

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol

import torch
from jaxtyping import Float, Integer
from torch import Tensor
from torch.autograd import Function

from .errors import InvalidSettingError, unknown
from .noise import Noise, current_noise
from .tracing import traceable

TEMPERATURE = 1.2  # of the Gumbel-softmax, as in the authors' program
SMALLEST_DEVIATION = 0.1  # if the rewards of a batch deviate less, advantages are not normalised
INSIDE_LOG = 1e-8  # added to probabilities before their logarithm is taken

Scores = Float[Tensor, "*stack batch place choice"]  # places are a sender's positions or a receiver's attributes
Targets = Integer[Tensor, "*stack batch place"]
Sent = Float[Tensor, "*stack batch length vocab"]
Answered = Float[Tensor, "*stack batch attr value"]
Meanings = Integer[Tensor, "*stack batch attr"]
Losses = Float[Tensor, "*stack"]
StepScores = Float[Tensor, "*stack batch vocab"]  # of a sender's step, or weights over symbols


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


class Soft:
    """SOFT: probability vectors are emitted and fed back; the loss is cross-entropy (Icy22 appendix B)."""

    name = "soft"
    description = "Probability vectors; cross-entropy."

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the softmax of the scores, with its gradient."""
        return scores.softmax(-1)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the softmax of the scores, in training and in evaluation."""
        return scores.softmax(-1)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy, mean over batch and positions."""
        return cross_entropy(scores, messages).mean((-2, -1))

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy, mean over the batch and summed over the attributes."""
        return cross_entropy(scores, meanings).mean(-2).sum(-1)

    def link_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, mean over batch and attributes (Perkins21 table 6)."""
        return cross_entropy(answered, meanings).mean((-2, -1))


@dataclass(frozen=True)
class Gumbel:
    """GUMB: one-hot samples, straight-through Gumbel-softmax; the loss is their squared error (Perkins21 section 4).

    Attributes:
        temperature: of the softmax whose gradient is used.
        least_squares: compute a receiver's squared error on the raw scores, without sampling, as the authors' program
            does; so were all published receiver rows under GUMB.
    """

    name = "gumb"
    description = "One-hot samples, straight-through Gumbel-softmax; squared error."

    temperature: float = TEMPERATURE
    least_squares: bool = False

    def feed_back(self, scores: StepScores, step: int, training: bool) -> StepScores:
        """Return the sample with the gradient of the softmax; greedy if not training."""
        if not training:
            return largest(scores)
        return relaxed(scores, step, self.temperature)

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the samples of all positions; greedy if `noise` is None."""
        return largest(scores) if noise is None else _relaxed(scores, noise.gumbels(scores), self.temperature)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the squared error of the samples, mean over batch, positions and symbols."""
        return squared_error(self.message(scores, noise), messages)

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the squared error of the samples, mean over batch, attributes and values."""
        return squared_error(scores if self.least_squares else self.message(scores, noise), meanings)

    def link_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, as under SOFT (Perkins21 table 6)."""
        return cross_entropy(answered, meanings).mean((-2, -1))


@dataclass(frozen=True)
class Discrete:
    """DISCR: sampled tokens, trained by REINFORCE with the batch as baseline and an entropy term (Perkins21 section 4).

    Losses are sums, as in the authors' program: over the batch and over positions or attributes.

    Attributes:
        reward_weight: factor of the reward term.
        entropy_weight: factor of the entropy that is added to the reward.
    """

    name = "discr"
    description = "Sampled tokens; REINFORCE."

    reward_weight: float = 1.0
    entropy_weight: float = 0.01

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the softmax of the scores: only senders that sample tokens themselves read tokens (see `sampled`)."""
        return scores.softmax(-1)

    def message(self, scores: Scores, noise: Noise | None) -> Scores:
        """Return the sampled tokens as one-hot vectors, without a gradient; greedy if `noise` is None."""
        return largest(scores) if noise is None else largest(scores.detach() + noise.gumbels(scores))

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise) -> Losses:
        """Return the REINFORCE loss; the reward of an example is its number of correct tokens."""
        return self._supervised(scores, messages, noise)

    def receiver_loss(self, scores: Scores, meanings: Targets, noise: Noise) -> Losses:
        """Return the REINFORCE loss; the reward of an example is its number of correct attributes."""
        return self._supervised(scores, meanings, noise)

    def _supervised(self, scores: Scores, targets: Targets, noise: Noise) -> Losses:
        drawn = self.message(scores, noise).argmax(-1)
        rewards = (drawn == targets).sum(-1).to(scores.dtype)
        gain = advantage(rewards, axes=1).unsqueeze(-1) * -cross_entropy(scores, drawn)
        return -self.reward_weight * gain.sum((-2, -1)) - self.entropy_weight * entropy(scores)

    def link_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise) -> Losses:
        """Return the REINFORCE loss of both models; each correct attribute is a reward (Perkins21 table 6).

        The advantage of a token is the mean over its example's attributes, that of a sampled value its own.
        """
        tokens = self.message(sent, noise).argmax(-1)
        values = self.message(answered, noise.channel(ANSWERS)).argmax(-1)
        gains = advantage((values == meanings).to(answered.dtype), axes=2)
        of_tokens = gains.mean(-1, keepdim=True) * -cross_entropy(sent, tokens)
        of_values = gains * -cross_entropy(answered, values)
        reward = of_tokens.sum((-2, -1)) + of_values.sum((-2, -1))
        return -self.reward_weight * reward - self.entropy_weight * (entropy(sent) + entropy(answered))


ANSWERS = 1  # noise channel of a receiver's values; tokens use the noise itself


@traceable
def sampled(scores: StepScores, step: int, training: bool) -> StepScores:
    """Return the token that a sampling sender emits at a step, one-hot and without a gradient; greedy if not training.

    The loss of `Discrete` scores the same token.
    """
    if not training:
        return largest(scores)
    return largest(scores.detach() + current_noise(scores.device).gumbel(scores, step))


@traceable
def relaxed(scores: StepScores, step: int, temperature: float) -> StepScores:
    """Return the token that is drawn at a step, one-hot, with the gradient of the Gumbel-softmax."""
    return _relaxed(scores, current_noise(scores.device).gumbel(scores, step), temperature)


def _relaxed(scores: Tensor, gumbel: Tensor, temperature: float) -> Tensor:
    soft = ((scores + gumbel) / temperature).softmax(-1)
    return largest(soft.detach()) - soft.detach() + soft  # value of the one-hot, gradient of the softmax


@traceable
def largest(scores: Float[Tensor, "*places choice"]) -> Float[Tensor, "*places choice"]:
    """Return the one-hot vector of the largest score."""
    return one_hot(scores.argmax(-1), scores.shape[-1], scores.dtype)


def squared_error(found: Scores, targets: Targets) -> Losses:
    """Return the mean squared difference from the one-hot targets."""
    return (found - one_hot(targets, found.shape[-1], found.dtype)).square().mean((-3, -2, -1))


def advantage(rewards: Float[Tensor, "*axes"], axes: int) -> Float[Tensor, "*axes"]:
    """Subtract the mean of rewards over the last `axes` axes, and divide by their standard deviation unless small."""
    over = tuple(range(-axes, 0))
    centred = rewards - rewards.mean(over, keepdim=True)
    deviation = rewards.std(over, keepdim=True)
    return torch.where(deviation > SMALLEST_DEVIATION, centred / deviation, centred)


def entropy(scores: Scores) -> Losses:
    """Return the entropy of the softmax in nats, summed over batch and places."""
    probabilities = scores.softmax(-1)
    return -(probabilities * (probabilities + INSIDE_LOG).log()).sum((-3, -2, -1))


class _CrossEntropy(Function):
    """Cross-entropy with few choices. PyTorch's works along the last axis, which is only V + 1 or K long here; with the
    choices on the first axis every operation runs along whole columns, in about half the time."""

    generate_vmap_rule = True

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
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1], inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        probabilities, targets = ctx.saved_tensors
        to_scores = probabilities.t().contiguous()
        rows = torch.arange(len(targets), device=targets.device)
        to_scores[rows, targets] -= 1
        return to_scores.mul_(grad.unsqueeze(1)), None


def cross_entropy(
    scores: Float[Tensor, "*places choices"], targets: Integer[Tensor, "*places"]
) -> Float[Tensor, "*places"]:
    """Return the cross-entropy of each target, without a reduction."""
    flat: Tensor = _CrossEntropy.apply(scores.flatten(0, -2), targets.flatten().long())[0]  # type: ignore[no-untyped-call]
    return flat.view(targets.shape)


SOFT = Soft()
REPRESENTATIONS: dict[str, Representation] = {r.name: r for r in (SOFT, Gumbel(), Discrete())}


def get_representation(name: str, **options: Any) -> Representation:
    """Return the representation called `name`.

    Args:
        name: "soft", "gumb" or "discr", in any case.
        **options: values of its attributes; others are ignored.

    Raises:
        InvalidSettingError: `name` is not text.
        UnknownNameError: there is no such representation.
    """
    if not isinstance(name, str):
        raise InvalidSettingError(f"A representation is given by name, not by {type(name).__name__}.")
    found = REPRESENTATIONS.get(name.lower())
    if found is None:
        raise unknown("representation", name, list(REPRESENTATIONS))
    own = {key: value for key, value in options.items() if key in options_of(found.name)}
    return replace(found, **own) if own else found  # type: ignore[type-var]


def options_of(name: str) -> tuple[str, ...]:
    """Return the attributes of a representation that can be set."""
    found = REPRESENTATIONS[name]
    return tuple(f.name for f in fields(found)) if is_dataclass(found) else ()


def one_hot(
    index: Integer[Tensor, "*places"], size: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "*places size={size}"]:
    """Return one-hot vectors on a new last axis, without PyTorch's range check, which waits for the device."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device)).to(dtype)
