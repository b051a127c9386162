"""Count the operations of one update of a game's agents, without training."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from icy.core.checks import FIRST_SEED
from icy.core.noise import Noise
from icy.training.counting import counted_work, marker, whole_numbers
from icy.training.stack import Stack
from icy.training.work import Work

from .game_task import GameTask
from .model import GameModel, game_loss, make_game_model


def work_of_game(setup: GameTask) -> Work:
    """Count the operations of one update, from a forward pass on a few turns."""
    model = make_game_model(setup, FIRST_SEED)
    few = marker(_sizes(setup, model))
    candidates = setup.turns.targets + setup.turns.distractors
    shown = candidates * (1 if setup.turns.same_objects else 2)
    objects = torch.zeros(1, few, shown, *setup.made_world.shape, dtype=torch.float32, device="cpu")
    labels = torch.zeros(1, few, candidates, dtype=torch.float32, device="cpu")
    keys = torch.zeros(1, dtype=torch.long, device="cpu")
    stack = Stack([model], torch.device("cpu"), [FIRST_SEED])

    def forward() -> None:  # on shapes only: images would take seconds
        game_loss(stack.forward([objects], "broadcast", keys), labels, Noise(keys))

    with FakeTensorMode(allow_non_fake_inputs=True):
        return counted_work(forward, few, setup.learning.batch_size / few, stack.flat)


def _sizes(setup: GameTask, model: GameModel) -> list[int]:
    turns = setup.turns
    sizes = [turns.targets, turns.distractors, turns.targets + turns.distractors, setup.message_length, setup.words]
    sizes += [setup.sender_hidden, setup.receiver_hidden, *setup.made_world.shape]
    options = (setup.perception_options, setup.sender_options, setup.receiver_options)
    sizes += [n for some in options for n in whole_numbers(some.values())]
    return sizes + [n for parameter in model.parameters() for n in parameter.shape]
