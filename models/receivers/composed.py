"""Composed receivers: an encoder of messages and a head, chosen by options in the name."""

from typing import Any

import torch
from torch import nn

from icy.languages.meanings import MeaningSpace
from icy.models.attention import position_codes
from icy.models.base import MeaningScores, Receiver, Sizes
from icy.models.cells import CellFactory, GRUCell, Recurrent, WordEnds
from icy.models.layers import LayerNorm, Linear, Message, Tanh

from .cnn import CNN
from .fc import FC2L, FC2Lv2
from .hier import Hier
from .mean import MeanEmbeddings
from .rnn import RNN
from .transformer import Transformer


class Bidirectional(RNN):
    """Two recurrent nets over the message, one from its end; their last outputs give the scores."""

    def __init__(self, *sizes: *Sizes, cell: CellFactory, layers: int = 1) -> None:
        super().__init__(*sizes, cell=cell, layers=layers)
        self.backward_net = Recurrent(cell, self.hidden_size, layers, state_only=True)
        self.out = Linear(2 * self.hidden_size, self.answers)

    def forward(self, message: Message) -> MeaningScores:
        ends = self.stepped(message), self.last_output(message, self.backward_net, backward=True)
        return self.shaped(self.out(torch.cat(ends, -1)))


PLAIN = {"convolution": CNN, "mean": MeanEmbeddings}


def composed(
    space: MeaningSpace,
    message_length: int,
    vocab_size: int,
    hidden_size: int,
    *,
    encoder: str = "recurrent",
    direction: str = "forward",
    boundary: str = "learned",
    cell: CellFactory = GRUCell,
    layers: int = 1,
    positions: str = "sinusoid",
    embedding: str = "shared",
    head: str = "linear",
    norm: str = "none",
    width: int = 1,
) -> Receiver:
    """Create a receiver of parts; `icy list receivers Composed` lists their values.

    Args:
        space, message_length, vocab_size, hidden_size: see Model.
        encoder: the part that reads the message: a recurrent net, the two levels of the HU-RNN, the tanh of the
            embedded symbols, convolutions, the pre-norm transformer, or the tanh of the mean embedding.
        direction: of a recurrent net: "forward", or "both" for a second net that reads from the end.
        boundary: how words end in a hierarchy: by its stop gate, or after every L/A tokens.
        cell: function that creates the cells.
        layers: number of layers of a recurrent net or transformer.
        positions: how a transformer encodes positions.
        embedding: of symbols for the encoder "linear": one table for all positions, or the sum of a row per position
            and symbol.
        head: a linear layer, or a tanh layer of size E before it.
        norm: "layer" puts a layer norm before the head.
        width: factor of the hidden size.
    """
    size = hidden_size * width
    model: Any = _encoder(encoder, (space, message_length, vocab_size, size), direction, cell, layers, embedding)
    features, answers = model.out.in_features, model.out.out_features
    if boundary == "fixed":
        model.stop = WordEnds(max(message_length // space.attributes, 1), message_length)
    if positions != "sinusoid":
        model.positions = position_codes(positions, message_length, size)
    if head == "perceptron":
        model.out = nn.Sequential(Linear(features, size), Tanh(), Linear(size, answers))
    if norm == "layer":
        model.out = nn.Sequential(LayerNorm(features), model.out)
    return model  # type: ignore[no-any-return]


def _encoder(encoder: str, sizes: Sizes, direction: str, cell: CellFactory, layers: int, embedding: str) -> Receiver:
    """Create the existing receiver with an encoder."""
    if encoder == "recurrent":
        return (Bidirectional if direction == "both" else RNN)(*sizes, cell=cell, layers=layers)
    if encoder == "hierarchy":
        return Hier(*sizes, cell=cell)
    if encoder == "transformer":
        return Transformer(*sizes, layers=layers)
    if encoder == "linear":
        return (FC2L if embedding == "shared" else FC2Lv2)(*sizes)
    return PLAIN[encoder](*sizes)
