"""Base classes of senders and receivers, independent of training and of the command line."""

from functools import cache, partial
from typing import Literal

import torch
from jaxtyping import Float, Integer, Shaped
from torch import Tensor, nn

from icy.core.errors import InvalidSettingError
from icy.core.fused import traceable
from icy.languages.meanings import MeaningSpace

from .cells import Cell
from .layers import Message

# Values, or weights over the values of each attribute.
Meanings = (
    Integer[Tensor, "*#stack batch attr={self.space.attributes}"]
    | Float[Tensor, "*#stack batch attr={self.space.attributes} value={self.space.values}"]
)
MessageScores = Float[Tensor, "*stack batch length={self.message_length} vocab={self.symbols}"]
ValueScores = Float[Tensor, "*stack batch attr value"]
MeaningScores = Float[Tensor, "*stack batch attr={self.space.attributes} value={self.space.values}"]

Convention = Literal["true", "published"]
Sizes = tuple[MeaningSpace, int, int, int]  # meanings, message length, vocabulary size and hidden size; see Model
MISSING = -1e4  # added to the scores of values that an attribute does not have, so that their probability is 0


class Model(nn.Module):
    """A sender or a receiver over one meaning space.

    Args:
        space: the meanings.
        message_length: L.
        vocab_size: V; there are scores for V + 1 symbols. The last is the start symbol. It is also the end
            token of messages of different lengths, and otherwise never a target.
        hidden_size: E.

    Attributes:
        broadcasts: whether the forward pass pairs leading axes of the parameters with leading axes of the input, so
            that a stack of models runs as one. Models built from `icy.models.layers` do; `icy check` tests it.
        learns_by_gradient: False for a model that stores examples (see MemoryModel).
        whole_batches: whether scores of an example depend on other examples of its batch.
        takes_ends: False for a model that cannot be trained on messages of different lengths.
    """

    broadcasts = False
    learns_by_gradient = True
    whole_batches = False
    takes_ends = True

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.space = space
        self.message_length = message_length
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size

    @property
    def symbols(self) -> int:
        """Number of symbols, V + 1: the vocabulary and the start symbol."""
        return self.vocab_size + 1

    def inert_parameters(self) -> int:
        """Return the number of parameters of the published model that have no effect, which this model leaves out."""
        return sum(module.inert for module in self.modules() if isinstance(module, Cell))

    def parameter_count(self, convention: Convention = "true") -> int:
        """Return the number of trainable parameters.

        Args:
            convention: "true" counts the parameters of this model. "published" adds parameters that the papers' totals
                also count: input weights of cells with an input that is always zero, layers that are never called, and
                a second copy of an embedding (Icy22 tables 3-6 and 12-15; see the docstring of each model).

        Raises:
            InvalidSettingError: unknown convention.
        """
        if convention not in ("true", "published"):
            raise InvalidSettingError(f"convention must be 'true' or 'published', not '{convention}'.")
        true = sum(p.numel() for p in self.parameters() if p.requires_grad)
        return true + (self.inert_parameters() if convention == "published" else 0)


class Sender(Model):
    """A model from meanings, values `[batch, attr]` or weights over values `[batch, attr, value]`, to scores
    `[batch, length, vocab + 1]`."""

    def forward(self, meanings: Meanings) -> MessageScores:
        """Return the scores of every symbol at every position."""
        raise NotImplementedError

    def shaped(self, scores: Float[Tensor, "*stack batch flat"]) -> MessageScores:
        """Reshape flat scores to one row per position."""
        return scores.view(*scores.shape[:-1], self.message_length, self.symbols)


class Receiver(Model):
    """A model from messages to meanings: tokens `[batch, length]` or weights `[batch, length, vocab + 1]` to scores
    `[batch, attr, value]`."""

    def forward(self, message: Message) -> MeaningScores:
        """Return the scores of every value of every attribute."""
        raise NotImplementedError

    @property
    def answers(self) -> int:
        """Number of scores per message, A * K."""
        return self.space.attributes * self.space.values

    def shaped(self, scores: Float[Tensor, "*stack batch flat"]) -> MeaningScores:
        """Reshape flat scores to one row per attribute."""
        return scores.view(*scores.shape[:-1], self.space.attributes, self.space.values)


class MemoryModel(Model):
    """A model that learns by storing examples. It has no parameters and cannot be stacked."""

    learns_by_gradient = False

    def observe(self, inputs: Shaped[Tensor, "batch ..."], targets: Integer[Tensor, "batch places"]) -> None:
        """Store a batch of examples: `inputs` as in `forward`, `targets` like the argmax of the scores."""
        raise NotImplementedError

    def stored(self) -> dict[str, Shaped[Tensor, "..."]]:
        """Return the stored tensors by name: the buffers, unless a subclass uses another store."""
        return dict(self.named_buffers())

    def restore(self, stored: dict[str, Shaped[Tensor, "..."]]) -> None:
        """Load the result of `stored`."""
        for name, buffer in self.named_buffers():
            buffer.copy_(stored[name])


def leave_out_missing_values(receiver: nn.Module, space: MeaningSpace) -> None:
    """Make a receiver give no probability to values that an attribute does not have.

    A receiver has K scores for every attribute, where K is the largest number of values. In a space that is not a grid,
    some attributes have fewer values.

    Args:
        receiver: a module from messages to scores [batch, attr, value]; it gets a forward hook.
        space: the meanings.
    """
    receiver.register_forward_hook(partial(_without_missing, space))


def _without_missing(space: MeaningSpace, model: nn.Module, inputs: object, scores: Tensor) -> Tensor:
    return without_missing(scores, _penalty(space, scores.device, scores.dtype))


@cache  # a CUDA graph cannot contain a copy from the CPU
def _penalty(space: MeaningSpace, device: torch.device, dtype: torch.dtype) -> Float[Tensor, " attr_value"]:
    return (torch.from_numpy(~space.existing).flatten() * MISSING).to(device, dtype)


@traceable
def without_missing(scores: ValueScores, penalty: Float[Tensor, " attr_value"]) -> ValueScores:
    """Return scores plus the penalties of all values, [A * K]."""
    return (scores.flatten(-2) + penalty).view(scores.shape)


@traceable
def time_last(steps: list[Float[Tensor, "*stack batch size"]]) -> Float[Tensor, "*stack batch length size"]:
    """Stack one slice per step into a sequence."""
    return torch.stack(steps, -2)
