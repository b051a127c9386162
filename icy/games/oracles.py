"""Agents that know the rules: speakers of ideal and holistic languages, and listeners that know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from icy.core.errors import InvalidSettingError, unknown
from icy.core.noise import counter_hash, shift
from icy.core.streams import stream, stream_key

from .playing import Agents, Answers
from .rules import FREE, Rules
from .turns import TurnBatch

Demanded = Integer[Tensor, "*stack turn attr"]
TABLE_SEED = 0


def obeying(demanded: Demanded, batch: TurnBatch) -> Bool[Tensor, "*stack turn candidate"]:
    """Return which candidates have the values that are demanded."""
    wanted = demanded[..., None, :]
    return ((wanted == FREE) | (wanted == batch.objects[0, 0])).all(-1)


@dataclass(frozen=True, eq=False)
class Ideal:
    """A word for every concept: a message says those of the phrase, in the order of attributes.

    Attributes:
        rules: of the game.
        known: how many of them are said; all unless given.
    """

    rules: Rules
    known: int | None = None

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns; the listener takes what has all that was said."""
        words = self.words(batch.rules[0, 0])
        return Answers(words, obeying(self.understood(words), batch))

    def words(self, demanded: Demanded) -> Integer[Tensor, "*stack turn length"]:
        """Return the numbers of the concepts that rules demand."""
        first = torch.tensor(self.rules.world.first_concepts, device=demanded.device, dtype=torch.int64)
        told = (demanded + first)[demanded != FREE].view(*demanded.shape[:-1], self.rules.length)
        return told[..., : self.known]

    def understood(self, words: Integer[Tensor, "*stack turn length"]) -> Demanded:
        """Return the values that messages name, FREE of attributes that they do not."""
        sizes = self.rules.world.sizes
        attribute = torch.tensor(
            [a for a, size in enumerate(sizes) for _ in range(size)], device=words.device, dtype=torch.int64
        )
        value = torch.tensor([v for size in sizes for v in range(size)], device=words.device, dtype=torch.int64)
        found = torch.full((*words.shape[:-1], len(sizes)), FREE, device=words.device, dtype=torch.int64)
        return found.scatter(-1, attribute[words], value[words])


class Holistic:
    """A message of its own for every rule, drawn at random, as long and of as many words as the ideal ones.

    Args:
        rules: of the game.

    Raises:
        InvalidSettingError: there are fewer such messages than rules.
    """

    def __init__(self, rules: Rules) -> None:
        base, length = len(rules.concepts), rules.length
        if base**length < rules.count:
            raise InvalidSettingError(
                f"There are {base**length} messages of {length} words, and {rules.count} rules to tell apart."
            )
        draws = stream(TABLE_SEED, "games", "holistic")
        numbers = draws.choice(base**length, rules.count, replace=False)
        digits = numbers[:, None] // base ** np.arange(length - 1, -1, -1) % base
        self.rules, self.base = rules, base
        self.table = torch.from_numpy(digits)
        order = np.argsort(numbers)
        self._sorted, self._rule = torch.from_numpy(numbers[order]), torch.from_numpy(order)

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns; the listener knows of what rule a message is."""
        words = self.table[batch.numbers[0, 0].cpu()]
        place = self.base ** torch.arange(self.rules.length - 1, -1, -1, device="cpu")
        found = self._rule[torch.searchsorted(self._sorted, (words * place).sum(-1))]
        return Answers(words, obeying(self.rules.table[found.to(self.rules.table.device)], batch))


@dataclass(frozen=True, eq=False)
class Random:
    """Random words and random answers.

    Attributes:
        rules: of the game, as long and of as many words as whose ideal messages these are.
    """

    rules: Rules

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns."""
        keys = batch.keys[0, 0]
        places = torch.arange(self.rules.length, device=keys.device)
        own = counter_hash(keys[:, :1] ^ stream_key(TABLE_SEED, "games", "random words"), places)
        answers = counter_hash(keys ^ stream_key(TABLE_SEED, "games", "random answers"), torch.zeros_like(keys))
        return Answers(shift(own, 33) % len(self.rules.concepts), (shift(answers, 33) & 1).bool())


ORACLES: dict[str, tuple[Callable[[Rules], Agents], str]] = {
    "ideal": (Ideal, "A word for every concept, and a listener that knows them."),
    "literal": (lambda rules: Ideal(rules, known=1), "The same, of which only the first word is said."),
    "holistic": (Holistic, "A message of its own for every phrase, drawn at random, and a listener that knows them."),
    "random": (Random, "Random words and random answers."),
}


def make_oracle(name: str, rules: Rules) -> Agents:
    """Return agents that know the rules, by the name of their language.

    Args:
        name: of ORACLES: "ideal", "literal", "holistic" or "random".
        rules: conjunctions of concepts.

    Raises:
        UnknownNameError: there are none of this name.
        InvalidSettingError: a language that these rules do not have.
    """
    if name not in ORACLES:
        raise unknown("oracle", name, list(ORACLES))
    if not isinstance(rules, Rules):
        raise InvalidSettingError("Oracles know rules that are conjunctions of concepts, and these are others.")
    return ORACLES[name][0](rules)
