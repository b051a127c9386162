"""Oracles: agents that know the rules, with ideal, holistic or random languages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from icy.core.errors import InvalidSettingError, require_known
from icy.core.noise import counter_hash, shift
from icy.core.streams import stream, stream_key
from icy.core.text import counted

from .playing import Agents, Answers
from .rules import FREE, Rules, RuleSource
from .turns import TurnBatch

Demanded = Integer[Tensor, "*stack turn attr"]
TABLE_SEED = 0
MOST_MESSAGES = 2**62  # largest number of messages of a holistic language, which are numbered


def match_candidates(demanded: Demanded, batch: TurnBatch) -> Bool[Tensor, "*stack turn candidate"]:
    """Return which candidates have all values that a rule demands."""
    values = demanded[..., None, :]
    return ((values == FREE) | (values == batch.objects[0, 0])).all(-1)


@dataclass(frozen=True, eq=False)
class Ideal:
    """Agents with one word per concept. A message has the words of the rule's concepts, in the order of attributes.

    Attributes:
        rules: rules of the game.
        known: number of concepts in a message; by default all concepts of the phrase.
        length: number of words in a message; by default the number of concepts.

    Raises:
        InvalidSettingError: messages are too short for the concepts.
    """

    rules: Rules
    known: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        needed = self.rules.length if self.known is None else self.known
        if self.length is not None and self.length < needed:
            raise InvalidSettingError(
                f"The ideal language needs {counted(needed, 'word')} per message, one per concept, and a message has "
                f"{self.length}; take longer messages."
            )

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns. The listener chooses the candidates with all concepts in the message."""
        words = self.words(batch.rules[0, 0])
        return Answers(words, match_candidates(self.understood(words), batch))

    def words(self, demanded: Demanded) -> Integer[Tensor, "*stack turn length"]:
        """Return the messages for rules: the indices of the demanded concepts."""
        first = torch.tensor(self.rules.world.first_concepts, device=demanded.device, dtype=torch.int64)
        words = (demanded + first)[demanded != FREE].view(*demanded.shape[:-1], self.rules.length)
        return words[..., : self.known]

    def understood(self, words: Integer[Tensor, "*stack turn length"]) -> Demanded:
        """Return the values that a message demands; FREE for other attributes."""
        sizes = self.rules.world.sizes
        attribute = torch.tensor(
            [a for a, size in enumerate(sizes) for _ in range(size)], device=words.device, dtype=torch.int64
        )
        value = torch.tensor([v for size in sizes for v in range(size)], device=words.device, dtype=torch.int64)
        values = torch.full((*words.shape[:-1], len(sizes)), FREE, device=words.device, dtype=torch.int64)
        return values.scatter(-1, attribute[words], value[words])


class Holistic:
    """Agents with one random message per rule. There are as many different words as concepts.

    Args:
        rules: rules of the game.
        length: number of words in a message; by default the number of concepts of a rule.

    Raises:
        InvalidSettingError: there are fewer messages than rules.
    """

    def __init__(self, rules: Rules, length: int | None = None) -> None:
        base, length = len(rules.concepts), rules.length if length is None else length
        if base**length < rules.count:
            raise InvalidSettingError(
                f"There are {base**length} messages of {counted(length, 'word')}, too few for {rules.count} rules; "
                "take longer messages."
            )
        distinct = min(length, int(math.log(MOST_MESSAGES, base)))  # words that distinguish rules
        draws = stream(TABLE_SEED, "games", "holistic")
        numbers = draws.choice(base**distinct, rules.count, replace=False)
        self._places = base ** np.arange(distinct - 1, -1, -1)
        words = numbers[:, None] // self._places % base
        rest = draws.integers(base, size=(rules.count, length - distinct))
        self.rules, self.table = rules, torch.from_numpy(np.concatenate([words, rest], 1))
        order = np.argsort(numbers)
        self._sorted, self._rule = torch.from_numpy(numbers[order]), torch.from_numpy(order)

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns. The listener knows the rule of each message."""
        words = self.table[batch.numbers[0, 0].cpu()]
        numbers = (words[..., : len(self._places)] * torch.from_numpy(self._places)).sum(-1)
        rule = self._rule[torch.searchsorted(self._sorted, numbers)]
        return Answers(words, match_candidates(self.rules.table[rule.to(self.rules.table.device)], batch))


@dataclass(frozen=True, eq=False)
class Random:
    """Agents with random words and random answers.

    Attributes:
        rules: rules of the game, with as many different words as concepts.
        length: number of words in a message; by default the number of concepts of a rule.
    """

    rules: Rules
    length: int | None = None

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns with random words and answers."""
        keys = batch.keys[0, 0]
        places = torch.arange(self.length or self.rules.length, device=keys.device)
        own = counter_hash(keys[:, :1] ^ stream_key(TABLE_SEED, "games", "random words"), places)
        answers = counter_hash(keys ^ stream_key(TABLE_SEED, "games", "random answers"), torch.zeros_like(keys))
        return Answers(shift(own, 33) % len(self.rules.concepts), (shift(answers, 33) & 1).bool())


ORACLES: dict[str, tuple[Callable[[Rules, int], Agents], str]] = {
    "ideal": (
        lambda rules, length: Ideal(rules, length=length),
        "A word for every concept, and a listener that knows them.",
    ),
    "literal": (
        lambda rules, length: Ideal(rules, known=1, length=length),
        "The same language, with only the first word of each message.",
    ),
    "holistic": (Holistic, "A random message for every phrase, and a listener that knows them."),
    "random": (Random, "Random words and random answers."),
}


def make_oracle(name: str, rules: RuleSource, message_length: int | None = None) -> Agents:
    """Create an oracle by the name of its language.

    Args:
        name: name in ORACLES: "ideal", "literal", "holistic" or "random".
        rules: rules of the game.
        message_length: number of words in a message of the game; by default the number of concepts of a rule.

    Returns:
        The agents. They need no training, because their language is given.

    Raises:
        UnknownNameError: no oracle has this name.
        InvalidSettingError: the language is not possible with these rules or messages.
    """
    require_known("oracle", name, ORACLES)
    if not isinstance(rules, Rules):
        raise InvalidSettingError(
            "Oracles need rules that are conjunctions of concepts, not formulas; take rules='conjunctions'."
        )
    return ORACLES[name][0](rules, rules.length if message_length is None else message_length)
