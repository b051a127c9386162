"""Turns in words: the rule, what was said and how it reads, and which objects were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from .comparison import Player
from .evaluation import matching
from .game_task import IMAGE_AXES
from .playing import batches
from .turns import TEST, TurnBatch

UNREAD = "-"  # in place of the concept of a word that is matched to none


@dataclass(frozen=True)
class ShownTurn:
    """A turn in words.

    Attributes:
        rule: what the targets have in common.
        said: the words.
        read: the concept that each word means best in the whole language, or UNREAD.
        found: how many targets were taken for targets, and of how many.
        mistaken: how many distractors were, and of how many.
    """

    rule: str
    said: Sequence[str]
    read: Sequence[str]
    found: tuple[int, int]
    mistaken: tuple[int, int]

    def lines(self, number: int) -> list[str]:
        """Return the turn as lines of text."""
        return [
            f"turn {number}: {self.rule}",
            f"  said: {' '.join(self.said)}, which reads best as {', '.join(self.read)}",
            "  chosen: {} of {} targets, {} of {} distractors".format(*self.found, *self.mistaken),
        ]


def show_turns(player: Player, count: int) -> list[ShownTurn]:
    """Return the first turns of an evaluation, as agents play them."""
    _, spoken = player.evaluate()
    name = player.setup.word_name
    translation = matching(spoken, name=name).details["translation"]
    concepts = dict(zip(translation["word"], translation["concept"], strict=True))
    found: list[ShownTurn] = []
    targets, distractors = player.setup.turns.targets, player.setup.turns.distractors
    for batch in _first(player, count):
        answers = player.agents.play(batch)
        for rule, words, chosen in zip(batch.numbers[0, 0].tolist(), answers.words, answers.chosen, strict=True):
            said = [name(word) for word in words.tolist()]
            right, wrong = int(chosen[:targets].sum()), int(chosen[targets:].sum())
            read = [concepts.get(word, UNREAD) for word in said]
            turn = player.turns.rules.name(rule)
            found.append(ShownTurn(turn, said, read, (right, targets), (wrong, distractors)))
    return found[:count]


def _first(player: Player, count: int) -> list[TurnBatch]:
    """Return the batches of an evaluation that hold its first turns."""
    size = player.setup.learning.batch_size
    return list(batches(player.turns, TEST, -(-count // size) * size, size))


def images_of(player: Player, count: int) -> NDArray[Any] | None:
    """Return the candidates of the first turns as images [turn, candidate, channel, y, x]; None if they are none."""
    world = player.setup.made_world
    if len(world.shape) != IMAGE_AXES:
        return None
    shown = [world.observe(batch.objects[0, 0], batch.keys[0, 0]) for batch in _first(player, count)]
    return torch.cat(shown)[:count].cpu().numpy()


def values_of(player: Player, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the values of the candidates of the first turns [turn, candidate, attr], and what each rule demands."""
    shown = _first(player, count)
    objects, rules = (torch.cat([getattr(b, name)[0, 0] for b in shown])[:count] for name in ("objects", "rules"))
    return objects.cpu().numpy(), rules.cpu().numpy()
