"""The plain way to train a model: ordinary PyTorch modules, the baseline of speed.py and other benchmarks.

The code is as a careful researcher would write it, with PyTorch's cells, layers, optimizer and losses: a fair baseline
for icy's speed. The models compute the same functions as icy's models of the same names, under SOFT. Only the languages
are made by icy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from icy import Language

from . import receivers, senders
from .training import BATCH, Training, train

HIDDEN = 128
MODELS: dict[str, Callable[..., nn.Module]] = {
    "sender/FC2L": senders.FC2L,
    "sender/RNNZero:RNN": partial(senders.RNNZero, cell="RNN"),
    "sender/RNNZero:SRU": partial(senders.RNNZero, cell="SRU"),
    "sender/RNNAutoReg:LSTM": partial(senders.RNNAutoReg, cell="LSTM"),
    "sender/RNNAutoReg2L:GRU": partial(senders.RNNAutoReg, cell="GRU", layers=2),
    "sender/RNNAutoReg:dgsend": partial(senders.RNNAutoReg, cell="dgsend"),
    "sender/HierZero:GRU": partial(senders.HierZero, cell="GRU"),
    "sender/HierAutoReg:LSTM": partial(senders.HierAutoReg, cell="LSTM"),
    "sender/TransDecSoft": senders.TransDecSoft,
    "sender/Transformer": senders.Transformer,
    "receiver/FC2L": receivers.FC2L,
    "receiver/CNN": receivers.CNN,
    "receiver/RNN1L:GRU": partial(receivers.RNN, cell="GRU"),
    "receiver/RNN2L:dgrecv": partial(receivers.RNN, cell="dgrecv", layers=2),
    "receiver/Hier:GRU": partial(receivers.Hier, cell="GRU"),
    "receiver/Transformer": receivers.Transformer,
}

__all__ = ["BATCH", "HIDDEN", "MODELS", "Training", "make", "train"]


def make(name: str, language: Language, hidden: int = HIDDEN) -> nn.Module:
    """Return the plain model of this name, with sizes that fit a language."""
    space = language.space
    return MODELS[name](space.attributes, space.values, language.message_length, language.vocab_size + 1, hidden)
