"""Count the operations of one update of a game's agents, without training."""

from __future__ import annotations

import torch

from icy.core.checks import FIRST_SEED
from icy.core.noise import Noise
from icy.training.counting import counted_work
from icy.training.stack import Stack
from icy.training.work import Work

from .game_task import GameTask
from .model import game_loss, make_game_model


def work_of_game(setup: GameTask) -> Work:
    """Count the operations of one update of the agents of a setup, from a forward pass on a batch of turns."""
    model, batch = make_game_model(setup, FIRST_SEED), setup.learning.batch_size
    candidates = setup.turns.targets + setup.turns.distractors
    shown = candidates * (1 if setup.turns.same_objects else 2)
    objects = torch.zeros(1, batch, shown, *setup.made_world.shape, dtype=torch.float32, device="cpu")
    labels = torch.zeros(1, batch, candidates, dtype=torch.float32, device="cpu")
    keys = torch.zeros(1, dtype=torch.long, device="cpu")
    stack = Stack([model], torch.device("cpu"), [FIRST_SEED])

    def forward() -> None:
        game_loss(stack.forward([objects], "broadcast", keys), labels, Noise(keys))

    return counted_work(forward, stack.flat, shapes_only=True)  # a pass on images would take seconds
