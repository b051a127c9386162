"""Feed-forward receivers, in the form of the papers' tables (Perkins21 table 15) and of Icy22's program."""

from jaxtyping import Float
from torch import Tensor

from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.kernels.cell_steps import tanh
from icy.models.layers import Linear, Message, SymbolEmbedding, as_symbol_weights


class FC2L(Receiver):
    """One embedding shared by all positions, tanh, and a linear layer over all positions.

    The published total counts the embedding twice: the program registers the same tensor under two names.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.out = Linear(self.message_length * self.hidden_size, self.answers)

    def inert_parameters(self) -> int:
        return super().inert_parameters() + self.embed.weight.numel()

    def embedded(self, message: Message) -> Float[Tensor, "*stack batch length_hidden"]:
        """Return tanh of the embedded symbols, positions concatenated: [..., batch, L*E]."""
        weights = as_symbol_weights(message, self.symbols, self.embed.weight.dtype)
        return tanh(self.embed(weights)).flatten(-2)

    def forward(self, message: Message) -> MeaningScores:
        return self.shaped(self.out(self.embedded(message)))


class FC(FC2L):
    """Like FC2L, with a hidden layer of size E before the last layer; the papers' three-layer form."""

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.hidden = Linear(self.message_length * self.hidden_size, self.hidden_size)
        self.out = Linear(self.hidden_size, self.answers)

    def forward(self, message: Message) -> MeaningScores:
        return self.shaped(self.out(tanh(self.hidden(self.embedded(message)))))


class FC1L(Receiver):
    """The sum of one row of A*K scores per position and symbol, without bias (the program of Icy22).

    Row t*(V+1) + m_t; initialized N(0, 1), like an embedding. The program looks up rows and only takes tokens. A sum of
    rows is linear in the one-hot message, so this receiver also takes weights over symbols.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.table = SymbolEmbedding(self.message_length * self.symbols, self.answers)

    def forward(self, message: Message) -> MeaningScores:
        weights = as_symbol_weights(message, self.symbols, self.table.weight.dtype)
        return self.shaped(self.table(weights.flatten(-2)))


class FC2Lv2(Receiver):
    """The sum of one row of size E per position and symbol, tanh, linear (the program of Icy22, which calls it FC2L).

    The table of rows is as in FC1L. The receiver takes tokens and weights over symbols.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.table = SymbolEmbedding(self.message_length * self.symbols, self.hidden_size)
        self.out = Linear(self.hidden_size, self.answers)

    def forward(self, message: Message) -> MeaningScores:
        weights = as_symbol_weights(message, self.symbols, self.table.weight.dtype)
        return self.shaped(self.out(tanh(self.table(weights.flatten(-2)))))
