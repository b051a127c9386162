"""The plain way to train a model: ordinary PyTorch modules, the baseline of speed.py and other benchmarks.

The code is as a careful researcher would write it, with PyTorch's cells, layers, optimizer and losses: a fair baseline
for icy's speed. The models compute the same functions as icy's models of the same names, under SOFT. Only the languages
are made by icy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import nn

import icy
from benchmarks.courses import GRAMMARS, SPACE, game_job
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

__all__ = ["BATCH", "HIDDEN", "MODELS", "Trainer", "Training", "make", "make_training", "train"]


class Trainer(Protocol):
    """A training in progress."""

    optimizer: torch.optim.Optimizer

    def update(self) -> None:
        """Make an update."""


def make(name: str, language: Language, hidden: int = HIDDEN) -> nn.Module:
    """Return the plain model of this name, with sizes that fit a language."""
    space = language.space
    return MODELS[name](space.attributes, space.values, language.message_length, language.vocab_size + 1, hidden)


def make_training(name: str, place: int) -> Trainer:
    """Return the plain training of a row in process `place`; benchmarks/courses.py describes the names of rows."""
    kind, _, rest = name.partition("/")
    if kind == "pair":
        from .pairs import PairTraining

        return PairTraining(*rest.split("/"), icy.make_language("concat", SPACE), place)
    if kind == "game":
        from .games import GameTraining

        job = game_job(*rest.split("/"), seeds=[place])
        return GameTraining(job.settings, job.replicates[0].condition, place)
    if kind == "agent":
        from . import ppo, r2d2

        return ppo.PPO(place) if rest.startswith("ppo") else r2d2.R2D2(place)
    return Training(name, icy.make_language(GRAMMARS[place % len(GRAMMARS)], SPACE), place)
