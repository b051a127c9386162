"""The trained agent that comes with icy. `results/s2b_memory/__main__.py` makes its file."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER
from icy.s2b.players.interface import Player, Seat
from icy.s2b.settings import GameSettings

from .memories.attention import MemoryListener
from .memories.memory_players import MemoryPlayer
from .saved_networks import one_agent

FILE = Path(__file__).with_name("memory.safetensors")


def memory() -> Player:
    """Return the attention memory that comes with icy, a listener.

    It was trained by reward alone on 2 to 5 values with 32 tokens, and plays any number of values, stimuli and samples,
    with up to 32 tokens. In games of other dimensions or messages, position d of a sentence is about dimension d.
    """
    player = one_agent(FILE).player(LISTENER)
    return FittedPlayer(cast(MemoryPlayer, player).model)


class FittedPlayer(MemoryPlayer):
    """A memory that plays games with other dimensions and messages than those that it was trained for.

    Args:
        model: the memory, of pairs, as it was trained.
    """

    def __init__(self, model: MemoryListener) -> None:
        super().__init__(model)
        self.trained = model

    def begin(self, seat: Seat) -> None:
        """Take a seat; stimuli must be of one number per dimension."""
        if seat.settings.representation != "scs":
            raise IncompatibleError("This memory was trained on stimuli of one number per dimension (scs).")
        self.model = fitted(self.trained, seat.settings)
        super().begin(seat)


def fitted(trained: MemoryListener, game: GameSettings) -> MemoryListener:
    """Return a memory of pairs for the sizes of a game, with what another has learned.

    What it learned of the position that is about a dimension, and of all others, goes to those of the game.
    """
    tokens = game.rounds * game.length
    if (game.width, tokens) == (trained.dimensions, trained.tokens):
        return trained
    vocabulary = trained.embedding.num_embeddings - 1
    with torch.random.fork_rng(devices=[]):
        made = MemoryListener(replace(game, vocab_size=vocabulary), trained.settings)
    learned = trained.alignment.detach()
    own = torch.eye(*learned.shape, dtype=torch.bool, device="cpu")
    alignment = learned[~own].mean().repeat(game.width, tokens)
    for dimension in range(min(game.width, game.reach)):
        alignment[dimension, _position(dimension, game)] = learned[own].mean()
    made.load_state_dict({**trained.state_dict(), "alignment": alignment})
    return made


def _position(dimension: int, game: GameSettings) -> int:
    """Return where a dimension's token is among those of all rounds, each of which begins one token later."""
    later = max(0, dimension - game.length + 1)
    return later * game.length + dimension - later
