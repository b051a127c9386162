"""Players of the study that are wrong in the way that a check looks for; test_kinds checks them."""

from __future__ import annotations

import random
from typing import Any

from icy.study.players.player import Item, StudySeat
from icy.study.players.simulated import Composer
from tests.testing.mistakes import EVERY, Kind


class Plain(Composer):
    """A player as a stranger would write it."""


class Mute(Composer):
    def answer(self, item: Item) -> str:
        return ""


class Fickle(Composer):
    """Answers by chance of its own."""

    count = 0

    def begin(self, seat: StudySeat) -> None:
        super().begin(seat)
        Fickle.count += 1

    def answer(self, item: Item) -> str:
        return "abcdefghij"[Fickle.count % 10] * 4


class Remembers(Composer):
    """Keeps what it was shown in an earlier game."""

    def begin(self, seat: StudySeat) -> None:
        before = getattr(self, "known", {})
        super().begin(seat)
        self.known = before


class Global(Composer):
    def answer(self, item: Item) -> str:
        random.random()
        return super().answer(item)


class Local(Composer):
    """Plays otherwise where it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.here = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "here": False}

    def answer(self, item: Item) -> str:
        return super().answer(item) if self.here else "b"


class NoPlayer:
    """Not derived from StudyPlayer."""


KIND = Kind(
    "study-player",
    {
        "made_by_name": NoPlayer,
        "answers": Mute,
        "same_seed_same_game": Fickle,
        "begin_forgets": Remembers,
        "random_state_untouched": Global,
        "pickles": Local,
    },
    Plain,
    also={
        "made_by_name": EVERY,
        "same_seed_same_game": {"begin_forgets", "pickles"},
        "answers": EVERY,
    },
)
