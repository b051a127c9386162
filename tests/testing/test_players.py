"""Players that are wrong in the way that a check looks for, which test_kinds checks; games and utterances."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from icy import testing
from icy.core.errors import IncompatibleError
from icy.s2b import Action, BatchedGame, Player, Seat, Seen
from icy.testing.cases import CheckFailure, NotApplicable
from icy.testing.players import require_same_actions
from tests.testing.mistakes import EVERY, Kind


class Listens(Player):
    """Says yes, wherever it is asked."""

    def acting(self, seen: Seen) -> Action:
        return Action(decision=np.where(seen.may_decide, self.decision(seen), 0))

    def decision(self, seen: Seen) -> Any:
        return 0


class Speaks(Player):
    """Says the first number of what it sees, as one of two tokens."""

    def acting(self, seen: Seen) -> Action:
        message = np.zeros((self.seat.episodes, self.seat.settings.length), dtype=np.int64)
        message[:, 0] = np.where(seen.may_speak, self.token(seen.stimulus[:, 0]), 0)
        return Action(message)

    def token(self, stimuli: Any) -> Any:
        return 1 + (stimuli[:, 0] > 0)

    def utter(self, stimuli: Any, meanings: Any, episode: int) -> Any:
        return self.token(stimuli)[:, None]


class NoPlayer:
    """Not derived from Player."""


class NoOneHot(Listens):
    def decision(self, seen: Seen) -> Any:
        assert self.seat.settings.representation == "scs"
        return 0


class Decides(Player):
    """Decides wherever it is asked, and elsewhere."""

    def acting(self, seen: Seen) -> Action:
        return Action(decision=np.ones(self.seat.episodes, dtype=np.int64))


class Unseeded(Listens):
    def decision(self, seen: Seen) -> Any:
        return np.random.default_rng().integers(2, size=self.seat.episodes)


class DrawsElsewhere(Listens):
    def decision(self, seen: Seen) -> Any:
        np.random.random()
        return 0


class CountsOthers(Listens):
    def decision(self, seen: Seen) -> Any:
        return int(self.seat.episodes > 1)


class Ages(Listens):
    age = 0

    def begin(self, seat: Seat) -> None:
        super().begin(seat)
        self.age += 1

    def decision(self, seen: Seen) -> Any:
        return self.age % 2


class Remembers(Listens):
    """Decides by all that it has heard since it sat down."""

    def begin(self, seat: Seat) -> None:
        super().begin(seat)
        self.heard = np.zeros(seat.episodes, dtype=np.int64)

    def decision(self, seen: Seen) -> Any:
        self.heard += seen.message.sum(1)
        return self.heard % 2


class Peeks(Listens):
    """Looks for the game among what its callers know."""

    def decision(self, seen: Seen) -> Any:
        frame: Any = sys._getframe()
        while frame is not None:
            game = frame.f_locals.get("game")
            if isinstance(game, BatchedGame):
                return game.answer
            frame = frame.f_back
        return 0


class WritesInput(Listens):
    def decision(self, seen: Seen) -> Any:
        seen.stimulus[:] = 0
        return 0


class UttersOtherwise(Speaks):
    def utter(self, stimuli: Any, meanings: Any, episode: int) -> Any:
        return self.token(stimuli)


WRONG = {
    "made_by_name": NoPlayer,
    "plays_every_game": NoOneHot,
    "legal_actions": Decides,
    "deterministic": Unseeded,
    "random_state_untouched": DrawsElsewhere,
    "alone_and_in_a_batch": CountsOthers,
    "begins_anew": Ages,
    "forgets_between_episodes": Remembers,
    "sees_only_observations": Peeks,
    "observations_unchanged": WritesInput,
    "utters": UttersOtherwise,
}


KIND = Kind(
    "listener",
    WRONG,
    Listens,
    {"plays_every_game": "plays all", "utters": "does not apply: only speakers have `utter`"},
    also={"made_by_name": EVERY},
    mark="contract",
)


@pytest.mark.contract
def test_a_strangers_speaker_passes() -> None:
    results = {r.name: r for r in testing.check(Speaks, "speaker")}
    assert set(results) == KIND.checks
    assert results["plays_every_game"].message == "plays all"
    assert not results["utters"].excused


@pytest.mark.contract
def test_checks_that_do_not_apply_give_the_reason() -> None:
    class Mute(Speaks):
        utter = Player.utter

    results = {r.name: r for r in testing.check(Mute, "speaker")}
    assert results["utters"].message == "does not apply: Mute has no method `utter`, so its language cannot be probed"
    results = {r.name: r for r in testing.check("oracle", "listener")}
    assert "is privileged" in results["sees_only_observations"].message
    results = {r.name: r for r in testing.check(Unseeded, "listener", raise_on_failure=False)}
    assert "as the check 'deterministic' reports" in results["begins_anew"].message


def test_a_player_that_refuses_every_game_is_no_player() -> None:
    class Refuses(Listens):
        def begin(self, seat: Seat) -> None:
            raise IncompatibleError("No.")

    results = {r.name: r for r in testing.check(Refuses, "listener", raise_on_failure=False)}
    assert results["plays_every_game"].message.startswith("The player refuses every game: K = 0, K = 3, ")
    assert [name for name, r in results.items() if not r.passed] == ["plays_every_game"]
    assert results["deterministic"].excused


def test_the_game_and_the_line_to_mend_are_named() -> None:
    class Broken(Listens):
        def decision(self, seen: Seen) -> Any:
            raise ZeroDivisionError("my own fault")

    results = {r.name: r for r in testing.check(Broken, "listener", raise_on_failure=False)}
    message = results["plays_every_game"].message
    assert message.startswith("ZeroDivisionError: my own fault. The game was 'K = 0' (line ")
    assert "test_players.py" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uttered", "sentence"),
    [
        (lambda stimuli: np.full((len(stimuli), 2), 9), "Tokens must be 0..6; `utter` returned 9 to 9."),
        (lambda stimuli: stimuli, "not float32 of shape (3, 2)"),
        (lambda stimuli: np.random.default_rng().integers(2, 6, size=(len(stimuli), 9)), "the second time"),
    ],
)
def test_utterances_are_tokens(uttered: Any, sentence: str) -> None:
    class Utters(Speaks):
        def utter(self, stimuli: Any, meanings: Any, episode: int) -> Any:
            return uttered(stimuli)

    results = {r.name: r for r in testing.check(Utters, "speaker", raise_on_failure=False)}
    assert sentence in results["utters"].message


def test_actions_that_agree_by_chance_at_first_are_still_told_from_those_that_always_do() -> None:
    yes, no = np.array([[0]]), np.array([[1]])
    with pytest.raises(CheckFailure, match=r"They differ\. The first difference is at step 0"):
        require_same_actions([no], [yes], "They differ", lambda: [yes])
    played = iter([yes, yes, no])
    with pytest.raises(NotApplicable, match="not deterministic"):
        require_same_actions([no], [yes], "They differ", lambda: [next(played)])
