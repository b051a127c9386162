"""Transformer senders: the decoders of Icy22 (appendix B), and a pre-norm decoder with several heads."""

import copy

import torch
from jaxtyping import Integer
from torch import Tensor, nn

from icy.core.representations import DISCRETE, SOFT, Representation, largest, one_hot
from icy.models.attention import Cache, DecoderLayer, Positions, PreNormLayer, Sinusoids, at_positions, pre_norm_layers
from icy.models.base import Meanings, MessageScores, Sender, Sizes, time_last
from icy.models.cells import SampledFeedback, SymbolFeedback, allowed
from icy.models.layers import LayerNorm, Linear, MeaningEmbedding, SymbolEmbedding


class _TransDec(Sender):
    """A decoder with the meaning as memory, and the start symbol and the emitted symbols as target.

    The published program runs the whole prefix again at every step; here each step adds one position (`Cache`). The
    first layer's input is one of V + 1 embedded symbols plus one of L positions, so its attention works on those
    V + 1 + L numbers instead of E.
    """

    broadcasts = True
    reads: type[SymbolFeedback] | type[SampledFeedback]
    usual: Representation  # if none is given

    def __init__(self, *sizes: *Sizes, layers: int = 1, representation: Representation | None = None) -> None:
        super().__init__(*sizes)
        self.embed = MeaningEmbedding(self.space.attributes, self.space.values, self.hidden_size)
        self.positions: Positions = Sinusoids()
        first = DecoderLayer(self.hidden_size)
        # PyTorch clones one layer, with its weights.
        self.layers = nn.ModuleList(first if i == 0 else copy.deepcopy(first) for i in range(layers))
        self.out = Linear(self.hidden_size, self.symbols)
        self.feedback = self.reads(self.symbols, self.hidden_size, representation or self.usual)

    def inert_parameters(self) -> int:
        return super().inert_parameters() + sum(layer.inert for layer in self._layers())

    def _layers(self) -> list[DecoderLayer]:
        return list(self.layers)  # type: ignore[arg-type]

    def _table(self, length: int) -> Tensor:
        """Return the embedded symbols followed by the positions, [..., V + 1 + L, E]."""
        embed = self.feedback.embed
        symbols = embed.weight.mT if isinstance(embed, Linear) else embed.weight
        positions = self.positions(length, symbols)
        if isinstance(embed, Linear):
            positions = positions + embed.bias.unsqueeze(-2)
        return torch.cat([symbols, positions.expand(*symbols.shape[:-2], *positions.shape[-2:])], -2)

    def forward(self, meanings: Meanings) -> MessageScores:
        memory, length = self.embed(meanings), self.message_length
        layers, table = self._layers(), self._table(length)
        folded = [layer.fold(memory, table if layer is layers[0] else None) for layer in layers]
        caches = [Cache(length) for _ in layers]
        places = torch.eye(length, dtype=memory.dtype, device=memory.device)
        symbol, scores = self.feedback.first_symbol(memory), list[Tensor]()
        for step in range(length):
            if scores:
                symbol = self.feedback.seen(scores[-1], step - 1)
            x = torch.cat([symbol, places[step].expand(*symbol.shape[:-1], length)], -1)
            for layer, weights, cache in zip(layers, folded, caches, strict=True):
                x = layer.step(x, weights, cache)
            scores.append(self.out(x))
        return time_last(scores)


class TransDecSoft(_TransDec):
    """A decoder that reads the feedback of its representation through a linear layer.

    The published total also counts parameters without effect; see DecoderLayer.
    """

    reads = SymbolFeedback
    usual = SOFT


class TransDecSampling(_TransDec):
    """A decoder that reads its sampled tokens through an embedding. For DISCR only.

    The published total also counts parameters without effect; see DecoderLayer.
    """

    reads = SampledFeedback
    usual = DISCRETE


class Transformer(Sender):
    """A pre-norm decoder: its first position is the embedded meaning, and the other positions are its symbols.

    The scores of symbol t are norm(x_t) W + b. Positions are encoded by sinusoids.

    Args:
        layers: number of layers.
        heads: number of heads; if None, the largest up to 4 that divides the hidden size.
        teacher_forcing: in training, read the symbols of the target message, all positions at once. In evaluation the
            model reads its own most likely symbols.
        representation: determines the feedback without teacher forcing.
    """

    broadcasts = True

    def __init__(
        self,
        *sizes: *Sizes,
        layers: int = 2,
        heads: int | None = None,
        teacher_forcing: bool = False,
        representation: Representation = SOFT,
    ) -> None:
        super().__init__(*sizes)
        self.teacher_forcing = teacher_forcing
        self.representation = representation
        self.embed = MeaningEmbedding(self.space.attributes, self.space.values, self.hidden_size)
        self.positions: Positions = Sinusoids()
        self.symbol_embed = SymbolEmbedding(self.symbols, self.hidden_size)
        self.layers = nn.ModuleList(pre_norm_layers(self.hidden_size, layers, heads))
        self.norm = LayerNorm(self.hidden_size)
        self.out = Linear(self.hidden_size, self.symbols)

    def forward(
        self, meanings: Meanings, messages: Integer[Tensor, "*stack batch length"] | None = None
    ) -> MessageScores:
        prefix = self.embed(meanings)
        positions = self.positions(self.message_length, prefix)
        if self.teacher_forcing and self.training and messages is not None:
            return self._parallel(prefix, positions, messages)
        return self._decoded(prefix, positions)

    def _parallel(self, prefix: Tensor, positions: Tensor, messages: Tensor) -> Tensor:
        """Return the scores after each symbol of `messages`."""
        earlier = self.symbol_embed(one_hot(messages[..., :-1], self.symbols, prefix.dtype))
        x = at_positions(torch.cat([prefix.unsqueeze(-2), earlier], -2), positions)
        for layer in self.layers:
            x = layer(x, causal=True)
        return self.out(self.norm(x))

    def _decoded(self, prefix: Tensor, positions: Tensor) -> Tensor:
        layers: list[PreNormLayer] = list(self.layers)  # type: ignore[arg-type]
        caches = [Cache(self.message_length) for _ in layers]
        scores: list[Tensor] = []
        for step in range(self.message_length):
            position = positions[..., step : step + 1, :]
            x = position + (self.symbol_embed(self._read(scores[-1], step - 1)) if scores else prefix)
            for layer, cache in zip(layers, caches, strict=True):
                x = layer.step(x, cache)
            scores.append(self.out(self.norm(x)))
        return time_last(scores)

    def _read(self, scores: Tensor, step: int) -> Tensor:
        """Return the input for the symbol of a step. A model trained with teacher forcing reads tokens."""
        if self.teacher_forcing and not self.training:
            return largest(allowed(self.representation, scores))
        return self.representation.feed_back(scores, step, self.training)
