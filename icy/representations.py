"""Representations: what a sender emits, what it is fed back, and which loss trains it (Perkins21 section 4, Icy22).

Every loss keeps leading axes, so one call serves one model, or a stack of them: scores `[..., batch, ...]` give a loss
`[...]`, one number per model.
"""

from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from icy.errors import InvalidSettingError, unknown


class Representation(Protocol):
    """What a model with a feedback loop, and the training loop, ask of a representation."""

    name: str

    def feed_back(self, scores: Float[Tensor, "... vocab"]) -> Float[Tensor, "... vocab"]:
        """What an autoregressive sender sees of the symbol it has just emitted, as weights over symbols."""

    def sender_loss(
        self, scores: Float[Tensor, "*stack batch length vocab"], messages: Int[Tensor, "*stack batch length"]
    ) -> Float[Tensor, "*stack"]:
        """Supervised loss of a sender against the language's messages."""

    def receiver_loss(
        self, scores: Float[Tensor, "*stack batch attr value"], meanings: Int[Tensor, "*stack batch attr"]
    ) -> Float[Tensor, "*stack"]:
        """Supervised loss of a receiver against the meanings."""


class Soft:
    """SOFT: probability vectors are emitted and fed back; the loss is cross-entropy (Icy22 appendix B)."""

    name = "soft"

    def feed_back(self, scores: Float[Tensor, "... vocab"]) -> Float[Tensor, "... vocab"]:
        """The softmax of the scores; gradients flow through it."""
        return scores.softmax(-1)

    def sender_loss(
        self, scores: Float[Tensor, "*stack batch length vocab"], messages: Int[Tensor, "*stack batch length"]
    ) -> Float[Tensor, "*stack"]:
        """Cross-entropy, mean over batch and positions."""
        return cross_entropy(scores, messages).mean((-2, -1))

    def receiver_loss(
        self, scores: Float[Tensor, "*stack batch attr value"], meanings: Int[Tensor, "*stack batch attr"]
    ) -> Float[Tensor, "*stack"]:
        """Cross-entropy, mean over the batch, summed over the attributes."""
        return cross_entropy(scores, meanings).mean(-2).sum(-1)


class _CrossEntropy(Function):
    """Cross-entropy with few choices. The library's walks along the last axis, which is here only V + 1 or K long; with
    the choices first every operation runs along whole columns, in about half the time."""

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


def cross_entropy(scores: Float[Tensor, "... choices"], targets: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Cross-entropy of each target, without a reduction."""
    flat: Tensor = _CrossEntropy.apply(scores.flatten(0, -2), targets.flatten().long())[0]  # type: ignore[no-untyped-call]
    return flat.view(targets.shape)


SOFT = Soft()
REPRESENTATIONS: dict[str, Representation] = {SOFT.name: SOFT}


def get_representation(name: str) -> Representation:
    """The representation called `name`, in any case.

    Raises:
        InvalidSettingError: it is not a name.
        UnknownNameError: there is none.
    """
    if not isinstance(name, str):
        raise InvalidSettingError(f"A representation is given by name, not by {type(name).__name__}.")
    found = REPRESENTATIONS.get(name.lower())
    if found is None:
        raise unknown("representation", name, list(REPRESENTATIONS))
    return found


def one_hot(index: Int[Tensor, "..."], size: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "... size"]:
    """One-hot vectors on a new last axis. Unlike the library's, it never waits for the device to check the range."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device)).to(dtype)
