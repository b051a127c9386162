"""Composed senders: an encoder of meanings and a decoder to symbols, chosen by options in the name."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.representations import SOFT, Representation
from icy.languages.meanings import MeaningSpace
from icy.models.attention import position_codes, pre_norm_layers
from icy.models.base import Meanings, MessageScores, Sender, Sizes
from icy.models.cells import CellFactory, GRUCell, WordEnds
from icy.models.layers import (
    AttributeEmbedding,
    LayerNorm,
    Linear,
    MeaningEmbedding,
    SymbolEmbedding,
    Tanh,
    flat_one_hot,
    linear,
)
from icy.models.layers import Meanings as Values

from .fc import FC1L
from .hier import HierAutoReg, HierZero
from .rnn import RNNAutoReg, RNNZero
from .transformer import TransDecSoft, Transformer

Code = Float[Tensor, "*lead_out hidden"]  # of a meaning


class OneHotLinear(nn.Module):
    """A linear layer from the one-hot meaning.

    Args:
        attributes: number of attributes A.
        values: number of values K per attribute.
        size: E.
    """

    def __init__(self, attributes: int, values: int, size: int) -> None:
        super().__init__()
        self.values = values
        self.linear = Linear(attributes * values, size)

    def forward(self, meanings: Values) -> Code:
        """Return W o + b."""
        return self.linear(flat_one_hot(meanings, self.values, self.linear.weight.dtype))


class JoinedEmbedding(nn.Module):
    """Code of a meaning: the embeddings of its attributes, concatenated, then a linear layer.

    Unlike a sum of embeddings, it keeps attributes apart; unlike OneHotLinear, it learns an embedding of each value
    first. Arguments as for OneHotLinear.
    """

    def __init__(self, attributes: int, values: int, size: int) -> None:
        super().__init__()
        self.vectors = AttributeEmbedding(attributes, values, size)
        self.linear = Linear(attributes * size, size)

    def forward(self, meanings: Values) -> Code:
        """Return W [M_1; ...; M_A] + b."""
        return self.linear(self.vectors(meanings).flatten(-2))


class AttributeAttention(nn.Module):
    """Pre-norm transformer layers over the embeddings of the attributes, and their mean.

    Args:
        attributes, values, size: as for OneHotLinear.
        depth: number of layers.
    """

    def __init__(self, attributes: int, values: int, size: int, depth: int) -> None:
        super().__init__()
        self.vectors = AttributeEmbedding(attributes, values, size)
        self.layers = nn.ModuleList(pre_norm_layers(size, depth, None))
        self.norm = LayerNorm(size)

    def forward(self, meanings: Values) -> Code:
        """Return the mean over attributes of the normalized outputs."""
        x = self.vectors(meanings)
        for layer in self.layers:
            x = layer(x)
        code: Tensor = self.norm(x).mean(-2)
        return code


class FullyConnected(Sender):
    """A linear layer from the code of the meaning to the scores of all positions.

    Args:
        *sizes: see Model.
        embed: module from meanings to codes of size E.
    """

    broadcasts = True

    def __init__(self, *sizes: *Sizes, embed: nn.Module) -> None:
        super().__init__(*sizes)
        self.embed = embed
        self.out = Linear(self.hidden_size, self.message_length * self.symbols)

    def forward(self, meanings: Meanings) -> MessageScores:
        return self.shaped(self.out(self.embed(meanings)))


class TiedLinear(nn.Module):
    """An output layer with the embedding of the symbols as its weights: h . D_v + b_v.

    Rows of a SymbolEmbedding, which are N(0, 1), are divided by the square root of E.

    Args:
        embed: the layer that embeds the symbols. It stays a part of the model, not of this module.
    """

    def __init__(self, embed: Linear | SymbolEmbedding) -> None:
        super().__init__()
        self._embed = (embed,)  # in a tuple, so that the parameters have one name
        symbols = embed.in_features if isinstance(embed, Linear) else len(embed.weight)
        self.bias = nn.Parameter(torch.zeros(symbols))

    def forward(self, h: Float[Tensor, "*lead hidden"]) -> Float[Tensor, "*lead vocab"]:
        """Return the scores of all symbols."""
        (embed,) = self._embed
        if isinstance(embed, Linear):
            return linear(h, embed.weight.mT, self.bias)
        return linear(h.div(math.sqrt(h.shape[-1])), embed.weight, self.bias)


EMBEDDINGS = {"sum": MeaningEmbedding, "joined": JoinedEmbedding, "onehot": OneHotLinear}


def composed(
    space: MeaningSpace,
    message_length: int,
    vocab_size: int,
    hidden_size: int,
    *,
    decoder: str = "recurrent",
    feedback: bool = False,
    boundary: str = "learned",
    cell: CellFactory = GRUCell,
    layers: int = 1,
    positions: str = "sinusoid",
    encoder: str = "none",
    embedding: str = "sum",
    depth: int = 1,
    norm: str = "none",
    tied: bool = False,
    width: int = 1,
    representation: Representation = SOFT,
) -> Sender:
    """Create a sender of parts; `icy list senders Composed` lists their values.

    Args:
        space, message_length, vocab_size, hidden_size: see Model.
        decoder: the part that emits symbols, from the code of the meaning: a recurrent net, the two levels of the
            HU-RNN, one linear layer, the pre-norm transformer, or the decoder of Icy22.
        feedback: whether a recurrent or hierarchical decoder reads its own symbols.
        boundary: how words end in a hierarchy: by its stop gate, or after every L/A tokens.
        cell: function that creates the cells.
        layers: number of layers of the decoder.
        positions: how a transformer or Icy22's decoder encodes positions.
        encoder: the part that makes the code: the embedding alone, tanh layers, or attention over the attributes.
        embedding: of the meaning: a sum of one row per attribute, a linear layer of these rows next to each other, or a
            linear layer of the one-hot meaning.
        depth: number of layers of the encoder.
        norm: "layer" puts a layer norm before the output layer.
        tied: whether the output layer uses the embedding of the symbols.
        width: factor of the hidden size.
        representation: determines the feedback.
    """
    size = hidden_size * width
    sizes = space, message_length, vocab_size, size
    if (decoder, encoder, embedding) == ("linear", "none", "onehot"):
        return FC1L(*sizes)
    model: Any
    if decoder == "linear":
        model = FullyConnected(*sizes, embed=_encoder(space, size, encoder, embedding, depth))
    else:
        model = _decoder(decoder, sizes, feedback, cell, layers, representation)
        if (encoder, embedding) != ("none", "sum"):
            model.embed = _encoder(space, size, encoder, embedding, depth)
    if boundary == "fixed":
        model.stop = WordEnds(max(message_length // space.attributes, 1), message_length)
    if positions != "sinusoid":
        model.positions = position_codes(positions, message_length, size)
    if tied:
        model.out = TiedLinear(model.symbol_embed if decoder == "transformer" else model.feedback.embed)
    if norm == "layer":
        model.out = nn.Sequential(LayerNorm(size), model.out)
    return model  # type: ignore[no-any-return]


def _encoder(space: MeaningSpace, size: int, encoder: str, embedding: str, depth: int) -> nn.Module:
    """Create the part from meanings to codes."""
    if encoder == "attention":
        return AttributeAttention(space.attributes, space.values, size, depth)
    first: nn.Module = EMBEDDINGS[embedding](space.attributes, space.values, size)
    if encoder == "none":
        return first
    return nn.Sequential(first, Tanh(), *(part for _ in range(depth - 1) for part in (Linear(size, size), Tanh())))


def _decoder(
    decoder: str, sizes: Sizes, feedback: bool, cell: CellFactory, layers: int, representation: Representation
) -> Sender:
    """Create the existing sender with a decoder."""
    if decoder == "transformer":
        return Transformer(*sizes, layers=layers, representation=representation)
    if decoder == "transdec":
        return TransDecSoft(*sizes, layers=layers, representation=representation)
    if decoder == "hierarchy":
        return (
            HierAutoReg(*sizes, cell=cell, representation=representation) if feedback else HierZero(*sizes, cell=cell)
        )
    if feedback:
        return RNNAutoReg(*sizes, cell=cell, layers=layers, representation=representation)
    return RNNZero(*sizes, cell=cell, layers=layers)
