"""Recurrent cells: RNN, GRU, LSTM, SRU and the two DARTS cells of Perkins21 (appendix), with one interface.

A cell splits its step in two. The part that does not depend on the state is computed once for all steps:

    gates = cell.project(x)            # W x + b, for every step at once
    state = cell.step(gates, state)    # the part that depends on the state

A state is a tuple. Its first member is the output h; the LSTM and the SRU also have c. Everything broadcasts over
leading axes.
"""

import math
from collections.abc import Callable
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.errors import IncompatibleError
from icy.core.fused import traceable, tracing
from icy.core.representations import DISCRETE, Representation, SpokenSymbols, sampled
from icy.models.kernels.sru_scan import sru_scan

from .kernels import cell_steps
from .layers import Linear, Message, SymbolEmbedding, as_symbol_weights, linear, rows_times

State = tuple[Float[Tensor, "*stack batch _"], ...]  # all of one size, unless the output is projected
Inputs = Float[Tensor, "*#lead inputs"]
FromInput = Float[Tensor, "*lead gates"]  # part of the gates that comes from the input
Unfed = Float[Tensor, "*stack 1 gates"]
Gates = Float[Tensor, "*stack #batch gates"]
Steps = Float[Tensor, "*#stack step batch inputs"] | None  # inputs of a scan
InputMatrix = Float[Tensor, "*stack inputs gates"] | None
Scanned = Float[Tensor, "*stack step={steps} batch hidden"] | Float[Tensor, "*stack batch hidden"]


class Cell(nn.Module):
    """Base class of recurrent cells.

    Args:
        input_size: size of x.
        hidden_size: E.
        fed: False if the input is always zero, as in RNNZero and HierZero. Input weights would have no effect, so the
            cell does not have them; `inert` counts the input weights of the published models.
    """

    gate_blocks: int  # width of `gates` in units of hidden_size
    scans = False  # whether `scan` is implemented

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.fed = input_size, hidden_size, fed
        self.inert = 0 if fed else input_size * self.gate_blocks * hidden_size

    def project(self, x: Inputs) -> FromInput:
        """Return the input's part of the gates, with the bias."""
        raise NotImplementedError

    def weigh(self, x: Inputs) -> FromInput:
        """Return the linear part of `project`, without the bias."""
        raise NotImplementedError

    def unfed(self) -> Unfed:
        """Return the gates of a zero input, the same for every example and step."""
        raise NotImplementedError

    def step(self, gates: Gates, state: State) -> State:
        """Return the next state; `gates` [..., batch or 1, gates] come from `project` or `unfed`."""
        raise NotImplementedError

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> State:
        """Return a state with output `h` and zeros elsewhere."""
        return (h,)

    def scan(self, x: Steps, matrix: InputMatrix, state: State, steps: int) -> Scanned:
        """Run all steps at once. Only for cells without a matrix product of the state, and if all inputs are known.

        Args:
            x: inputs [*stack, step, batch, inputs]; None for zero inputs.
            matrix: None, or `weigh` of the rows of a linear map, if the cell's input is this map of `x` (such as the
                embedding of symbols). Then `x @ matrix` is `weigh` of the input.
            state: initial state.
            steps: number of steps.

        Returns:
            The outputs [*stack, step, batch, hidden]; after `keep_state_only`, only the last output.
        """
        raise NotImplementedError

    def drive_unfed_net(self) -> None:
        """Adapt to a net with an input that is always zero; called for each layer after construction."""

    def keep_state_only(self) -> None:
        """Drop parameters that only affect outputs; called after construction if only the state is used.

        The default does nothing, which is right for cells that output their state.
        """


class _LibraryCell(Cell):
    """A cell with PyTorch's weights and initialization: U(+-1/sqrt(E)), two bias vectors."""

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width, bound = self.gate_blocks * hidden_size, 1 / math.sqrt(hidden_size)
        if fed:
            self.weight_ih = nn.Parameter(torch.empty(width, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(width, hidden_size).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    @classmethod
    def of(
        cls,
        weight_ih: Float[Tensor, "*stack gates inputs"],
        weight_hh: Float[Tensor, "*stack gates hidden"],
        bias_ih: Float[Tensor, "*stack gates"] | None = None,
        bias_hh: Float[Tensor, "*stack gates"] | None = None,
    ) -> Self:
        """Return a cell that computes with these tensors; they do not become its parameters."""
        cell = cls.__new__(cls)
        nn.Module.__init__(cell)
        zeros = weight_ih.new_zeros(weight_ih.shape[:-1])
        biases = {"bias_ih": zeros if bias_ih is None else bias_ih, "bias_hh": zeros if bias_hh is None else bias_hh}
        cell.__dict__.update(biases, weight_ih=weight_ih, weight_hh=weight_hh)
        return cell

    def project(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih, self._input_bias())

    def weigh(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih)

    def unfed(self) -> Unfed:
        return self._input_bias().unsqueeze(-2)

    def _input_bias(self) -> Tensor:
        # Both biases enter the same sum, so they are added once for all steps. The GRU overrides this.
        return self.bias_ih + self.bias_hh


class RNNCell(_LibraryCell):
    """Vanilla (Elman) RNN: h' = tanh(W x + b + U h + c)."""

    gate_blocks = 1

    def step(self, gates: Gates, state: State) -> State:
        (h,) = state
        return (cell_steps.tanh(rows_times(h, self.weight_hh.mT, gates)),)


class GRUCell(_LibraryCell):
    """Gated recurrent unit, in PyTorch's form (the reset gate acts after the product with the state)."""

    gate_blocks = 3

    def _input_bias(self) -> Tensor:
        return self.bias_ih  # the candidate's part of bias_hh is inside the reset gate

    def step(self, gates: Gates, state: State) -> State:
        (h,) = state
        return (cell_steps.gru_step(gates, linear(h, self.weight_hh, self.bias_hh), h),)


class LSTMCell(_LibraryCell):
    """Long short-term memory, in PyTorch's form."""

    gate_blocks = 4

    def step(self, gates: Gates, state: State) -> State:
        h, c = state
        return cell_steps.lstm_step(rows_times(h, self.weight_hh.mT, gates), c)

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> State:
        return h, torch.zeros_like(h)


class SRUCell(Cell):
    """Simple recurrent unit: its gates read the state through one weight per unit, without a matrix product.

    x~ = W x;  f = sigmoid(W_f x + v_f c + b_f);  r = sigmoid(W_r x + v_r c + b_r);  c' = f c + (1 - f) x~;
    h = r g(c') + (1 - r) x. g is the identity, and tanh in a net without input (RNNZero), as in the authors' program.
    Initialized as in the published `sru` package: W U(+-sqrt(3/E)), v U(+-sqrt(3)), the gates' rows of W and v scaled
    by sqrt(1/2), biases zero. `start` sets c; an input must have size E.

    Args:
        input_size: size of x.
        hidden_size: E.
        fed: see Cell.

    Raises:
        IncompatibleError: the sizes of input and state differ.
    """

    gate_blocks = 4  # x~, f, r, and x itself for the highway
    scans = True

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        if fed and input_size != hidden_size:
            raise IncompatibleError(
                f"The SRU needs an input size equal to the hidden size; not {input_size} and {hidden_size}."
            )
        half = math.sqrt(0.5)
        self.inert = 0 if fed else 3 * input_size * hidden_size
        self.activation = "identity"
        self.state_only = False
        if fed:
            weight = torch.empty(3 * hidden_size, input_size).uniform_(-1, 1) * math.sqrt(3 / input_size)
            weight[hidden_size:] *= half
            self.weight = nn.Parameter(weight)
        self.state_weight = nn.Parameter(torch.empty(2, hidden_size).uniform_(-1, 1) * math.sqrt(3) * half)
        self.bias = nn.Parameter(torch.zeros(2, hidden_size))

    def project(self, x: Inputs) -> FromInput:
        return self._with_highway(linear(x, self.weight, self._shift()), x)

    def weigh(self, x: Inputs) -> FromInput:
        return self._with_highway(linear(x, self.weight), x)

    def _with_highway(self, product: Tensor, x: Tensor) -> Tensor:
        return product if self.state_only else torch.cat([product, x.expand(*product.shape[:-1], -1)], -1)

    def _shift(self) -> Tensor:
        bias = self.bias.flatten(-2)
        return torch.cat([bias.new_zeros(*bias.shape[:-1], self.hidden_size), bias], -1)

    def unfed(self) -> Unfed:
        shift = self._shift().unsqueeze(-2)
        nothing = shift.new_zeros(*shift.shape[:-1], 0 if self.state_only else self.hidden_size)
        return torch.cat([shift, nothing], -1)

    def step(self, gates: Gates, state: State) -> State:
        c = state[1]
        if not self.state_only:
            return cell_steps.sru_step(gates, self.state_weight, c, self.activation)
        c = cell_steps.sru_state_step(gates, self.state_weight, c)
        return c, c

    def start(self, h: Float[Tensor, "*stack batch hidden"]) -> State:
        return h, h

    def scan(self, x: Steps, matrix: InputMatrix, state: State, steps: int) -> Scanned:
        if x is not None and matrix is None:
            matrix = self.weight.mT
        return sru_scan(x, matrix, self.bias, self.state_weight, state[1], steps, self.activation)

    def keep_state_only(self) -> None:
        # The published receivers use c of the last layer, so r has no effect.
        size = self.hidden_size
        self.state_only = True
        self.inert += 2 * size + (size * self.input_size if self.fed else 0)
        if self.fed:
            self.weight = nn.Parameter(self.weight.detach()[: 2 * size].clone())
        self.state_weight = nn.Parameter(self.state_weight.detach()[:1].clone())
        self.bias = nn.Parameter(self.bias.detach()[:1].clone())

    def drive_unfed_net(self) -> None:
        self.activation = "tanh"


class DartsCell(Cell):
    """A cell found by architecture search: a highway node, followed by `nodes`. The new state is the mean of `nodes`.

    Matrices are Xavier-uniform, and there are no biases. Node i with predecessor p is s_p + sigmoid(c) (f(g) - s_p)
    with [c | g] = s_p W_i (Perkins21, section on DARTS; node 0 starts from h and also reads x).

    Args:
        input_size: size of x.
        hidden_size: E.
        fed: see Cell.
    """

    gate_blocks = 2
    nodes: tuple[tuple[int, str], ...]  # predecessor, activation

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width = 2 * hidden_size
        # The published form has one matrix, with x's rows above h's. The bound is that of the whole matrix.
        bound = math.sqrt(6 / (input_size + hidden_size + width))
        if fed:
            self.weight_x = nn.Parameter(torch.empty(input_size, width).uniform_(-bound, bound))
        self.weight_h = nn.Parameter(torch.empty(hidden_size, width).uniform_(-bound, bound))
        for i, _ in enumerate(self.nodes, 1):
            matrix = torch.empty(hidden_size, width)
            self.register_parameter(f"weight_{i}", nn.Parameter(nn.init.xavier_uniform_(matrix)))

    def project(self, x: Inputs) -> FromInput:
        return rows_times(x, self.weight_x)

    weigh = project

    def unfed(self) -> Unfed:
        return self.weight_h.new_zeros(*self.weight_h.shape[:-2], 1, self.weight_h.shape[-1])

    def step(self, gates: Gates, state: State) -> State:
        (h,) = state
        outputs = [cell_steps.highway_step(rows_times(h, self.weight_h, gates), h, "tanh")]
        for i, (predecessor, activation) in enumerate(self.nodes, 1):
            s = outputs[predecessor]
            outputs.append(cell_steps.highway_step(rows_times(s, getattr(self, f"weight_{i}")), s, activation))
        found = outputs[1:]
        return (found[0] if len(found) == 1 else torch.stack(found).mean(0),)


class DGSendCell(DartsCell):
    """The DARTS cell found for senders: one node."""

    nodes = ((0, "identity"),)


class DGRecvCell(DartsCell):
    """The DARTS cell found for receivers: four nodes."""

    nodes = ((0, "tanh"), (0, "tanh"), (0, "identity"), (2, "relu"))


# -- gated linear recurrences: cells with gates that do not read the state ---------------------------------------------


class MinGRUCell(Cell):
    """Minimal GRU (Feng et al. 2024, "Were RNNs all we needed?", section 3.1): a GRU with gates of the input alone.

    z = sigmoid(W_z x + b_z);  h~ = W_h x + b_h;  h' = (1 - z) h + z h~. This is the paper's plain form; its second form
    computes in log space and keeps h~ positive. Initialized U(+-1/sqrt(E)), like PyTorch's cells and, if input and
    state have the same size, its linear layers.

    Meant for families in which cells have an input. If the input is always zero (RNNZero, Composed without feedback,
    and the upper level of the Hier senders), z and h~ are constant, and each unit of the state decays from the meaning
    to h~ at a fixed rate. The scores of token t are then W d^t h_0 plus a constant, with d = 1 - z: positions differ
    only by the rates. Such a sender does not learn long messages: on concat at 5x10 (L=20, E=128, one seed) it had 99 %
    of the first token after 1,500 updates, and 28 to 58 % of tokens 4 to 20. Slower rates at the start (b_z lower by 3,
    or rates from 1/L to 1) changed the mean over tokens from 46 % to 43 and 48 %.
    """

    gate_blocks = 2

    def __init__(self, input_size: int, hidden_size: int, fed: bool = True) -> None:
        super().__init__(input_size, hidden_size, fed)
        width, bound = self.gate_blocks * hidden_size, 1 / math.sqrt(hidden_size)
        if fed:
            self.weight_ih = nn.Parameter(torch.empty(width, input_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def project(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih, self.bias)

    def weigh(self, x: Inputs) -> FromInput:
        return linear(x, self.weight_ih)

    def unfed(self) -> Unfed:
        return self.bias.unsqueeze(-2)

    def step(self, gates: Gates, state: State) -> State:
        (h,) = state
        # h + z (h~ - h) is a highway node without activation. The gates of a zero input have a single row.
        by_example = gates.expand(*h.shape[:-1], gates.shape[-1])
        return (cell_steps.highway_step(by_example, h, "identity"),)


# -- layers of a recurrent cell, run step by step or, if the cell supports it, each over the whole sequence ------------


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
