"""Representations: what a sender emits, what it is fed back, and which loss trains it (Perkins21 section 4, Icy22).

Every loss keeps leading axes, so one call serves one model, or a stack of them: scores `[..., batch, ...]` give a loss
`[...]`, one number per model.
"""

from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

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


def cross_entropy(scores: Float[Tensor, "... choices"], targets: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Cross-entropy of each target, without a reduction."""
    flat = F.cross_entropy(scores.flatten(0, -2), targets.flatten().long(), reduction="none")
    return flat.view(targets.shape)


SOFT = Soft()
REPRESENTATIONS: dict[str, Representation] = {SOFT.name: SOFT}


def get_representation(name: str) -> Representation:
    """The representation called `name`, in any case.

    Raises:
        UnknownNameError: there is none.
    """
    if not isinstance(name, str):
        raise InvalidSettingError(f"A representation is given by name, not by {type(name).__name__}.")
    found = REPRESENTATIONS.get(name.lower())
    if found is None:
        raise unknown("representation", name, list(REPRESENTATIONS))
    return found


def chance(choices: int) -> float:
    """Accuracy of guessing among `choices` equally likely answers: 1/V for a sender's token, 1/K for a value."""
    return 1.0 / choices


def one_hot(index: Int[Tensor, "..."], size: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "... size"]:
    """One-hot vectors on a new last axis. Unlike the library's, it never waits for the device to check the range."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device)).to(dtype)
