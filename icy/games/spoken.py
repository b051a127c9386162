"""Phrases and messages of turns, as input of metrics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError

END = 0  # last word of every message in a file, as in the authors' files
UNSIGNED = 2**64


@dataclass(frozen=True, eq=False)
class Spoken:
    """Phrases and messages, with a row per turn.

    Attributes:
        rules: number of the turn's rule [turn].
        phrases: mask of the concepts in the turn's rule [turn, concept].
        words: number of the word at each position [turn, length].
        concepts: names of the concepts.
        objects: vectors that topsim uses as meanings instead of phrases, if any [turn, size].
    """

    rules: Int64[NDArray[np.int64], " turn"]
    phrases: Bool[NDArray[np.bool_], "turn concept"]
    words: Int64[NDArray[np.int64], "turn length"]
    concepts: Sequence[str]
    objects: Float64[NDArray[np.float64], "turn size"] | None = None

    def __post_init__(self) -> None:
        counts = {len(self.rules), len(self.phrases), len(self.words)}
        if len(counts) > 1 or not counts.pop():
            raise InvalidSettingError(
                f"Every turn has one rule, one phrase and one message, and there must be at least one turn; there are "
                f"{len(self.rules)} rules, {len(self.phrases)} phrases and {len(self.words)} messages."
            )
        if self.phrases.shape[1] != len(self.concepts):
            raise InvalidSettingError(
                f"Every concept has a name; there are {self.phrases.shape[1]} concepts and {len(self.concepts)} names."
            )

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def named(self) -> list[list[str]]:
        """Names of the concepts of every phrase."""
        return [list(compress(self.concepts, phrase)) for phrase in self.phrases.tolist()]

    @cached_property
    def tokens(self) -> Int64[NDArray[np.int64], "turn length"]:
        """Words, renumbered from 0 in their order, because 64-bit words may have negative numbers."""
        codes = np.unique(self.words, return_inverse=True)[1]
        return codes.reshape(self.words.shape).astype(np.int64)

    @property
    def unique_words(self) -> int:
        """Number of different words."""
        return int(self.tokens.max()) + 1

    def to_lines(self) -> str:
        """Return the turns as text in the format of the authors' program (CBM24).

        Every line is a JSON list of a message and a phrase, ["w.w.0", "c.c"]. Words are numbered from 1, and 0 ends a
        message. `icy metrics` reads this format.
        """
        messages = [".".join(str(w % UNSIGNED + 1) for w in row) + f".{END}" for row in self.words.tolist()]
        lines = [json.dumps([m, ".".join(map(_undotted, p))]) for m, p in zip(messages, self.named, strict=True)]
        return "\n".join(lines) + "\n"


def _undotted(concept: str) -> str:
    """Replace dots and spaces in a concept's name, because they separate names in files of messages."""
    return concept.replace(".", "-").replace(" ", "-")
