"""Symbols as input of a cell, with the embedding folded into the cell's input weights.

There are only V + 1 symbols, and the embedding and the input weights are both linear. Their product is therefore
computed once per forward pass, and each step multiplies by a matrix of V + 1 rows instead of E.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.fused import traceable
from icy.core.representations import DISCRETE, Representation, SpokenSymbols, sampled

from .cells import Cell
from .layers import Linear, Message, SymbolEmbedding, as_symbol_weights, rows_times

Folded = tuple[Float[Tensor, "*stack vocab gates"], Float[Tensor, "*stack 1 gates"]]  # a matrix, and an addend
Hidden = Float[Tensor, "*stack batch hidden"]
Scores = Float[Tensor, "*stack batch vocab"]  # scores of one step, or weights over symbols


def message_gates(
    message: Message, embed: SymbolEmbedding, cell: Cell, symbols: int
) -> tuple[Float[Tensor, "*stack batch gates"], ...]:
    """Return a receiver's gates at every step of a message (tokens or weights): L tensors [..., batch, gates]."""
    folded = fold_embedding(embed, cell)
    return apply_folded(by_position(message, symbols, embed.weight.dtype), folded).unbind(-3)


@traceable
def by_position(
    message: Message, symbols: int, dtype: torch.dtype
) -> Float[Tensor, "*stack length batch vocab={symbols}"]:
    """Return a message as weights over symbols [..., length, batch, symbols], contiguous for each step."""
    return as_symbol_weights(message, symbols, dtype).transpose(-3, -2).contiguous()


def fold_embedding(embed: SymbolEmbedding, cell: Cell) -> Folded:
    """Fold an embedding into the input weights of `cell`."""
    no_input = embed.weight.new_zeros(1, embed.weight.shape[-1])
    return cell.weigh(embed.weight), cell.project(no_input)


def apply_folded(weights: Float[Tensor, "*lead vocab"], folded: Folded) -> Float[Tensor, "*lead_out gates"]:
    """Return the gates for weights over symbols [..., symbols]."""
    matrix, constant = folded
    return rows_times(weights, matrix, constant)


@traceable
def start_symbol(like: Hidden, symbols: int) -> Float[Tensor, "*stack batch vocab={symbols}"]:
    """Return the start symbol (index V) for every row of `like` [..., batch, hidden], as weights over symbols."""
    start = torch.zeros(*like.shape[:-1], symbols, dtype=like.dtype, device=like.device)
    start[..., -1] = 1
    return start


def allowed(representation: Representation, scores: Scores) -> Scores:
    """Return scores with minus infinity for symbols that a representation excludes."""
    return representation.allowed(scores) if isinstance(representation, SpokenSymbols) else scores


class SymbolFeedback(nn.Module):
    """Feedback of an autoregressive sender: a linear layer, V + 1 to E, of the feedback of its representation.

    Args:
        symbols: V + 1.
        hidden_size: E, the cell's input size.
        representation: determines the feedback.
    """

    def __init__(self, symbols: int, hidden_size: int, representation: Representation) -> None:
        super().__init__()
        self.symbols = symbols
        self.representation = representation
        self.embed = Linear(symbols, hidden_size)

    def fold(self, cell: Cell) -> Folded:
        """Return this layer multiplied with the input weights of `cell`, so that a step needs one product, not two."""
        return cell.weigh(self.embed.weight.mT), cell.project(self.embed.bias.unsqueeze(-2))

    def first_symbol(self, like: Hidden) -> Scores:
        """Return the input of the first step."""
        return start_symbol(like, self.symbols)

    def seen(self, scores: Scores, step: int) -> Scores:
        """Return the feedback for the scores of a step, as weights over symbols."""
        return self.representation.feed_back(scores, step, self.training)


class SampledFeedback(nn.Module):
    """Feedback of a sampling sender: the embedding of its last token.

    Args:
        symbols: V + 1.
        hidden_size: E, the cell's input size.
        representation: determines the allowed symbols.
    """

    def __init__(self, symbols: int, hidden_size: int, representation: Representation = DISCRETE) -> None:
        super().__init__()
        self.symbols = symbols
        self.representation = representation
        self.embed = SymbolEmbedding(symbols, hidden_size)

    def fold(self, cell: Cell) -> Folded:
        """Fold the embedding into the input weights of `cell`."""
        return fold_embedding(self.embed, cell)

    def first_symbol(self, like: Hidden) -> Scores:
        """Return the input of the first step."""
        return start_symbol(like, self.symbols)

    def seen(self, scores: Scores, step: int) -> Scores:
        """Return the token sampled at a step; in evaluation, the most likely token."""
        return sampled(allowed(self.representation, scores), step, self.training)
