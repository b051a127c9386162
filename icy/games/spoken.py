"""What was said in some turns: phrases and messages, as metrics take them."""

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

END = 0  # of every message in a file, as in the authors' files
UNSIGNED = 2**64


@dataclass(frozen=True, eq=False)
class Spoken:
    """Phrases and messages, a row per turn.

    Attributes:
        rules: number of the turn's rule [turn].
        phrases: which concepts the rule is made of [turn, concept].
        words: number of the word at each position [turn, length].
        concepts: names of the concepts.
        objects: what topsim compares in the place of phrases, where that is something else [turn, size].
    """

    rules: Int64[NDArray[np.int64], " turn"]
    phrases: Bool[NDArray[np.bool_], "turn concept"]
    words: Int64[NDArray[np.int64], "turn length"]
    concepts: Sequence[str]
    objects: Float64[NDArray[np.float64], "turn size"] | None = None

    def __post_init__(self) -> None:
        counts = {len(self.rules), len(self.phrases), len(self.words)}
        if len(counts) > 1 or not counts.pop():
            raise InvalidSettingError("Every turn has one rule and one message, and there is at least one turn.")
        if self.phrases.shape[1] != len(self.concepts):
            raise InvalidSettingError(
                f"Every concept has a name; there are {self.phrases.shape[1]} concepts and {len(self.concepts)} names."
            )

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def named(self) -> list[list[str]]:
        """The names of the concepts of every phrase."""
        return [list(compress(self.concepts, phrase)) for phrase in self.phrases.tolist()]

    @cached_property
    def tokens(self) -> Int64[NDArray[np.int64], "turn length"]:
        """The words, numbered from 0 in order: words of 64 bits may have negative numbers."""
        codes = np.unique(self.words, return_inverse=True)[1]
        return codes.reshape(self.words.shape).astype(np.int64)

    @property
    def unique_words(self) -> int:
        """How many different words there are."""
        return int(self.tokens.max()) + 1

    def to_lines(self) -> str:
        """Return the text of a file in the form that the authors' program reads (CBM24).

        Every line is a JSON list of a message and a phrase, ["w.w.0", "c.c"]: words are numbered from 1, and 0 ends a
        message. `icy metrics` reads it.
        """
        messages = [".".join(str(w % UNSIGNED + 1) for w in row) + f".{END}" for row in self.words.tolist()]
        lines = [json.dumps([m, ".".join(map(_undotted, p))]) for m, p in zip(messages, self.named, strict=True)]
        return "\n".join(lines) + "\n"


def _undotted(concept: str) -> str:
    """Return the name of a concept without dots and spaces, which have a meaning in files of messages."""
    return concept.replace(".", "-").replace(" ", "-")
