"""MeanEmbeddings, a receiver that ignores order (in Icy22's program, but not in the papers' tables)."""

from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.kernels.cell_steps import tanh
from icy.models.layers import Linear, Message, SymbolEmbedding, as_symbol_weights


class MeanEmbeddings(Receiver):
    """A linear layer of the tanh of the symbols' mean embedding.

    The embedding has V rows and not V + 1: weight on the symbol V adds nothing to the mean, and the divisor stays L.
    The published total counts the embedding twice.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.vocab_size, self.hidden_size)
        self.out = Linear(self.hidden_size, self.answers)

    def inert_parameters(self) -> int:
        return super().inert_parameters() + self.embed.weight.numel()

    def forward(self, message: Message) -> MeaningScores:
        weights = as_symbol_weights(message, self.symbols, self.embed.weight.dtype)
        # The embedding is linear, so it is enough to embed the mean of the weights: one row per message instead of L.
        mean = weights.mean(-2)[..., : self.vocab_size]
        return self.shaped(self.out(tanh(self.embed(mean))))
