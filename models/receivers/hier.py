"""The HU-RNN receiver Hier, with any cell (Perkins21 section 2.9; Icy22 section 3.3.2, HURecv)."""

import torch

from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.cells import CellFactory, State, Stop, StopGate, WordEnds, damp, message_gates, mix
from icy.models.kernels.cell_steps import of_first
from icy.models.layers import Linear, Message, SymbolEmbedding


class Hier(Receiver):
    """Two levels: the lower level reads symbols. When its stop gate opens, the upper level reads the lower level.

    l~ = (1 - s_{t-1}) l_{t-1};  l_t = CELL_l(x_t, l~);  s_t = sigmoid(a . l_t + b);
    u_t = s_t CELL_u(l_t, u_{t-1}) + (1 - s_t) u_{t-1};  scores from u_L. The papers omit the factor on the lower state.
    The published total counts the embedding twice.

    Args:
        *sizes: see Model.
        cell: function that creates both cells.
        shared_gate: use the gate of the first example for the whole batch, as the authors' program does by mistake for
            every cell but the LSTM. All published numbers of Hier:GRU, Hier:RNN and Hier:dgrecv were made in this way.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, cell: CellFactory, shared_gate: bool = False) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.lower = cell(self.hidden_size, self.hidden_size)
        self.upper = cell(self.hidden_size, self.hidden_size)
        self.stop: StopGate | WordEnds = StopGate(self.hidden_size)
        self.out = Linear(self.hidden_size, self.answers)
        # The mistake is an index that is correct for a pair of states, so the LSTM is not affected.
        self.shared_gate = shared_gate
        self.whole_batches = shared_gate and len(self.lower.start(torch.zeros(1, self.hidden_size))) == 1

    def inert_parameters(self) -> int:
        return super().inert_parameters() + self.embed.weight.numel()

    def gate(self, lower: State, step: int) -> Stop:
        """Return s [..., batch, 1] after a step, or whether a word ends there."""
        s: Stop = self.stop(lower, step)
        return of_first(s) if self.whole_batches and not isinstance(s, bool) else s

    def forward(self, message: Message) -> MeaningScores:
        gates = message_gates(message, self.embed, self.lower, self.symbols)
        nothing = gates[0].new_zeros(*gates[0].shape[:-1], self.hidden_size)
        lower, upper = self.lower.start(nothing), self.upper.start(nothing)
        stop = None
        for step, symbol in enumerate(gates):
            lower = self.lower.step(symbol, lower if stop is None else damp(lower, stop))
            stop = self.gate(lower, step)
            if stop is not False:
                upper = mix(upper, self.upper.step(self.upper.project(lower[0]), upper), stop)
        return self.shaped(self.out(upper[0]))
