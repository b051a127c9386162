"""The convolutional receiver (Perkins21 table 15; Icy22 appendix B)."""

from jaxtyping import Float
from torch import Tensor, nn

from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.layers import Convolution, Linear, Message, SymbolEmbedding, as_symbol_weights, pool_relu

SHORT = 4  # a sequence of at most this length goes to the last layer


class CNN(Receiver):
    """Embedding, blocks of relu(maxpool_2(conv_3(x))) with E channels while more than 4 positions remain, linear.

    A block halves the length, rounding down: 20 -> 10 -> 5 -> 2 is three blocks (the papers say four). The embedding is
    folded into the first convolution. The published total counts the embedding twice.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes) -> None:
        super().__init__(*sizes)
        self.embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.blocks = nn.ModuleList()
        length = self.message_length
        while length > SHORT:
            self.blocks.append(Convolution(self.hidden_size, self.hidden_size))
            length //= 2
        self.out = Linear(length * self.hidden_size, self.answers)

    def inert_parameters(self) -> int:
        return super().inert_parameters() + self.embed.weight.numel()

    def forward(self, message: Message) -> MeaningScores:
        weights = as_symbol_weights(message, self.symbols, self.embed.weight.dtype)
        return self.shaped(self.out(self.features(weights).flatten(-2)))

    def features(
        self, weights: Float[Tensor, "*stack batch length vocab"]
    ) -> Float[Tensor, "*out_stack batch short hidden"]:
        """Return the features [..., batch, short, hidden] of weights over symbols [..., batch, length, vocab]."""
        if not self.blocks:
            embedded: Tensor = self.embed(weights)
            return embedded
        x = weights.transpose(-3, -2).contiguous()  # length before batch, for convolutions
        for i, block in enumerate(self.blocks):
            kept = x.shape[-3] // 2 * 2  # pooling drops the last position of an odd length
            x = pool_relu(block(x, kept, None if i else block.fold(self.embed.weight)))  # type: ignore[operator]
        return x.transpose(-3, -2)
