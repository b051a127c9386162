"""Symbols as input of a cell: an embedding folded into the cell's input weights.

Only V + 1 symbols exist, and both the embedding and the input weights are linear. So their product is made once per
forward pass, and a step multiplies by a matrix of V + 1 rows instead of E.
"""

import torch
from torch import Tensor, nn

from icy.core.representations import Representation, sampled

from .cells import Cell
from .layers import Linear, SymbolEmbedding, as_symbol_weights, rows_times

Folded = tuple[Tensor, Tensor]  # matrix [..., symbols, gates], constant [..., 1, gates]


def message_gates(message: Tensor, embed: SymbolEmbedding, cell: Cell, symbols: int) -> tuple[Tensor, ...]:
    """A receiver's gates, for every step of a message (tokens, or weights over symbols): L of [..., batch, gates]."""
    folded = fold_embedding(embed, cell)
    return apply_folded(by_position(message, symbols, embed.weight.dtype), folded).unbind(-3)


def by_position(message: Tensor, symbols: int, dtype: torch.dtype) -> Tensor:
    """A message as weights over symbols [..., length, batch, symbols]: whole slices, a step at a time."""
    return as_symbol_weights(message, symbols, dtype).transpose(-3, -2).contiguous()


def fold_embedding(embed: SymbolEmbedding, cell: Cell) -> Folded:
    """An embedding folded into the input weights of `cell`."""
    no_input = embed.weight.new_zeros(1, embed.weight.shape[-1])
    return cell.weigh(embed.weight), cell.project(no_input)


def apply_folded(weights: Tensor, folded: Folded) -> Tensor:
    """The gates for weights over symbols [..., symbols]."""
    matrix, constant = folded
    return rows_times(weights, matrix, constant)


def start_symbol(like: Tensor, symbols: int) -> Tensor:
    """The start symbol (index V) for every row of `like` [..., batch, hidden], as weights over symbols."""
    start = torch.zeros(*like.shape[:-1], symbols, dtype=like.dtype, device=like.device)
    start[..., -1] = 1
    return start


class Feedback(nn.Module):
    """How an autoregressive sender sees its last symbol: `Linear(V + 1, E)` on the weights that are fed back.

    Args:
        symbols: V + 1.
        hidden_size: E, the cell's input size.
        representation: says what is fed back.
    """

    def __init__(self, symbols: int, hidden_size: int, representation: Representation) -> None:
        super().__init__()
        self.symbols = symbols
        self.representation = representation
        self.embed = Linear(symbols, hidden_size)

    def fold(self, cell: Cell) -> Folded:
        """This layer folded into the input weights of `cell`."""
        return cell.weigh(self.embed.weight.mT), cell.project(self.embed.bias.unsqueeze(-2))

    def first_symbol(self, like: Tensor) -> Tensor:
        """What is fed before the first step."""
        return start_symbol(like, self.symbols)

    def seen(self, scores: Tensor, step: int) -> Tensor:
        """What is fed back of the scores of a step, as weights over symbols."""
        return self.representation.feed_back(scores, step, self.training)


class SampledFeedback(nn.Module):
    """How a sampling sender sees its last token: a row of an embedding.

    Args:
        symbols: V + 1.
        hidden_size: E, the cell's input size.
    """

    def __init__(self, symbols: int, hidden_size: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.embed = SymbolEmbedding(symbols, hidden_size)

    def fold(self, cell: Cell) -> Folded:
        """The embedding folded into the input weights of `cell`."""
        return fold_embedding(self.embed, cell)

    def first_symbol(self, like: Tensor) -> Tensor:
        """What is fed before the first step."""
        return start_symbol(like, self.symbols)

    def seen(self, scores: Tensor, step: int) -> Tensor:
        """The token that is sampled at a step; the largest, in evaluation."""
        return sampled(scores, step, self.training)
