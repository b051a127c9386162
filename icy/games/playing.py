"""Let agents play turns, and collect their messages and accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor

from icy.core.noise import counter_hash
from icy.core.streams import stream_key

from .evaluation import Spoken
from .model import GameModel
from .turns import EVALUATION_SEED, TurnBatch, Turns
from .worlds.world import World


class Answers(NamedTuple):
    """The messages in some turns, and the candidates that the listener chose as targets."""

    words: Integer[Tensor, "*stack turn length"]
    chosen: Bool[Tensor, "*stack turn candidate"]


class Agents(Protocol):
    """A speaker and a listener."""

    def play(self, batch: TurnBatch) -> Answers:
        """Play the turns of a batch with one step and one replicate."""


@dataclass(frozen=True, eq=False)
class TrainedAgents:
    """Trained agents, which play turns with their model.

    Attributes:
        model: model of one replicate, in evaluation mode.
        world: world of the objects.
        sampling: whether messages are relaxed and noisy, as in training.
    """

    model: GameModel
    world: World
    sampling: bool = False

    @torch.no_grad()
    def play(self, batch: TurnBatch) -> Answers:
        """Play turns."""
        objects = observe_objects(pack_objects(batch)[0, 0], self.world)
        logits, _, words, _ = self.model(objects, _noise_key(batch) if self.sampling else None)
        return Answers(words, logits > 0)

    @torch.no_grad()
    def describe(self, batch: TurnBatch) -> Float[Tensor, "turn size"]:
        """Return the sender's embedding of each turn."""
        embedding: Tensor = self.model.describe(observe_objects(pack_objects(batch)[0, 0], self.world))
        return embedding


def _noise_key(batch: TurnBatch) -> Integer[Tensor, ""]:
    """Return the key of the noise in an evaluation. It depends only on the turns."""
    return counter_hash(
        torch.tensor(stream_key(EVALUATION_SEED, "games", "noise"), dtype=torch.int64, device="cpu"),
        batch.keys.flatten()[0].cpu(),
    )


def pack_objects(batch: TurnBatch) -> Integer[Tensor, "step replicate turn object columns"]:
    """Pack the objects of turns as numbers: the values of an object, then the key of its look.

    If the agents see different objects, the objects of the sender come first.
    """
    columns = torch.cat([batch.objects, batch.keys[..., None]], -1)
    if batch.sender_objects is None or batch.sender_keys is None:
        return columns
    return torch.cat([torch.cat([batch.sender_objects, batch.sender_keys[..., None]], -1), columns], 3)


def observe_objects(
    objects: Integer[Tensor, "*turns object columns"], world: World
) -> Float[Tensor, "*turns_object_and_shape"]:
    """Return the objects from `pack_objects` as agents see them."""
    return world.observe(objects[..., :-1], objects[..., -1])


class PlayedTurns(NamedTuple):
    """The result of turns: the fraction of right answers, and the messages."""

    accuracy: float
    spoken: Spoken


def play(agents: Agents, turns: Turns, targets: int, purpose: str, count: int, size: int) -> PlayedTurns:
    """Let agents play turns of one replicate.

    Args:
        agents: a speaker and a listener.
        turns: source of the turns.
        targets: number of targets among the candidates.
        purpose: purpose of the turns; see `Turns.batch`.
        count: number of turns. An incomplete last batch is not played.
        size: turns per batch.
    """
    right, numbers, words = [], [], []
    for batch in batches(turns, purpose, count, size):
        answers = agents.play(batch)
        is_target = torch.arange(answers.chosen.shape[-1], device=answers.chosen.device) < targets
        right.append((answers.chosen == is_target).double().mean((-2, -1)))
        numbers.append(batch.numbers[0, 0].cpu())
        words.append(answers.words.cpu())
    return PlayedTurns(float(torch.stack(right).mean()), make_spoken(turns, torch.cat(numbers), torch.cat(words)))


def batches(turns: Turns, purpose: str, count: int, size: int) -> Iterator[TurnBatch]:
    """Yield the first `count` turns of the first replicate for a purpose, such as "test", in batches of `size`."""
    for step in range(max(1, count // size)):
        yield turns.batch(purpose, step, 1, min(size, count), [0])


def make_spoken(turns: Turns, numbers: Integer[Tensor, " turn"], words: Integer[Tensor, "turn length"]) -> Spoken:
    """Combine messages with the phrases of their rules."""
    phrases = turns.rules.phrases(numbers.to(turns.device)).cpu().numpy()
    return Spoken(numbers.numpy().astype(np.int64), phrases, words.numpy().astype(np.int64), turns.rules.concepts)
