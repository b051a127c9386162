"""The trained agent that comes with icy. `results/s2b_memory/__main__.py` writes its file."""

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
    """Load the trained listener that comes with icy, an attention memory.

    It was trained from rewards only, on 2 to 5 values with 32 tokens. It can play games with any number of values,
    stimuli and samples, and with up to 32 tokens. In games with other numbers of dimensions or tokens, position d of a
    sentence describes dimension d.
    """
    player = one_agent(FILE).player(LISTENER)
    return FittedPlayer(cast(MemoryPlayer, player).model)


class FittedPlayer(MemoryPlayer):
    """Player that adapts a trained memory to the game's number of dimensions and length of messages.

    Args:
        model: the trained memory, of the kind "pairs".
    """

    def __init__(self, model: MemoryListener) -> None:
        super().__init__(model)
        self.trained = model

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. Stimuli must have one number per dimension."""
        if seat.settings.representation != "scs":
            raise IncompatibleError("This memory needs stimuli of one number per dimension (representation 'scs').")
        self.model = fitted(self.trained, seat.settings)
        super().begin(seat)


def fitted(trained: MemoryListener, game: GameSettings) -> MemoryListener:
    """Adapt a trained memory of pairs to the sizes of a game.

    In the new alignment, the position that describes a dimension gets the mean of the trained weights of matching
    positions. All other positions get the mean of the other weights.
    """
    tokens = game.rounds * game.length
    if (game.width, tokens) == (trained.dimensions, trained.tokens):
        return trained
    vocabulary = trained.embedding.num_embeddings - 1
    with torch.random.fork_rng(devices=[]):
        memory = MemoryListener(replace(game, vocab_size=vocabulary), trained.settings)
    weights = trained.alignment.detach()
    matching = torch.eye(*weights.shape, dtype=torch.bool, device="cpu")
    alignment = weights[~matching].mean().repeat(game.width, tokens)
    for dimension in range(min(game.width, game.reach)):
        alignment[dimension, _position(dimension, game)] = weights[matching].mean()
    memory.load_state_dict({**trained.state_dict(), "alignment": alignment})
    return memory


def _position(dimension: int, game: GameSettings) -> int:
    """Return the index of a dimension's token in the concatenated messages. Each round starts one dimension later."""
    later = max(0, dimension - game.length + 1)
    return later * game.length + dimension - later
