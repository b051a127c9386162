"""Show turns as text: the rule, the message with its translation, and the chosen objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from .comparison import GameAgents
from .evaluation import matching
from .game_task import IMAGE_AXES
from .playing import batches
from .turns import TEST, TurnBatch

UNMATCHED_WORD = "-"  # shown for a word without a matched concept


@dataclass(frozen=True)
class ShownTurn:
    """A turn as text.

    Attributes:
        rule: the rule of the targets.
        words: the words of the message.
        concepts: the concept that best matches each word in the whole language, or UNMATCHED_WORD.
        chosen_targets: number of chosen targets, and number of targets.
        chosen_distractors: number of chosen distractors, and number of distractors.
    """

    rule: str
    words: Sequence[str]
    concepts: Sequence[str]
    chosen_targets: tuple[int, int]
    chosen_distractors: tuple[int, int]

    def lines(self, number: int) -> list[str]:
        """Return the turn as lines of text, for a person to read."""
        return [
            f"turn {number}: {self.rule}",
            f"  message: {' '.join(self.words)} (best matching concepts: {', '.join(self.concepts)})",
            "  chosen: {} of {} targets, {} of {} distractors".format(*self.chosen_targets, *self.chosen_distractors),
        ]


def show_turns(player: GameAgents, count: int) -> list[ShownTurn]:
    """Let agents play the first `count` turns of an evaluation, and return these turns as text."""
    _, spoken = player.evaluate()
    name = player.setup.word_name
    translation = matching(spoken, name=name).details["translation"]
    concepts = dict(zip(translation["word"], translation["concept"], strict=True))
    shown: list[ShownTurn] = []
    targets, distractors = player.setup.turns.targets, player.setup.turns.distractors
    for batch in _first(player, count):
        answers = player.agents.play(batch)
        for rule, message, chosen in zip(batch.numbers[0, 0].tolist(), answers.words, answers.chosen, strict=True):
            words = [name(word) for word in message.tolist()]
            right, wrong = int(chosen[:targets].sum()), int(chosen[targets:].sum())
            meanings = [concepts.get(word, UNMATCHED_WORD) for word in words]
            text = player.turns.rules.name(rule)
            shown.append(ShownTurn(text, words, meanings, (right, targets), (wrong, distractors)))
    return shown[:count]


def _first(player: GameAgents, count: int) -> list[TurnBatch]:
    """Return the batches with the first `count` turns of an evaluation."""
    size = player.setup.learning.batch_size
    return list(batches(player.turns, TEST, -(-count // size) * size, size))


def images_of(player: GameAgents, count: int) -> NDArray[np.float32] | None:
    """Return the candidates of the first turns as images [turn, candidate, channel, y, x]; None without images."""
    world = player.setup.made_world
    if len(world.shape) != IMAGE_AXES:
        return None
    shown = [world.observe(batch.objects[0, 0], batch.keys[0, 0]) for batch in _first(player, count)]
    return torch.cat(shown)[:count].cpu().numpy()


def values_of(player: GameAgents, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the candidates' values in the first turns [turn, candidate, attr], and each turn's rule as a table row."""
    shown = _first(player, count)
    objects, rules = (torch.cat([getattr(b, name)[0, 0] for b in shown])[:count] for name in ("objects", "rules"))
    return objects.cpu().numpy(), rules.cpu().numpy()
