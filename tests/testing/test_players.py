"""Checks of players of S2B and of the study, and of text models."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from icy import testing
from icy.core.errors import IncompatibleError
from icy.s2b import Action, BatchedGame, Player, Seat, Seen, TextReply, TextRequest
from icy.s2b.text.scripted import YesModel, as_json
from icy.study.players.player import Item, StudySeat
from icy.study.players.simulated import Composer
from tests.testing.mistakes import EVERY, Kind

# -- players that are wrong in the way that a check looks for, which test_kinds checks; games and utterances -----------


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
    also={"made_by_name": EVERY, "deterministic": EVERY, "random_state_untouched": EVERY},
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


# -- players of the study that are wrong in the way that a check looks for; test_kinds checks them ---------------------


class Plain(Composer):
    """A player as a stranger would write it."""


class Mute(Composer):
    def answer(self, item: Item) -> str:
        return ""


class RemembersGames(Composer):
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


class NoStudyPlayer:
    """Not derived from StudyPlayer."""


OF_STUDY = Kind(
    "study-player",
    {
        "made_by_name": NoStudyPlayer,
        "answers": Mute,
        "begin_forgets": RemembersGames,
        "random_state_untouched": Global,
        "pickles": Local,
    },
    Plain,
    also={
        "made_by_name": EVERY,
        "answers": EVERY,
    },
)


# -- the contract of text models: what passes, and what each check finds -----------------------------------------------


def function(name: str, settings: Any) -> Callable[[TextRequest], TextReply]:
    """A plain function."""
    return lambda request: as_json(1)


class Texts(YesModel):
    def reply(self, request: TextRequest) -> Any:
        return '{"decision": 0}'


class Bools(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(True)


class Ending(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return TextReply(0, finish=["stop"])  # type: ignore[arg-type]


class Lazy(YesModel):
    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        yield 0, as_json(0)


class Remembering(YesModel):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen = 0

    def reply(self, request: TextRequest) -> TextReply:
        self.seen += 1
        return as_json(self.seen % 2)


class Drawing(YesModel):
    def reply(self, request: TextRequest) -> TextReply:
        return as_json(int(2 * random.random()))


class Changing(YesModel):
    count = 0

    def identity(self) -> dict[str, Any]:
        type(self).count += 1
        return {"model": self.count}


class Stubborn(YesModel):
    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        if requests[0].role == "listener" and requests[0].episode_id + len(requests) > 1:
            raise RuntimeError("one at a time")
        return super().answer(requests)


WRONG_TEXTS = {
    "made_by_name": lambda name, settings: 5,
    "answers_every_request": Texts,
    "keeps_nothing": Remembering,
    "identity": Changing,
    "random_state_untouched": Drawing,
    "plays": Stubborn,
}
OF_TEXT = Kind(
    "text-model",
    WRONG_TEXTS,
    function,
    {"answers_every_request": "4 of 8 answers are valid"},  # it gives no messages
    also=dict.fromkeys(WRONG_TEXTS, EVERY),
)


def results(model: Any) -> dict[str, Any]:
    return {result.name: result for result in testing.check(model, "text-model", raise_on_failure=False)}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Texts, "return an icy.s2b.TextReply"),
        (Bools, "wrong type: Expected `int | null`, got `bool` - at `$.decision`"),
        (Ending, "wrong type: Expected `str | null`, got `array` - at `$.finish`"),
        (Lazy, "yield each place once"),
    ],
)
def test_answers_of_another_kind_are_found(model: Any, said: str) -> None:
    assert said in results(model)["answers_every_request"].message


@pytest.mark.parametrize("name", ["scripted-yes", "scripted-oracle", "http", "transformers"])
def test_models_of_icy_keep_the_contract(name: str) -> None:
    found = results(name)
    assert {result.passed for result in found.values()} == {True}
    excused = {name for name, result in found.items() if result.excused}
    if name in ("http", "transformers"):
        assert excused == OF_TEXT.checks
        assert "is named by" in found["plays"].message
    elif name == "scripted-oracle":
        assert excused == {"answers_every_request", "keeps_nothing", "random_state_untouched"}
    else:
        assert excused == set()
        assert found["plays"].message.startswith("0 of ")
