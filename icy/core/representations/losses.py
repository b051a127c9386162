"""Terms of losses: cross-entropy, squared error, advantages, entropy."""

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor
from torch.nn import functional as F

from icy.core.fused import Context, Fused, Gradients, apply, differentiated

from .protocol import Losses, Scores, Targets
from .samples import one_hot

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
