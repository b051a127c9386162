"""The contract of players of the study: for every check a player that is wrong in the way it looks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from icy import testing
from icy.core.errors import UnknownNameError
from icy.core.registry import STUDY_PLAYER, Entry, registry
from icy.study.players.player import Item, StudySeat
from icy.study.players.simulated import Composer
from icy.testing import STUDY_PLAYER_CHECKS, ContractError


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
    """Looks like a player, and is none."""

    adds = False

    def begin(self, seat: StudySeat) -> None: ...
    def learn(self, item: Item, code: str) -> None: ...
    def looks(self, cards: int, seen: int) -> bool:
        return False

    def answer(self, item: Item) -> str:
        return "a"


WRONG: dict[str, Callable[[], Any]] = {
    "made_by_name": NoPlayer,
    "answers": Mute,
    "same_seed_same_game": Fickle,
    "begin_forgets": Remembers,
    "random_state_untouched": Global,
    "pickles": Local,
}


@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_player_fails_its_check(check: str) -> None:
    failed = {r.name for r in testing.check(WRONG[check], "study-player", raise_on_failure=False) if not r.passed}
    assert check in failed
    assert failed <= {check} | ({"begin_forgets", "pickles"} if check == "same_seed_same_game" else set()) | (
        set(STUDY_PLAYER_CHECKS) - {"made_by_name"} if check == "answers" else set()
    )


def test_every_check_has_a_player_that_fails_it() -> None:
    assert set(WRONG) == set(STUDY_PLAYER_CHECKS)


def test_registered_players_are_found() -> None:
    with registry.holding(Entry(STUDY_PLAYER, "mine", Composer, "", "", origin=__name__)):
        assert not {r.name: r for r in testing.check("mine", "study-player")}["made_by_name"].excused
    with pytest.raises(UnknownNameError, match=r"No study-player is called 'mine'.*`icy list study-players`"):
        testing.check("mine", "study-player")
    with pytest.raises(ContractError, match="study-player/Mute fails"):
        testing.check(Mute, "study-player")
