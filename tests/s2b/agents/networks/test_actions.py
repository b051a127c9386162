"""Actions as numbers: legal options, and their messages and decisions in the game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import UnknownNameError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.agents.networks.observations import NEVER, Actions

GAME = GameSettings(most=2)  # 2 decisions, and 1 + 3 + 9 + 27 sentences of three tokens


def test_numbers_of_options_match_the_authors_program() -> None:
    wide, long = GameSettings(), GameSettings(length=4)
    assert (Actions(wide, "both").width, Actions(long, "both").width) == (519, 3111)
    assert Actions(GameSettings(most=3), "both").width == 171
    assert Actions(wide, "tokens").sizes == (7, 7, 7)
    assert Actions.of_role(wide, "listener").sizes == (3,)
    assert Actions.of_role(wide, "speaker").sizes == (260,)
    assert Actions.of_role(GameSettings(listener_messages=True), "listener").form == "both"


def test_an_unknown_form_raises_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean tokens"):
        Actions(GAME, "token")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["decision", "sentence", "tokens", "both"])
@pytest.mark.parametrize("role", ["speaker", "listener"])
@pytest.mark.parametrize("game", [{}, {"masks": "near32"}, {"listener_messages": True, "rounds": 2}])
def test_legal_options_are_exactly_those_that_the_game_accepts(form: Any, role: str, game: Any) -> None:
    settings = GameSettings(most=2, **game)
    actions = Actions(settings, form)
    played = BatchedGame(settings, episodes=1)
    turn = played.reset(seed=1)
    for _ in range(settings.rounds + 3):
        seen = turn.seen_by(role)
        legal = actions.legal(seen)[0]
        asked = {"decision": seen.may_decide, "both": seen.may_decide | seen.may_speak}.get(form, seen.may_speak)[0]
        blocks = legal.split(actions.sizes)
        if form == "tokens":
            assert all(b.all() if asked else b.tolist() == [True] + [False] * (len(b) - 1) for b in blocks)
        else:
            assert bool(legal[-1]) is not bool(asked)
        for option in range(actions.sizes[0]):
            chosen = np.array([[option] + [0] * (len(actions.sizes) - 1)])
            message, decision = actions.taken(chosen)
            wrong = message is not None and message.any() and not seen.may_speak[0]
            wrong |= decision is not None and decision.any() and not seen.may_decide[0]
            if blocks[0][option]:
                assert not wrong
            elif option != actions.sizes[0] - 1:
                assert wrong or not asked
        turn = played.step()


def test_choices_are_decoded_to_messages_and_decisions() -> None:
    both = Actions(GAME, "both")
    numbers = torch.tensor([[40 + 5], [3], [80]])  # the second decision with sentence 5; sentence 3; none
    message, decision = both.taken(numbers)
    assert message is not None
    assert decision is not None
    assert message.tolist() == [[2, 1, 0], [3, 0, 0], [0, 0, 0]]
    assert decision.tolist() == [1, 0, 0]
    message, decision = both.taken(numbers.numpy())
    assert isinstance(message, np.ndarray)
    assert decision is not None
    assert decision.tolist() == [1, 0, 0]
    assert Actions(GAME, "decision").taken(np.array([[1], [2]]))[1].tolist() == [1, 0]  # type: ignore[union-attr]
    message, decision = Actions(GAME, "tokens").taken(np.array([[2, 0, 3]]))
    assert message is not None
    assert message.tolist() == [[2, 0, 0]]
    assert decision is None


def test_best_and_chosen_scores_are_computed_per_choice() -> None:
    actions = Actions(GameSettings(most=2, vocab_size=2, length=2), "tokens")
    scores = torch.tensor([[0.0, 3.0, 1.0, 5.0, 4.0, 9.0]])
    legal = torch.tensor([[True, False, True, True, True, False]])
    assert actions.best(scores, legal).tolist() == [[2, 0]]
    assert actions.chosen_scores(scores, torch.tensor([[1, 2]])).tolist() == [[3.0, 9.0]]
    assert actions.masked(scores, legal).isfinite().all()
    assert actions.one_hot(torch.tensor([[1, NEVER]])).tolist() == [[0, 1, 0, 0, 0, 0]]
