"""Checks of simulated players of the study. The first line of each check says what it proves."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from joblib.externals.loky.backend.reduction import dumps

from icy.core.errors import InvalidSettingError
from icy.core.registry import Entry
from icy.study.game import Game, GameSettings, instance_of
from icy.study.players.base import StudyPlayer
from icy.study.players.sitting import play

from .cases import CheckFailure, named, require, require_registered, same_random_state

SHORT = {"examples": 14, "held_out_at": (5, 9, 13), "interval": 3}  # games of checks


@dataclass(frozen=True)
class StudyPlayerCase:
    """A simulated player under test.

    Attributes:
        entry: its registry entry.
        seed: of the persons who play.
        registered: whether the registry knows it.
    """

    entry: Entry
    seed: int = 0
    registered: bool = True

    def make(self) -> StudyPlayer:
        """Make the player."""
        made: StudyPlayer = self.entry.create()
        return made

    def game(self, dataset: str = "synth", preset: str = "clean") -> Game:
        """Return a short game."""
        settings = GameSettings.of(preset, dataset=dataset, grammar="perm", **SHORT)
        return Game(settings, instance_of(settings, self.seed), self.seed)

    def games(self) -> Iterator[Game]:
        """Yield short games of all datasets and presets."""
        for dataset, preset in product(("synth", "eng"), ("clean", "published")):
            yield self.game(dataset, preset)


def check_made_by_name(case: StudyPlayerCase) -> None:
    """The registry knows the player by its name and its aliases, and its factory makes a StudyPlayer."""
    made = case.make()
    require(isinstance(made, StudyPlayer), f"The factory makes a {type(made).__name__}, not a StudyPlayer.")
    require_registered(case.entry, case.registered)


def check_answers(case: StudyPlayerCase) -> None:
    """Every answer can be sent: text of letters a to z, neither empty nor too long."""
    for game in case.games():
        try:
            play(game, case.make(), case.seed)
        except InvalidSettingError as error:
            raise CheckFailure(str(error)) from error


def check_same_seed_same_game(case: StudyPlayerCase) -> None:
    """A seed gives the same game every time."""
    game = case.game()
    first, again = (play(game, case.make(), case.seed) for _ in range(2))
    require(first.events == again.events, "Two new players of one seed play differently.")


def check_begin_forgets(case: StudyPlayerCase) -> None:
    """A player that has played before plays like a new one."""
    used = case.make()
    play(case.game(preset="published"), used, case.seed + 1)
    first, again = (play(case.game(), player, case.seed) for player in (case.make(), used))
    require(first.events == again.events, "After another game it plays differently; `begin` must forget that one.")


def check_random_state_untouched(case: StudyPlayerCase) -> None:
    """Playing leaves the global random state of torch, NumPy and Python as it was."""
    game, player = case.game(), case.make()
    with same_random_state("Playing"):
        play(game, player, case.seed)


def check_pickles(case: StudyPlayerCase) -> None:
    """The player can be sent to another process, and plays there as here."""
    here = case.make()
    there: StudyPlayer = pickle.loads(dumps(here))
    first, again = (play(case.game(), player, case.seed) for player in (here, there))
    require(first.events == again.events, "A player that was sent to another process plays differently.")


STUDY_PLAYER_CHECKS = named(
    check_made_by_name,
    check_answers,
    check_same_seed_same_game,
    check_begin_forgets,
    check_random_state_untouched,
    check_pickles,
)
