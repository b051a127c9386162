"""Layers of a recurrent cell, run step by step or, if the cell supports it, each over the whole sequence."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.fused import traceable, tracing
from icy.core.representations import DISCRETE, Representation, SpokenSymbols, sampled

from .cells import Cell, Gates, InputMatrix, Scanned, State, Steps
from .kernels import cell_steps
from .layers import Linear, Message, SymbolEmbedding, as_symbol_weights, rows_times

CellFactory = Callable[..., Cell]


class Recurrent(nn.Module):
    """One or more layers of one kind of cell, each reading the outputs of the layer below.

    Args:
        cell: function from (input_size, hidden_size, fed=...) to a cell.
        hidden_size: E, also the size of the input.
        layers: number of layers.
        fed: False if the first layer's input is always zero.
        state_only: whether only the last layer's final state is used.
    """

    def __init__(
        self, cell: CellFactory, hidden_size: int, layers: int = 1, fed: bool = True, state_only: bool = False
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(cell(hidden_size, hidden_size, fed=fed or i > 0) for i in range(layers))
        if not fed:
            for layer in self._cells():
                layer.drive_unfed_net()
        if state_only:
            self._cells()[-1].keep_state_only()

    @property
    def first(self) -> Cell:
        """The layer that reads the input."""
        return self._cells()[0]

    @property
    def scans(self) -> bool:
        """Whether `scan` works: a faster equivalent of `step` if all inputs are known beforehand.

        In a trace the result is False.
        """
        return not tracing() and all(layer.scans for layer in self._cells())

    def _cells(self) -> list[Cell]:
        return list(self.layers)  # type: ignore[arg-type]

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> list[State]:
        """Return states of zeros, except the output `h` of the first layer."""
        first, *rest = self._cells()
        return [first.start(h), *(layer.start(torch.zeros_like(h)) for layer in rest)]

    def step(self, gates: Gates, states: list[State]) -> list[State]:
        """Run one step of every layer; `gates` are the first layer's gates, from `project` or `unfed`."""
        new: list[State] = []
        for layer, state in zip(self._cells(), states, strict=True):
            if new:
                gates = layer.project(new[-1][0])
            new.append(layer.step(gates, state))
        return new

    def scan(self, x: Steps, matrix: InputMatrix, h: Float[Tensor, "*stack batch hidden"], steps: int) -> Scanned:
        """Run all steps of the first layer, then all steps of the next layer.

        Args:
            x, matrix: inputs of the first layer; see Cell.scan.
            h: the first layer's output before the first step; other layers start from zero.
            steps: number of steps.

        Returns:
            The last layer's outputs [*stack, step, batch, hidden]; with `state_only`, only its final output.
        """
        for layer, state in zip(self._cells(), self.start(h), strict=True):
            x, matrix = layer.scan(x, matrix, state, steps), None
        assert x is not None  # there is at least one layer
        return x


# -- the two-level state of the hierarchical-unit network (HU-RNN; Perkins21 2.9; Icy22 3.3.2 and C.5) -----------------


Stop = Float[Tensor, "*stack batch 1"] | bool  # one number per example, or a fixed boundary


def mix(old: State, new: State, s: Stop) -> State:
    """Return (1 - s) old + s new for every member of the state, such as h and c of an LSTM."""
    if isinstance(s, bool):
        return new if s else old
    return tuple(cell_steps.mix(a, b, s) for a, b in zip(old, new, strict=True))


def damp(state: State, s: Stop) -> State:
    """Return (1 - s) state."""
    if isinstance(s, bool):
        return tuple(x.new_zeros(x.shape) for x in state) if s else state
    return tuple(cell_steps.damp(x, s) for x in state)


class StopGate(nn.Module):
    """Stop gate s = sigmoid(a . h + b), a number per example: the degree to which the lower level finished a word."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.score = Linear(hidden_size, 1)

    def forward(self, lower: State, step: int) -> Stop:
        """Return s for the state of the lower level after a step, counted from 0."""
        return cell_steps.stop_gate(lower[0], self.score.weight, self.score.bias.unsqueeze(-1))


class WordEnds(nn.Module):
    """Fixed boundaries in place of a stop gate: s is True after each word and after the last token, otherwise False.

    Args:
        word_length: tokens per word, w.
        message_length: L.
    """

    def __init__(self, word_length: int, message_length: int) -> None:
        super().__init__()
        self.word_length, self.message_length = word_length, message_length

    def forward(self, lower: State, step: int) -> Stop:
        """Return whether a word ends at a step, counted from 0: the value s of a stop gate."""
        return (step + 1) % self.word_length == 0 or step + 1 == self.message_length


# -- symbols as input of a cell, with the embedding folded into the cell's input weights -------------------------------

# There are only V + 1 symbols, and the embedding and the input weights are both linear. Their product is therefore
# computed once per forward pass, and each step multiplies by a matrix of V + 1 rows instead of E.


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
