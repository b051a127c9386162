"""Feed-forward receivers in the form that the papers' tables used (Perkins21 table 15)."""

from torch import Tensor

from icy.meanings import MeaningSpace

from ..base import Receiver
from ..fused import tanh
from ..layers import Linear, SymbolEmbedding, as_symbol_weights


class FC2L(Receiver):
    """One embedding shared by all positions, tanh, and a linear layer over all positions.

    The published total counts the embedding twice: the program registers the same storage under two names.
    """

    broadcasts = True

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.embed = SymbolEmbedding(self.symbols, hidden_size)
        self.out = Linear(message_length * hidden_size, self.answers)

    def inert_parameters(self) -> int:
        return super().inert_parameters() + self.embed.weight.numel()

    def embedded(self, message: Tensor) -> Tensor:
        """tanh of the embedded symbols, positions side by side: [..., batch, L*E]."""
        weights = as_symbol_weights(message, self.symbols, self.embed.weight.dtype)
        return tanh(self.embed(weights)).flatten(-2)

    def forward(self, message: Tensor) -> Tensor:
        return self.shaped(self.out(self.embedded(message)))


class FC(FC2L):
    """As FC2L, with a hidden layer of size E before the last; the papers' three-layer form."""

    def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.hidden = Linear(message_length * hidden_size, hidden_size)
        self.out = Linear(hidden_size, self.answers)

    def forward(self, message: Tensor) -> Tensor:
        return self.shaped(self.out(tanh(self.hidden(self.embedded(message)))))
