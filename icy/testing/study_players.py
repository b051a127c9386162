"""Checks of simulated players of the study."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from itertools import product

from joblib.externals.loky.backend.reduction import dumps

from icy.core.errors import InvalidSettingError
from icy.study.game import StudyGame, StudyGameSettings, instance_of
from icy.study.players.player import StudyPlayer, play

from .cases import Case, CheckFailure, require

SHORT = {"examples": 14, "held_out_at": (5, 9, 13), "interval": 3}  # games of checks


@dataclass(frozen=True)
class StudyPlayerCase(Case):
    """A simulated player under test.

    Attributes:
        seed: seed of the simulated persons.
    """

    seed: int = field(default=0, kw_only=True)

    def make(self) -> StudyPlayer:
        """Make the player."""
        made: StudyPlayer = self.entry.create()
        require(isinstance(made, StudyPlayer), f"The factory made a {type(made).__name__}, not a StudyPlayer.")
        return made

    def game(self, dataset: str = "synth", preset: str = "clean") -> StudyGame:
        """Return a short game."""
        settings = StudyGameSettings.of(preset, dataset=dataset, grammar="perm", **SHORT)
        return StudyGame(settings, instance_of(settings, self.seed), self.seed)

    def require_same_game(self, player: StudyPlayer, what: str) -> None:
        """Fail the check unless a player plays a game like a new player."""
        first, again = (play(self.game(), one, self.seed) for one in (self.make(), player))
        require(first.events == again.events, what)

    def use(self) -> None:
        """Play a game."""
        play(self.game(), self.make(), self.seed)

    def check_answers(self) -> None:
        """Every answer can be sent: text of letters a to z, not empty and not too long."""
        for dataset, preset in product(("synth", "eng"), ("clean", "published")):
            try:
                play(self.game(dataset, preset), self.make(), self.seed)
            except InvalidSettingError as error:
                raise CheckFailure(str(error)) from error

    def check_same_seed_same_game(self) -> None:
        """A seed gives the same game every time."""
        self.require_same_game(self.make(), "Two new players of one seed play differently.")

    def check_begin_forgets(self) -> None:
        """A player that has played before plays like a new player."""
        used = self.make()
        play(self.game(preset="published"), used, self.seed + 1)
        self.require_same_game(used, "After another game it plays differently; `begin` must forget earlier games.")

    def check_pickles(self) -> None:
        """The player can be sent to another process, and plays the same there."""
        sent: StudyPlayer = pickle.loads(dumps(self.make()))
        self.require_same_game(sent, "A player that was sent to another process plays differently.")
