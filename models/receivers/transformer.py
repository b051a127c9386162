"""A transformer receiver: a pre-norm encoder (Vaswani et al. 2017; Xiong et al. 2020)."""

from torch import nn

from icy.models.attention import Positions, Sinusoids, at_positions, pre_norm_layers
from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.layers import LayerNorm, Linear, Message, SymbolEmbedding, as_symbol_weights


class Transformer(Receiver):
    """An encoder in which every position of the message sees all others; the scores come from the mean over positions.

    Positions are encoded by sinusoids.

    Args:
        layers: number of layers.
        heads: number of heads; if None, the largest up to 4 that divides the hidden size.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, layers: int = 2, heads: int | None = None) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.positions: Positions = Sinusoids()
        self.layers = nn.ModuleList(pre_norm_layers(self.hidden_size, layers, heads))
        self.norm = LayerNorm(self.hidden_size)
        self.out = Linear(self.hidden_size, self.answers)

    def forward(self, message: Message) -> MeaningScores:
        x = self.embed(as_symbol_weights(message, self.symbols, self.embed.weight.dtype))
        x = at_positions(x, self.positions(x.shape[-2], x))
        for layer in self.layers:
            x = layer(x)
        return self.shaped(self.out(self.norm(x).mean(-2)))
