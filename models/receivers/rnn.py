"""Recurrent receivers RNN1L and RNN2L, with any cell (Perkins21 table 15; Icy22 appendix B)."""

from jaxtyping import Float
from torch import Tensor

from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.cells import CellFactory, Recurrent, by_position, message_gates
from icy.models.layers import Linear, Message, SymbolEmbedding


class RNN(Receiver):
    """A recurrent net over the message; its last output gives the scores.

    The published total counts the embedding twice, and a second head (E to 2A, with bias) that is never called.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, cell: CellFactory, layers: int = 1) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.net = Recurrent(cell, self.hidden_size, layers, state_only=True)
        self.out = Linear(self.hidden_size, self.answers)

    def inert_parameters(self) -> int:
        unused_head = 2 * self.space.attributes * (self.hidden_size + 1)
        return super().inert_parameters() + self.embed.weight.numel() + unused_head

    def forward(self, message: Message) -> MeaningScores:
        last = self.scanned(message) if self.net.scans else self.stepped(message)
        return self.shaped(self.out(last))

    def scanned(self, message: Message) -> Float[Tensor, "*stack batch hidden"]:
        """Return the last output, for a cell that runs over the whole message at once."""
        rows = self.embed.weight
        symbols = by_position(message, self.symbols, rows.dtype)
        nothing = rows.new_zeros(*rows.shape[:-2], symbols.shape[-2], self.hidden_size)
        return self.net.scan(symbols, self.net.first.weigh(rows), nothing, self.message_length)

    def stepped(self, message: Message) -> Float[Tensor, "*stack batch hidden"]:
        """Return the last output, computed step by step."""
        return self.last_output(message, self.net)

    def last_output(
        self, message: Message, net: Recurrent, backward: bool = False
    ) -> Float[Tensor, "*stack batch hidden"]:
        """Return the last output of a net over the message, or over its reverse, computed step by step."""
        gates = message_gates(message, self.embed, net.first, self.symbols)
        states = net.start(gates[0].new_zeros(*gates[0].shape[:-1], self.hidden_size))
        for gate in reversed(gates) if backward else gates:
            states = net.step(gate, states)
        return states[-1][0]
