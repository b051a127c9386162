"""Checks of simulated players of the study. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from joblib.externals.loky.backend.reduction import dumps

from icy.core.errors import InvalidSettingError
from icy.core.registry import Entry
from icy.study.game import StudyGame, StudyGameSettings, instance_of
from icy.study.players.player import StudyPlayer
from icy.study.players.sitting import play

from .cases import CheckFailure, check_made_by_name, named, require, same_random_state

SHORT = {"examples": 14, "held_out_at": (5, 9, 13), "interval": 3}  # games of checks


@dataclass(frozen=True)
class StudyPlayerCase:
    """A simulated player under test.

    Attributes:
        entry: the player's registry entry.
        seed: seed of the simulated persons.
        registered: whether the registry knows the player.
    """

    entry: Entry
    seed: int = 0
    registered: bool = True

    def make(self) -> StudyPlayer:
        """Make the player."""
        made: StudyPlayer = self.entry.create()
        require(isinstance(made, StudyPlayer), f"The factory made a {type(made).__name__}, not a StudyPlayer.")
        return made

    def game(self, dataset: str = "synth", preset: str = "clean") -> StudyGame:
        """Return a short game."""
        settings = StudyGameSettings.of(preset, dataset=dataset, grammar="perm", **SHORT)
        return StudyGame(settings, instance_of(settings, self.seed), self.seed)

    def games(self) -> Iterator[StudyGame]:
        """Yield short games of all datasets and presets."""
        for dataset, preset in product(("synth", "eng"), ("clean", "published")):
            yield self.game(dataset, preset)


def check_answers(case: StudyPlayerCase) -> None:
    """Every answer can be sent: text of letters a to z, not empty and not too long."""
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
    """A player that has played before plays like a new player."""
    used = case.make()
    play(case.game(preset="published"), used, case.seed + 1)
    first, again = (play(case.game(), player, case.seed) for player in (case.make(), used))
    require(first.events == again.events, "After another game it plays differently; `begin` must forget earlier games.")


def check_random_state_untouched(case: StudyPlayerCase) -> None:
    """Playing does not change the global random state of torch, NumPy and Python."""
    game, player = case.game(), case.make()
    with same_random_state("Playing"):
        play(game, player, case.seed)


def check_pickles(case: StudyPlayerCase) -> None:
    """The player can be sent to another process, and plays the same there."""
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
