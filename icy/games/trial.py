"""Check that the parts of a game's agents fit together, before training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import PERCEPTION, SIDES, Entry, registry

from .game_task import GameTask
from .model import GameModel, make_game_model

REPRESENTATIONS = ("gs", "qt", "cb", "soft", "gumb")  # representations through which gradients pass
TURNS = 2  # turns of the check


@torch.no_grad()
def require_fitting_parts(task: GameTask) -> GameModel:
    """Create the agents of a game, run each part once as a check, and return the agents.

    Raises:
        InvalidSettingError: no gradient passes through the representation, or it has too many words.
        IncompatibleError: a part does not learn by gradient, fails on its input, or has an output of the wrong shape.
    """
    if task.representation.lower() not in REPRESENTATIONS:
        raise InvalidSettingError(
            f"Gradients do not pass through the representation '{task.representation}', and agents need them to learn; "
            f"choose {', '.join(REPRESENTATIONS[:-1])} or {REPRESENTATIONS[-1]}."
        )
    for side in SIDES:
        _require_representation(registry.get(getattr(task, side), side), task.representation)
    model = make_game_model(task, 0).eval()
    model.channel.word_count(task.words)  # raises if there are too many words to number
    for side in SIDES:
        _require_gradient(getattr(model, side), side, task)
    objects = torch.rand(TURNS, *task.made_world.shape, dtype=torch.float32, device="cpu")
    seen = _checked_output(f"{PERCEPTION}/{task.perception}", model.sender_sees, objects, (task.sender_hidden,))
    name = registry.get(task.sender, "sender").qualified
    described = torch.cat([seen] * task.parts, -1).unsqueeze(-2)
    takes = f"the input of a sender is weights over values, of shape {tuple(described.shape)}"
    scores = _checked_output(name, model.sender, described, (task.message_length, task.words + 1), takes)
    name = registry.get(task.receiver, "receiver").qualified
    message = model.channel.message(scores, None)
    takes = f"the input of a receiver is weights over symbols, of shape {tuple(message.shape)}"
    _checked_output(name, model.receiver, message, (1, task.receiver_hidden), takes)
    return model


def _require_representation(entry: Entry, representation: str) -> None:
    if not entry.works_with(representation.lower()):
        own = " or ".join(entry.representations)
        raise IncompatibleError(
            f"{entry.qualified} works with the representation {own} only; it cannot play with {representation}."
        )


def _require_gradient(model: nn.Module, side: str, task: GameTask) -> None:
    if not getattr(model, "learns_by_gradient", True):
        name = registry.get(getattr(task, side), side).qualified
        raise IncompatibleError(
            f"{name} stores examples and does not learn by gradient, so it cannot play; choose another {side}."
        )


def _checked_output(name: str, part: nn.Module, inputs: Tensor, expected: tuple[int, ...], takes: str = "") -> Tensor:
    """Run a part. Raise an error if it fails, or if its output has the wrong shape."""
    try:
        output: Tensor = part(inputs)
    except Exception as error:
        requirement = takes or f"its input is objects of shape {tuple(inputs.shape)}"
        why = str(error).strip().partition("\n")[0].rstrip(".")
        raise IncompatibleError(f"{name} cannot play: {requirement}, and it failed ({why}).") from error
    if tuple(output.shape) != (TURNS, *expected):
        raise IncompatibleError(f"{name} has an output of shape {tuple(output.shape)}, not {(TURNS, *expected)}.")
    return output
