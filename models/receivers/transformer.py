"""A transformer as receiver: a pre-norm encoder (Vaswani et al. 2017; Xiong et al. 2020)."""

from __future__ import annotations

from torch import Tensor, nn

from icy.languages.meanings import MeaningSpace
from icy.models.attention import LayerNorm, pre_norm_layers, sinusoids
from icy.models.base import Receiver
from icy.models.layers import Linear, SymbolEmbedding, as_symbol_weights


class Transformer(Receiver):
    """An encoder over the message, every position of which sees all others; the mean over positions gives the scores.

    Positions are told apart by sinusoids.

    Args:
        layers: number of layers.
        heads: of each attention; if None, the largest number up to 4 that divides the hidden size.
    """

    broadcasts = True

    def __init__(
        self,
        space: MeaningSpace,
        message_length: int,
        vocab_size: int,
        hidden_size: int,
        *,
        layers: int = 2,
        heads: int | None = None,
    ) -> None:
        super().__init__(space, message_length, vocab_size, hidden_size)
        self.embed = SymbolEmbedding(self.symbols, hidden_size)
        self.layers = nn.ModuleList(pre_norm_layers(hidden_size, layers, heads))
        self.norm = LayerNorm(hidden_size)
        self.out = Linear(hidden_size, self.answers)

    def forward(self, message: Tensor) -> Tensor:
        x = self.embed(as_symbol_weights(message, self.symbols, self.embed.weight.dtype))
        x = x + sinusoids(x.shape[-2], x)
        for layer in self.layers:
            x = layer(x)
        return self.shaped(self.out(self.norm(x).mean(-2)))
